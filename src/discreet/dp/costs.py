"""What does a release cost in privacy, and several of them together? A value that says all an accountant needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.parameters import checked
from discreet.dp.calibration import epsilon_from_zcdp

if TYPE_CHECKING:
    from discreet.dp.ledger import Ledger
    from discreet.microdata import Microdata

Adjacency = Literal["add-remove", "replace"]
Definition = Literal["pure", "approximate", "zcdp"]
Unit = Literal["record", "person", "household", "contributor"]


@dataclass(frozen=True)
class Cost:
    """The price of one release: the mechanism, its definition of privacy and the bounds that were proved.

    Attributes
    ----------
    mechanism
        The name of what drew the noise.
    definition
        ``"pure"`` (``epsilon``), ``"approximate"`` (``epsilon`` and ``delta``) or ``"zcdp"`` (``rho``).
    epsilon, delta, rho
        The bounds. Under ``"zcdp"`` epsilon and delta are 0 and follow from ``rho`` by conversion.
    adjacency
        Which two files are neighbors: one record more or less, or one record replaced.
    unit
        Whose privacy it is: a record, or all records of a person, household or contributor.
    sensitivity
        How far one unit can move the answer, in the norm of the mechanism; None where the mechanism has none.
    values
        How many numbers were published.
    purpose
        What for, in the user's words.
    proved
        Whether the bounds are proved for what is drawn. False: they are those of the method with real numbers and exact
        draws, and the release says so; it is counted all the same.

    Examples
    --------
    >>> Cost("laplace", "pure", epsilon=0.5).as_replacement().epsilon
    1.0
    """

    mechanism: str
    definition: Definition
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    adjacency: Adjacency = "add-remove"
    unit: Unit = "record"
    sensitivity: float | None = None
    values: int = 1
    purpose: str = ""
    proved: bool = True

    def __post_init__(self) -> None:
        for name, value, known in (
            ("definition", self.definition, get_args(Definition)),
            ("adjacency", self.adjacency, get_args(Adjacency)),
            ("unit", self.unit, get_args(Unit)),
        ):
            if not isinstance(value, str) or value not in known:
                raise ParameterError(f"{name} must be one of {', '.join(map(repr, known))}.")
        for name in ("epsilon", "delta", "rho"):
            bound = getattr(self, name)
            if (
                isinstance(bound, bool)
                or not isinstance(bound, int | float)
                or not math.isfinite(bound)
                or bound < 0
            ):
                raise ParameterError(f"{name} of a release must be a number of 0 or more.")
        if self.delta >= 1:
            raise ParameterError("delta of a release must be less than 1.")
        wrong = {
            "pure": self.delta > 0 or self.rho > 0,
            "approximate": self.rho > 0,
            "zcdp": self.epsilon > 0 or self.delta > 0,
        }
        if wrong[self.definition]:
            raise ParameterError(
                "A release has epsilon alone ('pure'), epsilon and delta ('approximate') or rho alone ('zcdp')."
            )

    def as_replacement(self) -> Cost:
        """The same release under replacement of one record, which is one removal and one addition.

        A proof for one step holds for two at twice the epsilon, and delta grows by the factor 1 + exp(epsilon); rho
        grows by four.
        """
        if self.adjacency == "replace":
            return self
        return replace(
            self,
            adjacency="replace",
            epsilon=2 * self.epsilon,
            delta=min(self.delta * (1 + math.exp(min(self.epsilon, 700.0))), 1 - 2**-53),
            rho=4 * self.rho,
        )

    def under(self, adjacency: Adjacency) -> Cost:
        """The same release under another notion of neighbors; refused where nothing is proved.

        Examples
        --------
        >>> Cost("gaussian", "zcdp", rho=0.5, adjacency="replace").under("add-remove")
        Traceback (most recent call last):
        discreet.core.errors.ParameterError: A guarantee for replacing a record says nothing about adding ...
        """
        if adjacency == self.adjacency:
            return self
        if adjacency == "replace":
            return self.as_replacement()
        raise ParameterError(
            "A guarantee for replacing a record says nothing about adding or removing one. Open the ledger with "
            "adjacency='replace'."
        )


@dataclass(frozen=True)
class Spend:
    """What one release may spend, from which ledger, what for, and whose privacy it is.

    Attributes
    ----------
    epsilon, delta
        The budget of the release.
    ledger
        The budget of the data source; None where there is none.
    purpose
        What for, in the user's words.
    unit, adjacency
        Whose privacy it is, and which two files are neighbors.

    Examples
    --------
    >>> Spend(1.0, purpose="income by region").cost("laplace").definition, Spend(1, unit="person").claim.told
    ('pure', '1-differential privacy against adding or removing one person.')
    """

    epsilon: float
    delta: float = 0.0
    ledger: Ledger | None = None
    purpose: str = ""
    unit: Unit = "record"
    adjacency: Adjacency = "add-remove"

    @property
    def claim(self) -> DifferentialPrivacy:
        """What is claimed of a release that keeps to the budget."""
        change = "replacing" if self.adjacency == "replace" else "adding or removing"
        return DifferentialPrivacy(
            self.epsilon,
            self.delta,
            against=f"{change} one {self.unit}",
            adjacency=self.adjacency,
            unit=self.unit,
        )

    def cost(
        self,
        mechanism: str,
        *,
        rho: float | None = None,
        sensitivity: float | None = None,
        values: int = 1,
        proved: bool = True,
    ) -> Cost:
        """The price as a ledger records it; with ``rho`` as zero-concentrated privacy."""
        return Cost(
            mechanism,
            "zcdp" if rho is not None else "approximate" if self.delta else "pure",
            epsilon=0.0 if rho is not None else float(self.epsilon),
            delta=0.0 if rho is not None else float(self.delta),
            rho=rho or 0.0,
            adjacency=self.adjacency,
            unit=self.unit,
            sensitivity=sensitivity,
            values=values,
            purpose=self.purpose,
            proved=proved,
        )

    def enter(self, cost: Cost, *, seed: object = None, data: Microdata | None = None) -> None:
        """Enter the price before noise is drawn, so that a crash in between counts too much and never too little."""
        refuse_seeded(self.ledger, seed)
        if self.ledger is not None:
            self.ledger.spend(cost, data=data)


def refuse_seeded(ledger: Ledger | None, seed: object) -> None:
    """Refuse to spend on draws that can be repeated: whoever has the seed can undo them.

    Examples
    --------
    >>> refuse_seeded(None, 1)
    """
    if ledger is not None and seed is not None:
        raise ParameterError(
            "A ledger takes releases with a guarantee, and a seed voids it. Leave out one of the two."
        )


# What do several releases cost together?
#
# Budgets add up: epsilons and deltas of releases about the same people (basic composition, Dwork and Roth 2014), or the
# bounds rho of zero-concentrated differential privacy, to which every pure epsilon contributes epsilon²/2 (Bun and
# Steinke 2016). Both are valid for releases that were chosen after seeing earlier ones, so the smaller answer counts.
# Releases about disjoint people cost as much as the dearest of them.


@dataclass(frozen=True)
class Total:
    """A promise that covers several releases.

    Attributes
    ----------
    epsilon, delta
        The bounds.
    by
        The rule that gave them: ``"sum"`` or ``"rho"``.
    """

    epsilon: float
    delta: float
    by: str


@checked
def together(
    costs: Iterable[Cost | Sequence[Cost]], *, delta: float = 0.0, adjacency: Adjacency = "add-remove"
) -> Total:
    """The smallest epsilon that is proved for all releases together, at no more than this delta.

    Parameters
    ----------
    costs
        Releases; those about disjoint people, which only the code that divided the records can know, as a list within
        the list.
    delta
        The failure that is accepted in all; 0 if every release is pure.
    adjacency
        Under which notion of neighbors.

    Examples
    --------
    >>> half = Cost("laplace", "pure", epsilon=0.5)
    >>> together([half, half]).epsilon, together([[half, half]]).epsilon
    (1.0, 0.5)
    >>> round(together([Cost("laplace", "pure", epsilon=0.01)] * 1000, delta=1e-6).epsilon, 2)
    1.47
    """
    parts: list[Cost] = []
    for each in costs:
        if isinstance(each, Cost):
            parts.append(each.under(adjacency))
        else:
            parts.extend(_dearest([cost.under(adjacency) for cost in each], adjacency))
    fixed = sum(cost.delta for cost in parts)
    rho = sum(cost.rho for cost in parts)
    pure = [cost.epsilon for cost in parts if cost.definition == "pure"]
    other = sum(cost.epsilon for cost in parts if cost.definition == "approximate")
    left = delta - fixed
    # A sum of deltas that equals the budget may pass it by a last digit.
    if left < -1e-12 * max(delta, fixed) or (rho > 0 and left <= 0):
        raise ParameterError(
            "These releases need a delta: what they accept as failure already passes the one given. Raise delta."
        )
    summed = Total(
        other + sum(pure) + (epsilon_from_zcdp(rho, left) if rho else 0.0), delta if rho else fixed, "sum"
    )
    if left <= 0 or not pure:
        return summed
    by_rho = other + epsilon_from_zcdp(rho + sum(epsilon**2 / 2 for epsilon in pure), left)
    return Total(by_rho, delta, "rho") if by_rho < summed.epsilon else summed


def _dearest(costs: list[Cost], adjacency: Adjacency) -> list[Cost]:
    """What releases about disjoint people cost: one person is in one part; one replaced by another touches two.

    Definitions are bounded one by one, which can only cost more.
    """
    many = 1 if adjacency == "add-remove" else 2
    found: list[Cost] = []
    for definition in ("pure", "approximate", "zcdp"):
        own = [cost for cost in costs if cost.definition == definition]
        bounds = {
            name: sorted((getattr(cost, name) for cost in own), reverse=True)
            for name in ("epsilon", "delta", "rho")
        }
        found += [
            replace(own[0], **{name: values[at] for name, values in bounds.items()})
            for at in range(min(many, len(own)))
        ]
    return found
