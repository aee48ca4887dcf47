"""Which records may be grouped with which? Strata, patterns of missing values, and stand-ins for distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.numerics.distance.space import Points


def numbered(table: pl.DataFrame, by: Sequence[str]) -> Integers:
    """Number the combinations of some columns, missing being a value; without columns all are one."""
    if not by:
        return np.zeros(table.height, dtype=np.int64)
    parts = table.select(pl.col(name).alias(str(i)) for i, name in enumerate(by))
    distinct = parts.unique(maintain_order=True).with_row_index("number")
    joined = parts.join(distinct, on=parts.columns, nulls_equal=True, how="left", maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64)


def members(blocks: Integers) -> list[Integers]:
    """List the positions in each block."""
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
    return [np.sort(rows) for rows in np.split(order, starts[1:])] if len(order) else []


def by_pattern(blocks: Integers, lacking: pl.DataFrame, k: int) -> Integers:
    """Divide blocks by which columns are missing; rare patterns are pooled, with the most frequent one if need be."""
    cells = pl.DataFrame(
        [pl.Series("0", blocks), *(lacking[name].alias(f"lacks {name}") for name in lacking.columns)]
    )
    patterns = numbered(cells, cells.columns)
    sizes = np.bincount(patterns)
    if sizes.min() >= k:
        return patterns
    pool = np.where(sizes[patterns] >= k, patterns, len(sizes) + blocks)
    pooled = np.bincount(pool)
    for block in np.unique(blocks[(sizes[patterns] < k) & (pooled[pool] < k)]):
        inside = np.flatnonzero(blocks == block)
        # The block itself has k records, so a pool that is too small has a large pattern beside it.
        pool[inside[pool[inside] == len(sizes) + block]] = np.bincount(pool[inside]).argmax()
    return np.unique(pool, return_inverse=True)[1].astype(np.int64)


def filled(points: Points) -> Points:
    """Put missing numbers at the mean and missing categories at the most frequent one, for distances only."""
    numbers, codes = points.numbers.copy(), points.codes.copy()
    for j in range(numbers.shape[1]):
        gaps = np.isnan(numbers[:, j])
        if gaps.any():
            numbers[gaps, j] = 0.0 if gaps.all() else numbers[~gaps, j].mean()
    for j in range(codes.shape[1]):
        gaps = codes[:, j] < 0
        if gaps.any():
            codes[gaps, j] = 0 if gaps.all() else np.bincount(codes[~gaps, j]).argmax()
    return Points(numbers, codes)
