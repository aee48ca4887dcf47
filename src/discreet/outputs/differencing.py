"""Which cells of two outputs are about almost the same people?

Whoever has both can subtract: all staff less graduates are the four who are not, and a mean of 1,000 less a mean of 999
is the pay of one. A pair of cells is *close* when the people who are in one of them and not in the other are fewer than
the threshold, and there are any. Cells that can be added up are also compared as sums: over whole dimensions, and over
neighboring bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.outputs.membership import Joint

Texts = tuple[str, ...]
Axes = tuple[int, ...]

_MOST_DIMENSIONS = 6
_MOST_PAIRS = 400
_MOST_BINS = 60


@dataclass(frozen=True)
class Part:
    """What is published of one output: levels of its dimensions, cells that are hidden, whether cells add up."""

    levels: tuple[Texts, ...]
    hidden: frozenset[Texts] = frozenset()
    adds_up: bool = True
    has_bins: bool = False

    def sums(self) -> list[Axes]:
        """The sets of dimensions by which it is known: as published, and added up over the others."""
        whole = tuple(range(len(self.levels)))
        if not self.adds_up:
            return [whole]
        if len(whole) > _MOST_DIMENSIONS // 2:
            return list(dict.fromkeys([whole, *((axis,) for axis in whole), ()]))
        return [axes for size in range(len(whole), -1, -1) for axes in combinations(whole, size)]


@dataclass(frozen=True)
class Close:
    """The close cells of a new output: how many, and which ones where they are cells as published."""

    number: int = 0
    cells: tuple[Texts, ...] = ()
    is_nested: bool = True


def close_cells(joint: Joint, new: Part, earlier: Part, threshold: int) -> Close:
    """Find the cells (and sums of cells) of the new output that differ by few people from those of the earlier one.

    Examples
    --------
    >>> frame = pl.DataFrame({"a in": [True, True], "b in": [True, False], "n": [41, 4]})
    >>> close_cells(Joint(frame, True), Part(()), Part(()), 10).number
    1
    """
    frame = _shown(_shown(joint.frame, "a", new), "b", earlier)
    nested = not (
        frame.filter(pl.col("a in") & ~pl.col("b in")).height
        and frame.filter(~pl.col("a in") & pl.col("b in")).height
    )
    for size in range(len(new.levels), -1, -1):
        found: set[Texts] = set()
        for ours in (axes for axes in new.sums() if len(axes) == size):
            for theirs in earlier.sums():
                found |= _close(frame, ours, theirs, threshold, joint.counts_people)
        if found:
            return Close(len(found), tuple(sorted(found)) if size == len(new.levels) else (), nested)
    if new.has_bins and earlier.has_bins and not joint.counts_people:
        number = _close_stretches(frame, new.levels[-1], earlier.levels[-1], threshold)
        return Close(number, (), nested)
    return Close(0, (), nested)


def _shown(frame: pl.DataFrame, tag: str, part: Part) -> pl.DataFrame:
    """Write levels as text, and take out of an output the people in cells that it hides."""
    names = [f"{tag}{i}" for i in range(len(part.levels))]
    for i, name in enumerate(names):
        seen = frame[name].unique().to_list()
        # A bin comes as its place, a level as its value.
        is_bin = part.has_bins and i == len(names) - 1
        texts = [str(part.levels[i][v]) if is_bin and v is not None else str(v) for v in seen]
        labels = pl.DataFrame(
            {name: pl.Series(seen, dtype=frame.schema[name]), f"{name} text": texts}, strict=False
        )
        frame = frame.join(labels, on=name, how="left", nulls_equal=True)
        frame = frame.drop(name).rename({f"{name} text": name})
    if part.hidden and names:
        gone = pl.DataFrame([list(cell) for cell in part.hidden], schema=names, orient="row").with_columns(
            gone=pl.lit(True)
        )
        frame = frame.join(gone, on=names, how="left", nulls_equal=True)
        frame = frame.with_columns((pl.col(f"{tag} in") & pl.col("gone").is_null()).alias(f"{tag} in")).drop(
            "gone"
        )
    return frame


def _close(frame: pl.DataFrame, ours: Axes, theirs: Axes, threshold: int, counts_people: bool) -> set[Texts]:
    a, b = [f"a{i}" for i in ours], [f"b{i}" for i in theirs]
    pairs = _people_apart(frame, a, b, threshold) if counts_people else _records_apart(frame, a, b, threshold)
    return (
        {tuple(str(text) for text in row) for row in pairs.select(a).rows()}
        if a
        else ({()} if pairs.height else set())
    )


def _records_apart(frame: pl.DataFrame, a: list[str], b: list[str], threshold: int) -> pl.DataFrame:
    n = pl.col("n").sum()
    one, two = pl.lit(1).alias("one"), pl.lit(1).alias("two")
    mine = frame.filter(pl.col("a in")).with_columns(one).group_by("one", *a).agg(n.alias("mine"))
    other = frame.filter(pl.col("b in")).with_columns(two).group_by("two", *b).agg(n.alias("other"))
    both = frame.filter(pl.col("a in") & pl.col("b in")).with_columns(one, two)
    both = both.group_by("one", "two", *a, *b).agg(n)
    both = both.join(mine, on=["one", *a], nulls_equal=True).join(other, on=["two", *b], nulls_equal=True)
    apart = pl.col("mine") + pl.col("other") - 2 * pl.col("n")
    return both.filter((apart > 0) & (apart < threshold))


def _people_apart(frame: pl.DataFrame, a: list[str], b: list[str], threshold: int) -> pl.DataFrame:
    """As for records, where somebody may have several: those whose records are in one cell and not in the other."""
    pairs = frame.filter(pl.col("a in") & pl.col("b in")).select(*a, *b, pl.lit(1).alias("one")).unique()
    kept = []
    for row in pairs.sort(pl.all()).head(_MOST_PAIRS).iter_rows(named=True):
        mine = _is(row, "a", a)
        other = _is(row, "b", b)
        apart = frame.filter(mine != other)["p"].n_unique()
        kept.append(0 < apart < threshold)
    kept += [False] * (pairs.height - len(kept))
    return pairs.sort(pl.all()).filter(pl.Series(kept, dtype=pl.Boolean))


def _is(row: dict[str, Any], tag: str, names: Sequence[str]) -> pl.Expr:
    found = pl.col(f"{tag} in")
    for name in names:
        found = found & pl.col(name).eq_missing(pl.lit(row[name]))
    return found


def _close_stretches(frame: pl.DataFrame, bins: Texts, of_other: Texts, threshold: int) -> int:
    """Count the stretches of neighboring bins that differ by few people from a stretch of the other output."""
    ours, theirs = len(bins), len(of_other)
    if max(ours, theirs) > _MOST_BINS:
        return 0
    mine, other = _stretches(ours), _stretches(theirs)
    table = np.zeros((ours + 1, theirs + 1))
    places = [{text: i for i, text in enumerate(labels)} for labels in (bins, of_other)]
    # One row a pair of bins, not a record.
    for row in frame.iter_rows(named=True):
        at = places[0].get(row["a0"], ours) if row["a in"] else ours
        to = places[1].get(row["b0"], theirs) if row["b in"] else theirs
        table[at, to] += row["n"]
    down, across = table[:-1].sum(axis=1), table[:, :-1].sum(axis=0)
    both = _block_sums(table[:-1, :-1], mine, other)
    apart = _line_sums(down, mine)[:, None] + _line_sums(across, other)[None, :] - 2 * both
    return int(((both > 0) & (apart > 0) & (apart < threshold)).any(axis=1).sum())


def _stretches(bins: int) -> Integers:
    return np.array([(i, j) for i in range(bins) for j in range(i + 1, bins + 1)], dtype=np.int64)


def _line_sums(line: Floats, ends: Integers) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(line)])
    return np.asarray(sums[ends[:, 1]] - sums[ends[:, 0]])


def _block_sums(table: Floats, down: Integers, across: Integers) -> Floats:
    sums = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
    sums[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    (i, j), (k, last) = down.T, across.T
    whole = sums[np.ix_(j, last)] - sums[np.ix_(i, last)] - sums[np.ix_(j, k)] + sums[np.ix_(i, k)]
    return np.asarray(whole)
