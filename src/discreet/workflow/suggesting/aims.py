"""What do the rules of a policy ask of every class of records? The privacy models that would fulfil them.

Rules about classes (k-anonymity, the largest risk, l-diversity, t-closeness) can be aimed at; the others are judged
when a plan was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.policy import Policy, Rule
from discreet.protect import AlphaK, LDiversity, TCloseness
from discreet.protect.generalizing.privacy_models import PrivacyModel
from discreet.workflow.coding_ladders import Ladder
from discreet.workflow.column_coding import CUT, GROUP

_OWN = ("near_copies.telling_share", "near_copies.largest_share")
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
    k = max([1, *(company for rule in policy.rules for company in _company(rule))])
    models = [
        model for rule in policy.rules for column in sensitive for model in _model(rule, column, policy)
    ]
    learned = [rule.at_most for rule in policy.comparison if rule.name == "attribution.learned"]
    own = any(rule.name in _OWN for rule in policy.comparison)
    return Aims(k, tuple(models), min([1.0, *(limit for limit in learned if limit is not None)]), own)


def _company(rule: Rule) -> Iterator[int]:
    if rule.name in ("k_anonymity", "k_anonymity.k") and rule.at_least is not None:
        yield math.ceil(rule.at_least)
    if rule.name == "reidentification.prosecutor_max" and rule.at_most:
        yield math.ceil(1 / rule.at_most - 1e-9)
    if rule.name in ("uniqueness", "uniqueness.unique_share") and rule.at_most == 0:
        yield 2


def _model(rule: Rule, column: str, policy: Policy) -> Iterator[PrivacyModel]:
    given = policy.parameters.get(rule.measure, {})
    if rule.name in ("l_diversity", "l_diversity.l") and rule.at_least is not None:
        shape = {name: given[name] for name in ("kind", "c") if name in given}
        yield LDiversity(column, rule.at_least if shape else math.ceil(rule.at_least), **shape)
    if rule.name == "l_diversity.best_guess" and rule.at_most is not None and rule.at_most < 1:
        yield AlphaK(column, rule.at_most)
    if rule.name in ("alpha_k", "alpha_k.alpha") and rule.at_most is not None and rule.at_most < 1:
        shape = {name: given[name] for name in ("values", "common") if name in given}
        yield AlphaK(column, rule.at_most, **shape)
    if rule.name == "t_closeness" and rule.at_most is not None:
        yield TCloseness(
            column, rule.at_most, **{name: given[name] for name in ("distance", "ground") if name in given}
        )
