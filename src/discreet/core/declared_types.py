"""Columns in the types that were declared of them.

Under a guarantee nothing of a column is read off the data, not even its type: one 2.5 makes a column of whole numbers
one of decimals, and one word makes it one of texts. What is published then has the type of what was declared: the
levels, or the ends of the range. Values that this type does not have count as missing, like levels that were not
declared.
"""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError
from discreet.core.values import canonical_text
from discreet.core.wording import type_name

_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def type_of_values(values: Sequence[Any], column: str) -> pl.DataType:
    """The type of values that a user declares: whole numbers are Int64, one decimal makes all of them Float64.

    Examples
    --------
    >>> type_of_values([0, 120], "age"), type_of_values([0, 1.0], "share"), type_of_values(["f", "m"], "sex")
    (Int64, Float64, String)
    """
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {pl.Int64, pl.Float64}:
        return pl.Float64()
    if len(kinds) != 1 or None in kinds:
        raise ColumnError(
            f"The declared values of column '{column}' must be of one type: texts, numbers, dates or truth values."
        )
    found = kinds.pop()
    return (
        pl.Datetime("us") if found is pl.Datetime else pl.Duration("us") if found is pl.Duration else found()
    )


def _kind(value: Any) -> Any:
    if isinstance(value, bool):
        return pl.Boolean
    if isinstance(value, str):
        return pl.String
    if isinstance(value, numbers.Integral):
        return pl.Int64
    if isinstance(value, numbers.Number):
        return pl.Float64
    # A datetime is a date to Python.
    for python, polars in (
        (dt.datetime, pl.Datetime), (dt.date, pl.Date), (dt.time, pl.Time), (dt.timedelta, pl.Duration),
    ):  # fmt: skip
        if isinstance(value, python):
            return polars
    return None


def is_range(domain: Any) -> bool:
    """Whether a domain is a range: a tuple, or, as plan files have no tuples, a list of two rising numbers.

    Two whole numbers that follow each other in a list are levels; as a range they would be the same values.

    Examples
    --------
    >>> is_range((0, 1)), is_range([0, 100]), is_range([0, 1]), is_range(["f", "m"])
    (True, True, False, False)
    """
    if not isinstance(domain, Sequence) or isinstance(domain, str) or len(domain) != 2:
        return False
    if isinstance(domain, tuple):
        return not any(isinstance(end, str | bool) for end in domain)
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in domain):
        return False
    low, high = domain
    return low < high and not (isinstance(low, int) and isinstance(high, int) and high - low == 1)


def as_declared(series: pl.Series, domain: Any, *, ranged: bool | None = None) -> pl.Series:
    """Bring a column to the type of its declared levels or range; what does not fit is missing.

    ``ranged`` says whether the values are those of a range, where their form (`is_range`) does not.

    Examples
    --------
    >>> as_declared(pl.Series("age", [30.0, 2.5, None]), (0, 120)).to_list()
    [30, 2, None]
    >>> as_declared(pl.Series("rooms", ["1", "2", "many"]), [1, 2, 3]).to_list()
    [1, 2, None]
    """
    if isinstance(domain, str) or not isinstance(domain, Sequence) or not domain:
        raise ColumnError(
            f"The domain of column '{series.name}' must be a list of levels, or (low, high) for a number."
        )
    values = list(domain)
    wanted = type_of_values(values, series.name)
    ranged = is_range(domain) if ranged is None else ranged
    if wanted == pl.Int64 and ranged and not series.dtype.is_integer():
        # The nearest whole number within the range; a number of any size can be held to it.
        series = in_type(series, pl.Float64()).clip(float(min(values)), float(max(values))).round()
    if series.dtype.is_numeric():
        check_readable(values, wanted, series.name)
    made = in_type(series, wanted)
    if wanted == pl.String and series.dtype in (pl.Categorical, pl.Enum):
        made = made.cast(pl.Enum(list(dict.fromkeys(values))), strict=False)
    return made.alias(series.name)


def check_readable(values: Sequence[Any], wanted: pl.DataType, column: str) -> None:
    """Refuse texts, none of which is a number, as levels of a column of numbers."""
    if wanted == pl.String and not _read(pl.Series(values, dtype=pl.String), pl.Float64()).count():
        raise ColumnError(
            f"Column '{column}' holds numbers, and none of its declared levels is one. Declare numbers."
        )


def all_declared(
    frame: pl.DataFrame, domain: Mapping[str, Any], borders: Mapping[str, Sequence[Any]] | None = None
) -> pl.DataFrame:
    """Bring the columns of a table to the types of their declared levels, ranges or borders."""
    given: dict[str, tuple[Any, bool | None]] = {name: (own, None) for name, own in domain.items()}
    given |= {name: (own, True) for name, own in (borders or {}).items()}
    return frame.with_columns(
        as_declared(frame[name], own, ranged=ranged)
        for name, (own, ranged) in given.items()
        if name in frame.columns
    )


def in_type(series: pl.Series, wanted: pl.DataType) -> pl.Series:
    """Bring a column to a type; a value that the type does not have is missing, and a kind that has none is refused."""
    own = series.dtype
    series = series.fill_nan(None) if own.is_float() else series
    if own in (wanted, pl.Null):
        return series.cast(wanted)
    if own.base_type() == wanted.base_type():
        # A time zone or the unit of a time belongs to the column, and no record has one of its own.
        return series
    if wanted == pl.String:
        return canonical_text(series)
    if own in _TEXTS:
        return _read(series.cast(pl.String), wanted)
    if wanted.is_temporal() != own.is_temporal():
        raise ColumnError(
            f"Column '{series.name}' is of type {type_name(own)}, and its domain is of type {type_name(wanted)}. "
            "Declare values of the type of the column."
        )
    if wanted == pl.Boolean:
        return (series == 1).set(~series.is_in([0, 1]).fill_null(False), None)
    if wanted == pl.Int64 and not own.is_integer() and own != pl.Boolean:
        numbered = series.cast(pl.Float64, strict=False)
        return numbered.set(numbered != numbered.round(), None).cast(wanted, strict=False)
    return series.cast(wanted, strict=False)


def _read(texts: pl.Series, wanted: pl.DataType) -> pl.Series:
    """Read texts as values of a type."""
    if wanted == pl.Boolean:
        low = texts.str.to_lowercase()
        return (low == "true").set(~low.is_in(["true", "false"]).fill_null(False), None)
    if wanted.is_numeric():
        read = texts.str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)
        return read if wanted == pl.Float64 else in_type(read, wanted)
    if wanted == pl.Date:
        return texts.str.to_date("%Y-%m-%d", strict=False)
    if wanted == pl.Datetime:
        return texts.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    return texts.cast(wanted, strict=False)
