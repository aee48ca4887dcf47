"""What stands for a group, and what does it cost? The mean, median or mode of its records, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError
from discreet.numerics.distance.space import Points

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric

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
