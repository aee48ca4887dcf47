"""What do several releases cost together?

Budgets add up: epsilons and deltas of releases about the same people (basic composition, Dwork and Roth 2014), or the
bounds rho of zero-concentrated differential privacy, to which every pure epsilon contributes epsilon²/2 (Bun and
Steinke 2016). Both are valid for releases that were chosen after seeing earlier ones, so the smaller answer counts.
Releases about disjoint people cost as much as the dearest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.dp.calibration import epsilon_from_zcdp
from discreet.dp.costs import Adjacency, Cost


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
