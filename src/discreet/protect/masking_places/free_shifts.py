"""Shifts that look at nothing but the record: one ring for all, no zone to stay in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Words
from discreet.core.errors import ColumnError
from discreet.core.randomness import KeyedDraws
from discreet.numerics.geography import CoordinateSystem, places_in
from discreet.protect.treatment import grouped_numbers


@dataclass(frozen=True)
class FreeShifts:
    """Where the records of a batch move, drawn by their numbers or by those of their household.

    Attributes
    ----------
    columns
        The two columns of the location.
    by
        Column whose equal values move together.
    ring
        The least and the largest shift in meters.
    law
        How distances spread over the ring.
    refuses
        Whether a record without a location is refused.
    """

    columns: tuple[str, str]
    by: str | None
    ring: tuple[float, float]
    law: Literal["uniform", "area"]
    system: CoordinateSystem
    draws: KeyedDraws
    refuses: bool

    def __call__(self, table: pl.DataFrame, records: Words) -> Mapping[str, pl.Series]:
        """Move the records of a batch."""
        places = places_in(table, self.columns, self.system)
        gone = int((~places.known).sum())
        if gone and self.refuses:
            raise ColumnError(
                f"{gone:,} records have no location in '{self.columns[0]}' and '{self.columns[1]}'. Say with "
                "on_missing whether to 'keep' or to 'drop' them."
            )
        numbers = grouped_numbers(table, self.by, records)[places.known]
        angle = 2 * math.pi * self.draws.uniforms(numbers)
        released = np.full_like(places.xy, np.nan)
        released[places.known] = self.system.moved(places.xy[places.known], angle, self._distances(numbers))
        return {name: in_type_of(table[name], values) for name, values in places.in_columns(released).items()}

    def _distances(self, numbers: Words) -> Floats:
        inner, outer = self.ring
        share = self.draws.uniforms(numbers, 1)
        if self.law == "area":
            return np.asarray(np.sqrt(inner**2 + share * (outer**2 - inner**2)))
        return np.asarray(inner + share * (outer - inner))


def in_type_of(old: pl.Series, values: Floats) -> pl.Series:
    """Keep the type of the column; whole numbers are rounded to whole numbers."""
    fresh = pl.Series(old.name, values, nan_to_null=True)
    if not old.dtype.is_integer():
        return fresh.cast(old.dtype)
    try:
        return fresh.round().cast(old.dtype)
    except pl.exceptions.InvalidOperationError:
        return fresh.round().cast(pl.Int64)
