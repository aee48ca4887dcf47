"""What a site may be asked to add to a secure sum, by name: computed from its own rows, and never sent in the clear.

Each quantity declares the fields that it takes and what follows from its sum, so that an owner's rules are held against
the very request that it is computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.federated.messages import (
    MAIN,
    Asked,
    Field,
    ProtocolError,
    fitting,
    one_of,
    optional,
    text,
    texts,
    used,
    whole,
)
from discreet.federated.parties import Holder

Computed = Callable[[Holder, Mapping[str, Any]], Array]


@dataclass(frozen=True)
class Quantity:
    """A quantity: how it is computed, the fields that it takes, and what its sum tells.

    Attributes
    ----------
    moments
        Whether means and products of the columns follow from sums of this kind.
    uses
        Which columns and block it uses, where that is not said by ``columns`` and ``block``.
    """

    computed: Computed
    fields: Mapping[str, Field]
    moments: bool = False
    uses: Callable[[Any, Mapping[str, Any]], tuple[tuple[str, tuple[str, ...]], ...]] | None = None

    def asks(self, party: Any, values: Mapping[str, Any]) -> Asked:
        """Say what is asked for."""
        uses = (used(values),) if self.uses is None else self.uses(party, values)
        return Asked(uses=uses, quantity=values["kind"], counts=True, moments=self.moments)


QUANTITIES: dict[str, Quantity] = {}
PROTECTED: set[str] = set()
"""Quantities to which every site adds noise with a guarantee, so that sums over other sites may be compared."""


def quantity(
    name: str,
    fields: Mapping[str, Field],
    *,
    moments: bool = False,
    protected: bool = False,
    uses: Any = None,
) -> Callable[[Computed], Computed]:
    """Enter a quantity under the name by which an owner allows it."""
    own = {"columns": texts, "block": optional(text)} if uses is None else {}

    def entered(function: Computed) -> Computed:
        known = {"kind": one_of(name), "size": whole, **own, **fields}
        QUANTITIES[name] = Quantity(function, known, moments, uses)
        if protected:
            PROTECTED.add(name)
        return function

    return entered


def asked_of(party: Any, values: Any) -> Asked:
    """Read what is to be added, or refuse it; a party without data adds nothing."""
    if not isinstance(party, Holder):
        return Asked()
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if not isinstance(kind, str) or kind not in QUANTITIES:
        raise ProtocolError(f"'{party.name}' knows no quantity of the name that was asked for.")
    fitting(values, QUANTITIES[kind].fields, "quantity")
    return QUANTITIES[kind].asks(party, values)


def contributed(holder: Any, asked: Mapping[str, Any]) -> Array:
    """Compute what a party adds to a sum; a party without data adds nothing.

    Numbers that are on the ring already come as whole numbers (an array of objects).
    """
    if not isinstance(holder, Holder):
        return np.zeros(int(asked["size"]))
    asked_of(holder, asked)
    made = QUANTITIES[asked["kind"]].computed(holder, asked)
    if made.dtype == object:
        return made
    found = np.asarray(made, dtype=np.float64).reshape(-1)
    if found.shape != (int(asked["size"]),) or not np.isfinite(found).all():
        raise ProtocolError(
            f"'{holder.name}' cannot add what was asked for: it has another size, or is no finite number."
        )
    return found


def shaped(asked: Mapping[str, Any], name: str, *shape: int) -> Floats:
    """Read numbers of a quantity, refusing another shape: numbers of their own for each row would single rows out."""
    try:
        found = np.asarray(asked[name], dtype=np.float64)
    except ValueError:
        found = np.empty(0)
    if found.shape != shape:
        raise ProtocolError(f"'{name}' has another shape than the protocol has. The run was ended.")
    return found


@quantity("value", {}, uses=lambda party, values: ((MAIN, ("value",)),))
def _own_value(holder: Holder, asked: Mapping[str, Any]) -> Floats:
    """The numbers that the party holds, as they are."""
    return holder.matrix(["value"], MAIN)[:, 0]
