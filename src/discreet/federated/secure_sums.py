"""What do the private numbers of several parties add up to, when nobody shows theirs?

The first party adds a mask to its number and passes the sum on; each party adds its own; the first takes the mask off
again. The mask is uniform on a ring of whole numbers, so that whoever sees a partial sum sees a uniform number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, numbers_of
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.federated.kinds import floats, lists, mapping, number, numbers_or_words, one_of, whole
from discreet.federated.leakage import Answer, Leakage, Learned, seeded_note, told_by_subsets
from discreet.federated.masking import Masks, child_seed
from discreet.federated.messages import COORDINATOR, Asked, Message, ProtocolError, Request, Takes
from discreet.federated.parties import Holder, Party, Role, Transport, by_party, plays
from discreet.federated.quantities import Ring, asked_of, contributed

FEWEST = 3
_PARTIAL = {
    "orders": lists, "size": whole, "mask": one_of("ring", "gaussian"), "scale": number, "bits": whole, "frac": whole,
    "quantity": mapping, "round": whole, "sum": numbers_or_words,
}  # fmt: skip


def _summed(role: Any, message: Message) -> Asked:
    """Read what is to be added, and over whom."""
    plan = _Plan.read(message.values)
    order, own = plan.orders[plan.at(message.values)], role.party.name
    if own not in order or order[0] == own:
        raise ProtocolError(f"'{own}' is not among those whose numbers are added.")
    if role.party.pair_key is not None and plan.kind != "ring":
        raise ProtocolError(f"'{own}' adds on a ring only: masks of another kind do not hide its numbers.")
    # The first is the analyst, who adds nothing of its own.
    others = tuple(name for name in order[1:] if name != own) + (
        () if order[0] == COORDINATOR else (order[0],)
    )
    asked = role.asked or asked_of(role.party, message.values["quantity"])
    return replace(asked, others=others, added_with=tuple(order[1:]))


@plays
class Adding(Role):
    """The part of everybody but the first: add one's own share and pass the sum on."""

    protocol = "secure-sum"
    takes: ClassVar = {"partial": Takes(_PARTIAL, "either", _summed), "sum": Takes({"sum": floats}, "either")}
    sends: ClassVar = {"partial": "site", "total": "coordinator"}

    def __init__(self, party: Any, run: str) -> None:
        super().__init__(party, run)
        self._shares: list[Array] | None = None
        self._about: dict[str, Any] = {}
        self.asked: Asked | None = None
        self._answered: set[int] = set()

    def on_partial(self, message: Request) -> list[Message]:
        """Add the share of this round."""
        asked = message.values
        plan = _Plan.read(asked)
        at = plan.at(asked)
        order = plan.orders[at]
        if message.sender != order[order.index(self.party.name) - 1]:
            raise ProtocolError(f"'{message.sender}' sent a sum out of turn.")
        about = {name: asked[name] for name in asked if name not in ("sum", "round")}
        if at in self._answered or about != (self._about or about):
            raise ProtocolError(
                f"'{self.party.name}' has answered this sum. A run is one sum, each round once."
            )
        self._answered.add(at)
        self._about, self.asked = about, message.asked
        if self._shares is None:
            own = contributed(self.party, asked["quantity"])
            if own.shape != (plan.size,):
                # Two numbers under one mask would show their difference.
                raise ProtocolError("A sum has another length than the protocol has. The run was ended.")
            self._shares = plan.shares(own, self.party.masks, silently=self.party.pair_key is not None)
        after = order[(order.index(self.party.name) + 1) % len(order)]
        total = plan.added(plan.read_sum(asked), self._masked(plan, self._shares[at], order, at))
        return [
            self.send(
                after, "total" if after == order[0] else "partial", **{**asked, "sum": plan.wire(total)}
            )
        ]

    def _masked(self, plan: _Plan, share: Array, order: list[str], at: int) -> Array:
        """Add masks that two sites share and that cancel over all of them; the starter's mask protects no site.

        They are made for this plan alone: sites that were shown different plans end with a number without meaning.
        """
        if self.party.pair_key is None:
            return share
        own, about = self.party.name, json.dumps({**self._about, "round": at}, sort_keys=True)
        for other in order[1:]:
            if other != own:
                key = self.party.pair_key(other, self.run, about)
                mask = plan.ring.stretched(plan.size, key)
                share = plan.added(share, mask) if own < other else plan.taken(share, mask)
        return share

    def on_sum(self, message: Request) -> list[Message]:
        """Take note of the result."""
        self.result = message.values["sum"]
        return []


