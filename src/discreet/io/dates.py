"""How are the dates of a text column written?

Days stand in texts as ``31.12.1990``, ``12/31/1990``, ``31-Dec-1990`` and in other ways, with or without a time of day.
A column is read as dates when every value that is not missing is one in the same way. ``03/04/1990`` is the third of
April in most countries and the fourth of March in one: where no value of the column, nor of another column with the
same marks, settles that, the column stays text and the reader is told how to say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import polars as pl

from discreet.core.errors import InputError, ParameterError

ORDERS = ("dmy", "mdy", "ymd")
_KEEP_TEXT = "text"
_HEAD = 2_000


@dataclass(frozen=True)
class Wanted:
    """What the reader was told about dates: an order where it is in doubt, formats of columns, or not to look."""

    order: str | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    look: bool = True


@dataclass(frozen=True)
class _Shape:
    """One way to write a day (and a time): a pattern, its marks and the format in each order that is possible."""

    pattern: str
    marks: str
    formats: Mapping[str, str]
    usual: str | None = None


def _days() -> Iterator[_Shape]:
    for mark in "./-":
        place = "\\" + mark
        orders = {"dmy": f"%d{mark}%m{mark}%Y", "mdy": f"%m{mark}%d{mark}%Y"}
        # Points stand between day and month in countries that write the day first.
        yield _Shape(
            rf"\d{{1,2}}{place}\d{{1,2}}{place}\d{{4}}", mark, orders, "dmy" if mark == "." else None
        )
        yield _Shape(rf"\d{{4}}{place}\d{{1,2}}{place}\d{{1,2}}", mark, {"ymd": f"%Y{mark}%m{mark}%d"}, "ymd")
    for (letters, month), mark in product((("{3}", "%b"), ("{3,9}", "%B")), " -"):
        yield _Shape(
            rf"\d{{1,2}}{mark}[A-Za-z]{letters}{mark}\d{{4}}",
            mark,
            {"dmy": f"%d{mark}{month}{mark}%Y"},
            "dmy",
        )
    for letters, month in (("{3}", "%b"), ("{3,9}", "%B")):
        yield _Shape(rf"[A-Za-z]{letters} \d{{1,2}}, \d{{4}}", ",", {"mdy": f"{month} %d, %Y"}, "mdy")


_TIMES = (
    ("", ""),
    *(
        (rf"{blank}\d{{1,2}}:\d{{2}}{more}", f"{blank}%H:%M{form}")
        for blank in " T"
        for more, form in (("", ""), (r":\d{2}", ":%S"), (r":\d{2}\.\d+", ":%S%.f"))
    ),
    *(
        (rf" \d{{1,2}}:\d{{2}}{more} [AaPp][Mm]", f" %I:%M{form} %p")
        for more, form in (("", ""), (r":\d{2}", ":%S"))
    ),
)
_SHAPES = tuple(
    _Shape(
        f"^{day.pattern}{pattern}$",
        day.marks,
        {order: form + time for order, form in day.formats.items()},
        day.usual,
    )
    for day, (pattern, time) in product(_days(), _TIMES)
)
_ANY_DATE = (
    r"^(?:\d{1,4}[./ -](?:\d{1,2}|[A-Za-z]{3,9})[./ -]\d{1,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})"
    r"(?:[ T]\d{1,2}:\d{2}.*)?$"
)


def wanted_dates(dates: str | Sequence[str] | Mapping[str, str] | None) -> Wanted:
    """Read the option ``dates``: an order, ``"text"``, or formats by column (``"born=%d/%m/%Y"``).

    Examples
    --------
    >>> wanted_dates(["dmy", "seen=%m/%d/%Y"])
    Wanted(order='dmy', formats={'seen': '%m/%d/%Y'}, look=True)
    """
    if dates is None:
        return Wanted()
    if isinstance(dates, Mapping):
        given = [f"{column}={form}" for column, form in dates.items()]
    else:
        given = [dates] if isinstance(dates, str) else list(dates)
    order, formats, look = None, {}, True
    for word in given:
        column, equals, form = str(word).rpartition("=")
        if equals and column and "%" in form:
            formats[column] = form
        elif word == _KEEP_TEXT:
            look = False
        elif word in ORDERS:
            order = str(word)
        else:
            raise ParameterError(
                "dates takes an order ('dmy', 'mdy' or 'ymd'), 'text' to leave dates as texts, or a column and its "
                "format, e.g. 'born=%d/%m/%Y'."
            )
    return Wanted(order, formats, look)


def dates_of(
    texts: pl.LazyFrame, columns: Mapping[str, str], wanted: Wanted
) -> tuple[dict[str, str], list[str]]:
    """Find the format of every column of texts that holds dates, and the columns whose order is in doubt.

    Parameters
    ----------
    texts
        The columns as texts, with missing values as null.
    columns
        The columns to judge, with the names that people know them by.
    wanted
        What the reader was told.

    Examples
    --------
    >>> texts = pl.LazyFrame({"a": ["31.12.1990", "1.2.1991"], "b": ["03/04/1990", None], "c": ["x", "y"]})
    >>> dates_of(texts, {"a": "born", "b": "seen", "c": "other"}, Wanted())
    ({'a': '%d.%m.%Y'}, ['b'])
    """
    found = {place: wanted.formats[name] for place, name in columns.items() if name in wanted.formats}
    _check_formats(texts, found, columns)
    if not wanted.look:
        return found, []
    shapes = _shapes(texts, [place for place in columns if place not in found])
    if not shapes:
        return found, []
    held = _held(texts, shapes)
    settled: dict[str, str] = {}
    for place, shape in shapes.items():
        if len(held[place]) == 1 and len(shape.formats) > 1:
            settled.setdefault(shape.marks, held[place][0])
    doubtful = []
    for place, shape in shapes.items():
        orders = held[place]
        if not orders:
            continue
        order = _chosen(orders, (wanted.order, settled.get(shape.marks), shape.usual))
        if order is None:
            doubtful.append(place)
        else:
            found[place] = shape.formats[order]
    return found, doubtful


def parsed(column: pl.Expr, form: str, *, strict: bool = True) -> pl.Expr:
    """Turn texts into days, or into moments where the format has a time of day."""
    if has_time(form):
        return column.str.to_datetime(form, time_unit="us", strict=strict)
    return column.str.to_date(form, strict=strict)


def has_time(form: str) -> bool:
    """Whether a format has a time of day."""
    return any(part in form for part in ("%H", "%I", "%T", "%s"))


def question_of_order(names: Sequence[str]) -> str:
    """Ask how the dates of these columns are to be read."""
    listed = ", ".join(f"'{name}'" for name in names[:3]) + (", …" if len(names) > 3 else "")
    return (
        f"The dates in {listed} can be read as day/month/year or as month/day/year, and no value settles it: they were "
        "left as texts. Say dates='dmy' or dates='mdy' (on the command line --dates dmy)."
    )


def _chosen(orders: Sequence[str], preferred: Sequence[str | None]) -> str | None:
    if len(orders) == 1:
        return orders[0]
    return next((order for order in preferred if order in orders), None)


def _shapes(texts: pl.LazyFrame, places: Sequence[str]) -> dict[str, _Shape]:
    """Tell from the head of the file in which way each column may write dates."""
    if not places:
        return {}
    head = texts.select(places).head(_HEAD).collect()
    likely = [place for place in places if _all(head[place], _ANY_DATE)]
    shapes = {
        place: next((shape for shape in _SHAPES if _all(head[place], shape.pattern)), None)
        for place in likely
    }
    return {place: shape for place, shape in shapes.items() if shape is not None}


def _all(values: pl.Series, pattern: str) -> bool:
    known = values.drop_nulls()
    return bool(len(known) and known.str.contains(pattern).all())


def _held(texts: pl.LazyFrame, shapes: Mapping[str, _Shape]) -> dict[str, list[str]]:
    """Try the orders of every column on all of its values, in one pass."""
    tests = {
        (place, order): _fails(pl.col(place), form, shape.pattern)
        for place, shape in shapes.items()
        for order, form in shape.formats.items()
    }
    row = _answers(texts, [test.any() for test in tests.values()])
    held: dict[str, list[str]] = {place: [] for place in shapes}
    for (place, order), failed in zip(tests, row, strict=True):
        if not failed:
            held[place].append(order)
    return held


def _fails(text: pl.Expr, form: str, pattern: str | None = None) -> pl.Expr:
    unread = parsed(text, form, strict=False).is_null()
    return text.is_not_null() & (unread if pattern is None else unread | ~text.str.contains(pattern))


def _answers(texts: pl.LazyFrame, questions: Sequence[pl.Expr]) -> tuple[Any, ...]:
    numbered = [question.alias(str(number)) for number, question in enumerate(questions)]
    return tuple(texts.select(numbered).collect(engine="streaming").row(0))


def _check_formats(texts: pl.LazyFrame, formats: Mapping[str, str], columns: Mapping[str, str]) -> None:
    if not formats:
        return
    try:
        failed = _answers(texts, [_fails(pl.col(place), form).sum() for place, form in formats.items()])
    except pl.exceptions.PolarsError:
        raise ParameterError(
            "A format under 'dates' is none. Formats are written as %d/%m/%Y (day, month, year) or %Y-%m-%d %H:%M."
        ) from None
    for (place, form), count in zip(formats.items(), failed, strict=True):
        if count:
            raise InputError(
                f"{count:,} values of '{columns[place]}' are no dates of the form '{form}'. Mend them, give another "
                "format, or leave the column as texts."
            )
