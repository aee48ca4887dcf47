"""Values that leave a result: NumPy numbers as Python ones, and everything as JSON can hold it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from discreet.core.arrays import Flags
from discreet.core.errors import ColumnError, ParameterError


def plain(value: Any) -> Any:
    """Turn a NumPy number into a Python one; NaN becomes None, which means "undefined"."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def jsonable(value: Any) -> Any:
    """Turn a value into what JSON can hold; an infinite number becomes the text ``"inf"``."""
    value = plain(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, Sequence | set | frozenset | np.ndarray):
        return [jsonable(item) for item in value]
    return str(value)


# One text for one value, whatever type an engine or a file keeps it in.
def canonical_text(values: pl.Series) -> pl.Series:
    """Write values as the text a hierarchy file would hold: 1 and 1.0 are ``1``, midnight is a date.

    Examples
    --------
    >>> canonical_text(pl.Series([1.0, 2.5, -0.0, None])).to_list()
    ['1', '2.5', '0', None]
    """
    dtype = values.dtype
    if dtype.is_float():
        whole = (values == values.round(0)) & (values.abs() < 2.0**63)
        return values.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, values.cast(pl.String))
    if isinstance(dtype, pl.Duration):
        return values.dt.to_string()
    text = values.dt.replace_time_zone(None) if isinstance(dtype, pl.Datetime) else values
    text = text.cast(pl.String)
    if dtype.is_decimal():
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(dtype, pl.Datetime):
        return text.str.replace(r" 00:00:00(\.0+)?$", "")
    return text


# Values that somebody names, in Python or in a file of texts, found again among those of a column.
def named_among(domain: pl.Series, values: Sequence[Any], column: str) -> Flags:
    """Which values of a sensitive column are those that somebody has named, in Python or in a file of texts?

    Examples
    --------
    >>> from datetime import date
    >>> named_among(pl.Series([date(2020, 1, 1), date(2020, 1, 2)]), ["2020-01-02"], "day").tolist()
    [False, True]
    """
    try:
        told = pl.Series(list(values))
        if domain.dtype.is_temporal() and told.dtype == pl.String:
            told = told.str.strptime(domain.dtype, strict=False)  # type: ignore[arg-type]
        told = told.cast(domain.dtype, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise ParameterError(
            f"values must be of one type, that of the sensitive column '{column}'."
        ) from error
    named: Flags = domain.is_in(told.implode()).fill_null(False).to_numpy()
    if not named.any():
        raise ParameterError(f"None of the values to protect occurs in the sensitive column '{column}'.")
    return named


# Are the dates and times of a frame such that they can be written down?
#
# A column of dates is a column of whole numbers underneath, and a file can hold numbers that no calendar knows: the
# engine stops in its tracks when it has to show one. Such columns are refused by name before anything is made of them.


_EPOCH = dt.datetime(1970, 1, 1)
_TICKS = {"ns": 10**9, "us": 10**6, "ms": 10**3}
_LONGEST = dt.timedelta(days=999_999_999).total_seconds()
_DAY = 86_400


def check_calendar(frame: pl.DataFrame | pl.LazyFrame, *, named: bool = True) -> None:
    """Refuse a column with dates outside of the years 1 to 9999, or with times and durations nobody can write.

    ``named`` says that the frame has the user's own names, so that the column can be named.

    Examples
    --------
    >>> check_calendar(pl.DataFrame({"born": pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date)}))
    Traceback (most recent call last):
    discreet.core.errors.ColumnError: Column 'born' holds dates outside of the years 1 to 9999. Set ...
    """
    moments = {name: kind for name, kind in frame.collect_schema().items() if kind.is_temporal()}
    if not moments:
        return
    ticks = frame.lazy().select(cs.temporal().to_physical())
    found = pl.concat(
        pl.collect_all([ticks.select(pl.all().min()), ticks.select(pl.all().max())], engine="streaming")
    )
    for name, kind in moments.items():
        least, most = found[name].to_list()
        low, high = _limits(kind)
        if least is not None and (least < low or most > high):
            what = f"Column '{name}'" if named else "A column"
            raise ColumnError(f"{what} holds {_outside(kind)}. Set them to missing first.")


def _limits(kind: Any) -> tuple[int, int]:
    """Give the least and the largest number that stands for a moment of the kind."""
    if isinstance(kind, pl.Time):
        return 0, _DAY * _TICKS["ns"] - 1
    if isinstance(kind, pl.Duration):
        longest = int(_LONGEST) * _TICKS[kind.time_unit]
        return -longest, longest
    first, last = (int((moment - _EPOCH).total_seconds()) for moment in (dt.datetime.min, dt.datetime.max))
    if isinstance(kind, pl.Date):
        return first // _DAY, last // _DAY
    ticks = _TICKS[kind.time_unit]
    # A moment of the first or last day may lie in another year elsewhere.
    margin = _DAY if kind.time_zone else 0
    return (first + margin) * ticks, (last + 1 - margin) * ticks - 1


def _outside(kind: Any) -> str:
    if isinstance(kind, pl.Time):
        return "times that no clock shows"
    return (
        "durations of over 2.7 million years"
        if isinstance(kind, pl.Duration)
        else "dates outside of the years 1 to 9999"
    )