class Starting(Adding):
    """The part of the first party: mask, begin, and take the mask off at the end."""

    takes: ClassVar = {"total": Takes({**_PARTIAL, "quantity": mapping}, "site")}

    def __init__(
        self,
        party: Any,
        run: str,
        plan: _Plan,
        asked: Mapping[str, Any],
        *,
        announce: bool,
        own: Array | None = None,
    ) -> None:
        super().__init__(party, run)
        self.plan, self.quantity, self.announce, self.own = plan, dict(asked), announce, own
        self.found: dict[int, Array] = {}
        self.result: Floats | None = None

    def begin(self) -> list[Message]:
        """Send the first masked sums, one for each round."""
        plan = self.plan
        value = contributed(self.party, self.quantity) if self.own is None else self.own
        mine = plan.shares(value, self.party.masks)
        self.masks = [plan.mask(self.party.masks) for _ in plan.orders]
        return [
            self.send(
                order[1], "partial", **plan.described(), quantity=self.quantity, round=at,
                sum=plan.wire(plan.added(mine[at], self.masks[at])),
            )
            for at, order in enumerate(plan.orders)
        ]  # fmt: skip

    def on_total(self, message: Request) -> list[Message]:
        """Take the mask of a round off; after the last round tell the sum."""
        plan, at = self.plan, int(message.values["round"])
        if not 0 <= at < len(plan.orders) or at in self.found or message.sender != plan.orders[at][-1]:
            raise ProtocolError(f"'{message.sender}' sent a sum out of turn.")
        self.found[at] = plan.taken(plan.read_sum(message.values), self.masks[at])
        if len(self.found) < len(plan.orders):
            return []
        self.result = plan.number(reduce(plan.added, (self.found[at] for at in range(len(plan.orders)))))
        if not self.announce:
            return []
        return [self.send(name, "sum", sum=self.result) for name in plan.orders[0][1:]]


