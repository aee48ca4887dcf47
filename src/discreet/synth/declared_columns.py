"""What private generators are told of their columns: which ones, in which declared bins, and at what price.

Columns are those of the file, less what a role or the user takes out; nothing of them is read off the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.declared_types import is_range
from discreet.core.errors import ColumnError, unknown_name
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth.binned_columns import Attribute, declared_attribute
from discreet.synth.column_forms import as_numbers, is_numeric
from discreet.synth.record_units import units_left_out


def listed(columns: Columns) -> tuple[str, ...]:
    """Columns as the user names them: one, several or none.

    Examples
    --------
    >>> listed("age"), listed(None)
    (('age',), ())
    """
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def left_out_of(data: Microdata, named: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Columns that are not synthesized, and why; by roles and parameters, never by what the records are.

    ``named`` has the columns by the parameter under which the user named them.
    """
    for setting, columns in named.items():
        for name in columns:
            if name not in data.schema:
                raise ColumnError(f"{unknown_name(name, data.columns)} It was named under {setting}.")
    left_out = dict.fromkeys(named["leave_out"], "as asked for")
    left_out |= {name: "an identifier" for name in data.roles.identifiers if name not in left_out}
    for column, why in (
        (data.roles.weight, "the weight: one record would count many times"),
        (data.roles.contributor, "it says whose the records are"),
    ):
        if column and column not in left_out:
            left_out[column] = why
    return left_out | units_left_out(data, None, left_out)


# Columns by their declared domain alone, numbers in fine bins.


def declared(
    series: pl.Series, domain: Any, *, bins: int, never_missing: bool, borders: Sequence[Any] | None = None
) -> Attribute:
    """Make an attribute from its declared levels, range or borders; whole numbers get bins of whole numbers.

    Examples
    --------
    >>> declared(pl.Series("age", [30]), (0, 3), bins=128, never_missing=True).edges.tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    if borders is not None:
        return _with_borders(series, borders, never_missing=never_missing)
    if is_range(domain):
        domain = tuple(domain)
    attribute = declared_attribute(series, domain, bins=bins, never_missing=never_missing)
    if attribute.edges is None or attribute.decimals != 0:
        return attribute
    low, high = float(attribute.edges[0]), float(attribute.edges[-1])
    width = math.ceil((high - low + 1) / bins)
    count = math.ceil((high - low + 1) / width)
    return dataclasses.replace(attribute, edges=low - 0.5 + width * np.arange(count + 1, dtype=np.float64))


def _with_borders(series: pl.Series, borders: Sequence[Any], *, never_missing: bool) -> Attribute:
    """A number in bins that are public; a border belongs to the bin above it, the last one to the bin below."""
    if not is_numeric(series.dtype):
        raise ColumnError(f"Column '{series.name}' is no number, so it has levels and no borders.")
    given = as_numbers(pl.Series(list(borders), dtype=series.dtype, strict=False)).to_numpy()
    if len(given) < 2 or not np.isfinite(given).all() or not (np.diff(given) > 0).all():
        raise ColumnError(f"The borders of column '{series.name}' must be two or more numbers, rising.")
    edges = given.astype(np.float64)
    whole = series.dtype.is_integer() or series.dtype.is_temporal()
    if whole:
        # Between whole numbers, so that each belongs to one bin; the last border is a value of its bin.
        edges = np.concatenate([edges[:-1] - 0.5, edges[-1:] + 0.5])
    return Attribute(series.name, series.dtype, None, edges, not never_missing, 0 if whole else None)


# Enter the price of a synthetic file into a budget, before anything is drawn.


def pay_purely(
    ledger: dp.Ledger | None,
    data: Microdata,
    mechanism: str,
    epsilon: float,
    *,
    values: int,
    sensitivity: float | None = None,
    proved: bool = True,
) -> None:
    """Enter what it costs that one record could be any other (pure differential privacy); nothing without a ledger."""
    if ledger is not None:
        ledger.spend(
            dp.Cost(
                mechanism,
                "pure",
                epsilon=float(epsilon),
                adjacency="replace",
                sensitivity=sensitivity,
                values=values,
                purpose="synthetic file",
                proved=proved,
            ),
            data=data,
        )
