"""Values that leave a result: NumPy numbers as Python ones, and everything as JSON can hold it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags
from discreet.core.errors import ParameterError


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
