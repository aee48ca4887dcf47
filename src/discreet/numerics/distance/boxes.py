"""Who is within reach in every column at once? Candidates by windows, never by all pairs.

A pair matches when each number differs by at most its tolerance and each category is equal (or alike enough). The
candidates are blocked on the categories that must be equal and sorted by the most selective number; each record
then looks only at its window of its block.

The smallest tolerance at which a record matches some candidate, found once, answers for every tolerance: a record is
matched at all tolerances from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Codes, Flags, Floats, Integers

Likeness = Literal["exact", "levenshtein", "jaro_winkler"]


@dataclass(frozen=True)
class Words:
    """A text column that is compared by likeness: codes of both files and which pairs of codes are alike."""

    codes: Codes
    others: Codes
    alike: Flags


@dataclass(frozen=True)
class Boxes:
    """What was found: how many match each record, how often each candidate matched, and the pairs if asked for."""

    counts: Integers
    back: Integers
    partner: Integers
    pairs: Integers

    @property
    def unique_both_ways(self) -> int:
        """How many records have one match that has no other."""
        single = self.counts == 1
        return int((self.back[self.partner[single]] == 1).sum())


def in_boxes(
    numbers: Floats,
    others: Floats,
    tolerances: Floats,
    *,
    equal: Sequence[tuple[pl.Series, pl.Series]] = (),
    words: Sequence[Words] = (),
    pairs: bool = False,
    first_only: bool = False,
) -> Boxes:
    """Find the candidates in the box around each record.

    Parameters
    ----------
    numbers, others
        Numbers of the records and of the candidates, a column each; no missing values.
    tolerances
        Largest difference that is still a match, by column.
    equal
        Columns that must be equal, as (records, candidates).
    words
        Columns that must be alike.
    pairs
        Whether to list the pairs, as positions (record, candidate).
    first_only
        Stop at the first match of a record, where only its existence matters.

    Examples
    --------
    >>> found = in_boxes(np.array([[1.0], [5.0]]), np.array([[1.5], [0.5], [9.0]]), np.array([1.0]))
    >>> found.counts.tolist()
    [2, 0]
    """
    from discreet.numerics.distance.box_kernels import matches_in_boxes

    reach = tolerances * (1 + 1e-12)
    block, other_block = _blocks(len(numbers), len(others), equal)
    if numbers.shape[1]:
        spread = others.std(axis=0) / np.maximum(reach, 1e-300) if len(others) else reach
        columns = np.argsort(-spread, kind="stable")
        numbers, others, reach = numbers[:, columns], others[:, columns], reach[columns]
        order = np.lexsort((others[:, 0], other_block))
    else:
        order = np.argsort(other_block, kind="stable")
    sorted_block = other_block[order]
    starts = np.searchsorted(sorted_block, block, side="left").astype(np.int64)
    stops = np.searchsorted(sorted_block, block, side="right").astype(np.int64)
    alike = [word.alike.astype(np.uint8) for word in words]
    arguments = (
        np.ascontiguousarray(numbers),
        _stacked([word.codes for word in words], len(numbers)),
        starts,
        stops,
        np.ascontiguousarray(others[order]),
        _stacked([word.others[order] for word in words], len(others)),
        np.ascontiguousarray(reach),
        np.concatenate([a.ravel() for a in alike]) if alike else np.empty(0, np.uint8),
        np.concatenate([[0], np.cumsum([a.size for a in alike])]).astype(np.int64),
        np.array([a.shape[1] for a in alike], dtype=np.int64),
    )

    def search(room: int) -> tuple[int, Integers, Integers, Integers, Integers]:
        counts, back = np.zeros(len(numbers), np.int64), np.zeros(len(others), np.int64)
        only, listed = np.full(len(numbers), -1, np.int64), np.empty((room, 2), np.int64)
        total = matches_in_boxes(*arguments, counts, back, only, listed, first_only)
        return total, counts, back, only, listed

    total, counts, back, only, listed = search(0)
    if pairs and total:
        listed = search(total)[-1]
        listed[:, 1] = order[listed[:, 1]]
        listed = listed[np.lexsort((listed[:, 1], listed[:, 0]))]
    in_place = np.empty_like(back)
    in_place[order] = back
    return Boxes(counts, in_place, np.where(only >= 0, order[only] if len(order) else only, -1), listed)


def alike_words(
    column: pl.Series, other: pl.Series, *, likeness: Likeness, threshold: float
) -> tuple[Words, Floats]:
    """Compare two text columns by the likeness of their levels; also return the likeness of each pair of levels."""
    from discreet.numerics.distance.box_kernels import similar_words

    (codes, letters, starts), (theirs, other_letters, other_starts) = _letters(column), _letters(other)
    likenesses = similar_words(letters, starts, other_letters, other_starts, likeness == "jaro_winkler")
    return Words(codes, theirs, likenesses >= threshold - 1e-12), likenesses


def _letters(column: pl.Series) -> tuple[Codes, Codes, Integers]:
    text = column.cast(pl.String)
    levels = text.unique().drop_nulls().sort()
    codes = text.cast(pl.Enum(levels)).to_physical().cast(pl.Int32).to_numpy()
    letters = np.frombuffer("".join(levels).encode("utf-32-le"), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(levels.str.len_chars().to_numpy())]).astype(np.int64)
    return codes, letters, starts


def _blocks(
    rows: int, others: int, equal: Sequence[tuple[pl.Series, pl.Series]]
) -> tuple[Integers, Integers]:
    """Number the combinations of the columns that must be equal, the same in both files."""
    if not equal:
        return np.zeros(rows, np.int64), np.zeros(others, np.int64)
    stacked = pl.DataFrame(
        [pl.concat([a.alias(f"b{j}"), b.alias(f"b{j}")]) for j, (a, b) in enumerate(equal)]
    )
    number = stacked.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64)).to_series().to_numpy()
    return number[:rows].astype(np.int64), number[rows:].astype(np.int64)


def _stacked(columns: list[Codes], rows: int) -> Codes:
    if not columns:
        return np.empty((rows, 0), dtype=np.int32)
    return np.ascontiguousarray(np.column_stack(columns).astype(np.int32))


@dataclass(frozen=True)
class Reach:
    """The smallest tolerance of each record (inf where none is enough), and the candidate it touches (-1 for none)."""

    tolerance: Floats
    nearest: Integers


def reach_to_nearest(
    numbers: Floats, units: Floats, others: Floats, *, equal: Sequence[tuple[pl.Series, pl.Series]] = ()
) -> Reach:
    """Find, for each record, the smallest t at which some candidate differs by at most t units in every number.

    Parameters
    ----------
    numbers, others
        Numbers of the records and of the candidates, a column each; no missing values.
    units
        What a difference is measured in, for each record and column; where it is 0 only equal numbers touch.
    equal
        Columns that must be equal, as (records, candidates).

    Examples
    --------
    >>> found = reach_to_nearest(np.array([[10.0], [0.0]]), np.array([[10.0], [0.0]]), np.array([[9.0], [12.0]]))
    >>> found.tolerance.tolist(), found.nearest.tolist()
    ([0.1, inf], [0, -1])
    """
    from discreet.numerics.distance.box_kernels import grow_boxes, smallest_tolerances

    block, other_block = _blocks(len(numbers), len(others), equal)
    order = np.argsort(other_block, kind="stable")
    present, starts = np.unique(other_block[order], return_index=True)
    stops = np.append(starts[1:], len(order)).astype(np.int64)
    scales = others.std(axis=0) if len(others) else np.ones(others.shape[1])
    boxes, low, high = grow_boxes(
        np.ascontiguousarray(others), order, starts.astype(np.int64), stops, np.where(scales > 0, scales, 1.0)
    )
    root = np.searchsorted(present, block)
    there = root < len(present)
    there[there] = present[root[there]] == block[there]
    roots = np.where(there, root, -1).astype(np.int64)
    found, nearest = np.empty(len(numbers)), np.empty(len(numbers), dtype=np.int64)
    numbers, units, others = (np.ascontiguousarray(part) for part in (numbers, units, others))
    smallest_tolerances(numbers, units, roots, others, order, boxes, low, high, found, nearest)
    return Reach(found, nearest)
