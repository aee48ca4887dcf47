"""Turn located records into a density map that gives nobody away."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import Above, AtLeast, Between, ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.results import Release, Step
from discreet.core.wording import type_name
from discreet.dp.entropy import Account, Stream
from discreet.dp.ledger import Ledger
from discreet.microdata import Microdata
from discreet.numerics.dominance import contributions, dominated, p_percent
from discreet.numerics.geography import EARTH_RADIUS, CoordinateSystem, Places, places_of
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

    Also known as: grid aggregation; spatial smoothing.

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

    cell_size: Annotated[float, Above(0)]
    value: Annotated[str, HoldsValues()] | None = None
    method: Method = "quadtree"
    levels: Annotated[int, Between(0, 20)] = 3
    bandwidth: Annotated[float, Above(0)] | None = None
    min_count: Annotated[float, AtLeast(1)] = 10
    max_share: Annotated[float, Share(above=True)] = 0.95
    p: Annotated[float, Share(above=True)] | None = None
    location: ColumnNames | None = None
    geographic: bool = False
    contributor: ColumnName | None = None
    digits: Annotated[int, AtLeast(1)] = 3
    on_missing: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
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
        # The map comes in the kind of frame that the records came in.
        frame = engine.queried(data, table) if engine.is_lazy(data) else engine.like(data, table)
        return Release(Microdata(frame, location=places.columns), (done,))

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


# Which cells of a density map give somebody away, and how merging or smoothing them helps.
#
# A cell is sensitive when too few contribute to it, when one contributor makes up too much of its total (by the rules
# of `discreet.numerics.dominance`), or, for a yes-or-no value, when too large a share of its people has it.


_LARGEST_RASTER = 50_000_000
_MOST_CELLS = 2**62  # what a number of a cell can hold
_TRUNCATED = 3.0


@dataclass(frozen=True)
class SafetyRule:
    """When a cell may not be shown.

    Attributes
    ----------
    min_count
        Fewer contributors than this are too few.
    max_share
        The largest contributor, or those with the value, may not make up more than this share.
    p
        Of the p% rule, as a share; None for no such rule.
    shares
        Whether the value is yes or no.
    """

    min_count: float
    max_share: float
    p: float | None
    shares: bool


@dataclass(frozen=True)
class Records:
    """What the records bring to the map: the cell they lie in, a value, and whose it is."""

    column: Integers
    row: Integers
    value: Floats | None
    contributor: Integers | None


@dataclass(frozen=True)
class Cells:
    """Cells of a map: where they lie (in cells of level 0), how wide they are, and what is in them."""

    column: Floats
    row: Floats
    width: Integers
    count: Floats
    total: Floats
    sensitive: Flags


def gridded(records: Records, level: Integers, rule: SafetyRule) -> tuple[Cells, Integers]:
    """Put the records into cells of their level (a cell of level l is 2^l cells wide) and judge the cells.

    Returns
    -------
    tuple
        The cells, and the cell of each record.
    """
    left, top = int(records.column.min(initial=0)), int(records.row.min(initial=0))
    highest = int(level.max(initial=0))
    # Blocks are counted from a corner that all levels share, so that a block is made of whole smaller ones.
    left, top = (left >> highest) << highest, (top >> highest) << highest
    across = (records.column - left) >> level
    down = (records.row - top) >> level
    wide, tall = int(across.max(initial=0)) + 1, int(down.max(initial=0)) + 1
    if (highest + 1) * wide * tall > _MOST_CELLS:
        raise ParameterError("cell_size is too small for a map that wide: its cells cannot be numbered.")
    code, of = np.unique((level * wide + across) * tall + down, return_inverse=True)
    width = np.left_shift(1, code // (wide * tall))
    count = np.bincount(of, minlength=len(code)).astype(np.float64)
    value = records.value if records.value is not None else np.ones(len(of))
    total = np.bincount(of, weights=value, minlength=len(code)).astype(np.float64)
    sensitive = _judged(of, value, records, count, total, rule=rule)
    column, row = left + ((code // tall) % wide + 0.5) * width, top + (code % tall + 0.5) * width
    return Cells(column, row, width, count, total, sensitive), of


def merged(records: Records, levels: int, rule: SafetyRule) -> tuple[Cells, int]:
    """Merge sensitive cells with their three neighbors of the same block, level by level: a quadtree.

    Cells never overlap, so nothing is learned by taking one from another. What is still sensitive at the last level
    stays marked.

    Returns
    -------
    tuple
        The cells, and how many were sensitive before any was merged.
    """
    level = np.zeros(len(records.column), dtype=np.int64)
    cells, of = gridded(records, level, rule)
    before = int(cells.sensitive.sum())
    for step in range(1, levels + 1):
        if not cells.sensitive.any():
            break
        block = _blocks(records, step)
        unsafe = np.zeros(int(block.max(initial=0)) + 1, dtype=bool)
        unsafe[block[cells.sensitive[of]]] = True
        level[unsafe[block]] = step
        cells, of = gridded(records, level, rule)
    return cells, before


def smoothed(records: Records, bandwidth: float, rule: SafetyRule) -> tuple[Cells, int]:
    """Spread every record over its surroundings by a Gaussian kernel (bandwidth in cells), then judge the cells.

    A smoothed cell is an average over the people around it with weights w, so too few stand behind it when their
    effective number, (sum w)^2 / sum w^2, is below the minimum; the dominance rules look at the weighted
    contributions.

    Returns
    -------
    tuple
        The cells, and how many were sensitive before smoothing.
    """
    plain, _ = gridded(records, np.zeros(len(records.column), dtype=np.int64), rule)
    reach = max(1, int(np.ceil(_TRUNCATED * bandwidth)))
    column, row = (np.floor(place).astype(np.int64) for place in (plain.column, plain.row))
    left, top = int(column.min()) - reach, int(row.min()) - reach
    shape = (int(column.max()) - left + reach + 1, int(row.max()) - top + reach + 1)
    if shape[0] * shape[1] > _LARGEST_RASTER:
        raise ParameterError(
            f"The map would have {shape[0]:,} by {shape[1]:,} cells, too many to smooth. Choose a larger cell_size, or "
            "leave far points out."
        )
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / bandwidth) ** 2)
    kernel /= kernel.sum()
    here = (column - left, row - top)
    count = _blurred(_laid(shape, here, plain.count), kernel)
    total = _blurred(_laid(shape, here, plain.total), kernel)
    squares = _blurred(_laid(shape, here, plain.count), kernel**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(squares > 0, count**2 / squares, 0.0)
    sensitive = effective < rule.min_count * (1 - 1e-9)
    if rule.shares:
        sensitive |= total > rule.max_share * count * (1 + 1e-9)
    elif records.value is not None:
        sensitive |= _smooth_dominance(records, shape, (left, top), kernel, rule)
    shown = count > 0
    across, down = np.nonzero(shown)
    cells = Cells(
        (left + across + 0.5).astype(np.float64),
        (top + down + 0.5).astype(np.float64),
        np.ones(len(across), dtype=np.int64),
        count[shown],
        total[shown],
        sensitive[shown],
    )
    return cells, int(plain.sensitive.sum())


def _blocks(records: Records, level: int) -> Integers:
    across, down = records.column >> level, records.row >> level
    tall = int(down.max() - down.min()) + 1
    _, of = np.unique((across - across.min()) * tall + (down - down.min()), return_inverse=True)
    return of


def _judged(
    of: Integers, value: Floats, records: Records, count: Floats, total: Floats, *, rule: SafetyRule
) -> Flags:
    given = contributions(of, value, contributor=records.contributor, negative="absolute")
    sensitive: Flags = given.size < rule.min_count
    if records.value is None:
        return sensitive
    if rule.shares:
        return sensitive | (total > rule.max_share * count * (1 + 1e-9))
    sensitive = sensitive | dominated(given, 1, rule.max_share)
    return sensitive if rule.p is None else sensitive | p_percent(given, rule.p)


def _smooth_dominance(
    records: Records, shape: tuple[int, int], corner: tuple[int, int], kernel: Floats, rule: SafetyRule
) -> Flags:
    """Hold the largest weighted contributions of each smoothed cell against its total."""
    across, down = records.column - corner[0], records.row - corner[1]
    values = records.value if records.value is not None else np.ones(len(across))
    given = contributions(
        across * shape[1] + down, values, contributor=records.contributor, negative="absolute"
    )
    cell = np.asarray(given.cells, dtype=np.int64)
    here = (cell // shape[1], cell % shape[1])
    largest = given.top(1)
    first, second = _two_largest(
        _laid(shape, here, largest), _laid(shape, here, given.top(2) - largest), kernel
    )
    total = _blurred(_laid(shape, here, given.total), kernel)
    unsafe: Flags = first > rule.max_share * total * (1 + 1e-9)
    if rule.p is not None:
        unsafe |= total - first - second < rule.p * first * (1 - 1e-9)
    return unsafe


def _laid(shape: tuple[int, int], here: tuple[Integers, Integers], values: Floats) -> Floats:
    raster = np.zeros(shape)
    raster[here] = values
    return raster


def _blurred(raster: Floats, kernel: Floats) -> Floats:
    from scipy.ndimage import correlate1d

    once = correlate1d(raster, kernel, axis=0, mode="constant")
    twice: Floats = correlate1d(once, kernel, axis=1, mode="constant")
    return twice


def _two_largest(first: Floats, second: Floats, kernel: Floats) -> tuple[Floats, Floats]:
    """Find the two largest weighted contributions around each cell; the kernel splits into one pass an axis."""
    reach = len(kernel) // 2
    for axis in (0, 1):
        best, next_best = np.zeros_like(first), np.zeros_like(first)
        size = first.shape[axis]
        for step, weight in zip(range(-reach, reach + 1), kernel, strict=True):
            if abs(step) >= size:
                continue
            to, since = [slice(None), slice(None)], [slice(None), slice(None)]
            to[axis] = slice(max(0, -step), size - max(0, step))
            since[axis] = slice(max(0, step), size - max(0, -step))
            there, origin = tuple(to), tuple(since)
            one, two = weight * first[origin], weight * second[origin]
            ahead = best[there]
            next_best[there] = np.maximum(np.minimum(ahead, one), np.maximum(next_best[there], two))
            best[there] = np.maximum(ahead, one)
        first, second = best, next_best
    return first, second
