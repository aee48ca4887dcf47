"""A recipe: which coding each column gets, and how the rest is protected. It turns into a plan.

What it aims at are the rules of a policy, and numbers that one person has alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.cards import Aim, card_of
from discreet.numerics.counts_of_counts import mostly_own
from discreet.policy import Policy, Rule
from discreet.protect import AlphaK, LDiversity, Plan, TCloseness
from discreet.protect.privacy_models import PrivacyModel, class_sizes_ruled, models_ruled
from discreet.workflow.coding_ladders import Ladder
from discreet.workflow.usual_treatments import (
    CUT,
    GROUP,
    Described,
    cells_suppressed,
    classes_hidden,
    coding_steps,
    identifiers_dropped,
    in_a_row,
    numbers_rounded,
    plainly_named,
    records_gathered,
    records_regrouped,
    records_reordered,
    values_swapped,
)

SUPPRESS, REGROUP, ALONG, GATHER, NOTHING = "suppress", "regroup", "along", "gather", "nothing"


@dataclass(frozen=True)
class Frame:
    """What is the same for all recipes of one file.

    Attributes
    ----------
    drop
        Columns that leave the file.
    keys
        The columns by which people are found.
    ladders
        The codings of the columns that may be coarsened, by name.
    aims
        What every class must fulfil.
    cautious
        ``{key: factor}``: how much more it costs to suppress a cell of that key.
    swaps
        What swaps of sensitive values between classes aim at, the weakest first; the first are none.
    company_for_swaps
        How large classes must be for swaps to reach the weakest of these aims.
    needed
        ``(column, rung)``: the codings of sensitive columns without which no class could meet the models.
    numbers
        ``{column: (base, share)}``: numbers that one person has alone, each with the base they are rounded to and the
        share of largest values that are shown as their mean.
    reorder
        Whether the records stand in the order of a column that leaves the file, so that their places would tell it.
    """

    drop: tuple[str, ...]
    keys: tuple[str, ...]
    ladders: Mapping[str, Ladder]
    aims: Aims
    cautious: Mapping[str, float]
    swaps: tuple[tuple[PrivacyModel, ...], ...] = ((),)
    company_for_swaps: int = 2
    needed: tuple[tuple[str, int], ...] = ()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reorder: bool = False

    @property
    def movable(self) -> tuple[str, ...]:
        """The columns that a recipe may code in several ways."""
        return tuple(column for column, ladder in self.ladders.items() if len(ladder) > 1)


@dataclass(frozen=True)
class Recipe:
    """One way to protect a file.

    Attributes
    ----------
    rungs
        ``(column, rung)`` for the columns that are coarsened.
    finish
        What is done about records that still stand out: ``suppress`` cells, ``regroup`` records and show the range of
        each group, do so ``along`` the codings of the columns, ``gather`` the most similar records and show the keys of
        one of them, or ``nothing``.
    k
        The company that the last step aims at.
    hide
        Whether records in classes that break another rule lose all their keys at the end.
    swap
        Which of the aims of swaps between classes is reached at the end; 0 for none.
    """

    rungs: tuple[tuple[str, int], ...] = ()
    finish: str = SUPPRESS
    k: int = 2
    hide: bool = False
    swap: int = 0

    def rung(self, column: str) -> int:
        """Give the rung of a column; 0 is the column as it is."""
        return dict(self.rungs).get(column, 0)

    def with_rung(self, column: str, rung: int) -> Recipe:
        """Return the recipe with another coding of one column."""
        rungs = {**dict(self.rungs), column: rung}
        return replace(self, rungs=tuple(sorted((name, place) for name, place in rungs.items() if place)))

    def plan(self, frame: Frame, title: str = "") -> Plan:
        """Turn the recipe into a plan that names its columns, so that it runs without roles."""
        return Plan([step for step, _ in self.steps(frame)], title)

    def steps(self, frame: Frame) -> list[Described]:
        """List the steps, each with a sentence that says what it does to this file."""
        steps = [identifiers_dropped(frame.drop)] if frame.drop else []
        steps += [records_reordered()] if frame.reorder else []
        steps += numbers_rounded(frame.numbers)
        rungs = {column: frame.ladders[column].rungs[place] for column, place in self.rungs}
        chosen = {column: (rung.kind, rung.setting) for column, rung in rungs.items() if rung.kind}
        for step, columns in coding_steps(chosen):
            coded = [f"'{column}' {rungs[column].words}" for column in columns]
            steps.append((step, f"{in_a_row(coded)}."))
        keys = list(frame.keys)
        if not keys:
            return steps
        swapped = frame.swaps[self.swap]
        models = [model for model in frame.aims.models if model not in swapped]
        if self.finish == SUPPRESS:
            costs = {key: cost for key, cost in frame.cautious.items() if key in frame.keys and cost != 1}
            steps.append(cells_suppressed(self.k, keys, costs))
        if self.finish == GATHER:
            steps.append(records_gathered(self.k, keys))
        if self.finish in (SUPPRESS, GATHER) and self.hide and models:
            steps.append(classes_hidden(frame.aims.k, models, keys))
        if self.finish == REGROUP:
            steps.append(records_regrouped(self.k, models, keys))
        if self.finish == ALONG:
            above = {key: frame.ladders[key].hierarchy_above(self.rung(key)) for key in keys}
            hierarchies = {key: hierarchy for key, hierarchy in above.items() if hierarchy is not None}
            steps.append(records_regrouped(self.k, models, keys, hierarchies))
        if swapped:
            steps.append(values_swapped(swapped, keys))
        return steps


# What do the rules of a policy ask of every class of records? The privacy models that would fulfil them.
#
# Rules about classes (k-anonymity, the largest risk, l-diversity, t-closeness) can be aimed at; the others are judged
# when a plan was tried.


_LARGEST = 200
_WITH_EASE = (
    0.7  # the part of a limit on the distance from the file that values dealt out as well as can be may take
)
_BEARABLE = 15
# What a class may teach at most, in limits of what may be learned on average.
_STRONGER = (2.5, 2.0, 1.7, 1.4)
_COMPANY = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0)


@dataclass(frozen=True)
class Aims:
    """What a plan must reach, as far as it can be aimed at.

    Attributes
    ----------
    k
        The smallest class that the policy allows; 1 where it sets no limit.
    models
        What every class must fulfil beside its size.
    learned
        How much more often than a blind guess a guess of a sensitive value may be right; 1 without a limit.
    own
        Whether numbers that one person has alone must not come back to the digit.
    """

    k: int
    models: tuple[PrivacyModel, ...]
    learned: float = 1.0
    own: bool = False

    def companies(self) -> tuple[int, ...]:
        """List class sizes to aim at: the smallest allowed, and larger ones for rules that are about averages."""
        return tuple(dict.fromkeys(max(2, math.ceil(self.k * factor)) for factor in _COMPANY))

    def swaps(self, columns: Mapping[str, pl.Series]) -> tuple[tuple[PrivacyModel, ...], ...]:
        """List what swaps of sensitive values between classes may aim at: nothing, the models, and ever more.

        A column whose classes tell too much on average is mixed further than its models ask for: no value may be more
        frequent in a class than a blind guess is right, and some multiples of what may be learned. Values that are
        about as common in the file as they may be in a class are left out: no class can have fewer of them.
        """
        plain = tuple(model for model in self.models if set(model.columns) <= set(columns))
        levels: list[tuple[PrivacyModel, ...]] = [(), plain]
        if self.learned < 1:
            blind = {name: _right_by_chance(values) for name, values in columns.items()}
            for factor in _STRONGER:
                shares = {name: round(right + factor * self.learned, 3) for name, right in blind.items()}
                mixed = [
                    AlphaK(name, share, common=share - 0.05) for name, share in shares.items() if share < 0.95
                ]
                levels += [(*plain, *mixed)] if mixed else []
        return tuple(levels) if columns and len(levels) > 1 and any(levels) else ((),)


def _right_by_chance(values: pl.Series) -> float:
    """Say how often a guess is right that is drawn from the column as a whole."""
    shares = values.unique_counts() / max(1, len(values))
    return float((shares**2).sum())


def company_for_swaps(models: Sequence[PrivacyModel], values: Mapping[str, pl.Series]) -> int:
    """Say how large classes must be so that the values of the file can be dealt out as the models ask.

    Where nine in ten people have one value, a class of five gets another one every second time; where no class may
    have it alone, classes of ten or more can be served.

    Examples
    --------
    >>> company_for_swaps([AlphaK("ill", 0.95)], {"ill": pl.Series(["n"] * 85 + ["y"] * 15)})
    8
    """
    least = 2
    for model in models:
        if not isinstance(model, AlphaK | LDiversity) or model.columns[0] not in values:
            continue
        column = values[model.columns[0]]
        common = model.common if isinstance(model, AlphaK) else 1.0
        alpha = model.alpha if isinstance(model, AlphaK) else 1.0
        shares = column.unique_counts() / max(1, len(column))
        top = float(shares.filter(shares <= common).max() or 0.0)  # type: ignore[arg-type]
        sizes = range(least, _LARGEST)
        least = next((n for n in sizes if min(math.floor(alpha * n + 1e-9), n - 1) / n >= 1.02 * top), least)
    return least


def can_be_dealt_out(values: pl.Series, aims: Aims) -> bool:
    """Say whether classes of a bearable size can get what the models on a sensitive column ask for."""
    models = [model for model in aims.models if model.columns == (values.name,)]
    return company_for_swaps(models, {values.name: values}) <= max(_BEARABLE, 2 * aims.k)


def least_distance(shares: Floats, company: int) -> float:
    """Say how far from the file its classes are at least, on average, however the values are dealt out to them.

    A value that one in a hundred has is missing from nine in ten classes of ten; where very many values are as rare,
    every class differs from the file nearly altogether.

    Examples
    --------
    >>> [round(least_distance(np.full(n, 1 / n), 10), 2) for n in (2, 20, 1_000)]
    [0.0, 0.5, 0.99]
    """
    whole = np.floor(shares * company + 1e-9) / company
    rest = shares - whole
    return float(1 - (whole + company * rest**2).sum())


def codings_needed(
    ladders: Mapping[str, Ladder], models: Sequence[PrivacyModel], company: int
) -> tuple[tuple[str, int], ...]:
    """Choose the finest coding of each sensitive column in which its classes can come as near to the file as asked.

    Of a column of very many words, such as incomes written as text, no swap and no grouping would do it.
    """
    found = {}
    for model in models:
        column = model.columns[0] if model.columns else ""
        if not isinstance(model, TCloseness) or column not in ladders:
            continue
        rungs = ladders[column].rungs
        if any(rung.kind not in ("", CUT, GROUP) for rung in rungs):
            continue
        apart = [least_distance(np.bincount(rung.codes) / len(rung.codes), company) for rung in rungs]
        easy = [place for place, distance in enumerate(apart) if distance <= _WITH_EASE * model.t]
        found[column] = easy[0] if easy else len(rungs) - 1
    return tuple(sorted((column, place) for column, place in found.items() if place))


def aims_of(policy: Policy, sensitive: Sequence[str]) -> Aims:
    """Translate the rules of a policy about a file by itself.

    Examples
    --------
    >>> aims = aims_of(Policy.load("public-use-file"), ["income"])
    >>> aims.k, [model.name for model in aims.models]
    (10, ['l-diversity', 't-closeness'])
    """
    k = max([1, *(size for rule in policy.rules for size in class_sizes_ruled(rule))])
    models = [
        model
        for rule in policy.rules
        for column in sensitive
        for model in models_ruled(rule, column, policy.parameters.get(rule.measure, {}))
    ]
    learned = [rule.at_most for rule in policy.comparison if _aim(rule) == "learned"]
    own = any(_aim(rule) == "own values" for rule in policy.comparison)
    return Aims(k, tuple(models), min([1.0, *(limit for limit in learned if limit is not None)]), own)


def _aim(rule: Rule) -> Aim:
    card = card_of(rule.measure)
    figure = card.figure(rule.figure) if card else None
    return figure.aim if figure else ""


# Which numbers does one person have alone, such as an income to the cent, and how far must they be rounded?


_MOSTLY_OWN = (
    0.4  # of values that one person has alone: a little before a column tells people apart by itself
)
_STEPS = 200
_MOST_LARGEST = 0.01


def own_numbers(table: pl.DataFrame, columns: Sequence[str], aims: Aims) -> dict[str, tuple[float, float]]:
    """Find the columns of numbers that are mostly one person's own: the base to round to, and the share of largest.

    The base is a round number that cuts the middle nine tenths into about two hundred steps; as many of the largest
    as a class must have, at least, are shown as their mean.

    Examples
    --------
    >>> table = pl.DataFrame({"pay": [1000.5 + 13.7 * i for i in range(500)], "sex": [0, 1] * 250})
    >>> own_numbers(table, ["pay", "sex"], Aims(10, ()))
    {'pay': (50, 0.02)}
    """
    found = {}
    for name in columns:
        values = plainly_named(table[name])
        if not values.dtype.is_numeric():
            continue
        known = values.cast(pl.Float64).fill_nan(None).drop_nulls()
        counts = known.unique_counts()
        own = int((counts == 1).sum()) >= _MOSTLY_OWN * len(known) or mostly_own(counts.to_numpy())
        if len(known) < 2 * max(aims.k, 10) or not own:
            continue
        numbers = known.to_numpy()
        low, high = np.quantile(numbers, [0.05, 0.95])
        spread = float(high - low) if high > low else float(numbers.max() - numbers.min())
        largest = max(aims.k, 10) / len(known)
        found[name] = (_round_number(spread / _STEPS), round(max(largest, min(_MOST_LARGEST, 0.5)), 6))
    return found


def _round_number(size: float) -> float:
    """Give the next of 1, 2, 5, 10, 20, … (or 0.1, 0.2, …) above a size."""
    power = 10.0 ** math.floor(math.log10(size))
    for digit in (1, 2, 5, 10):
        if digit * power >= size * (1 - 1e-9):
            number = float(f"{digit * power:.12g}")
            return int(number) if number.is_integer() else number
    return 10 * power
