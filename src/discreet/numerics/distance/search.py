"""Who is nearest? An exact search for neighbors in a mixed space.

The candidates are grouped into tiles of similar records; a tile whose nearest corner is farther away than what has
been found is never read. On data where nothing can be skipped this is a blocked scan of all pairs, sixteen records
to an instruction; on most real files a few percent of the pairs are looked at. Distances are compared in double
precision and ties go to the record that comes first, so the answer does not depend on the grouping or the threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Bytes, Codes, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.progress import track
from discreet.numerics.distance.space import MixedSpace, Points

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Tiles


TILE = 256  # records: small enough to skip much, large enough to be worth a vector loop
BLOCK = 512  # queries handed to a thread at a time
SAMPLE = 4096  # records that decide along which column a group is split


@dataclass(frozen=True)
class Neighbors:
    """The nearest candidates of each record, nearest first; position -1 and distance inf where there is none."""

    index: Integers
    distance: Floats


def nearest(
    space: MixedSpace,
    points: Points,
    candidates: Points | None = None,
    *,
    k: int = 1,
    progress: bool = False,
    description: str = "Nearest neighbors",
) -> Neighbors:
    """Find the k nearest candidates of every record, exactly; ties go to the candidate that comes first.

    Parameters
    ----------
    space
        The space both were placed in.
    points
        The records to find neighbors of.
    candidates
        The records to find them among; without them, the other records of ``points``.
    k
        How many.
    progress, description
        Show how far it is, on a terminal.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 30, 60], "sex": ["f", "f", "m"]})
    >>> space = MixedSpace.fit(people)
    >>> nearest(space, space.place(people)).index.ravel().tolist()
    [1, 0, 1]
    """
    if candidates is None:
        return _nearest_others(space, points, k=k, progress=progress, description=description)
    if not 1 <= k <= len(candidates):
        raise ParameterError(
            f"k is {k}, but there are {len(candidates):,} records to choose from; k must be from 1 to that."
        )
    from discreet.numerics.distance.distance_kernels import nearest_of

    rows, back = _distinct(points)
    queries = points.take(rows)
    tiles = _tiles(space, candidates.take(kept := _first_copies(candidates, k)), kept)
    index = np.empty((len(queries), k), dtype=np.int64)
    raw = np.empty((len(queries), k))
    metric, rounding = space.metric, _rounding(queries, candidates)
    _spread(
        len(queries),
        lambda part: nearest_of(
            queries.numbers[part], queries.codes[part], tiles, metric, rounding, index[part], raw[part]
        ),
        progress,
        description,
    )
    return Neighbors(index[back], space.finished(raw)[back])


def ties_within(
    space: MixedSpace, points: Points, candidates: Points, radii: Floats, *, progress: bool = False
) -> Integers:
    """Count, for every record, the candidates at most as far away as its radius, rounding errors forgiven.

    Examples
    --------
    >>> ages = pl.DataFrame({"age": [20, 30, 40, 60]})
    >>> space = MixedSpace.fit(ages)
    >>> points = space.place(ages)
    >>> ties_within(space, points, points, np.full(4, 0.25)).tolist()
    [2, 3, 2, 1]
    """
    from discreet.numerics.distance.distance_kernels import count_within

    rows, back = _distinct(candidates)
    tiles = _tiles(space, candidates.take(rows), rows, np.bincount(back, minlength=len(rows)))
    whole = float(space.number_weights.sum() + space.category_weights.sum())
    raw = radii**2 if space.distance == "euclidean" else radii * whole
    counts = np.zeros(len(points), dtype=np.int64)
    _spread(
        len(points),
        lambda part: count_within(
            points.numbers[part], points.codes[part], raw[part], tiles, space.metric, counts[part]
        ),
        progress,
        "Counting ties",
    )
    return counts


def _nearest_others(
    space: MixedSpace, points: Points, *, k: int, progress: bool, description: str
) -> Neighbors:
    """Search among the records themselves: one neighbor more, and then without the record itself."""
    if not 1 <= k < len(points):
        raise ParameterError(
            f"k is {k}, but each record has {len(points) - 1:,} others; k must be from 1 to that."
        )
    found = nearest(space, points, points, k=k + 1, progress=progress, description=description)
    own = found.index == np.arange(len(points))[:, None]
    # Where a record has so many copies that it is not in its own list, the last entry goes.
    own[~own.any(axis=1), -1] = True
    return Neighbors(found.index[~own].reshape(-1, k), found.distance[~own].reshape(-1, k))


def _spread(total: int, work: Callable[[slice], object], progress: bool, description: str) -> None:
    """Run the work on blocks of rows, on all cores: the compiled loops let go of the interpreter."""
    blocks = [slice(start, min(start + BLOCK, total)) for start in range(0, total, BLOCK)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(blocks) == 1 or cores == 1:
        for block in track(blocks, description=description, progress=progress):
            work(block)
        return
    with ThreadPoolExecutor(cores) as pool:
        done = _in_order(pool, blocks, work, ahead=4 * cores)
        for _ in track(done, total=len(blocks), description=description, progress=progress):
            pass


def _in_order(
    pool: ThreadPoolExecutor, blocks: list[slice], work: Callable[[slice], object], ahead: int
) -> Iterator[object]:
    waiting: deque[Future[object]] = deque()
    for block in blocks:
        waiting.append(pool.submit(work, block))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _rounding(points: Points, others: Points) -> float:
    """Bound what single precision does to the difference of two coordinates."""
    sizes = [np.nanmax(np.abs(p.numbers)) for p in (points, others) if not np.isnan(p.numbers).all()]
    return 1.2e-7 * float(max(sizes, default=0.0))


def _frame(points: Points) -> pl.DataFrame:
    columns = [*points.numbers.T, *points.codes.T]
    if not columns:
        return pl.DataFrame({"c0": np.zeros(len(points), dtype=np.int32)})
    return pl.DataFrame({f"c{j}": np.ascontiguousarray(column) for j, column in enumerate(columns)})


def _distinct(points: Points) -> tuple[Integers, Integers]:
    """Return the first row of each distinct record, and for every record which of those it equals."""
    frame = _frame(points)
    numbered = frame.with_row_index("row")
    first = numbered.select(pl.col("row").min().over(frame.columns)).to_series().to_numpy()
    rows, back = np.unique(first, return_inverse=True)
    return rows.astype(np.int64), back.astype(np.int64)


def _first_copies(points: Points, k: int) -> Integers:
    """Return the rows without the copies that can never be among the k nearest: those after the k-th."""
    frame = _frame(points)
    copy = pl.int_range(pl.len(), dtype=pl.Int64).over(frame.columns)
    return np.flatnonzero(frame.select(copy < k).to_series().to_numpy()).astype(np.int64)


def _tiles(space: MixedSpace, points: Points, order: Integers, copies: Integers | None = None) -> Tiles:
    """Group the candidates and note what each group spans."""
    from discreet.numerics.distance.distance_kernels import Tiles

    groups = _groups(space, points)
    rows = np.concatenate(groups)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    placed = points.take(rows)
    lows, highs, holes = _spans(placed.numbers, starts)
    absent, offsets = _absences(space, placed.codes, starts)
    return Tiles(
        columns=np.ascontiguousarray(placed.numbers.T, dtype=np.float32),
        lines=np.ascontiguousarray(placed.codes.T),
        numbers=placed.numbers,
        codes=placed.codes,
        order=order[rows],
        copies=np.ones(len(rows), dtype=np.int64) if copies is None else copies[rows].astype(np.int64),
        starts=starts,
        lows=lows,
        highs=highs,
        holes=holes,
        absent=absent,
        offsets=offsets,
    )


def _groups(space: MixedSpace, points: Points) -> list[Integers]:
    """Split again and again along the column in which the records of a group differ most."""
    metric = space.metric
    numbers = np.where(np.isnan(points.numbers), np.inf, points.numbers)
    finished: list[Integers] = []
    waiting = [np.arange(len(points), dtype=np.int64)]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= TILE:
            finished.append(rows)
            continue
        some = rows[:: max(1, len(rows) // SAMPLE)]
        spread = [_number_spread(numbers[some, j], metric.squared) for j in range(numbers.shape[1])]
        spread += [
            metric.costs[j] * _share_differing(points.codes[some, j]) for j in range(points.codes.shape[1])
        ]
        widest = int(np.argmax(spread)) if spread else 0
        if not spread or spread[widest] <= 0:
            halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        elif widest < numbers.shape[1]:
            cut = np.argpartition(numbers[rows, widest], len(rows) // 2)
            halves = [rows[cut[: len(rows) // 2]], rows[cut[len(rows) // 2 :]]]
        else:
            halves = _by_category(rows, points.codes[rows, widest - numbers.shape[1]])
        waiting.extend(half for half in halves if len(half))
    return finished


def _number_spread(values: Floats, squared: bool) -> float:
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0
    # For a normal variable the mean distance of two draws is 2/sqrt(pi) standard deviations, its square 2.
    return float(2 * known.var() if squared else 1.13 * known.std())


def _share_differing(codes: Codes) -> float:
    shares = np.bincount(codes + 1) / len(codes)
    return float(1 - (shares**2).sum())


def _by_category(rows: Integers, codes: Codes) -> list[Integers]:
    """Split a group between two categories, as near to the middle as their sizes allow."""
    sizes = np.bincount(codes + 1)
    ranked = np.argsort(-sizes, kind="stable")
    passed = np.cumsum(sizes[ranked])
    cut = int(np.argmin(np.abs(passed[: np.count_nonzero(sizes)] - len(rows) / 2)))
    left = np.isin(codes + 1, ranked[: cut + 1])
    if left.all():
        left = codes + 1 == ranked[0]
    return [rows[left], rows[~left]]


def _spans(numbers: Floats, starts: Integers) -> tuple[Floats, Floats, Bytes]:
    if not numbers.shape[1]:
        empty = np.empty((0, len(starts) - 1))
        return empty, empty, empty.astype(np.uint8)
    gone = np.isnan(numbers)
    lows = np.minimum.reduceat(np.where(gone, np.inf, numbers), starts[:-1], axis=0)
    highs = np.maximum.reduceat(np.where(gone, -np.inf, numbers), starts[:-1], axis=0)
    holes = np.maximum.reduceat(gone.astype(np.uint8), starts[:-1], axis=0)
    return np.ascontiguousarray(lows.T), np.ascontiguousarray(highs.T), np.ascontiguousarray(holes.T)


def _absences(space: MixedSpace, codes: Codes, starts: Integers) -> tuple[Bytes, Integers]:
    """Note which categories do not occur in a tile; the last line of a column is for missing."""
    sizes = [len(levels) + 1 for levels in space.levels]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    tile = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    absent = np.ones((int(offsets[-1]), len(starts) - 1), dtype=np.uint8)
    for j in range(codes.shape[1]):
        line = np.where(codes[:, j] < 0, offsets[j + 1] - 1, offsets[j] + codes[:, j])
        absent[line, tile] = 0
    return absent, offsets
