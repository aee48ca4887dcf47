"""Values that a user gives for a column, in the type of the column.

A plan file knows numbers, texts, dates and truth values; a rule of it may speak of a column of any type.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError
from discreet.core.values import jsonable

_SECONDS = re.compile(r"PT(-?\d+(?:\.\d+)?)S")


def typed(value: Any, dtype: pl.DataType, column: str, setting: str) -> pl.Series:
    """Return a value as a column of one record of that type; what does not fit the type is refused.

    Examples
    --------
    >>> typed("2024-12-31", pl.Date(), "born", "rules").item()
    datetime.date(2024, 12, 31)
    """
    if value is None:
        return pl.Series([None], dtype=dtype)
    wanted = _read(value, dtype)
    fits = wanted is not None
    if fits:
        try:
            series = pl.Series([wanted], strict=False).cast(dtype)
            # Records and lists are cast part by part, and stay what they are.
            fits = series.dtype == dtype
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            fits = False
    if not fits or (dtype.is_integer() and series.item() != wanted):
        levels = " and one of its levels" if isinstance(dtype, pl.Enum) else ""
        kind = str(dtype.base_type())
        raise ColumnError(
            f"The {setting} of column '{column}' give it a value that the column cannot hold. Write it in the type of "
            f"the column ({kind}){levels}."
        )
    return series


def written(value: Any) -> Any:
    """Return a value as JSON and TOML both can hold it, so that `typed` reads it again."""
    if isinstance(value, dt.timedelta):
        return f"PT{value.total_seconds()}S"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else jsonable(value)


def _read(value: Any, dtype: pl.DataType) -> Any:
    """Bring a value to the Python type that goes with a column; None where there is no way."""
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.String):
        return value if isinstance(value, str) else None
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    if dtype.is_temporal():
        return _time(value, dtype)
    if isinstance(dtype, pl.Decimal):
        return _decimal(value)
    if isinstance(value, bool | str) and dtype.is_numeric():
        return None
    return value


def _time(value: Any, dtype: pl.DataType) -> Any:
    kinds: dict[Any, Any] = {pl.Date: dt.date, pl.Datetime: dt.datetime, pl.Time: dt.time}
    kind = kinds.get(dtype.base_type())
    if kind is None:
        found = _SECONDS.fullmatch(value) if isinstance(value, str) else None
        return (
            dt.timedelta(seconds=float(found[1]))
            if found
            else value
            if isinstance(value, dt.timedelta)
            else None
        )
    if isinstance(value, str):
        try:
            value = kind.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(dtype, pl.Datetime) and isinstance(value, dt.date):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        return _in_zone(moment, dtype.time_zone)
    return (
        value
        if isinstance(value, kind) and not (kind is dt.date and isinstance(value, dt.datetime))
        else None
    )


def _in_zone(moment: dt.datetime, zone: str | None) -> dt.datetime | None:
    """Read a time without a zone as one of the column's own; refuse a zone where the column has none."""
    if zone is None:
        return moment if moment.tzinfo is None else None
    from zoneinfo import ZoneInfo

    return (
        moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))
    )


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    try:
        return Decimal(str(value))
    except ArithmeticError:
        return None
