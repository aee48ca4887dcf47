"""How much of the records behind published tables can be rebuilt by arithmetic alone?

Every published count is an equation over the counts of the full cross-classification, which are whole numbers and not
negative. Bounds are carried from equation to equation, then by linear programs; what is left open is counted out.
Only the data from which the tables were made can be rebuilt: where these were swapped or perturbed before, the
originals cannot.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.wording import percent
from discreet.tables.linear_programs import Program

Solver = Literal["propagate", "lp", "ip"]


@dataclass(frozen=True, repr=False)
class Reconstruction:
    """What could be rebuilt.

    Attributes
    ----------
    cells
        One row a unit and combination: the codes, ``lower`` and ``upper`` count, ``solved``.
    units
        One row a unit: ``persons`` (as far as known), ``solved``, ``solutions`` (how many tables of whole numbers fit;
        null where they were not counted or are more than the limit) and ``conflicts`` (equations that had to be
        loosened).
    figures
        Shares of units, persons and cells solved, and how many units were empty or contradictory.
    """

    cells: pl.DataFrame
    units: pl.DataFrame
    figures: Mapping[str, float | int]

    @property
    def meaning(self) -> str:
        """The outcome in one sentence."""
        f = self.figures
        return (
            f"Of {f['units']:,} units with people {percent(f['units_solved'])} are rebuilt completely, and "
            f"{percent(f['persons_solved'])} of all people stand in a combination whose count is certain. Only the "
            "data behind the tables can be rebuilt: if these were swapped or perturbed before, the originals are not."
        )

    def records(self) -> pl.DataFrame:
        """The rebuilt records: one row a person in a combination whose count is certain."""
        sure = self.cells.filter(pl.col("solved") & (pl.col("lower") > 0))
        names = [name for name in sure.columns if name not in {"lower", "upper", "solved"}]
        return sure.select(pl.col(names).repeat_by(pl.col("lower").cast(pl.UInt32)).explode())

    def __repr__(self) -> str:
        return self.meaning


@checked
def reconstruct(
    tables: Sequence[pl.DataFrame],
    *,
    dimensions: Mapping[str, Sequence[str]],
    unit: str | None = None,
    count: str = "count",
    solver: Solver = "ip",
    tolerance: Annotated[float, AtLeast(0)] = 0.0,
    max_solutions: int = 10_000,
    workers: Annotated[int, AtLeast(1)] = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Reconstruction:
    """How much of the records behind published tables can be rebuilt?

    Also known as: database reconstruction; reconstruction attack; census reconstruction.

    Parameters
    ----------
    tables
        Frames of published counts. A column that a frame lacks, or that is null in a row, is summed over; so a table of
        one group only ("women") has that code in all its rows.
    dimensions
        The columns of the full cross-classification and their codes.
    unit
        The column of the places that are rebuilt one by one; all in one without it.
    count
        The column of counts; rows without one (suppressed) say nothing.
    solver
        ``propagate`` carries bounds from equation to equation; ``lp`` also solves linear programs for what is left;
        ``ip`` also counts the tables of whole numbers that fit.
    tolerance
        How far published counts may be from the truth, where they were rounded or perturbed.
    max_solutions
        Counting stops here.
    workers
        How many processes rebuild units at the same time; worth it from some thousand units on.
    progress
        Called with units done and their total.

    Examples
    --------
    >>> by_sex = pl.DataFrame({"sex": ["f", "m"], "count": [3, 0]})
    >>> by_age = pl.DataFrame({"age": ["young", "old"], "count": [1, 2]})
    >>> found = reconstruct([by_sex, by_age], dimensions={"sex": ["f", "m"], "age": ["young", "old"]})
    >>> found.figures["persons_solved"], found.records().rows()
    (1.0, [('f', 'young'), ('f', 'old'), ('f', 'old')])
    """
    equations = _equations(tables, dimensions, unit, count)
    names = list(dimensions)
    combos = list(product(*dimensions.values()))
    lists = {name: [combo[i] for combo in combos] for i, name in enumerate(names)}
    keys, systems = [], []
    empty = 0
    for key, group in equations.group_by("unit", maintain_order=True):
        system = _System.of(group, dimensions, tolerance)
        if system.high.max(initial=0.0) == 0:
            empty += 1
            continue
        keys.append(key[0])
        systems.append(system)
    cells, units = [], []
    outcomes = _all_rebuilt(systems, solver, max_solutions, workers)
    for done, (key, found) in enumerate(zip(keys, outcomes, strict=True)):
        solved = found.low == found.high
        place = {} if unit is None else {unit: [key] * len(combos)}
        cells.append(
            pl.DataFrame({**place, **lists, "lower": found.low, "upper": found.high, "solved": solved})
        )
        units.append(
            {
                **({} if unit is None else {unit: key}),
                "persons": found.persons,
                "persons_solved": float(found.low[solved].sum()),
                "solved": bool(solved.all()),
                "solutions": found.solutions,
                "conflicts": found.conflicts,
            }
        )
        if progress is not None:
            progress(done + 1, len(systems))
    if not cells:
        raise ParameterError("No unit of the tables has anybody in it: there is nothing to rebuild.")
    listed = pl.concat(cells)
    by_unit = pl.DataFrame(units, infer_schema_length=None, schema_overrides={"solutions": pl.Int64})
    people = float(by_unit["persons"].sum())
    figures = {
        "units": by_unit.height,
        "units_empty": empty,
        "units_solved": float(by_unit["solved"].mean()),  # type: ignore[arg-type]
        "persons": people,
        "persons_solved": float(by_unit["persons_solved"].sum()) / people if people else 1.0,
        "cells": listed.height,
        "cells_solved": float(listed["solved"].mean()),  # type: ignore[arg-type]
        "units_unique": int((by_unit["solutions"] == 1).sum())
        if solver == "ip"
        else int(by_unit["solved"].sum()),
        "units_contradictory": int((by_unit["conflicts"] > 0).sum()),
    }
    return Reconstruction(listed, by_unit, figures)


def solved_cells(sums: Any, low: Floats, high: Floats, *, max_solutions: int = 10_000) -> Solved:
    """What do sums over cells, each known between two numbers, say about the cells themselves?

    ``sums`` is a sparse matrix, one row a sum and one column a cell; cells are whole numbers and not negative.

    Examples
    --------
    >>> both = sparse.csr_matrix([[1, 1], [1, 0]], dtype=float)
    >>> found = solved_cells(both, np.array([3.0, 3.0]), np.array([3.0, 3.0]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist(), found.solutions
    ([3, 0], [3, 0], 1)
    """
    return _rebuilt(_System(sparse.csr_matrix(sums), low, high), "ip", max_solutions)


@dataclass(frozen=True)
class Solved:
    """What is known of one unit: bounds of its cells, its people, how many tables fit, how many sums were loosened."""

    low: Floats
    high: Floats
    persons: float
    solutions: int | None
    conflicts: int


def _all_rebuilt(systems: Sequence[_System], solver: Solver, limit: int, workers: int) -> Iterable[Solved]:
    """Rebuild the units, in their order; several processes take batches of them."""
    if workers == 1 or len(systems) < 2 * workers:
        return (_rebuilt(system, solver, limit) for system in systems)
    joblib = importlib.import_module("joblib")
    size = max(1, min(500, len(systems) // (4 * workers)))
    batches = [systems[i : i + size] for i in range(0, len(systems), size)]
    jobs = (joblib.delayed(_batch)(batch, solver, limit) for batch in batches)
    return chain.from_iterable(joblib.Parallel(n_jobs=workers, return_as="generator")(jobs))


def _batch(systems: Sequence[_System], solver: Solver, limit: int) -> list[Solved]:
    return [_rebuilt(system, solver, limit) for system in systems]


def _rebuilt(system: _System, solver: Solver, limit: int) -> Solved:
    count = system.a.shape[1]
    system, conflicts = _mended(system)
    bounds = _propagated(system, np.zeros(count), np.full(count, np.inf))
    low, high = bounds or (np.zeros(count), np.full(count, np.inf))
    if solver != "propagate":
        low, high = _by_programs(system, low, high)
    many = _solutions(system, low, high, limit) if solver == "ip" else None
    return Solved(low, high, _persons(system, low, high), many, len(conflicts))


def _equations(
    tables: Sequence[pl.DataFrame], dimensions: Mapping[str, Sequence[str]], unit: str | None, count: str
) -> pl.DataFrame:
    """All published counts, one a row, with null for what is summed over."""
    parts = []
    for number, table in enumerate(tables):
        frame = pl.DataFrame(table)
        for name in [count, *([unit] if unit else [])]:
            need_known([name], frame.columns, before=f"Table {number + 1} has no column '{name}'. ")
        strange = [name for name in frame.columns if name not in {*dimensions, count, unit}]
        if strange:
            raise ColumnError(
                f"Table {number + 1} has the column '{strange[0]}', which is none of the dimensions."
            )
        columns = [
            pl.col(name).cast(pl.String)
            if name in frame.columns
            else pl.lit(None, dtype=pl.String).alias(name)
            for name in dimensions
        ]
        place = pl.col(unit).cast(pl.String) if unit else pl.lit("all")
        parts.append(
            frame.select(place.alias("unit"), *columns, pl.col(count).cast(pl.Float64).alias("count"))
        )
    joined = pl.concat(parts).filter(pl.col("count").is_not_null())
    for name, codes in dimensions.items():
        unknown = joined.filter(pl.col(name).is_not_null() & ~pl.col(name).is_in(list(codes))).height
        if unknown:
            raise ParameterError(
                f"{unknown} published counts have a code of '{name}' that is not listed in dimensions."
            )
    return joined


@dataclass(frozen=True)
class _System:
    """Sums over the cells of the full cross-classification, each between two numbers."""

    a: Any
    low: Floats
    high: Floats

    @staticmethod
    def of(group: pl.DataFrame, dimensions: Mapping[str, Sequence[str]], tolerance: float) -> _System:
        """Write every published count as a sum of cells."""
        rows = None
        for name, codes in dimensions.items():
            place = {code: i for i, code in enumerate(codes)}
            mark = np.zeros((group.height, len(codes)), dtype=bool)
            at = np.array([-1 if code is None else place[code] for code in group[name].to_list()])
            mark[at < 0] = True
            mark[np.flatnonzero(at >= 0), at[at >= 0]] = True
            rows = mark if rows is None else (rows[:, :, None] & mark[:, None, :]).reshape(group.height, -1)
        value = group["count"].to_numpy()
        return _System(
            sparse.csr_matrix(rows, dtype=float), np.maximum(value - tolerance, 0.0), value + tolerance
        )


def _mended(system: _System) -> tuple[_System, Integers]:
    """Loosen as little as possible the counts that contradict each other, and say which."""
    equations, cells = system.a.shape
    eye = sparse.eye_array(equations, format="csr")
    wide = sparse.hstack([system.a, eye, -eye])
    far = np.full(cells + 2 * equations, np.inf)
    program = Program(wide, system.low, system.high, np.zeros(len(far)), far)
    gap = program.extreme(cells + np.arange(2 * equations), np.ones(2 * equations), largest=False)
    if np.isnan(gap):
        raise InputError("The solver could not say whether the published counts contradict each other.")
    if gap <= 1e-6:
        return system, np.zeros(0, dtype=np.int64)
    up = program.solution[cells : cells + equations]
    down = program.solution[cells + equations :]
    moved = np.flatnonzero(np.maximum(up, down) > 1e-6)
    return _System(system.a, system.low - np.ceil(up - 1e-6), system.high + np.ceil(down - 1e-6)), moved


def _propagated(system: _System, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
    """Carry bounds from sum to sum until nothing changes; None where they contradict each other."""
    a = system.a.tocsr()
    cells, sums = a.indices, np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    low, high = low.copy(), np.minimum(high, system.high.max(initial=0.0))
    np.minimum.at(high, cells, system.high[sums])
    while True:
        least, most = a @ low, a @ high
        if (least > system.high + 1e-9).any() or (most < system.low - 1e-9).any():
            return None
        new_high, new_low = high.copy(), low.copy()
        np.minimum.at(new_high, cells, np.floor(system.high[sums] - least[sums] + low[cells] + 1e-9))
        np.maximum.at(new_low, cells, np.ceil(system.low[sums] - most[sums] + high[cells] - 1e-9))
        if (new_low > new_high).any():
            return None
        if (new_low == low).all() and (new_high == high).all():
            return low, high
        low, high = new_low, new_high


def _rest(system: _System, low: Floats, high: Floats) -> list[tuple[Integers, _System]]:
    """What is still open, in pieces that no sum holds together."""
    free = np.flatnonzero(low < high)
    if not len(free):
        return []
    known = system.a @ np.where(low == high, low, 0.0)
    a = system.a.tocsc()[:, free].tocsr()
    graph = sparse.block_array([[None, a], [a.T, None]])
    _, piece = connected_components(graph, directed=False)
    of_sum, of_cell = piece[: a.shape[0]], piece[a.shape[0] :]
    pieces = []
    for p in np.unique(of_cell):
        cells, sums = np.flatnonzero(of_cell == p), np.flatnonzero(of_sum == p)
        part = _System(a[sums][:, cells], (system.low - known)[sums], (system.high - known)[sums])
        pieces.append((free[cells], part))
    return pieces


def _by_programs(system: _System, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bound by linear programs what is still open, each bound moved inward to a whole number."""
    low, high = low.copy(), high.copy()
    for cells, part in _rest(system, low, high):
        program = Program(part.a, part.low, part.high, low[cells], high[cells])
        seen_low, seen_high = high[cells].copy(), low[cells].copy()
        for k, cell in enumerate(cells.tolist()):
            for largest in (False, True):
                if (seen_high[k] >= high[cell]) if largest else (seen_low[k] <= low[cell]):
                    continue
                found = program.extreme(np.array([k]), np.ones(1), largest=largest)
                if np.isnan(found):
                    # Left open, the cell would pass for one that cannot be reconstructed.
                    raise InputError(
                        "The solver could not bound a cell, so it cannot be said whether it can be reconstructed. "
                        "Reconstruct fewer tables at once."
                    )
                if np.isinf(found):
                    continue
                seen_low = np.minimum(seen_low, program.solution)
                seen_high = np.maximum(seen_high, program.solution)
                if largest:
                    high[cell] = np.floor(found + 1e-6)
                else:
                    low[cell] = np.ceil(found - 1e-6)
    return low, high


def _solutions(system: _System, low: Floats, high: Floats, limit: int) -> int | None:
    """How many tables of whole numbers fit; None where they are more than the limit."""
    many = 1
    for cells, part in _rest(system, low, high):
        many *= _counted(part, low[cells], high[cells], limit)
        if many > limit:
            return None
    return many


def _counted(system: _System, low: Floats, high: Floats, limit: int) -> int:
    """Count by trying the values of the narrowest open cell, and carrying each on."""
    found, waiting = 0, [(low, high)]
    while waiting and found <= limit and len(waiting) <= 50 * limit:
        bounds = _propagated(system, *waiting.pop())
        if bounds is None:
            continue
        least, most = bounds
        gap = most - least
        if not gap.any():
            found += 1
            continue
        cell = int(np.argmin(np.where(gap > 0, gap, np.inf)))
        for value in np.arange(least[cell], most[cell] + 1):
            next_low, next_high = least.copy(), most.copy()
            next_low[cell] = next_high[cell] = value
            waiting.append((next_low, next_high))
    return found if not waiting else limit + 1


def _persons(system: _System, low: Floats, high: Floats) -> float:
    """How many people a unit has: from a sum over everything, else from the bounds, at least."""
    everything = np.flatnonzero(np.diff(system.a.indptr) == system.a.shape[1])
    if len(everything):
        return float(system.high[everything].min())
    open_cells = low < high
    if not open_cells.any():
        return float(low.sum())
    program = Program(system.a, system.low, system.high, low, np.where(np.isfinite(high), high, 1e12))
    least = program.extreme(np.arange(len(low)), np.ones(len(low)), largest=False)
    # The sum is at least that of the lower bounds; where the program says no more, that is what is known.
    return float(np.ceil(least - 1e-6)) if np.isfinite(least) else float(low.sum())
