"""What does a release cost in privacy? A small value that says all an accountant needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from discreet.core.errors import ParameterError

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
