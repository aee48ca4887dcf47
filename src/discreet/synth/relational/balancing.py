"""Parents drawn so that numbers of children are as frequent as they were: chance alone misses small totals widely."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.synth.relational.family import Family

_MORE = 0.5  # candidates beside those that are needed
_BINS = 8
_ROUNDS = 200
_FEW_LEVELS = 30


def chosen_parents(
    families: Sequence[Family], rows: int, draw: Callable[[int], pl.DataFrame], rng: np.random.Generator
) -> pl.DataFrame:
    """Draw more parents than are needed, and choose those whose numbers of children are as frequent as they were.

    Every parent is taken as it was drawn, so that what it is like and what its children are like go together.
    """
    counted = [family for family in families if family.levels]
    if not counted or rows < 2 * _BINS:
        return draw(rows)
    every = draw(rows + max(round(_MORE * rows), 2 * _BINS))
    cells, wanted = zip(*(_cells(family, every[family.number]) for family in counted), strict=True)
    codes = np.column_stack(cells)
    ends = np.cumsum([0, *(len(own) for own in wanted)])[:-1]
    codes = codes + ends
    aim = np.concatenate(wanted) * rows
    taken = np.arange(every.height) < rows
    gap = _gap(codes[taken], aim)
    size = max(1, rows // 20)
    for _ in range(_ROUNDS):
        if np.abs(gap).max() < 1 or size < 1:
            break
        worth = gap[codes].sum(axis=1) + rng.random(every.height) * 1e-3
        inside, outside = np.flatnonzero(taken), np.flatnonzero(~taken)
        leaves = inside[np.argsort(-worth[inside])[:size]]
        comes = outside[np.argsort(worth[outside])[:size]]
        tried = taken.copy()
        tried[leaves], tried[comes[: len(leaves)]] = False, True
        after = _gap(codes[tried], aim)
        if np.abs(after).sum() < np.abs(gap).sum():
            taken, gap = tried, after
        else:
            size //= 2
    return every.filter(pl.Series(taken))


def _gap(codes: Integers, aim: Floats) -> Floats:
    """Say how many parents too many (or too few) each class has."""
    found: Floats = np.bincount(codes.ravel(), minlength=len(aim)) - aim
    return found


def _cells(family: Family, drawn: pl.Series) -> tuple[Integers, Floats]:
    """Put numbers of children into a few classes; returns that of each drawn parent, and the share of each class."""
    often = np.array(family.often, dtype=np.float64)
    # A class ends where its share of the parents is reached; a number that many parents have is one by itself.
    upto = np.cumsum(often) / often.sum()
    bins = np.unique(np.floor(np.concatenate([[0.0], upto[:-1]]) * _BINS), return_inverse=True)[1]
    large = often / often.sum() >= 1 / (2 * _BINS)
    bins = np.unique(np.column_stack([bins, np.cumsum(large), large]), axis=0, return_inverse=True)[1].ravel()
    place = {level: int(own) for level, own in zip(family.levels, bins.tolist(), strict=True)}
    codes = np.array([place.get(level, 0) for level in drawn.to_list()], dtype=np.int64)
    return codes, np.bincount(bins, weights=often) / often.sum()


def balanced_children(family: Family, parents: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Let as many of these parents have children as should, where they are children themselves and cannot be chosen.

    Who is to get the first child is one of those who are like parents with children in all their categories, and what
    is known of the children comes from one of these; who is to lose them is anybody.
    """
    if not family.levels or not parents.height:
        return parents
    none = (0, "")
    have = np.array([level not in none for level in parents[family.number].to_list()])
    share = sum(n for level, n in zip(family.levels, family.often, strict=True) if level not in none)
    missing = round(parents.height * share / sum(family.often)) - int(have.sum())
    taken = np.arange(parents.height)
    if not missing or not have.any():
        return parents
    if missing < 0:
        lose = rng.permutation(np.flatnonzero(have))[:-missing]
        if not (~have).any():
            return parents
        taken[lose] = rng.choice(np.flatnonzero(~have), size=len(lose))
    else:
        few = [
            name
            for name in parents.columns
            if name not in family.known and ": " not in name and parents[name].n_unique() <= _FEW_LEVELS
        ]
        groups = _groups(parents.select(few))
        donors, others = (
            np.bincount(groups, weights=own, minlength=groups.max() + 1) for own in (have, ~have)
        )
        chance = np.where(have, 0.0, donors[groups] / np.maximum(others[groups], 1.0))
        missing = min(missing, int((chance > 0).sum()))
        if not missing:
            return parents
        gain = rng.choice(len(chance), size=missing, replace=False, p=chance / chance.sum())
        # A donor of the same group: those with children stand together when sorted by group.
        rich = np.flatnonzero(have)
        rich = rich[np.argsort(groups[rich], kind="stable")]
        low, high = (np.searchsorted(groups[rich], groups[gain], side=side) for side in ("left", "right"))
        taken[gain] = rich[low + np.floor(rng.random(missing) * (high - low)).astype(np.int64)]
    known = [name for name in family.known if name in parents.columns]
    return parents.with_columns(parents[name].gather(taken) for name in known)


def _groups(frame: pl.DataFrame) -> Integers:
    if not frame.width:
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
