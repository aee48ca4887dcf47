"""Code columns less precisely, by the treatments that a plan would use, and say what that loses and what to group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata
from discreet.protect import Band, Generalize, Pram, Recode, Treatment
from discreet.utility.column_loss import comparable_kind, linked_loss
from discreet.utility.linked_files import same_cells

BAND, GROUP, CUT, EXCHANGE = "band", "group", "cut", "exchange"


def coding_steps(chosen: Mapping[str, tuple[str, Any]]) -> list[Treatment]:
    """Give the steps that code columns as their rungs say, at most one of each kind."""
    bands = {name: list(setting) for name, (kind, setting) in chosen.items() if kind == BAND}
    groups = {name: dict(setting) for name, (kind, setting) in chosen.items() if kind == GROUP}
    cuts = {name: setting for name, (kind, setting) in chosen.items() if kind == CUT}
    exchanged = {name: float(setting) for name, (kind, setting) in chosen.items() if kind == EXCHANGE}
    steps: list[Treatment] = []
    if bands:
        steps.append(Band(breaks=bands))
    if cuts:
        steps.append(
            Generalize(
                {name: level for name, (_, level) in cuts.items()},
                {name: hierarchy for name, (hierarchy, _) in cuts.items()},
            )
        )
    if groups:
        steps.append(Recode(groups))
    if exchanged:
        steps.append(Pram(columns=list(exchanged), change=exchanged))
    return steps


def recoded(values: pl.Series, shape: str, setting: Any) -> pl.Series:
    """Code a column as a rung says, by the treatment that a plan would use."""
    made = Microdata(plainly_named(values).to_frame())
    for step in coding_steps({"value": (shape, setting)}):
        made = step.apply(made, seed=0).data
    return made.frame["value"].rename(values.name)  # type: ignore[no-any-return]


def plainly_named(values: pl.Series) -> pl.Series:
    """Give a column a plain name: its own may read as a pattern of names."""
    return values.rename("value")


def column_loss(ours: pl.Series, theirs: pl.Series) -> float:
    """Give the share of one column that is lost, record by record, as `information_loss` does."""
    ours, theirs = plainly_named(ours), plainly_named(theirs)
    same = same_cells(ours, theirs)
    if same.all():
        return 0.0
    kind, before, after = comparable_kind(ours, theirs)
    lost = linked_loss(kind, before, after, np.zeros(len(ours), dtype=np.bool_), same)
    # Sums over groups may differ in the last bit from run to run, which must not decide between two plans.
    return round(lost, 12)


# Which categories may be told as one? Small groups join the group whose outcomes are most like their own.


_MOST_OUTCOMES = 6
_BINS = 8
_LIKENESS = 4.0  # how much unlike outcomes weigh against the size of the group that is joined


def outcome_profiles(codes: Integers, levels: int, outcomes: Mapping[str, pl.Series]) -> Floats:
    """Give for each category the distribution of the outcomes of its people, side by side.

    Examples
    --------
    >>> outcome_profiles(np.array([0, 0, 1]), 2, {"ill": pl.Series(["y", "n", "y"])}).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    sizes = np.maximum(np.bincount(codes, minlength=levels), 1)
    parts = [np.zeros((levels, 0))]
    for values in list(outcomes.values())[:_MOST_OUTCOMES]:
        bins = _binned(values)
        table = np.zeros((levels, int(bins.max(initial=0)) + 1))
        np.add.at(table, (codes, bins), 1.0)
        parts.append(table / sizes[:, None])
    return np.hstack(parts)


def groupings(
    counts: Integers, profiles: Floats, shares: Sequence[float]
) -> Iterator[tuple[float, Integers]]:
    """Join small groups until none is smaller than each of the shares, and give the group of every category.

    The smallest group joins the one that is small and has outcomes like its own: what is lost by joining two groups
    grows with both their sizes, what relations lose with the difference of their outcomes.

    Examples
    --------
    >>> found = dict(groupings(np.array([90, 6, 4]), np.zeros((3, 1)), [0.05, 0.2]))
    >>> found[0.05].tolist()
    [0, 1, 1]
    """
    total = counts.sum()
    size = counts.astype(np.float64)
    profile = profiles.copy()
    owner = np.arange(len(counts))
    alive = np.ones(len(counts), dtype=np.bool_)
    for share in shares:
        joined = False
        while alive.sum() > 2:
            there = np.flatnonzero(alive)
            least = int(there[np.argmin(size[there])])
            if size[least] >= share * total:
                break
            others = there[there != least]
            apart = np.abs(profile[others] - profile[least]).sum(axis=1)
            cost = (size[others] + size[least]) / total * (1 + _LIKENESS * apart)
            into = int(others[np.argmin(cost)])
            weight = size[into] + size[least]
            profile[into] = (size[into] * profile[into] + size[least] * profile[least]) / weight
            size[into] = weight
            alive[least] = False
            owner[owner == least] = into
            joined = True
        if joined:
            numbers = np.zeros(len(counts), dtype=np.int64)
            numbers[alive] = np.arange(int(alive.sum()))
            yield share, numbers[owner]


def _binned(values: pl.Series) -> Integers:
    """Number the values of an outcome: numbers by equally filled bins, categories by themselves, the rest together."""
    if values.dtype.is_numeric():
        numbers = values.cast(pl.Float64).fill_nan(None)
        known = numbers.drop_nulls().to_numpy()
        if not len(known):
            return np.zeros(len(values), dtype=np.int64)
        edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS))
        bins = np.searchsorted(edges, numbers.fill_null(0.0).to_numpy(), "right") + 1
        return np.where(numbers.is_null().to_numpy(), 0, bins).astype(np.int64)
    _, codes = distinct_values(values)
    counts = np.bincount(codes)
    if len(counts) <= _BINS:
        return codes
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, _BINS - 1)[codes]
