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
from discreet.workflow.coding_ladders import Ladder, round_number
from discreet.workflow.usual_treatments import (
    CUT,
    GROUP,
    Described,
    cells_suppressed,
    classes_hidden,
    coding_steps,
    columns_left_out,
    in_a_row,
    numbers_rounded,
    plainly_named,
    records_reordered,
    values_swapped,
)

_DETAILED, _DEAREST = 1.6, 12.0  # the entropy of five equal values; and what a gap costs at most


@dataclass(frozen=True)
class Frame:
    """What is the same for all recipes of one file.

    Attributes
    ----------
    drop
        Columns that leave the file, with the reason: ``(columns, why)``.
    keys
        The columns by which people are found, without those that follow one.
    follows
        Keys that say the same as another one in other words, each with that one.
    known
        Other columns that may be known of a person: dates and places.
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
        ``{column: (base, top)}``: numbers that one person has alone, each with the base they are rounded to and the
        number above which they are shown as a mean.
    reorder
        Whether the records are put into another order.
    hard
        Sensitive columns of which no group of bearable size could hide who has another value than nearly everybody.
    """

    drop: tuple[tuple[tuple[str, ...], str], ...]
    keys: tuple[str, ...]
    ladders: Mapping[str, Ladder]
    aims: Aims
    cautious: Mapping[str, float]
    follows: Mapping[str, str] = field(default_factory=dict)
    known: tuple[str, ...] = ()
    swaps: tuple[tuple[PrivacyModel, ...], ...] = ((),)
    company_for_swaps: int = 2
    needed: tuple[tuple[str, int], ...] = ()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reorder: bool = True
    hard: tuple[str, ...] = ()

    @property
    def movable(self) -> tuple[str, ...]:
        """The columns that a recipe may code in several ways."""
        return tuple(
            column
            for column, ladder in self.ladders.items()
            if len(ladder) > 1 and column not in self.follows
        )

    def without(self, columns: Sequence[str], why: str) -> Frame:
        """Return the frame with some sensitive columns left out as well."""
        models = tuple(model for model in self.aims.models if not set(model.columns) & set(columns))
        swaps = tuple(tuple(m for m in level if not set(m.columns) & set(columns)) for level in self.swaps)
        return replace(
            self,
            drop=(*self.drop, (tuple(columns), why)),
            aims=replace(self.aims, models=models),
            swaps=swaps,
            hard=(),
            ladders={name: ladder for name, ladder in self.ladders.items() if name not in columns},
            needed=tuple((name, place) for name, place in self.needed if name not in columns),
            numbers={name: found for name, found in self.numbers.items() if name not in columns},
            known=tuple(name for name in self.known if name not in columns),
        )

    @property
    def all_keys(self) -> list[str]:
        """The keys, and those that follow them."""
        return [*self.keys, *(name for name in self.follows if self.follows[name] in self.keys)]

    def followers(self, column: str) -> list[str]:
        """Name the columns that say the same as this one."""
        return [name for name, leader in self.follows.items() if leader == column]


@dataclass(frozen=True)
class Recipe:
    """One way to protect a file.

    Attributes
    ----------
    rungs
        ``(column, rung)`` for the columns that are coarsened.
    k
        The group size that suppression of cells aims at; 1 suppresses nothing.
    hide
        Whether records in classes that break another rule lose all their keys at the end.
    swap
        Which of the aims of swaps between classes is reached at the end; 0 for none.
    """

    rungs: tuple[tuple[str, int], ...] = ()
    k: int = 1
    hide: bool = False
    swap: int = 0

    @property
    def name(self) -> str:
        """The recipe, briefly: what is coarsened, and how it ends; different recipes have different names."""
        coarser = ", ".join(f"{column} {rung}" for column, rung in self.rungs) or "no coarser column"
        ends = f"groups of {self.k}" if self.k > 1 else "no more"
        return f"{coarser}; {ends}{', hide' if self.hide else ''}{f', swap {self.swap}' if self.swap else ''}"

    def rung(self, column: str) -> int:
        """Give the rung of a column; 0 is the column as it is."""
        return dict(self.rungs).get(column, 0)

    def with_rung(self, column: str, rung: int) -> Recipe:
        """Return the recipe with another coding of one column."""
        rungs = {**dict(self.rungs), column: rung}
        return replace(self, rungs=tuple(sorted((name, place) for name, place in rungs.items() if place)))

    def _dear(self, frame: Frame, key: str) -> float:
        """Say how much more a gap of a key costs that has few values: it would nearly always hide the rare one."""
        told: float = max(frame.ladders[key].rungs[self.rung(key)].entropy, 0.1)
        return round(min(_DEAREST, max(1.0, float((_DETAILED / told) ** 1.5))), 1)

    def plan(self, frame: Frame, title: str = "") -> Plan:
        """Turn the recipe into a plan that names its columns, so that it runs without roles."""
        return Plan([step for step, _ in self.steps(frame)], title)

    def steps(self, frame: Frame) -> list[Described]:
        """List the steps, each with a sentence that says what it does to this file."""
        steps = [columns_left_out(columns, why) for columns, why in frame.drop]
        steps += numbers_rounded(frame.numbers)
        places = dict(self.rungs)
        places |= {name: places[leader] for name, leader in frame.follows.items() if leader in places}
        rungs = {column: frame.ladders[column].rungs[place] for column, place in places.items()}
        chosen = {column: (rung.kind, rung.setting) for column, rung in rungs.items() if rung.kind}
        for step, columns in coding_steps(chosen):
            coded = [f"'{column}' {rungs[column].words}" for column in columns]
            steps.append((step, f"{in_a_row(coded)}."))
        keys = list(frame.keys)
        swapped = frame.swaps[self.swap]
        models = [model for model in frame.aims.models if model not in swapped]
        if keys and self.k > 1:
            costs = {key: frame.cautious.get(key, 1.0) * self._dear(frame, key) for key in keys}
            followed = {key: found for key in keys if (found := frame.followers(key))}
            steps.append(cells_suppressed(self.k, keys, costs, followed))
        if keys and self.hide and models:
            steps.append(classes_hidden(frame.aims.k, models, frame.all_keys))
        if keys and swapped:
            steps.append(values_swapped(swapped, keys))
        return [*steps, records_reordered()] if frame.reorder and steps else steps


