"""Two codings of the same people: which classes can share somebody, and how many at least and at most?

The classes of two releases form a graph, with an edge where a person may be in both. Counts of the edges are not
published, but they add up to the class sizes on either side, and that alone can pin them down: of 10 people aged
0-9 and 7 people aged 0-6, three are 7-9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError, DiscreetError, ParameterError
from discreet.engine.comparable import comparable_keys
from discreet.hierarchy import Hierarchy

Coding = Mapping[Any, Any] | Hierarchy


def compatible_classes(
    ours: pl.DataFrame, theirs: pl.DataFrame, keys: Sequence[str], recoding: Mapping[str, Coding]
) -> tuple[Integers, Integers]:
    """Pair the classes of two releases that can share a person, as positions in either table.

    A key without a recoding must be equal; one with a recoding must be related by it. Missing goes with missing.
    """
    left, right, on = ours.with_row_index("a"), theirs.with_row_index("b"), []
    for i, key in enumerate(keys):
        name = f"k{i}"
        if key in recoding:
            relation = _relation(left[name], right[name], key, recoding[key])
            left, relation = comparable_keys(left, relation, name, key, ("previous release", "recoding"))
            right, relation = comparable_keys(
                right, relation.rename({name: "from", "to": name}), name, key, ("next release", "recoding")
            )
            pairs = relation.select(pl.col("from").alias(name), pl.col(name).alias(f"{name}_next")).unique()
            left = left.join(pairs, on=name, nulls_equal=True)
            on.append(f"{name}_next")
        else:
            left, right = comparable_keys(left, right, name, key, ("previous release", "next release"))
            on.append(name)
    joined = left.join(right, left_on=on, right_on=[f"k{i}" for i in range(len(keys))], nulls_equal=True)
    joined = joined.select("a", "b").unique().sort("a", "b")
    return joined["a"].to_numpy().astype(np.int64), joined["b"].to_numpy().astype(np.int64)


def common_classes(a: Integers, b: Integers, before: int, after: int) -> Integers:
    """Number the classes of the finest coding that both releases can be recoded to.

    The first ``before`` entries belong to the classes of the previous release, the others to the next one.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes = before + after
    edges = coo_array((np.ones(len(a)), (a, b + before)), shape=(nodes, nodes))
    numbers: Integers = connected_components(edges, directed=False)[1].astype(np.int64)
    return numbers


def shared_bounds(
    a: Integers, b: Integers, before: Integers, after: Integers, common: Integers
) -> tuple[Integers, Integers]:
    """Bound how many people each pair of classes shares, when everybody of one release is in the other.

    Each bound follows from the others until none moves (the shuttle algorithm of Buzzigoli and Giusti 1999). The
    bounds always hold. They are the closest possible where the pairs form no cycle and where every class of one
    release meets every class of the other; elsewhere closer ones may exist. Where the sizes contradict each other,
    in a ``common`` class, the people cannot be the same, and only the class sizes bound what is shared.

    Examples
    --------
    Ages 0-9 and 10-19 against 0-6 and 7-19:

    >>> pairs = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> low, high = shared_bounds(*pairs, np.array([10, 20]), np.array([7, 23]), np.array([0, 0, 0]))
    >>> low.tolist(), high.tolist()
    ([7, 3, 20], [7, 3, 20])
    """
    low, high = np.zeros(len(a), dtype=np.int64), np.minimum(before[a], after[b])
    live = np.arange(len(a))
    while live.size:
        down, up = low[live], high[live]
        for side, size in ((a[live], before), (b[live], after)):
            up = np.minimum(up, size[side] - _others(side, down, len(size)))
            down = np.maximum(down, size[side] - _others(side, up, len(size)))
        moved = (down != low[live]) | (up != high[live])
        low[live], high[live] = down, up
        contradicted = np.isin(common[live], common[live][down > up])
        low[live[contradicted]] = 0
        high[live[contradicted]] = np.minimum(before[a], after[b])[live[contradicted]]
        live = live[np.isin(common[live], common[live][moved]) & ~contradicted]
    return low, high


def _others(side: Integers, numbers: Integers, size: int) -> Integers:
    """Add up the numbers of the other pairs of the same class."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, side, numbers)
    rest: Integers = total[side] - numbers
    return rest


def _relation(previous: pl.Series, next_: pl.Series, key: str, coding: Coding) -> pl.DataFrame:
    """List the pairs of a previous and a next value that a person may have, as columns k… and ``to``."""
    if isinstance(coding, Hierarchy):
        pairs = _levels_of(previous, next_, key, coding)
    else:
        flat = [(value, to) for value, many in coding.items() for to in _each(many)]
        if not flat:
            raise ParameterError(f"The recoding of '{key}' is empty: give {{previous value: next value}}.")
        pairs = pl.DataFrame({previous.name: [x for x, _ in flat], "to": [y for _, y in flat]}, strict=False)
    missing = pl.DataFrame({previous.name: [None], "to": [None]}, schema=pairs.schema, strict=False)
    return pl.concat([pairs, missing]).unique()


def _each(values: Any) -> Iterable[Any]:
    return values if isinstance(values, list | tuple | set | frozenset) else [values]


def _levels_of(previous: pl.Series, next_: pl.Series, key: str, hierarchy: Hierarchy) -> pl.DataFrame:
    """Find the two levels of a hierarchy that the releases are coded at, and pair their labels."""
    found = []
    for leaves in (None, previous, next_):
        # A rule has no table of its own; only the release with original values can be laid out.
        try:
            table = hierarchy.table(leaves).select(pl.all().cast(pl.String))
        except DiscreetError:
            continue
        (hits_before, before), (hits_after, after) = (
            _best_level(table, values) for values in (previous, next_)
        )
        found.append(
            (min(hits_before, hits_after), table.select(pl.col(before).alias("k"), pl.col(after).alias("to")))
        )
    hits, pairs = max(found, key=lambda layout: layout[0], default=(0, pl.DataFrame()))
    if not hits:
        raise ColumnError(
            f"The two releases cannot be placed in the hierarchy of '{key}': it must have a table of its own, or one "
            "release must have the original values. Else give the pairs of values: "
            "recoding={'" + key + "': {previous value: next value}}."
        )
    casts = [
        pl.col(name).cast(values.dtype)
        for name, values in (("k", previous), ("to", next_))
        if values.dtype.is_numeric()
    ]
    return pairs.unique().with_columns(casts).rename({"k": previous.name})


def _best_level(table: pl.DataFrame, values: pl.Series) -> tuple[int, str]:
    """Find the finest of the levels that hold most of the values, and how many it holds."""
    distinct = values.drop_nulls().unique().cast(pl.String)
    hits = {column: int(distinct.is_in(table[column].implode()).sum()) for column in table.columns}
    best = max(hits, key=lambda column: hits[column])
    return hits[best], best
