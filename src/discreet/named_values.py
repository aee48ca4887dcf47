"""Values that somebody names, in Python or in a file of texts, found again among those of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from discreet.arrays import Flags
from discreet.errors import ParameterError


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