# What do the rules of a policy ask of every class of records? The privacy models that would fulfil them.
#
# Rules about classes (k-anonymity, the largest risk, l-diversity, t-closeness) can be aimed at; the others are judged
# when a plan was tried.


_LARGEST = 200
_WITH_EASE = (
    0.7  # the part of a limit on the distance from the file that values dealt out as well as can be may take
)
_BEARABLE = 40
# What a class may teach at most, in limits of what may be learned on average.
_STRONGER = (2.5, 2.0, 1.7, 1.4)
_COMPANY = (1.0, 1.5, 2.0, 4.0, 8.0)


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
    found
        Which share of the people may be found by a few things that others know of them.
    amounts
        Which share of them may be found by an amount alone; 1 where nobody knows amounts.
    """

    k: int
    models: tuple[PrivacyModel, ...]
    learned: float = 1.0
    own: bool = False
    found: float = 1.0
    amounts: float = 1.0

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
    return company_for_swaps(models, {values.name: values}) <= max(_BEARABLE, 4 * aims.k)


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
    given = policy.parameters
    k = max([1, *(n for rule in policy.rules for n in class_sizes_ruled(rule, given.get(rule.measure, {})))])
    models = [
        model
        for rule in policy.rules
        for column in sensitive
        for model in models_ruled(rule, column, policy.parameters.get(rule.measure, {}))
    ]
    limits = {
        aim: min([1.0, *(r.at_most for r in policy.comparison if _aim(r) == aim and r.at_most is not None)])
        for aim in ("learned", "found")
    }
    own = any(_aim(rule) == "own values" for rule in policy.comparison)
    amounts = limits["found"] if "amounts" in (policy.intruder or ()) else 1.0
    return Aims(k, tuple(models), limits["learned"], own, limits["found"], amounts)


def _aim(rule: Rule) -> Aim:
    card = card_of(rule.measure)
    figure = card.figure(rule.figure) if card else None
    return figure.aim if figure else ""


# Which numbers does one person have alone, such as an income to the cent, and how far must they be rounded?


_MOSTLY_OWN = (
    0.4  # of values that one person has alone: a little before a column tells people apart by itself
)
_STEPS, _FEWER_STEPS, _FEWEST_STEPS = 500, 200, 50
_FEWEST_ON_TOP = 10
_EACH = 0.1  # of those whom an amount may tell, the part that a single column may


def own_numbers(
    table: pl.DataFrame, columns: Sequence[str], aims: Aims, weight: str | None = None
) -> dict[str, tuple[float, float]]:
    """Find the numbers that people have alone: the base to round them to, and the round number above which few lie.

    The base cuts the middle nine tenths into about two hundred steps (five hundred where the policy does not ask for
    it), and into fewer while more people are alone with what is left than the policy lets an amount tell. No ``weight``
    is rounded to zero.

    Examples
    --------
    >>> table = pl.DataFrame({"pay": [1000.5 + 13.7 * i for i in range(5000)], "sex": [0, 1] * 2500})
    >>> own_numbers(table, ["pay", "sex"], Aims(10, (), own=True))
    {'pay': (500, 69000)}
    """
    found = {}
    for name in columns:
        values = plainly_named(table[name])
        if not values.dtype.is_numeric():
            continue
        known = values.cast(pl.Float64).fill_nan(None).drop_nulls()
        counts = known.unique_counts()
        alone = int((counts == 1).sum())
        own = alone >= _MOSTLY_OWN * len(known) or mostly_own(counts.to_numpy())
        few = max(aims.k, _FEWEST_ON_TOP)
        if len(known) < 2 * few or not (own or alone > _EACH * aims.amounts * len(values)):
            continue
        numbers = known.to_numpy()
        low, high = np.quantile(numbers, [0.05, 0.95])
        spread = float(high - low) if high > low else float(numbers.max() - numbers.min())
        base = round_number(spread / (_FEWER_STEPS if aims.own else _STEPS))
        while (
            aims.own
            and base < spread / _FEWEST_STEPS
            and _alone(numbers, base) > _EACH * aims.amounts * len(values)
        ):
            base = round_number(1.5 * base)
        if name == weight:
            base = min(base, _rounded_down(2 * float(numbers.min()), 0.0))
        top = float(np.sort(numbers)[-few])
        found[name] = (base, _rounded_down(top, base))
    return found


def _alone(numbers: Floats, base: float) -> int:
    return int((np.unique(np.round(numbers / base), return_counts=True)[1] == 1).sum())


def _rounded_down(number: float, base: float) -> float:
    """Give the number of two digits, and multiple of a base, next below."""
    digits = 10.0 ** (math.floor(math.log10(abs(number))) - 1) if number else base
    step = max(digits, base) or 1.0
    whole = float(f"{math.floor(number / step + 1e-9) * step:.12g}")
    return int(whole) if whole.is_integer() else whole
