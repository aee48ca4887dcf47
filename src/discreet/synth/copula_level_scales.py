"""On which scale do the levels of a category stand, and when is one scale too little?

A Gaussian copula puts the levels of a category on one scale. Husband and wife stand together as to marriage and at
opposite ends as to sex: no order says both. Such a category is divided in two, married and not, and each part again
where its own levels need it; every division has a normal variable of its own (nested dichotomies). What a category
tells about another column is what the division tells plus what the levels tell within the parts, so nothing is lost by
dividing; but every further variable brings correlations that may contradict others. A part is therefore divided only
where its best scale misses a good deal of what its levels tell about the other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.numerics.copula import EmpiricalMargin
from discreet.numerics.mutual_information import BOUND, cut_table
from discreet.synth.copula_columns import ColumnMargin, Dimension, mean_scores

#: A part stays one scale where that holds this share of the information, or misses no more than so many nats.
_ENOUGH, _LITTLE = 0.8, 0.02
#: Fewer records than this are too few to say that a scale does not do.
_FEWEST = 1000
#: Numbers are looked at in so many groups.
_GROUPS = 10
#: Levels of other columns with a smaller share do not count when levels are put on a scale.
_RARE = 0.002
#: Longer lists of levels are left on one scale, and looked at in so many groups by other columns.
_MOST_LEVELS = 100


@dataclass(frozen=True)
class Part:
    """Some levels of a category on a scale: each place holds one level, or those of a further part."""

    places: tuple[tuple[int, ...], ...]


def divided(own: Dimension, parts: Sequence[Part], codes: Integers) -> tuple[list[Dimension], ColumnMargin]:
    """Return a dimension for each part, of the records whose level is in it, and the margin that joins them.

    ``codes`` are the levels in the order of the ranks.
    """
    dimensions, margins = [], []
    numbers = {
        frozenset(level for place in part.places for level in place): k for k, part in enumerate(parts)
    }
    for k, part in enumerate(parts):
        place_of = np.full(len(own.shares), -1, dtype=np.int64)
        for place, levels in enumerate(part.places):
            place_of[list(levels)] = place
        places = place_of[own.ranks]
        shares = np.array([own.shares[list(levels)].sum() for levels in part.places])
        shares /= shares.sum()
        label = f"{own.label}: part {k + 1}" if k else own.label
        there = None if k == 0 else places >= 0
        dimensions.append(Dimension(label, np.maximum(places, 0), shares, there, True, own.label))
        leads = [
            codes[levels[0]] if len(levels) == 1 else -numbers[frozenset(levels)] for levels in part.places
        ]
        margins.append(EmpiricalMargin(np.array(leads, dtype=np.int64), shares))
    return dimensions, ColumnMargin(tuple(margins), nested=True)


@dataclass(frozen=True, eq=False)
class _Other:
    """Another column as a category sees it: a table of levels by values, and whether the values have an order."""

    table: Floats
    ordered: bool


def parts_of(
    dimensions: Sequence[Dimension], at: int, nominal: Sequence[bool], weights: Floats | None
) -> list[Part]:
    """Divide a category; parts come before those they hold. One part means that one scale does.

    ``nominal`` says which of the dimensions have levels without an order of their own.
    """
    own = dimensions[at]
    if len(own.shares) > _MOST_LEVELS:
        return [Part(tuple((level,) for level in range(len(own.shares))))]
    share = np.ones(len(own.ranks)) if weights is None else weights
    records = float(share.sum() ** 2 / (share**2).sum())
    others = [
        _against(
            own,
            other.grouped(_MOST_LEVELS if nominal[place] else _GROUPS),
            share,
            records,
            ordered=not nominal[place],
        )
        for place, other in enumerate(dimensions)
        if place != at and len(other.shares) > 1
    ]
    found: list[Part] = []
    _divide(np.arange(len(own.shares)), own.shares * records, others, found)
    return found


def _against(own: Dimension, other: Dimension, share: Floats, records: float, *, ordered: bool) -> _Other:
    size = len(own.shares), len(other.shares)
    seen = share if other.there is None else share * other.there
    counts = np.bincount(own.ranks * size[1] + other.ranks, seen, size[0] * size[1])
    return _Other((counts * (records / share.sum())).reshape(size), ordered)


def _divide(levels: Integers, mass: Floats, others: Sequence[_Other], found: list[Part]) -> None:
    """Put the levels on a scale; where that is too little, cut it in two and go on with the halves."""
    scores = _scores(levels, mass, others)
    order = np.argsort(np.round(scores, 12), kind="stable")
    levels, scores = levels[order], scores[order]
    if len(levels) < 3 or mass[levels].sum() < _FEWEST or _one_scale_does(levels, others):
        found.append(Part(tuple((int(level),) for level in levels)))
        return
    cut = _best_cut(scores, mass[levels])
    halves = levels[:cut], levels[cut:]
    found.append(Part(tuple(tuple(int(level) for level in half) for half in halves)))
    for half in halves:
        if len(half) > 1:
            _divide(half, mass, others, found)


def _scores(levels: Integers, mass: Floats, others: Sequence[_Other]) -> Floats:
    """Score the levels so that they go best with the other columns, as `level_order` does, within these levels."""
    own = np.maximum(mass[levels], 1e-12)
    sums = []
    for other in others:
        table = other.table[levels]
        values = table.sum(axis=0) / max(table.sum(), 1e-12)
        if other.ordered:
            away = mean_scores(np.minimum(np.cumsum(values), 1.0))
            away = away - values @ away
            columns = (away / max(float(np.sqrt(values @ away**2)), 1e-12))[:, None]
        else:
            kept = values > _RARE
            columns = (np.eye(len(values)) - values)[:, kept] / np.sqrt(values[kept])
        sums.append(table @ columns)
    root = np.sqrt(own)
    leading = np.linalg.svd(np.column_stack(sums) / root[:, None], full_matrices=False)[0][:, 0]
    # The sign of a singular vector is arbitrary; this one is the same everywhere.
    return np.asarray(leading / root * np.sign(leading[np.abs(leading).argmax()]))


def _best_cut(scores: Floats, mass: Floats) -> int:
    """Cut ordered levels where the two halves differ most."""
    upto, total = np.cumsum(mass)[:-1], mass.sum()
    below = np.cumsum(mass * scores)[:-1]
    return 1 + int((below**2 / upto + (mass @ scores - below) ** 2 / (total - upto)).argmax())


def _one_scale_does(levels: Integers, others: Sequence[_Other]) -> bool:
    told = held = 0.0
    for other in others:
        table = other.table[levels]
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            continue
        records = table.sum()
        # A table of unrelated columns shows this much information by chance.
        told -= (table.shape[0] - 1) * (table.shape[1] - 1) / (2 * records)
        information, best = _information(table / records)
        told, held = told + information, held + best
    return held >= _ENOUGH * told or told - held < _LITTLE


def _information(table: Floats) -> tuple[float, float]:
    """Return the information of a table, and how much of it the best correlation of two scales holds."""
    from scipy.optimize import minimize_scalar

    rows, columns = table.sum(axis=1), table.sum(axis=0)
    there = table > 0
    apart = np.log(np.outer(rows, columns)[there])

    def held(bent: float) -> float:
        cut = np.maximum(cut_table(rows, columns, float(np.tanh(bent)))[there], 1e-9)
        return float(table[there] @ (np.log(cut) - apart))

    # Along this bent scale the strongest correlations are as far apart as weak ones.
    end = float(np.arctanh(BOUND))
    best = minimize_scalar(lambda z: -held(z), bounds=(-end, end), method="bounded", options={"xatol": 0.02})
    return float(table[there] @ (np.log(table[there]) - apart)), max(-float(best.fun), 0.0)


# In which order do the levels of a category go best with the other columns?
#
# A Gaussian copula sees one scale a column, so regions in alphabetical order lose what they have to do with income.
# The levels are put in the order of the scores for which the sum of squared correlations with all other columns is
# largest (optimal scaling): given the others' scores, those are a leading singular vector of the table of level
# means. Columns take turns until the orders settle.
_ROUNDS = 6
_MOST_RECORDS = 20_000


def associated(dimensions: Sequence[Dimension], weights: Floats | None) -> list[Dimension]:
    """Return the dimensions with the levels of those without an order in the order of their best scores."""
    free = [
        at for at, dimension in enumerate(dimensions) if not dimension.ordered and len(dimension.shares) > 2
    ]
    found = list(dimensions)
    if free and len(dimensions) > 1:
        for at, order in _orders(dimensions, free, weights).items():
            place = np.argsort(order)
            found[at] = replace(
                dimensions[at],
                ranks=place[dimensions[at].ranks].astype(np.int64),
                shares=dimensions[at].shares[order],
            )
    # Two levels need no order, and chosen ones mean something: a sign of the correlation with other columns.
    return [replace(dimension, ordered=True) for dimension in found]


def _orders(
    dimensions: Sequence[Dimension], free: Sequence[int], weights: Floats | None
) -> dict[int, Integers]:
    size = len(dimensions[0].ranks)
    rows = np.unique(np.linspace(0, size - 1, min(size, _MOST_RECORDS)).astype(np.int64))
    share = np.ones(len(rows)) if weights is None else weights[rows]
    scores = np.column_stack([_standard(dimension.scores()[rows], share) for dimension in dimensions])
    orders = {at: np.arange(len(dimensions[at].shares)) for at in free}
    for _ in range(_ROUNDS):
        settled = True
        for at in free:
            codes = dimensions[at].ranks[rows]
            levels = len(dimensions[at].shares)
            mass = np.bincount(codes, share, levels)
            total = np.column_stack(
                [np.bincount(codes, share * scores[:, k], levels) for k in range(len(dimensions)) if k != at]
            )
            root = np.sqrt(np.maximum(mass, 1e-12))
            leading = np.linalg.svd(total / root[:, None], full_matrices=False)[0][:, 0]
            level_scores = np.where(mass > 0, leading / root, 0.0)
            # The sign of a singular vector is arbitrary; the one that goes with the given order is as good as any.
            if mass @ (level_scores * (np.arange(levels) - np.average(np.arange(levels), weights=mass))) < 0:
                level_scores = -level_scores
            order = np.argsort(np.round(level_scores, 12), kind="stable")
            settled &= bool((order == orders[at]).all())
            orders[at] = order
            scores[:, at] = _standard(level_scores[codes], share)
        if settled:
            break
    return orders


def _standard(scores: Floats, share: Floats) -> Floats:
    away = scores - np.average(scores, weights=share)
    spread = float(np.sqrt(np.average(away**2, weights=share)))
    return np.asarray(away / spread if spread > 1e-12 else away * 0.0)
