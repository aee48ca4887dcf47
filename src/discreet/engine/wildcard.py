"""Missing as a wildcard: how many records agree with a record wherever both are known?

The agreement is not an equivalence (``(f, ?)`` agrees with ``(f, 30)`` and ``(f, 40)``, which do not agree with
each other), so every record has a neighborhood instead of a class. The count is exact and never pairwise:
combinations are grouped by which keys they know, and two such groups are compared on the keys both know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import polars as pl


def neighborhood_sizes(table: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return, for each distinct combination, how many records it agrees with (itself included).

    Parameters
    ----------
    table
        One row a combination, with the number of ``records`` that have it.
    keys
        Its key columns.

    Examples
    --------
    >>> table = pl.DataFrame({"sex": ["f", "f", None], "age": [30, 40, 30], "records": [2, 1, 1]})
    >>> neighborhood_sizes(table, ["sex", "age"]).to_list()
    [3, 1, 3]
    """
    return _agreeing(table, table, keys, units=False)


def neighborhood_units(table: pl.DataFrame, pairs: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return, for each distinct combination, how many units ``u`` it agrees with, or a number that is no larger.

    ``pairs`` say who has which combination. Somebody with several of them is counted once among the combinations that
    know the same keys; between such groups the largest count stands for all, since nobody may be counted twice.

    Examples
    --------
    >>> table = pl.DataFrame({"sex": ["f", "f", None], "age": [30, 40, 30]})
    >>> pairs = pl.DataFrame({"sex": ["f", "f", None], "age": [30, 40, 30], "u": [1, 1, 1]})
    >>> neighborhood_units(table, pairs, ["sex", "age"]).to_list()
    [1, 1, 1]
    """
    return _agreeing(table, pairs, keys, units=True).cast(pl.Int64)


def _agreeing(table: pl.DataFrame, held: pl.DataFrame, keys: Sequence[str], *, units: bool) -> pl.Series:
    """Count what agrees with each combination: records added up, or the most units of all groups."""
    bits = sum(pl.col(key).is_not_null().cast(pl.Int64) * (1 << i) for i, key in enumerate(keys))
    by_pattern = held.with_columns(pattern=bits).partition_by("pattern", as_dict=True)
    patterns = {int(key[0]): part for key, part in by_pattern.items()}
    numbered = table.with_row_index("row").with_columns(pattern=bits)
    many = pl.len().cast(pl.Int64) if units else pl.col("records").sum()
    parts = []
    for (pattern,), part in numbered.partition_by("pattern", as_dict=True).items():
        sizes = part.select("row", size=pl.lit(0, dtype=pl.Int64))
        for common, others in _by_common_keys(int(pattern), patterns).items():
            on = [key for i, key in enumerate(keys) if common >> i & 1]
            rows = pl.concat(other.select(*on, "u" if units else "records") for other in others)
            rows = rows.unique() if units else rows
            if on:
                counted = rows.group_by(on).agg(found=many)
                joined = part.select("row", *on).join(counted, on=on, how="left", maintain_order="left")
                found = joined["found"].fill_null(0)
            else:
                found = rows.select(many).to_series()
            both = pl.max_horizontal("size", pl.lit(found)) if units else pl.col("size") + pl.lit(found)
            sizes = sizes.with_columns(size=both)
        parts.append(sizes)
    return pl.concat(parts).sort("row")["size"].rename("class_size")


def _by_common_keys(known: int, patterns: dict[int, pl.DataFrame]) -> dict[int, list[pl.DataFrame]]:
    """Group all patterns by the keys they share with this one; each group needs one comparison."""
    groups: dict[int, list[pl.DataFrame]] = defaultdict(list)
    for other, part in patterns.items():
        groups[known & other].append(part)
    return groups
