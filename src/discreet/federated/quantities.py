"""What a site may be asked to add to a secure sum, by name: computed from its own rows, and never sent in the clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats
from discreet.federated.messages import ProtocolError
from discreet.federated.parties import MAIN, Holder

Quantity = Callable[[Holder, Mapping[str, Any]], Array]
QUANTITIES: dict[str, Quantity] = {}


def quantity(name: str) -> Callable[[Quantity], Quantity]:
    """Enter a quantity under the name by which an owner allows it."""

    def entered(function: Quantity) -> Quantity:
        QUANTITIES[name] = function
        return function

    return entered


def contributed(holder: Any, asked: Mapping[str, Any]) -> Array:
    """Compute what a party adds to a sum; a party without data adds nothing.

    Numbers that are on the ring already come as whole numbers (an array of objects).
    """
    kind = asked.get("kind")
    if not isinstance(holder, Holder):
        return np.zeros(int(asked["size"]))
    if kind not in QUANTITIES:
        raise ProtocolError(f"'{holder.name}' knows no quantity of the name that was asked for.")
    made = QUANTITIES[kind](holder, asked)
    if made.dtype == object:
        return made
    found = np.asarray(made, dtype=np.float64).reshape(-1)
    if found.shape != (int(asked["size"]),) or not np.isfinite(found).all():
        raise ProtocolError(
            f"'{holder.name}' cannot add what was asked for: it has another size, or is no finite number."
        )
    return found


@quantity("value")
def _own_value(holder: Holder, asked: Mapping[str, Any]) -> Floats:
    """The numbers that the party holds, as they are."""
    return holder.matrix(["value"], MAIN)[:, 0]
