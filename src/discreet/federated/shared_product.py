"""What are the means and covariances over columns of several parties, when nobody shows a row?

Each pair of parties multiplies secret shares: a dealer draws masks A1, A2 and shares of A1'A2; the parties show each
other only what is left of their columns on a ring after the masks are taken off; their answers add up to X1'X2 (Beaver
1991). Unlike random directions (`secure_matrix_product`) this gives away no equations.

The dealer is another site, whose masks travel sealed, so that whoever carries them cannot take them off. Where there is
no third holder the coordinator deals; a site refuses that, unless its owner names the coordinator as a dealer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import InputError, ParameterError
from discreet.federated.kinds import flag, floats, lists, optional, text, texts, whole, words
from discreet.federated.messages import (
    ALONE,
    COORDINATOR,
    MAIN,
    Asked,
    Message,
    ProtocolError,
    Request,
    Takes,
    rows_asked,
    used,
)
from discreet.federated.parties import Party, Role, Transport, plays

_MOST_WORDS = 50_000_000
_MOST_PRODUCTS = 10_000_000_000
_MOST_BITS = 31  # behind the point, in each half of a number


def _dealt(role: Any, message: Message) -> Asked:
    """Read which of one's columns are to be multiplied, with whom, and who drew the masks."""
    values = message.values
    return Asked(
        (used(values),), counts=True, moments=True, others=(values["other"],), added_with=(ALONE,),
        dealer=message.sender,
    )  # fmt: skip


def _dealing(role: Any, message: Message) -> Asked:
    """Read for whom masks are to be drawn; no data of the dealer are used."""
    return Asked(others=tuple(message.values["holders"]))


class _Deals(Role):
    """Draw masks for two others."""

    def dealt(self, holders: Sequence[str], columns: Sequence[Sequence[str]], rows: int, frac: int,
              block: str) -> list[Message]:  # fmt: skip
        """Draw the masks of a pair, and what their product is in shares."""
        masks = [self.party.masks.ring(2 * rows * len(own)).reshape(rows, 2 * len(own)) for own in columns]
        product = masks[0].T @ masks[1]
        second = self.party.masks.ring(product.size).reshape(product.shape)
        shares = (product - second, second)
        return [
            self.send(
                holders[at], "masks", mask=masks[at], share=shares[at], other=holders[1 - at], first=at == 0,
                frac=frac, columns=list(columns[at]), block=block,
            )
            for at in range(2)
        ]  # fmt: skip


@plays
class Factor(_Deals):
    """The part of a site: show its own moments, and multiply shares with another one, or deal the masks for two others.

    In a run it does one of them, and once. What is left under the masks goes to the other holder, and the share of the
    product to the coordinator: nobody gets both.
    """

    protocol = "shared-product"
    takes: ClassVar = {
        "own": Takes({"columns": texts, "block": optional(text)}, asks=rows_asked(alone=True)),
        "deal": Takes({"holders": texts, "columns": lists, "rows": whole, "frac": whole, "block": text}, asks=_dealing),
        "masks": Takes({"mask": words, "share": words, "other": text, "first": flag, "frac": whole, "columns": texts,
                        "block": text}, "either", _dealt),
        "rest": Takes({"rest": words, "dealer": text, "first": flag, "frac": whole}, "site"),
    }  # fmt: skip
    sends: ClassVar = {"moments": "coordinator", "masks": "site", "rest": "site", "share": "coordinator"}

    def __init__(self, party: Any, run: str) -> None:
        super().__init__(party, run)
        self._part = ""

    def on_own(self, message: Request) -> list[Message]:
        """Send the mean and covariance of one's own columns, the number of rows, and a digest of whose they are."""
        own = self.party.matrix(message.asked.columns, message.asked.block)
        mean = own.mean(axis=0)
        centred = own - mean
        digest = self.party.row_digest(message.asked.block, self.run)
        return [
            self.send(
                message.sender, "moments", rows=len(own), mean=mean, products=centred.T @ centred, rows_are=digest,
            )
        ]  # fmt: skip

    def on_deal(self, message: Request) -> list[Message]:
        """Draw the masks for two others."""
        holders, columns = message.values["holders"], message.values["columns"]
        if len(set(holders)) != 2 or len(holders) != 2 or self.party.name in holders or len(columns) != 2:
            raise ProtocolError("Masks are dealt to two holders by a third. The run was ended.")
        rows, frac = message.values["rows"], message.values["frac"]
        widths = [2 * len(own) for own in columns]
        if rows * sum(widths) > _MOST_WORDS or rows * math.prod(widths) > _MOST_PRODUCTS:
            raise ProtocolError(
                f"'{self.party.name}' deals masks of at most {_MOST_WORDS:,} words at a time, for {_MOST_PRODUCTS:,} "
                "products of them. Ask for fewer columns at a time."
            )
        self._takes_part("dealer")
        return self.dealt(holders, columns, rows, frac, message.values["block"])

    def on_masks(self, message: Request) -> list[Message]:
        """Take the mask off one's own columns and show the rest to the other."""
        values, own = message.values, self.party.matrix(message.asked.columns, message.asked.block)
        self.dealer, self.first, self.other, self.frac = (
            message.sender, values["first"], values["other"], values["frac"],
        )  # fmt: skip
        if len({self.party.name, self.dealer, self.other}) != 3 or not 0 < self.frac <= _MOST_BITS:
            raise ProtocolError("Two holders multiply, and a third party deals the masks. The run was ended.")
        centred = own - own.mean(axis=0)
        size = centred.std(axis=0)
        parts = _halves(centred / np.where(size > 0, size, 1.0), self.frac)
        self._takes_part("holder")
        self.mask, self.share = message.array("mask", parts.shape), message.array("share", (None, None))
        self.rest = parts - self.mask
        bound = {"dealer": self.dealer, "first": self.first, "frac": self.frac}
        replies = [self.send(self.other, "rest", rest=self.rest, **bound)]
        waiting = self._waiting.pop("rest", None)
        return replies + (self._multiplied(waiting) if waiting else [])

    def on_rest(self, message: Request) -> list[Message]:
        """Multiply with what the other shows, once the mask is here."""
        if self._part != "holder":
            self._waiting["rest"] = message
            return []
        return self._multiplied(message)

    def _multiplied(self, message: Request) -> list[Message]:
        theirs = message.array("rest", (len(self.rest), None))
        told = (message.sender, message.values["dealer"], message.values["first"], message.values["frac"])
        if told != (self.other, self.dealer, not self.first, self.frac):
            raise ProtocolError(
                f"'{message.sender}' multiplies something else, or has masks of another dealer."
            )
        self._takes_part("done")
        made = self.mask.T @ theirs if self.first else theirs.T @ (self.rest + self.mask)
        if made.shape != self.share.shape:
            raise ProtocolError(
                f"'{message.sender}' multiplies another number of columns. The run was ended."
            )
        return [self.send(COORDINATOR, "share", share=made + self.share, first=self.first)]

    def _takes_part(self, part: str) -> None:
        if self._part and (self._part, part) != ("holder", "done"):
            raise ProtocolError(f"'{self.party.name}' has taken its part in this run. Masks are used once.")
        self._part = part


