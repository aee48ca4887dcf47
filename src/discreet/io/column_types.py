"""Which type has a column of texts? Judged on the whole column and not on its head.

A column is whole numbers, numbers, true/false, dates or times only if every value that is not missing is;
anything else stays text. Codes stay text too: a leading zero (postcode), a leading plus (phone number) or
more digits or a larger power than a number can hold would be lost.

Days stand in texts as ``31.12.1990``, ``12/31/1990``, ``31-Dec-1990`` and in other ways, with or without a time of day.
A column is read as dates when every value that is not missing is one in the same way. ``03/04/1990`` is the third of
April in most countries and the fourth of March in one: where no value of the column, nor of another column with the
same marks, settles that, the column stays text and the reader hears how to say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import polars as pl

from discreet.core.errors import InputError, ParameterError

_SAMPLE_ROWS = 2_000
_CODE = r"^(?:\+|-?0[0-9])"
_TOO_LONG = r"^-?[0-9]{16,}$"
_TRUE_FALSE = ("true", "false", "True", "False", "TRUE", "FALSE")
KINDS = ("whole", "number", "truth", "day", "moment")

TYPES: dict[str, Any] = {
    "whole": pl.Int64,
    "number": pl.Float64,
    "truth": pl.Boolean,
    "day": pl.Date,
    "moment": pl.Datetime("us"),
    "text": pl.String,
}


def kinds_of(
    texts: pl.LazyFrame,
    columns: Iterable[str],
    *,
    decimal: str = ".",
    also: Mapping[str, pl.Expr] | None = None,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Tell the kind of every column of texts in one streaming pass, after a look at the head.

    Parameters
    ----------
    texts
        The columns as texts, with missing values as null.
    columns
        The columns to judge.
    decimal
        The decimal mark.
    also
        Further aggregates to compute in the same pass.

    Returns
    -------
    tuple
        The kind by column (``whole``, ``number``, ``truth``, ``day``, ``moment`` or ``text``) and the values
        of the further aggregates.

    Examples
    --------
    >>> texts = pl.LazyFrame({"age": ["30", None], "zip": ["01234", "99999"], "born": ["1990-01-31", None]})
    >>> kinds_of(texts, ["age", "zip", "born"])[0]
    {'age': 'whole', 'zip': 'text', 'born': 'day'}
    """
    columns = list(columns)
    head = texts.head(_SAMPLE_ROWS).collect().lazy()
    possible = _possible(head, dict.fromkeys(columns, KINDS), decimal, is_head=True)[0]
    # What the head rules out need not be looked at again, and the likeliest kind nearly always holds to the
    # end: only where it does not, the others are tried.
    held, extra = _possible(texts, {column: kinds[:1] for column, kinds in possible.items()}, decimal, also)
    others = {column: kinds[1:] for column, kinds in possible.items() if kinds[1:] and not held[column]}
    held |= _possible(texts, others, decimal)[0] if others else {}
    return {column: next(iter(held[column]), "text") for column in columns}, extra


def typed(column: str, kind: str, *, decimal: str = ".") -> pl.Expr:
    """Convert a column of texts to its kind."""
    return _converted(pl.col(column), kind, decimal, strict=True)


def _possible(
    texts: pl.LazyFrame,
    candidates: Mapping[str, tuple[str, ...]],
    decimal: str,
    also: Mapping[str, pl.Expr] | None = None,
    *,
    is_head: bool = False,
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    tests: dict[tuple[int, str], pl.Expr] = {}
    for place, (column, kinds) in enumerate(candidates.items()):
        text = pl.col(column)
        if kinds:
            tests[place, "values"] = text.count()
        for kind in kinds:
            tests[place, kind] = (text.is_not_null() & _refused(text, kind, decimal)).any()
        if "whole" in kinds or "number" in kinds:
            tests[place, "code"] = text.str.contains(_CODE).any()
        if "number" in kinds:
            tests[place, "long"] = text.str.contains(_TOO_LONG).any()
    questions = [test.alias(f"{place}/{what}") for (place, what), test in tests.items()]
    extra = {name: expression.alias(f"also/{name}") for name, expression in (also or {}).items()}
    if not questions and not extra:
        return dict(candidates), {}
    row = texts.select(*questions, *extra.values()).collect(engine="streaming").row(0, named=True)
    answers = {key: row[f"{key[0]}/{key[1]}"] for key in tests}
    possible = {
        column: _held(place, kinds, answers, is_head=is_head)
        for place, (column, kinds) in enumerate(candidates.items())
    }
    return possible, {name: row[f"also/{name}"] for name in extra}


def _held(
    place: int, kinds: tuple[str, ...], answers: Mapping[tuple[int, str], Any], *, is_head: bool
) -> tuple[str, ...]:
    if kinds and answers[place, "values"] == 0:
        # Nothing but missing values: after the head anything may still follow, at the end nothing did.
        return kinds if is_head else ()
    held = [kind for kind in kinds if not answers[place, kind]]
    if answers.get((place, "code")):
        held = [kind for kind in held if kind not in ("whole", "number")]
    if answers.get((place, "long")) and "whole" not in held:
        held = [kind for kind in held if kind != "number"]
    return tuple(held)


def _refused(text: pl.Expr, kind: str, decimal: str) -> pl.Expr:
    if kind == "truth":
        return ~text.is_in(_TRUE_FALSE)
    converted = _converted(text, kind, decimal, strict=False)
    if kind != "number":
        return converted.is_null()
    # A number that no float holds would become infinite.
    refused = converted.is_null() | (converted.is_infinite() & text.str.contains("[0-9]"))
    # A point beside a decimal comma groups thousands; reading it as a decimal would be wrong.
    return refused | text.str.contains(".", literal=True) if decimal == "," else refused


def _converted(text: pl.Expr, kind: str, decimal: str, *, strict: bool) -> pl.Expr:
    if kind == "whole":
        return text.cast(pl.Int64, strict=strict)
    if kind == "number":
        plain = text.str.replace(",", ".", literal=True) if decimal == "," else text
        return plain.cast(pl.Float64, strict=strict)
    if kind == "truth":
        return text.str.to_lowercase() == "true"
    if kind == "day":
        return text.str.to_date("%Y-%m-%d", strict=strict)
    if kind == "moment":
        # The T of the standard and the blank that most programs write mean the same.
        blank = text.str.replace("T", " ", literal=True)
        return blank.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=strict)
    return text


# Dates


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
    held = _values_of_shapes(texts, shapes)
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


def _values_of_shapes(texts: pl.LazyFrame, shapes: Mapping[str, _Shape]) -> dict[str, list[str]]:
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
