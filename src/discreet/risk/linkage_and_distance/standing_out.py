"""Who stands out? Rules for outliers, fitted on one file and applied to it or to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.distance.space import as_float

Rule = Literal["zscore", "tukey", "mad"]

CUTOFFS = {"zscore": 3.0, "tukey": 1.5, "mad": 3.0}


def outlier_flags(
    table: pl.DataFrame,
    numeric: Sequence[str],
    *,
    rule: Rule,
    combine: str,
    cutoff: float | None,
    given: Flags | None,
) -> tuple[Flags, list[str], Callable[..., Flags]]:
    """Flag the records that stand out; also name the columns without spread and give the rule for other files.

    The rule takes a table and, with ``own=True``, that table's own centre and spread instead of the first's.
    """
    if rule not in CUTOFFS:
        raise ParameterError("rule must be 'zscore', 'tukey' or 'mad'.")
    limit = CUTOFFS[rule] if cutoff is None else cutoff
    if limit <= 0:
        raise ParameterError("cutoff must be above zero.")
    fences = {name: _fences(as_float(table[name]), rule, limit) for name in numeric}
    flat = [name for name, fence in fences.items() if fence is None]
    if given is None and len(flat) == len(fences):
        raise ColumnError(
            "No numeric column with spread is among the compared columns, so nobody can stand out. Name one in "
            "columns=[…], or say who is attacked with targets=[…]."
        )

    def flags_of(other: pl.DataFrame, *, own: bool = False) -> Flags:
        found: list[Any] = []
        for name, fence in fences.items():
            values = as_float(other[name])
            bounds = _fences(values, rule, limit) if own and other.height else fence
            if bounds is not None:
                found.append((values < bounds[0]) | (values > bounds[1]))
        if not found:
            return np.zeros(other.height, dtype=bool)
        stacked = np.column_stack(found)
        return np.asarray(stacked.any(axis=1) if combine == "any" else stacked.all(axis=1))

    return (flags_of(table) if given is None else given), flat, flags_of


def _fences(values: Floats, rule: str, limit: float) -> tuple[float, float] | None:
    """Give the values beyond which a number stands out, or None where there is no spread."""
    if rule == "zscore":
        centre, spread = values.mean(), values.std()
        low, high = centre - limit * spread, centre + limit * spread
    elif rule == "tukey":
        first, third = np.quantile(values, [0.25, 0.75])
        spread = third - first
        low, high = first - limit * spread, third + limit * spread
    else:
        centre = np.median(values)
        spread = 1.4826 * np.median(np.abs(values - centre))
        low, high = centre - limit * spread, centre + limit * spread
    return (float(low), float(high)) if spread > 0 else None
