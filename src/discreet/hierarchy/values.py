"""Series in and out: any eager series becomes Polars for the work and goes back as what it was."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.values import canonical_text

_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_MOST_CODES = 2**16


def through_distinct(values: pl.Series, label: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Label each distinct value once (they are handed over sorted) and carry the labels to every record."""
    if values.dtype in _WHOLE and len(values) > values.null_count():
        least, most = values.min(), values.max()
        assert isinstance(least, int)
        assert isinstance(most, int)
        if most - least <= _MOST_CODES:
            return _by_place(values, least, most, label)
    distinct = values.unique().drop_nulls().sort()
    labels = label(distinct)
    if distinct.is_empty():
        return pl.repeat(None, len(values), dtype=labels.dtype, eager=True)
    # Physical codes spare a comparison of texts for categorical columns.
    return values.to_physical().replace_strict(
        distinct.to_physical(), labels, default=None, return_dtype=labels.dtype
    )


def _by_place(values: pl.Series, least: int, most: int, label: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Look labels up by place, which is faster than by value where whole numbers lie close together."""
    places = (values.cast(pl.Int64) - least).cast(pl.UInt32)
    there = np.zeros(most - least + 1, dtype=np.bool_)
    there[places.drop_nulls().to_numpy()] = True
    distinct = pl.Series(np.flatnonzero(there)) + least
    labels = label(distinct.cast(values.dtype))
    at = np.cumsum(there, dtype=np.uint32) - 1
    return labels.gather(pl.Series(at).gather(places))


def _beyond_arrays(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 2**64


def canonical_scalar(value: Any) -> str:
    """Write one label of a tree or of a row as text, the way `canonical_text` would."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float, datetime.date)) and not _beyond_arrays(value):
        text = canonical_text(pl.Series([value])).item()
        if text is not None and text != "NaN":
            return str(text)
    raise ParameterError(
        f"A hierarchy label must be text, a number of up to 19 digits, a date or a boolean, not {type(value).__name__}."
    )


def as_tuple(values: Any, parameter: str) -> tuple[Any, ...]:
    """Take a list-like parameter; a lone number or text is refused by name."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{parameter} must be a list, not {type(values).__name__}.")
    return tuple(values)


def is_textual(dtype: pl.DataType) -> bool:
    """Say whether values of this type have one canonical text."""
    return not dtype.is_nested() and dtype != pl.Binary


def is_categorical(dtype: pl.DataType) -> bool:
    """Say whether values of this type carry a list of categories."""
    return isinstance(dtype, (pl.Categorical, pl.Enum))
