"""What are the means and covariances over columns of several parties, when nobody shows a row?

Each pair of parties multiplies secret shares: a dealer without data (the coordinator) hands out masks A1, A2 and shares
of A1'A2; the parties show each other only what is left of their columns on a ring after the masks are taken off; their
answers add up to X1'X2 (Beaver 1991). Unlike random directions (`secure_matrix_product`) this gives away no equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats
from discreet.errors import ParameterError
from discreet.federated.messages import Message, ProtocolError
from discreet.federated.parties import MAIN, Party, Role, plays
from discreet.federated.transport import Transport


@plays
class Factor(Role):
    """The part of a holder: show its own moments, and multiply shares with another holder."""

    protocol = "shared-product"

    def on_own(self, message: Message) -> list[Message]:
        """Send the mean and covariance of one's own columns, and the number of rows."""
        own = self._own(message)
        mean = own.mean(axis=0)
        centred = own - mean
        return [self.send(message.sender, "moments", rows=len(own), mean=mean, products=centred.T @ centred)]

    def on_masks(self, message: Message) -> list[Message]:
        """Take the mask off one's own columns and show the rest to the other."""
        own = self._own(message)
        centred = own - own.mean(axis=0)
        size = centred.std(axis=0)
        frac = int(message.values["frac"])
        words = _halves(centred / np.where(size > 0, size, 1.0), frac)
        mask = message.array("mask", words.shape)
        self.mask, self.share, self.dealer = mask, message.array("share", (None, None)), message.sender
        self.first, self.other = bool(message.values["first"]), str(message.values["other"])
        self.rest = words - mask
        replies = [self.send(self.other, "rest", rest=self.rest)]
        waiting = self._waiting.pop("rest", None)
        return replies + (self._multiplied(waiting) if waiting else [])

    def on_rest(self, message: Message) -> list[Message]:
        """Multiply with what the other shows, once the mask is here."""
        if not hasattr(self, "mask"):
            self._waiting["rest"] = message
            return []
        return self._multiplied(message)

    def _multiplied(self, message: Message) -> list[Message]:
        if message.sender != self.other:
            raise ProtocolError(f"'{message.sender}' is not the one to multiply with.")
        theirs = message.array("rest", (len(self.rest), None))
        if self.first:
            made = self.mask.T @ theirs + self.share
        else:
            made = theirs.T @ self.rest + theirs.T @ self.mask + self.share
        return [self.send(self.dealer, "share", share=made, first=self.first)]

    def _own(self, message: Message) -> Floats:
        columns = [str(name) for name in message.values["columns"]]
        found: Floats = self.party.matrix(columns, str(message.values.get("block", MAIN)))
        return found


class Dealing(Role):
    """The part of the coordinator: ask for moments, hand out masks, add the shares."""

    protocol = "shared-product"

    def __init__(self, party: Any, run: str) -> None:
        super().__init__(party, run)
        self.moments: dict[str, tuple[int, Floats, Floats]] = {}
        self.shares: dict[bool, Array] = {}

    def on_moments(self, message: Message) -> list[Message]:
        """Note the moments of one holder."""
        mean = message.array("mean", (None,))
        self.moments[message.sender] = (
            int(message.values["rows"]), mean, message.array("products", (len(mean), len(mean))),
        )  # fmt: skip
        return []

    def on_share(self, message: Message) -> list[Message]:
        """Note one of the two shares of a product."""
        self.shares[bool(message.values["first"])] = message.array("share", (None, None))
        return []

    def deal(self, names: tuple[str, str], columns: tuple[Sequence[str], Sequence[str]], rows: int, frac: int,
             block: str) -> list[Message]:  # fmt: skip
        """Draw the masks of a pair."""
        masks = [self.party.masks.ring(2 * rows * len(own)).reshape(rows, 2 * len(own)) for own in columns]
        product = masks[0].T @ masks[1]
        second = self.party.masks.ring(product.size).reshape(product.shape)
        shares = (product - second, second)
        return [
            self.send(
                names[at], "masks", mask=masks[at], share=shares[at], other=names[1 - at], first=at == 0, frac=frac,
                columns=list(columns[at]), block=block,
            )
            for at in range(2)
        ]  # fmt: skip


def joint_moments(
    transport: Transport,
    coordinator: Party,
    nodes: Sequence[str],
    columns: Sequence[Sequence[str]],
    block: str = MAIN,
) -> tuple[int, Floats, Floats]:
    """Work out rows, mean and covariance (divided by n) of all columns, over the pairs of holders."""
    run = transport.new_run()
    dealing = Dealing(coordinator, run)
    coordinator.plays(dealing)
    transport.carry(
        dealing.send(node, "own", columns=list(own), block=block)
        for node, own in zip(nodes, columns, strict=True)
    )
    found = [dealing.moments[node] for node in nodes]
    rows = {one[0] for one in found}
    if len(rows) != 1:
        raise ParameterError(
            "The parties do not have the same number of rows. Link the rows one to one first."
        )
    (many,) = rows
    frac = max(8, (62 - int(np.ceil(np.log2(max(many, 2))))) // 2)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in columns])])
    products = np.zeros((starts[-1], starts[-1]))
    for at, (_, mean, own) in enumerate(found):
        if len(mean) != len(columns[at]):
            raise ProtocolError(f"'{nodes[at]}' sent moments of another number of columns.")
        products[starts[at] : starts[at + 1], starts[at] : starts[at + 1]] = own
    for i in range(len(nodes)):
        for j in range(i + 1, len(nodes)):
            each = transport.new_run()
            role = Dealing(coordinator, each)
            coordinator.plays(role)
            transport.carry(role.deal((nodes[i], nodes[j]), (columns[i], columns[j]), many, frac, block))
            if set(role.shares) != {True, False}:
                raise ProtocolError("A product did not come back: a party fell silent.")
            words = (role.shares[True] + role.shares[False]).astype(np.int64)
            sizes = [np.sqrt(np.diag(found[k][2]) / many) for k in (i, j)]
            made = _whole(words, frac) * np.outer(*sizes)
            products[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = made
            products[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = made.T
            transport.forget(each)
    transport.forget(run)
    return many, np.concatenate([mean for _, mean, _ in found]), products / many


def _halves(standard: Floats, frac: int) -> Array:
    """Write standardized columns as whole numbers, and what rounding left of them as further columns."""
    scaled = np.ldexp(standard, frac)
    upper = np.rint(scaled)
    lower = np.rint(np.ldexp(scaled - upper, frac))
    return np.concatenate([upper, lower], axis=1).astype(np.int64).astype(np.uint64)


def _whole(words: Array, frac: int) -> Floats:
    """Put the products of both parts together."""
    first, second = words.shape[0] // 2, words.shape[1] // 2
    upper = words[:first, :second].astype(np.float64)
    crossed = words[first:, :second].astype(np.float64) + words[:first, second:].astype(np.float64)
    return np.asarray(np.ldexp(upper, -2 * frac) + np.ldexp(crossed, -3 * frac))
