"""The treatments that a suggested plan is made of: no other module of the workflow names any.

Each comes with the sentence that says what it does; what the coding of a column loses and which categories are best
grouped is found here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata
from discreet.protect import (
    Band,
    ClassSwap,
    DropIdentifiers,
    Generalize,
    KAnonymity,
    LDiversity,
    LocalSuppression,
    OptimalGeneralization,
    Recode,
    ReorderRecords,
    Round,
    TopBottomCode,
    Treatment,
)
from discreet.protect.privacy_models import PrivacyModel
from discreet.utility.column_loss import comparable_kind, linked_loss
from discreet.utility.linked_files import same_cells

BAND, GROUP, CUT, LIMIT = "band", "group", "cut", "limit"


Described = tuple[Treatment, str]
"""A step of a plan, and in one sentence what it does to this file."""


DROPPED, SWAPPED = DropIdentifiers().name, ClassSwap(LDiversity("any", 2)).name


def as_entries(steps: Iterable[Treatment]) -> tuple[dict[str, Any], ...]:
    """Write steps as a plan file has them.

    Examples
    --------
    >>> as_entries([DropIdentifiers(["name"])])
    ({'treatment': 'drop-identifiers', 'columns': ['name']},)
    """
    return tuple({"treatment": step.name, **step.to_dict()} for step in steps)


def without_identifiers(columns: Sequence[str] | None = None) -> Treatment:
    """Leave out what identifies people by itself: these columns, or those with that role."""
    return DropIdentifiers(None if columns is None else list(columns))


def columns_left_out(columns: Sequence[str], why: str) -> Described:
    """Leave out these columns."""
    return without_identifiers(columns), f"Leave out {listed(columns)}: {why}."


def records_reordered() -> Described:
    """Put the records into another order."""
    return ReorderRecords(), "Put the records into a random order, so that their places say nothing."


def numbers_rounded(numbers: Mapping[str, tuple[float, float]]) -> list[Described]:
    """Show the largest numbers as their mean, and round all of them: ``{column: (base, highest number)}``."""
    if not numbers:
        return []
    tops = {column: top for column, (_, top) in numbers.items()}
    bases = {column: base for column, (base, _) in numbers.items()}
    pulled = in_a_row([f"'{column}' above {top:,g}" for column, top in tops.items()])
    rounded = in_a_row([f"'{column}' to multiples of {base:,g}" for column, base in bases.items()])
    return [
        (TopBottomCode(top=tops, replacement="mean"), f"Show values of {pulled} as their mean."),
        (Round(bases), f"Round {rounded}."),
    ]


def coding_steps(chosen: Mapping[str, tuple[str, Any]]) -> list[tuple[Treatment, tuple[str, ...]]]:
    """Give the steps that code columns as their rungs say, at most one of each kind, each with its columns."""
    of_kind: dict[str, dict[str, Any]] = {BAND: {}, GROUP: {}, CUT: {}, LIMIT: {}}
    for name, (kind, setting) in chosen.items():
        of_kind[kind][name] = setting
    bands, groups, cuts, limits = of_kind.values()
    steps: list[tuple[Treatment, tuple[str, ...]]] = []
    if limits:
        bottoms, tops = (
            {name: ends[side] for name, ends in limits.items() if ends[side] is not None} for side in (0, 1)
        )
        steps.append((TopBottomCode(top=tops, bottom=bottoms), tuple(limits)))
    if bands:
        steps.append((Band(breaks={name: list(breaks) for name, breaks in bands.items()}), tuple(bands)))
    if cuts:
        levels = {name: level for name, (_, level) in cuts.items()}
        hierarchies = {name: hierarchy for name, (hierarchy, _) in cuts.items()}
        steps.append((Generalize(levels, hierarchies), tuple(cuts)))
    if groups:
        steps.append((Recode({name: dict(table) for name, table in groups.items()}), tuple(groups)))
    return steps


def cells_suppressed(
    k: int, keys: Sequence[str], costs: Mapping[str, float], followed: Mapping[str, Sequence[str]]
) -> Described:
    """Blank cells of records that stand out; ``costs`` says where that costs more, ``followed`` what goes along."""
    ghosts = {key: list(columns) for key, columns in followed.items()} or None
    return (
        LocalSuppression(k=k, importance=costs or None, missing="category", keys=keys, ghosts=ghosts),
        f"Blank single key cells until every record shares its keys with at least {k - 1} others.",
    )


def classes_hidden(k: int, models: Sequence[PrivacyModel], keys: Sequence[str]) -> Described:
    """Blank the keys of classes that break a model."""
    return (
        OptimalGeneralization([KAnonymity(max(2, k)), *models], suppression_limit=0.5, keys=keys),
        "Blank all keys of the records whose group would still give a sensitive value away.",
    )


def values_swapped(models: Sequence[PrivacyModel], keys: Sequence[str]) -> Described:
    """Swap sensitive values between classes until the models are met."""
    mixed = dict.fromkeys(column for model in models for column in model.columns)
    return (
        ClassSwap(list(models), keys=keys),
        f"Where a group would give a value of {listed(mixed)} away, swap some of its values with other groups; all "
        "counts stay.",
    )


def listed(names: Iterable[str]) -> str:
    """Name columns in a sentence."""
    return in_a_row([f"'{name}'" for name in names])


def in_a_row(parts: Sequence[str]) -> str:
    """Join parts of a sentence.

    Examples
    --------
    >>> in_a_row(["age"]), in_a_row(["age", "sex", "pay"])
    ('age', 'age, sex and pay')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def recoded(values: pl.Series, shape: str, setting: Any) -> pl.Series:
    """Code a column as a rung says, by the treatment that a plan would use."""
    made = Microdata(plainly_named(values).to_frame())
    for step, _ in coding_steps({"value": (shape, setting)}):
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


# Which categories may be joined? Small groups join the group whose outcomes are most like their own.


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
