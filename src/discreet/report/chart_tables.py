"""Rows of detail tables, as the pictures need them."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import narwhals as nw

from discreet.core.results import Measure
from discreet.report.excerpts import columns_of, gathered


def rows_of(measure: Measure, table: str, *needed: str) -> list[dict[str, Any]]:
    """Return the rows of a (small) detail table; none where it is missing or lacks a needed column."""
    if table not in measure.detail:
        return []
    held = measure.detail[table]
    if not set(needed) <= set(columns_of(held)):
        return []
    return list(gathered(nw.from_native(held)).iter_rows(named=True))


def finite(value: Any) -> TypeGuard[int | float]:
    """Say whether a value is a number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> float | None:
    """Return a number that can be drawn, else None."""
    return float(value) if finite(value) else None