class _Plan:
    """What all parties know of a sum: in which orders it goes round, and how numbers are written and masked."""

    def __init__(self, orders: list[list[str]], size: int, *, mask: str, scale: float, ring: Ring) -> None:
        self.orders, self.size, self.kind, self.scale, self.ring = orders, size, mask, scale, ring
        if mask not in ("ring", "gaussian") or not orders or any(len(order) < FEWEST for order in orders):
            raise ProtocolError("A sum over fewer than three parties gives each away. It was refused.")
        first = orders[0]
        if len(set(first)) != len(first) or any(
            order[0] != first[0] or sorted(order) != sorted(first) for order in orders
        ):
            raise ProtocolError(
                "A sum goes round the same parties in every round, each once. It was refused."
            )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> _Plan:
        try:
            ring = Ring(int(values["bits"]), int(values["frac"]))
            orders = [[str(name) for name in order] for order in values["orders"]]
            return cls(
                orders, int(values["size"]), mask=values["mask"], scale=float(values["scale"]), ring=ring
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError("A sum was asked for without saying how it goes round.") from error

    def at(self, values: Mapping[str, Any]) -> int:
        at = int(values.get("round", -1))
        if not 0 <= at < len(self.orders):
            raise ProtocolError("A sum was sent in a round that the plan does not have.")
        return at

    def described(self) -> dict[str, Any]:
        return {"orders": self.orders, "size": self.size, "mask": self.kind, "scale": self.scale,
                "bits": self.ring.bits, "frac": self.ring.frac}  # fmt: skip

    def shares(self, values: Array, masks: Masks, *, silently: bool = False) -> list[Array]:
        """Split a value into random shares, one for each round."""
        on_ring = self.kind == "gaussian" or values.dtype == object
        whole: Array = values if on_ring else self.ring.encode(values, len(self.orders[0]), silently=silently)
        made = [self.mask(masks) for _ in self.orders[1:]]
        return [*made, reduce(self.taken, made, whole)]

    def mask(self, masks: Masks) -> Array:
        if self.kind == "gaussian":
            return masks.normal((self.size,)) * self.scale
        return self.ring.drawn(self.size, masks)

    def added(self, one: Array, other: Array) -> Array:
        return one + other if self.kind == "gaussian" else self.ring.add(one, other)

    def taken(self, one: Array, other: Array) -> Array:
        return one - other if self.kind == "gaussian" else self.ring.subtract(one, other)

    def number(self, total: Array) -> Floats:
        return np.asarray(total, dtype=np.float64) if self.kind == "gaussian" else self.ring.decode(total)

    def wire(self, total: Array) -> Any:
        return total if self.kind == "gaussian" else self.ring.to_wire(total)

    def read_sum(self, values: Mapping[str, Any]) -> Array:
        given = values.get("sum")
        if self.kind != "gaussian":
            return self.ring.from_wire(given, self.size)
        if not isinstance(given, np.ndarray) or given.shape != (self.size,):
            raise ProtocolError("A sum has another length than the protocol has. The run was ended.")
        return given


def sum_over(
    transport: Transport, starter: Party, others: Sequence[str], asked: Mapping[str, Any], *, size: int,
    rounds: int = 1, mask: str = "ring", scale: float = 1e6, ring: Ring | None = None, announce: bool = False,
    own: Array | None = None, seed: Seed = None,
) -> Floats:  # fmt: skip
    """Add a quantity over parties, wherever they are; the starter alone learns the sum unless it is announced.

    ``asked`` names the quantity (`discreet.federated.quantities`) and its parameters; ``own`` is what a starter without
    data adds, on the ring already.
    """
    if len(others) + 1 < FEWEST:
        raise ParameterError(
            f"A secure sum needs at least {FEWEST} parties, the coordinator among them: of two, each learns the "
            "other's number from the sum."
        )
    plan = _Plan(
        _orders(starter.name, list(others), rounds, seed), size, mask=mask, scale=scale, ring=ring or Ring()
    )
    run = transport.new_run()
    role = Starting(starter, run, plan, {**asked, "size": size}, announce=announce, own=own)
    starter.plays(role)
    try:
        transport.carry(role.begin())
    finally:
        transport.forget(run)
    if role.result is None:
        raise ProtocolError("The sum did not come back: a party fell silent. Nothing was learned.")
    return role.result


@checked
def secure_sum(
    values: Any, *, mask: Literal["ring", "gaussian"] = "ring", mask_scale: float | None = None, ring_bits: int = 64,
    frac_bits: int = 24, rounds: Annotated[int, AtLeast(1)] = 1, coordinator: bool = False,
    backend: Literal["shares", "mpyc"] = "shares",
    keep: bool = False, seed: Seed = None,
) -> Answer:  # fmt: skip
    """What do the private numbers of three or more parties add up to?

    Also known as: secure summation.

    Parameters
    ----------
    values
        One number (or array) for each party, or ``{party: number}``.
    mask
        ``"ring"``: fixed point, uniform on a ring, hides perfectly. ``"gaussian"``: a normal number of ``mask_scale``,
        as in the literature, which only blurs.
    ring_bits, frac_bits
        Width of the ring, and bits behind the point.
    rounds
        Split every number into this many random shares, each summed in another order, so that one pair of colluding
        neighbors learns nothing.
    coordinator
        Let a party without data begin, who then is the one to learn the sum first. It counts among the three.
    backend
        ``"mpyc"`` computes with Shamir shares in separate processes of `MPyC <https://github.com/lschoe/mpyc>`_.
    keep
        Keep the contents of the messages in the transcript, for a lesson.
    seed
        For the same masks again; only for tests.

    Returns
    -------
    Answer
        The sum, the transcript and the leakage.

    Examples
    --------
    >>> total, transcript, leakage = secure_sum([10.5, -3.0, 7.25])
    >>> total, len(transcript)
    (14.75, 5)
    """
    arrays = {
        name: numbers_of(one, f"values of {name}", missing=True, infinite=True, empty=True)
        for name, one in by_party(values, "values").items()
    }
    shape = _same_shape(arrays)
    many = len(arrays) + coordinator
    if many < FEWEST:
        raise ParameterError(
            f"A secure sum needs at least {FEWEST} parties: of two, each learns the other's number from the sum."
        )
    if backend == "mpyc":
        from discreet.federated.mpyc_backend import mpyc_sum

        total = mpyc_sum([one.reshape(-1) for one in arrays.values()], frac_bits=frac_bits).reshape(shape)
        return Answer(_plain(total), Transport().transcript, _told(list(arrays), 1, seed, mpyc=True))
    parties: list[Party] = [
        Holder(name, pl.DataFrame({"value": one.reshape(-1)}), masks=Masks(child_seed(seed, name)))
        for name, one in arrays.items()
    ]
    if coordinator:
        parties.insert(0, Party(COORDINATOR, Masks(child_seed(seed, COORDINATOR))))
    transport = Transport(parties, keep=keep)
    size = int(np.prod(shape, dtype=int))
    scale = (
        mask_scale
        if mask_scale is not None
        else 1e3 * (1 + max(float(np.abs(one).max()) for one in arrays.values()))
    )
    found = sum_over(
        transport, parties[0], [party.name for party in parties[1:]], {"kind": "value"}, size=size, rounds=rounds,
        mask=mask, scale=scale, ring=Ring(ring_bits, frac_bits), announce=True, seed=seed,
    )  # fmt: skip
    account = _told([party.name for party in parties], rounds, seed, blurred=mask == "gaussian")
    account = replace(account, transcript=transport.transcript)
    return Answer(_plain(found.reshape(shape)), transport.transcript, account)


def _told(names: list[str], rounds: int, seed: Seed, *, blurred: bool = False, mpyc: bool = False) -> Leakage:
    if mpyc:
        need = (len(names) - 1) // 2 + 1
        collusions: tuple[str, ...] = (f"any {need} of the {len(names)} parties recover all numbers",)
    elif rounds == 1:
        collusions = ("the two neighbors of a party in the ring learn its number",)
    else:
        collusions = (f"all pairs of neighbors of a party, in all {rounds} orders, learn its number",)
    notes = seeded_note(seed is not None)
    if blurred:
        notes += ("Masks are normal numbers: a partial sum is blurred, not hidden. mask='ring' hides it.",)
    return Leakage(
        "secure-sum",
        (
            Learned(
                "every party",
                "the others",
                "Every party learns the sum, and with it the sum of all the others",
            ),
        ),
        collusions,
        notes,
        subsets=told_by_subsets([name for name in names if name != COORDINATOR]),
    )


def _orders(starter: str, others: list[str], rounds: int, seed: Seed) -> list[list[str]]:
    """Lay the orders in which a sum goes round, with other neighbors in each round as far as there are any."""
    orders = [[starter, *others]]
    mixed = generator(child_seed(seed, "orders"))
    for at in range(1, rounds):
        step = 1 + at % max(1, len(others) - 1)
        if math.gcd(step, len(others)) == 1:
            orders.append([starter, *(others[(step * place) % len(others)] for place in range(len(others)))])
        else:
            orders.append([starter, *(others[place] for place in mixed.permutation(len(others)))])
    return orders


def _same_shape(arrays: Mapping[str, Array]) -> tuple[int, ...]:
    shapes = {one.shape for one in arrays.values()}
    if len(shapes) != 1:
        raise ParameterError("values: every party gives the same number of numbers.")
    if not all(np.isfinite(one).all() for one in arrays.values()):
        raise ParameterError("values must be finite numbers at every party.")
    shape: tuple[int, ...] = shapes.pop()
    if not int(np.prod(shape, dtype=int)):
        raise ParameterError("values: there is nothing to add.")
    return shape


def _plain(array: Floats) -> Any:
    return float(array) if array.ndim == 0 else array
