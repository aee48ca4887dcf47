"""Turn located records into a density map that gives nobody away."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.results import Release, Step
from discreet.core.wording import type_name
from discreet.dp.entropy import Account, Stream
from discreet.dp.ledger import Ledger
from discreet.microdata import Microdata
from discreet.numerics.geography import EARTH_RADIUS, CoordinateSystem, Places, places_of
from discreet.protect.masking_places.density_map_cells import (
    Cells,
    Records,
    SafetyRule,
    gridded,
    merged,
    smoothed,
)
from discreet.protect.treatment import Change, Treatment, existing, group_column

Method = Literal["remove", "quadtree", "smooth"]


@method(
    aim="places",
    work="whole-file",
    references=(
        "de Jonge, E. and de Wolf, P.-P. (2016). Spatial smoothing and statistical disclosure control. "
        "Privacy in Statistical Databases, LNCS 9867, 107–117.",
    ),
)
@dataclass(frozen=True)
class SpatialRaster(Treatment):
    """Make a density map of the records and take care of its sensitive cells.

    It protects against finding a home, or the contribution of one firm, on a map: cells with few people or a
    dominant one are merged, smoothed or removed.

    The release is the map, one record a cell: the middle of the cell in the location columns, ``cell_size``, ``count``
    and, with a ``value``, its ``total`` and ``mean``. Empty cells are not listed. A cell is sensitive when it has fewer
    than ``min_count`` contributors, when the largest of them makes up more than ``max_share`` of the total (or the p%
    rule flags it), or, for a yes-or-no value, when more than ``max_share`` of the people in the cell have it. Sensitive
    cells are merged or smoothed, and what is still sensitive afterwards is removed.

    Parameters
    ----------
    cell_size
        Side of a cell in meters. Cells are counted from the origin of the coordinates, not from the file.
    value
        Column to map: numbers, or yes and no. Without it the map shows counts.
    method
        ``"remove"`` sensitive cells; ``"quadtree"``: merge them with their three neighbors of the same block, again
        and again up to ``levels`` times; ``"smooth"``: spread all records over their surroundings by a Gaussian kernel.
    levels
        How often cells may be merged; a cell is then up to ``2 ** levels`` cells wide.
    bandwidth
        Standard deviation of the kernel in meters; twice the cell size unless given.
    min_count
        Least number of contributors. In a smoothed map it is the effective number of those whose weighted average
        the cell shows.
    max_share
        Largest share of the total for one contributor, or of people with a yes.
    p
        Also remove cells in which the second largest contributor can estimate the largest within this share.
    location
        The two columns, (x, y) or (latitude, longitude); the role ``location`` unless named.
    geographic
        The columns are degrees; cells are then as high and, halfway up the map, as wide as ``cell_size`` says.
    contributor
        Column that says whose record it is (a firm with several places); the role ``contributor``, else ``person``,
        unless named.
    digits
        Significant digits of a smoothed map. Exact figures of a smoothed map can be unsmoothed.
    on_missing
        Records without location or value: ``"refuse"`` them, or ``"drop"`` them from the map.

    Notes
    -----
    There is no guarantee. Totals published elsewhere may give removed cells away. Survey weights are not used.

    What it costs
    -------------
    Single records: the release is a map. Detail within a cell, and the cells removed.

    When not to use it
    ------------------
    Do not use it beside other maps of the same people with other cells or bandwidths: their difference can
    isolate a few. Totals published elsewhere may give removed cells away.

    Examples
    --------
    >>> homes = pl.DataFrame({"x": [1010.0] * 12 + [1300.0] * 2, "y": [250.0] * 14})
    >>> grid = SpatialRaster(cell_size=100, min_count=10, method="remove")
    >>> grid.apply(Microdata(homes, location=("x", "y"))).data.frame.rows()
    [(1050.0, 250.0, 100.0, 12)]
    """

    cell_size: float
    value: str | None = None
    method: Method = "quadtree"
    levels: int = 3
    bandwidth: float | None = None
    min_count: float = 10
    max_share: float = 0.95
    p: float | None = None
    location: Sequence[str] | None = None
    geographic: bool = False
    contributor: str | None = None
    digits: int = 3
    on_missing: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cell_size) and self.cell_size > 0):
            raise ParameterError("cell_size must be a length in meters above 0.")
        if self.method not in ("remove", "quadtree", "smooth"):
            raise ParameterError("method must be 'remove', 'quadtree' or 'smooth'.")
        if not 0 <= self.levels <= 20:
            raise ParameterError("levels must be between 0 and 20.")
        if self.bandwidth is not None and not (math.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ParameterError("bandwidth must be a length in meters above 0.")
        if self.min_count < 1:
            raise ParameterError("min_count must be 1 or more: it is a number of contributors.")
        if not 0 < self.max_share <= 1:
            raise ParameterError("max_share must be a share above 0 and at most 1.")
        if self.p is not None and not 0 < self.p <= 1:
            raise ParameterError("p must be a share above 0 and at most 1, e.g. 0.1 for 10 percent.")
        if self.digits < 1:
            raise ParameterError("digits must be 1 or more.")
        if self.on_missing not in ("refuse", "drop"):
            raise ParameterError("on_missing must be 'refuse' or 'drop'.")
        if self.location is not None and not isinstance(self.location, str):
            object.__setattr__(self, "location", tuple(self.location))

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Not used: the release has other records than the file."""
        raise ParameterError("A map is made as a whole with apply().")

    def apply(
        self,
        data: Microdata,
        *,
        ledger: Ledger | None = None,
        record_key: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Release:
        """Make the map. Nothing is random here; ``record_key`` and ``seed`` are taken so that plans can hand them on.

        A map has no guarantee that a ledger could count, so one is refused.
        """
        Account(ledger, seeded=seed is not None).settle(self.name)
        began = time.perf_counter()
        system = CoordinateSystem(self.geographic)
        places = places_of(data, self.location, system, purpose=self.name)
        used, value, shares, notes = self._values(data, places)
        step = self._steps(places.xy[used])
        column, row = np.floor(places.xy[used] / step).astype(np.int64).T
        records = Records(column, row, value, self._owners(data, used))
        rule = SafetyRule(self.min_count, self.max_share, self.p, shares)
        cells, sensitive_before = self._cells(records, rule)
        if self.method == "smooth":
            notes.append(
                "Figures are averages of the surroundings; whoever knows the kernel may partly undo the smoothing."
            )
        shown = ~cells.sensitive
        table = self._table(places, cells, shown, step)
        parameters: dict[str, Any] = {
            "cells": len(shown),
            "cells_removed": int((~shown).sum()),
            "cells_sensitive_before": sensitive_before,
            "share_in_removed_cells": float(cells.count[~shown].sum() / cells.count.sum()),
        }
        done = Step(
            treatment=self.name,
            parameters={**self.to_dict(), **parameters},
            removed_records=len(places.xy) - table.height if self.method != "smooth" else len(places.xy),
            notes=("The release is a map, one record a cell.", *notes),
            seconds=time.perf_counter() - began,
        )
        return Release(Microdata(_in_kind(data, table), location=places.columns), (done,))

    def _values(self, data: Microdata, places: Places) -> tuple[Integers, Floats | None, bool, list[str]]:
        """Say which records are used, and what of them is mapped."""
        known, value, shares = places.known, None, False
        if self.value is not None:
            name = existing(data, self.value, treatment=self.name)[0]
            mapped = engine.collect(data, [name])[name]
            shares = mapped.dtype == pl.Boolean
            if not (shares or mapped.dtype.is_numeric()):
                raise ColumnError(
                    f"A map needs numbers, or yes and no, and column '{name}' is "
                    f"{type_name(mapped.dtype)}. Convert it first."
                )
            value = mapped.cast(pl.Float64).to_numpy()
            known = known & np.isfinite(value)
        gone = int((~known).sum())
        if gone and self.on_missing == "refuse":
            raise ColumnError(
                f"{gone:,} records have no location or no value. Say on_missing='drop' to leave them out of the map."
            )
        used = np.flatnonzero(known)
        if not len(used):
            raise InputError("No record has a location (and a value), so there is nothing to map.")
        notes = [f"{gone:,} records without a location or a value are not on the map."] if gone else []
        return used, None if value is None else value[used], shares, notes

    def _steps(self, xy: Floats) -> Floats:
        """Return the width and height of a cell in the units of the coordinates."""
        if not self.geographic:
            return np.array([self.cell_size, self.cell_size])
        up = math.degrees(self.cell_size / EARTH_RADIUS)
        # A whole degree, so that the grid does not tell where exactly the outermost record lies.
        middle = min(abs(round(float(xy[:, 1].min() + xy[:, 1].max()) / 2)), 89)
        return np.array([up / math.cos(math.radians(middle)), up])

    def _owners(self, data: Microdata, used: Integers) -> Integers | None:
        by = group_column(data, self.contributor, ("contributor", "person"), treatment=self.name)
        if by is None:
            return None
        owners = engine.collect(data, [by])[by].rank("dense").cast(pl.Int64)
        alone = pl.int_range(-owners.len(), 0, eager=True)
        return owners.zip_with(owners.is_not_null(), alone).to_numpy()[used]

    def _cells(self, records: Records, rule: SafetyRule) -> tuple[Cells, int]:
        if self.method == "quadtree":
            return merged(records, self.levels, rule)
        if self.method == "smooth":
            return smoothed(records, (self.bandwidth or 2 * self.cell_size) / self.cell_size, rule)
        cells, _ = gridded(records, np.zeros(len(records.column), dtype=np.int64), rule)
        return cells, int(cells.sensitive.sum())

    def _table(self, places: Places, cells: Cells, shown: Any, step: Floats) -> pl.DataFrame:
        middle = np.column_stack((cells.column, cells.row))[shown] * step
        columns: dict[str, Any] = dict(places.in_columns(middle))
        fresh = {"cell_size": cells.width[shown] * float(self.cell_size), "count": cells.count[shown]}
        if self.value is not None:
            total = cells.total[shown]
            fresh |= {"total": total, "mean": total / fresh["count"]}
        for name in fresh:
            if name in columns:
                raise ColumnError(
                    f"The location column '{name}' has the name of a column of the map. Rename it."
                )
        table = pl.DataFrame({**columns, **fresh})
        if self.method != "smooth":
            return table.with_columns(pl.col("count").cast(pl.Int64))
        figures = [name for name in fresh if name != "cell_size"]
        return table.with_columns(pl.col(figures).round_sig_figs(self.digits))


def _in_kind(data: Microdata, table: pl.DataFrame) -> Any:
    """Hand the map over in the kind of frame that the records came in."""
    return engine.queried(data, table) if engine.is_lazy(data) else engine.like(data, table)
