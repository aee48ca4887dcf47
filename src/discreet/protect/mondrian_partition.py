"""Cutting a file into ever smaller boxes of key values, all boxes of a round at once.

Every open box proposes its most promising cut; the models judge all pieces together; boxes whose pieces all pass
are cut, the others try their next cut in the next round. A box without cuts left is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.protect.coded_columns import Pieces, Watched
from discreet.protect.privacy_models import KAnonymity, PrivacyModel


@dataclass(frozen=True)
class Dimension:
    """One key as Mondrian sees it.

    Attributes
    ----------
    ranks
        The place of each record's value in the order of the key; -1 is missing.
    places
        Where the values of that order lie on a line, from 0 to 1; their distances make a box wide or narrow.
    levels
        For a key with a hierarchy the code of each record at every level; missing is a code of its own.
    """

    ranks: Integers
    places: Floats
    levels: Integers | None = None


def partition(
    dimensions: Sequence[Dimension], models: Sequence[PrivacyModel], watched: Watched, *, strict: bool
) -> Integers:
    """Number the final boxes and say in which each record lies.

    Each key offers two cuts: its missing values from the others, and all values (missing ones first, where they
    could not be cut off) near their median or, with a hierarchy, into the labels one level down. Strictly cut, a row
    may stand for many equal records.
    """
    n = len(dimensions[0].ranks)
    many = np.ones(n, dtype=np.int64) if watched.many is None else watched.many
    if _violating(Pieces(np.zeros(n, dtype=np.int64), 1, watched), models).any():
        names = ", ".join(model.name for model in models)
        raise ParameterError(
            f"Even the whole file, taken as one class, does not meet {names}: ask for less in k or models."
        )
    implied = [closed for model in models for closed in model.implied()]
    least = max([model.k for model in implied if isinstance(model, KAnonymity)], default=1)
    final, finished = np.full(n, -1, dtype=np.int64), 0
    records, here = np.arange(n), np.zeros(n, dtype=np.int64)
    tried = np.zeros((1, 2 * len(dimensions)), dtype=np.bool_)
    while len(records):
        # Records stand box by box, which makes everything about a box a slice.
        order = np.argsort(here, kind="stable")
        records, here = records[order], here[order]
        move = _best_moves(dimensions, records, here, tried, (many[records], 2 * least))
        done = move < 0
        leaving = done[here]
        final[records[leaving]] = finished + (np.cumsum(done) - 1)[here[leaving]]
        finished += int(done.sum())
        records, here = records[~leaving], (np.cumsum(~done) - 1)[here[~leaving]]
        tried, move = tried[~done], move[~done]
        if not len(records):
            break
        parts = _parts(dimensions, records, here, move, many[records], strict=strict)
        width = int(parts.max()) + 1
        pairs, piece = np.unique(here * width + parts, return_inverse=True)
        parent = pairs // width
        refused = np.bincount(parent, minlength=len(move)) < 2
        refused[parent[_refused_pieces(records, piece, len(pairs), models, watched, n=n)]] = True
        tried[refused, move[refused]] = True
        # A refused box stays whole and remembers what it tried; the pieces of an accepted one start afresh.
        box_of_piece = np.where(refused[parent], np.searchsorted(parent, parent), np.arange(len(pairs)))
        kept, renamed = np.unique(box_of_piece, return_inverse=True)
        here = renamed[piece]
        tried = tried[parent[kept]] & refused[parent[kept]][:, None]
    return final


def _refused_pieces(
    records: Integers, piece: Integers, many: int, models: Sequence[PrivacyModel], watched: Watched, *, n: int
) -> Flags:
    alone = watched.units is None and watched.many is None
    if alone and not (watched.sensitive or watched.weights):
        return _violating(Pieces(piece, many, watched), models)
    owners = np.full(n, many, dtype=np.int64)
    owners[records] = piece
    return _violating(Pieces(owners, many + (len(records) < n), watched), models)[:many]


def _violating(pieces: Pieces, models: Sequence[PrivacyModel]) -> Flags:
    violating = np.zeros(pieces.many, dtype=np.bool_)
    for model in models:
        violating |= model.violations(pieces)
    return violating


def _best_moves(
    dimensions: Sequence[Dimension],
    records: Integers,
    here: Integers,
    tried: Flags,
    sized: tuple[Integers, int],
) -> Integers:
    """Choose for each box the cut to try: off with missing values first, then across the widest key; -1 is none.

    ``sized`` says how many records each row stands for, and how many a box must have to be cut.
    """
    many, least = sized
    begin = np.searchsorted(here, np.arange(len(tried)))
    sizes = np.add.reduceat(many, begin)
    score = np.full(tried.shape, -np.inf)
    for j, dimension in enumerate(dimensions):
        ranks = dimension.ranks[records]
        low, high = np.minimum.reduceat(ranks, begin), np.maximum.reduceat(ranks, begin)
        mixed = (low < 0) & (high >= 0)
        known = np.minimum.reduceat(np.where(ranks < 0, len(dimension.places), ranks), begin)
        known = np.minimum(known, np.maximum(high, 0))
        extent = dimension.places[np.maximum(high, 0)] - dimension.places[known]
        score[:, 2 * j] = np.where(mixed, 2.0 + extent, -np.inf)
        score[:, 2 * j + 1] = np.where(extent > 0, extent, -np.inf)
    score[tried] = -np.inf
    score[sizes < least] = -np.inf
    best = score.argmax(axis=1)
    return np.where(np.isneginf(score.max(axis=1)), -1, best)


def _parts(
    dimensions: Sequence[Dimension],
    records: Integers,
    here: Integers,
    move: Integers,
    many: Integers,
    *,
    strict: bool,
) -> Integers:
    """Say into which part of its box's cut each record falls."""
    parts = np.zeros(len(records), dtype=np.int64)
    chosen = move[here]
    for j, dimension in enumerate(dimensions):
        off = np.flatnonzero(chosen == 2 * j)
        parts[off] = dimension.ranks[records[off]] >= 0
        across = np.flatnonzero(chosen == 2 * j + 1)
        if not len(across):
            continue
        if dimension.levels is not None:
            parts[across] = _one_level_down(dimension.levels[records[across]], here[across])
        else:
            ranks = dimension.ranks[records[across]]
            parts[across] = _halves(ranks, here[across], many[across], strict=strict)
    return parts