class Asking(_Deals):
    """The part of the coordinator: ask for moments, have masks dealt, add the shares."""

    protocol = "shared-product"
    takes: ClassVar = {
        "moments": Takes({"rows": whole, "mean": floats, "products": floats, "rows_are": text}, "site"),
        "share": Takes({"share": words, "first": flag}, "site"),
    }

    def __init__(self, party: Any, run: str) -> None:
        super().__init__(party, run)
        self.moments: dict[str, tuple[int, Floats, Floats]] = {}
        self.rows_are: set[str] = set()
        self.shares: dict[bool, Array] = {}
        self.pair = ("", "")

    def on_moments(self, message: Request) -> list[Message]:
        """Note the moments of one holder."""
        mean = message.array("mean", (None,))
        self.rows_are.add(message.values["rows_are"])
        self.moments[message.sender] = (
            message.values["rows"], mean, message.array("products", (len(mean), len(mean))),
        )  # fmt: skip
        return []

    def on_share(self, message: Request) -> list[Message]:
        """Note one of the two shares of a product."""
        first = message.values["first"]
        if first in self.shares or message.sender != self.pair[0 if first else 1]:
            raise ProtocolError(f"'{message.sender}' sent a share out of turn. The run was ended.")
        self.shares[first] = message.array("share", (None, None))
        return []

    def multiply(  # noqa: PLR0917
        self, dealer: str | None, holders: tuple[str, str], columns: tuple[Sequence[str], Sequence[str]], rows: int,
        frac: int, block: str,
    ) -> list[Message]:  # fmt: skip
        """Have a third holder deal masks to a pair, or deal them oneself where there is none."""
        self.pair = holders
        if dealer is None:
            return self.dealt(holders, columns, rows, frac, block)
        return [
            self.send(
                dealer, "deal", holders=list(holders), columns=[list(own) for own in columns], rows=rows, frac=frac,
                block=block,
            )
        ]  # fmt: skip


def dealer_for(pair: Sequence[str], sites: Sequence[str]) -> str | None:
    """Return the site that deals the masks for a pair: the first one that is none of both, if there is any.

    Examples
    --------
    >>> dealer_for(["a", "b"], ["a", "b", "c"]), dealer_for(["a", "b"], ["a", "b"])
    ('c', None)
    """
    return next((name for name in sites if name not in pair), None)


def joint_moments(
    transport: Transport,
    coordinator: Party,
    nodes: Sequence[str],
    columns: Sequence[Sequence[str]],
    block: str = MAIN,
) -> tuple[int, Floats, Floats]:
    """Work out rows, mean and covariance (divided by n) of all columns, over the pairs of holders."""
    sites = [*nodes, *(name for name in transport.names if name != coordinator.name)]
    run = transport.new_run()
    asking = Asking(coordinator, run)
    coordinator.plays(asking)
    transport.carry(
        asking.send(node, "own", columns=list(own), block=block)
        for node, own in zip(nodes, columns, strict=True)
    )
    found = [asking.moments[node] for node in nodes]
    rows = {one[0] for one in found}
    if len(rows) != 1:
        raise ParameterError(
            "The parties do not have the same number of rows. Link the rows one to one first."
        )
    if len(asking.rows_are) != 1:
        raise InputError("The rows do not link one to one: the holders do not have the same people.")
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
            role = Asking(coordinator, each)
            coordinator.plays(role)
            pair = (nodes[i], nodes[j])
            dealer = dealer_for(pair, sites)
            transport.carry(role.multiply(dealer, pair, (columns[i], columns[j]), many, frac, block))
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
