"""What a site may be asked to add to a secure sum, by name: computed from its own rows, and never sent in the clear.

Each quantity declares the fields that it takes and what follows from its sum, so that an owner's rules are held against
the very request that it is computed from. Sums are taken on a ring (`Ring`), where a uniform mask hides perfectly.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.federated.kinds import Field, one_of, optional, text, texts, whole
from discreet.federated.masking import Masks, stretched
from discreet.federated.messages import MAIN, Asked, ProtocolError, fitting, used
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


# Numbers on a ring: fixed-point numbers as whole words, where a uniform mask hides perfectly.
#
# A real number v stands as round(v * 2^frac) modulo 2^bits. Whatever is added to it, drawn uniformly, leaves nothing to
# be seen; a real-valued mask only blurs.


@dataclass(frozen=True)
class Ring:
    """The ring of whole numbers modulo 2^bits, with ``frac`` bits behind the point.

    Examples
    --------
    >>> ring = Ring(64, 24)
    >>> hidden = ring.add(ring.encode(np.array([10.5]), 3), ring.drawn(1, Masks()))
    >>> ring.decode(ring.encode(np.array([10.5, -3.0]), 3))
    array([10.5, -3. ])
    """

    bits: int = 64
    frac: int = 24

    def __post_init__(self) -> None:
        if not (8 <= self.bits <= 256 and 0 <= self.frac < self.bits - 1):
            raise ParameterError("ring_bits must lie between 8 and 256, and frac_bits below it.")

    def encode(self, values: Floats, parties: int, *, silently: bool = False) -> Array:
        """Write numbers on the ring, refusing those whose sum over all parties would run over.

        ``silently`` lets them run over: a refusal would tell on which side of a limit one party's number lies.
        """
        limit = math.ldexp(1.0, self.bits - self.frac - 1)
        if not silently and values.size and float(np.abs(values).max()) * parties >= limit:
            raise ParameterError(
                f"A value is too large for a ring of {self.bits} bits with {self.frac} behind the point. Raise "
                "ring_bits, or lower frac_bits."
            )
        if silently or self.bits > 64:
            return self.words([round(math.ldexp(float(value), self.frac)) for value in values])
        return np.rint(np.ldexp(values, self.frac)).astype(np.int64).astype(np.uint64) & self._mask

    def decode(self, words: Array) -> Floats:
        """Read numbers off the ring; the upper half is negative."""
        if self.bits == 64:
            return np.ldexp(words.astype(np.int64).astype(np.float64), -self.frac)
        half = 1 << (self.bits - 1)
        signed = [int(word) - (1 << self.bits) if int(word) >= half else int(word) for word in words]
        return np.array([value / (1 << self.frac) for value in signed], dtype=np.float64)

    def add(self, one: Array, other: Array) -> Array:
        """Add modulo 2^bits."""
        return self._reduced(one + other)

    def subtract(self, one: Array, other: Array) -> Array:
        """Subtract modulo 2^bits."""
        return self._reduced(one - other)

    def drawn(self, size: int, masks: Masks) -> Array:
        """Draw uniform masks."""
        if self.bits <= 64:
            return masks.ring(size) & self._mask
        return self.words([masks.whole(self.bits) for _ in range(size)])

    def stretched(self, size: int, key: bytes) -> Array:
        """Stretch a key into masks: the same for everybody who has it."""
        if self.bits <= 64:
            return stretched(key, "masks", size) & self._mask
        each = -(-self.bits // 64)
        drawn = stretched(key, "masks", size * each).tobytes()
        return self.words(
            [int.from_bytes(drawn[at : at + 8 * each], "little") for at in range(0, len(drawn), 8 * each)]
        )

    def words(self, values: list[int]) -> Array:
        """Write whole numbers on a ring that is wider than a machine word."""
        made = np.empty(len(values), dtype=object)
        made[:] = [value % (1 << self.bits) for value in values]
        return made if self.bits > 64 else made.astype(np.uint64)

    def to_wire(self, words: Array) -> Any:
        """Write words for a message: an array, or texts where they are wider than a machine word."""
        return words if self.bits <= 64 else [format(int(word), f"0{self.bits // 4}x") for word in words]

    def from_wire(self, given: Any, size: int) -> Array:
        """Read words from a message, refusing another number of them."""
        if self.bits <= 64:
            if isinstance(given, np.ndarray) and given.shape == (size,) and given.dtype == np.uint64:
                return np.asarray(given) & self._mask
        else:
            with contextlib.suppress(TypeError, ValueError):
                values = [int(text, 16) for text in given]
                if len(values) == size:
                    return self.words(values)
        raise ProtocolError("A sum has another length than the protocol has. The run was ended.")

    @property
    def _mask(self) -> np.uint64:
        return np.uint64((1 << min(self.bits, 64)) - 1)

    def _reduced(self, words: Array) -> Array:
        if self.bits > 64:
            return np.asarray(words % (1 << self.bits), dtype=object)
        return np.asarray(words) & self._mask
