"""What do the rules of a policy ask of every class of records? The privacy models that would fulfil them.

Rules about classes (k-anonymity, the largest risk, l-diversity, t-closeness) can be aimed at; the others are judged
when a plan was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discreet.policy import Policy, Rule
from discreet.protect import AlphaK, LDiversity, TCloseness
from discreet.protect.generalizing.models import PrivacyModel

_OWN = ("near_copies.telling_share", "near_copies.largest_share")
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
