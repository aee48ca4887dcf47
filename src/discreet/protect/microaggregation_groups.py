"""Which records go together, and what stands for them? The ways to cut a file into groups of k and more."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError
from discreet.numerics.distance.space import Points
from discreet.numerics.mdav import groups_of_variable_size, mixed_groups_of_at_least

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


Method = Literal["mdav", "v-mdav", "univariate", "ranking", "projection", "clustering", "random", "labels"]
Axis = Literal["pca", "sum"]

ONE_BY_ONE = ("univariate", "ranking")
"""Methods that look at one column at a time."""


@dataclass(frozen=True)
class Partition:
    """How records of several columns are put into groups."""

    method: Method
    k: int
    gamma: float = 0.2
    axis: Axis = "pca"
    clusters: int | None = None

    def groups(self, points: Points, metric: Metric, rng: np.random.Generator) -> Integers:
        """Number the group of each record, from 0."""
        if self.method == "mdav":
            return mixed_groups_of_at_least(points, metric, self.k)
        if self.method == "v-mdav":
            return groups_of_variable_size(points, metric, self.k, self.gamma)
        if self.method == "projection":
            return along_an_axis(_embedded(points, metric), self.k, self.axis)
        if self.method == "clustering":
            return self._inside_clusters(points, metric, rng)
        return runs_of_k(rng.permutation(len(points)), self.k)

    def _inside_clusters(self, points: Points, metric: Metric, rng: np.random.Generator) -> Integers:
        rows = _embedded(points, metric)
        wanted = self.clusters or int(np.ceil(np.sqrt(len(points) / (2 * self.k))))
        clusters = clusters_of_at_least(rows, self.k, wanted, rng)
        groups, formed = np.empty(len(points), dtype=np.int64), 0
        for cluster in range(int(clusters.max()) + 1):
            inside = np.flatnonzero(clusters == cluster)
            found = mixed_groups_of_at_least(points.take(inside), metric, self.k)
            groups[inside] = found + formed
            formed += int(found.max()) + 1
        return groups


def best_of_one_column(values: Floats, k: int) -> Integers:
    """Number the groups of k to 2k-1 values with the least sum of squares (Hansen and Mukherjee 2003).

    Examples
    --------
    >>> best_of_one_column(np.array([1.0, 50.0, 2.0, 49.0, 3.0]), k=2).tolist()
    [0, 1, 0, 1, 0]
    """
    from discreet.numerics.mdav_kernels import cheapest_cuts

    order = np.argsort(values, kind="stable")
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = cheapest_cuts(np.ascontiguousarray(values[order, None], dtype=np.float64), k)
    return groups


def ranks_of_one_column(values: Floats, k: int) -> Integers:
    """Number runs of k values in their order, the last with what is left: individual ranking.

    Examples
    --------
    >>> ranks_of_one_column(np.array([1.0, 50.0, 2.0, 49.0, 3.0]), k=2).tolist()
    [0, 1, 0, 1, 1]
    """
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return runs_of_k(ranks, k)


def runs_of_k(ranks: Integers, k: int) -> Integers:
    """Number runs of k by rank; what is left at the end joins the last run."""
    groups: Integers = np.minimum(ranks // k, max(len(ranks) // k, 1) - 1)
    return groups


def along_an_axis(rows: Floats, k: int, axis: Axis) -> Integers:
    """Order the records along an axis and cut the order where the squares around the means are least.

    The axis is the first principal component (``pca``) or the sum of the columns (``sum``). The cut is optimal for
    the order, over all columns together (Domingo-Ferrer et al. 2006).
    """
    from discreet.numerics.mdav_kernels import cheapest_cuts

    centered = rows - rows.mean(axis=0)
    if axis == "pca" and rows.shape[1]:
        loadings = np.linalg.svd(centered, full_matrices=False)[2][0]
        # A component has no sign of its own; without one the order could differ from machine to machine.
        scores = centered @ (loadings * np.sign(loadings[np.abs(loadings).argmax()]))
    else:
        scores = centered.sum(axis=1)
    order = np.argsort(scores, kind="stable")
    groups = np.empty(len(rows), dtype=np.int64)
    groups[order] = cheapest_cuts(np.ascontiguousarray(rows[order]), k)
    return groups


def clusters_of_at_least(rows: Floats, k: int, wanted: int, rng: np.random.Generator) -> Integers:
    """Number k-means clusters; the records of a cluster of fewer than k go to the nearest of the others."""
    from scipy.cluster.vq import kmeans2, vq

    wanted = min(wanted, len(rows) // k, len(np.unique(rows, axis=0)))
    if wanted < 2:
        return np.zeros(len(rows), dtype=np.int64)
    with warnings.catch_warnings():
        # An empty cluster is no loss here: those that are too small are dissolved anyway.
        warnings.simplefilter("ignore", UserWarning)
        centers, found = kmeans2(rows, wanted, iter=20, minit="++", rng=rng)
    sizes = np.bincount(found, minlength=wanted)
    if (sizes < k).any():
        large = sizes >= k
        if not large.any():
            return np.zeros(len(rows), dtype=np.int64)
        lost = ~large[found]
        found[lost] = np.flatnonzero(large)[vq(rows[lost], centers[large])[0]]
    clusters: Integers = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return clusters


def _embedded(points: Points, metric: Metric) -> Floats:
    """Write categories as columns of 0 and 1, so that two different ones are as far apart as the metric says."""
    indicators = [
        (points.codes[:, [j]] == np.unique(points.codes[:, j])) * np.sqrt(metric.costs[j] / 2)
        for j in range(points.codes.shape[1])
    ]
    return np.hstack([points.numbers, *indicators])


# What stands for a group, and what does it cost? The mean, median or mode of its records, column by column.


Measure = Literal["mean", "median", "member"]
Categories = Literal["mode", "median"]


def number_of_group(
    values: pl.Series, groups: pl.DataFrame, measure: Measure, weights: pl.Series | None = None
) -> pl.Series:
    """Give each record the mean or median of the known values of its group; missing stays missing.

    Parameters
    ----------
    values
        The column as floats; missing is null.
    groups
        The columns that say which cell a record belongs to.
    measure, weights
        With weights, the mean is weighted (plain in a group whose weights are all zero).

    Examples
    --------
    >>> number_of_group(pl.Series([1.0, 3.0, None]), pl.DataFrame({"g": [0, 0, 0]}), "mean").to_list()
    [2.0, 2.0, None]
    """
    keys = groups.columns
    table = groups.with_columns(values.alias("value"))
    value: pl.Expr = getattr(pl.col("value"), measure)().over(keys)
    if weights is not None and measure == "mean":
        table = table.with_columns(weights.alias("weight"))
        share = pl.when(pl.col("value").is_not_null()).then("weight").sum().over(keys)
        weighted = (pl.col("value") * pl.col("weight")).sum().over(keys) / share
        value = pl.when(share > 0).then(weighted).otherwise(value)
    return table.select(pl.when(pl.col("value").is_not_null()).then(value)).to_series().alias(values.name)


def category_of_group(
    values: pl.Series, groups: pl.DataFrame, choice: Categories, weights: pl.Series | None = None
) -> pl.Series:
    """Give each record the most frequent (or, of ordered levels, the lower middle) category of its group.

    Ties go to the level that comes first: in their own order if the levels have one, else by their text.

    Examples
    --------
    >>> category_of_group(pl.Series(["b", "a", "b"]), pl.DataFrame({"g": [0, 0, 0]}), "mode").to_list()
    ['b', 'b', 'b']
    """
    keys = groups.columns
    order = values.to_physical() if isinstance(values.dtype, pl.Enum) else values.cast(pl.String)
    weight = pl.Series([1.0]).new_from_index(0, len(values)) if weights is None else weights
    table = groups.with_columns(
        values.alias("value"), order.alias("order"), weight.cast(pl.Float64).alias("weight")
    )
    known = table.filter(pl.col("value").is_not_null())
    counts = known.group_by([*keys, "order"]).agg(
        pl.col("value").first(), pl.col("weight").sum(), size=pl.len()
    )
    if choice == "mode":
        by, falling = [*keys, "weight", "size", "order"], [False] * len(keys) + [True, True, False]
        chosen = counts.sort(by, descending=falling).group_by(keys, maintain_order=True).first()
    else:
        running = counts.sort([*keys, "order"]).with_columns(
            below=pl.col("size").cum_sum().over(keys), all=pl.col("size").sum().over(keys)
        )
        middle = running.filter(2 * pl.col("below") >= pl.col("all"))
        chosen = middle.group_by(keys, maintain_order=True).first()
    stand_in = chosen.select(*keys, pl.col("value").alias("chosen"))
    joined = table.join(stand_in, on=keys, how="left", maintain_order="left")
    return joined.select(pl.when(pl.col("value").is_not_null()).then("chosen")).to_series().alias(values.name)


def nearest_members(points: Points, metric: Metric, groups: Integers) -> Integers:
    """Name for each record the member of its group with the least sum of distances to the others, the first of equals.

    Distances are sums over columns, so that the sums are found column by column, without pairs.

    Parameters
    ----------
    points, metric
        Records placed in a `discreet.numerics.distance.space.MixedSpace`, and its ``metric``; no missing values.
    groups
        The group of each record, numbered from 0.
    """
    sizes = np.bincount(groups)
    apart = np.zeros(len(groups))
    for values in points.numbers.T:
        sums = np.bincount(groups, weights=values)[groups]
        if metric.squared:
            squares = np.bincount(groups, weights=values**2)[groups]
            apart += sizes[groups] * values**2 - 2 * values * sums + squares
            continue
        order = np.lexsort((values, groups))
        begin = np.repeat(np.cumsum(sizes) - sizes, sizes)
        running = np.append(0.0, np.cumsum(values[order]))
        below = running[:-1] - running[begin]
        rank = np.arange(len(groups)) - begin
        ordered, total = values[order], sums[order]
        apart[order] += ordered * (2 * rank + 1 - sizes[groups[order]]) + total - 2 * below - ordered
    for codes, cost in zip(points.codes.T, metric.costs, strict=True):
        cells = groups * (int(codes.max(initial=0)) + 1) + codes
        _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
        apart += cost * (sizes[groups] - counts[place])
    # Rounded, so that the last bit of a sum does not decide between members that are equally near.
    order = np.lexsort((np.round(apart, 9), groups))
    first = order[np.cumsum(sizes) - sizes]
    found: Integers = first[groups]
    return found


def without_thin_cells(values: pl.Series, groups: pl.DataFrame, k: int) -> tuple[pl.Series, int]:
    """Take out what fewer than k known values of a group make up; say how many records that concerns.

    Examples
    --------
    >>> without_thin_cells(pl.Series([2.0, None]), pl.DataFrame({"g": [0, 0]}), k=2)[0].to_list()
    [None, None]
    """
    table = groups.with_columns(values.alias("value"))
    kept = table.select(pl.when(pl.col("value").count().over(groups.columns) >= k).then("value")).to_series()
    return kept.alias(values.name), kept.null_count() - values.null_count()


def squares_lost(exact: pl.Series, shown: pl.Series) -> tuple[float, float]:
    """Give the sum of squares that was lost and the total; a cell that became missing has lost all it said."""
    known = exact.is_not_null()
    old = exact.filter(known).to_numpy()
    if not len(old):
        return 0.0, 0.0
    new = shown.filter(known).fill_null(float(old.mean())).to_numpy()
    return float(((old - new) ** 2).sum()), float(((old - old.mean()) ** 2).sum())


def lost_shares(losses: dict[str, tuple[float, float]], *, scaled: bool) -> dict[str, Any]:
    """Say which share of the sum of squares was lost, by column and over all columns."""
    if not losses:
        return {}
    by_column = {name: lost / total if total > 0 else 0.0 for name, (lost, total) in losses.items()}
    varying = [name for name, (_, total) in losses.items() if total > 0]
    overall = 0.0
    if varying and scaled:
        overall = float(np.mean([by_column[name] for name in varying]))
    elif varying:
        overall = sum(losses[name][0] for name in varying) / sum(losses[name][1] for name in varying)
    return {"sse_share": overall, "sse_share_by_column": by_column}


def fewest_people(columns: Mapping[str, pl.Series], units: Integers, *, together: bool) -> int:
    """Count the people behind the released value that fewest have; behind the combination of all, ``together``.

    Examples
    --------
    >>> fewest_people({"pay": pl.Series([2.0, 2.0, 9.0, 9.0])}, np.array([1, 1, 2, 3]), together=True)
    1
    """
    released = pl.DataFrame(dict(columns)).with_columns(pl.Series("\0who", units))
    fewest = len(units)
    for names in [list(columns)] if together else [[name] for name in columns]:
        known = released.filter(pl.any_horizontal(pl.col(names).is_not_null()))
        counted = known.group_by(names).agg(people=pl.col("\0who").n_unique())["people"]
        fewest = min([fewest, *counted.to_list()])
    return fewest


def as_released(shown: pl.Series, kind: Any, *, whole: bool) -> pl.Series:
    """Give the numbers of groups the type of their column; whole numbers may become fractions unless asked not to."""
    if kind.is_temporal():
        return shown.round().cast(pl.Int64).cast(kind)
    if kind.is_float():
        return shown.cast(kind)
    return shown.round().cast(kind) if whole else shown


def check_order(column: pl.Series, categories: Categories) -> None:
    """Refuse a median of categories that have no order."""
    if categories == "median" and not isinstance(column.dtype, pl.Enum | pl.Boolean):
        raise ColumnError(
            f"Column '{column.name}' has no order, so it has no median. Make it an ordered category, or set "
            "categories='mode'."
        )


# Which records may be grouped with which? Strata, patterns of missing values, and stand-ins for distances.


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


# Whole series of readings as records to be grouped: one row each, placed by its readings.


def one_row_each(table: pl.DataFrame, who: str, time: str, about: Sequence[str]) -> pl.DataFrame:
    """Give every series one row with what is the same in all its readings; refuse readings that do not make series."""
    if table.select(pl.col(who, time).is_null().any()).row(0) != (False, False):
        raise ColumnError(f"'{who}' and '{time}' say whose reading it is and when; neither may be missing.")
    if table.select(pl.struct(who, time).is_duplicated().any()).item():
        raise ColumnError(
            f"A series has several readings at one time. Sum or average them by '{who}' and '{time}'."
        )
    once = table.group_by(who, maintain_order=True).agg(
        pl.col(about).first(), *(pl.col(name).n_unique().alias(f"{name} ?") for name in about)
    )
    for name in about:
        if (once[f"{name} ?"] > 1).any():
            raise ColumnError(f"'{name}' must be the same in all rows of a series, and is not.")
    return once


def curves(
    table: pl.DataFrame, names: Sequence[str], series: Integers, time: str, *, standardize: bool | None
) -> tuple[Points, Metric]:
    """Place each series by its readings, one slot after the other and one column after the other."""
    from discreet.numerics.distance.distance_kernels import Metric

    slots = numbered(table, [time])
    shape = (int(series.max()) + 1, int(slots.max()) + 1)
    parts = []
    for name in names:
        part = np.full(shape, np.nan)
        part[series, slots] = table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        parts.append(part)
    points = filled(Points(np.hstack(parts), np.empty((shape[0], 0), dtype=np.int32)))
    if standardize:
        spread = points.numbers.std(axis=0)
        points = Points(points.numbers / np.where(spread > 0, spread, 1.0), points.codes)
    return points, Metric(np.ones(points.numbers.shape[1]), np.empty(0), True, False)