def _one_level_down(levels: Integers, here: Integers) -> Integers:
    """Give each record its code on the highest level that still tells records of its box apart."""
    begin = np.flatnonzero(np.diff(here, prepend=-1))
    alike = np.maximum.reduceat(levels, begin, axis=0) == np.minimum.reduceat(levels, begin, axis=0)
    meet = alike.argmax(axis=1)
    below = np.repeat(np.maximum(meet - 1, 0), np.diff(np.append(begin, len(here))))
    return np.asarray(levels[np.arange(len(here)), below])


def _halves(ranks: Integers, here: Integers, many: Integers, *, strict: bool) -> Integers:
    """Cut each box near its median; equal values stay together unless the cut is relaxed."""
    begin = np.flatnonzero(np.diff(here, prepend=-1))
    rows = np.diff(np.append(begin, len(here)))
    order = np.lexsort((ranks, here))
    if not strict:
        place = np.arange(len(here)) - np.repeat(begin, rows)
        parts = np.empty(len(here), dtype=np.int64)
        parts[order] = place >= np.repeat(rows // 2, rows)
        return parts
    sizes = np.add.reduceat(many, begin)
    before = np.cumsum(sizes) - sizes
    middle = np.searchsorted(np.cumsum(many[order]), before + (sizes - 1) // 2, side="right")
    median = np.repeat(ranks[order][middle], rows)
    under = np.add.reduceat(np.where(ranks < median, many, 0), begin)
    up_to = np.add.reduceat(np.where(ranks <= median, many, 0), begin)
    cut_before = (up_to == sizes) | ((under > 0) & (np.abs(2 * under - sizes) < np.abs(2 * up_to - sizes)))
    return np.where(np.repeat(cut_before, rows), ranks >= median, ranks > median).astype(np.int64)
