"""Are the dates and times of a frame such that they can be written down?

A column of dates is a column of whole numbers underneath, and a file can hold numbers that no calendar knows: the
engine stops in its tracks when it has to show one. Such columns are refused by name before anything is made of them.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import polars.selectors as cs

from discreet.core.errors import ColumnError

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
