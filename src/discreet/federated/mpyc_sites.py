"""Ranked values between sites that are processes of one machine, by MPyC: only outcomes of comparisons are opened.

Each site starts a party of its own with its own values; the coordinator takes part without any. MPyC's connections are
not those of the sites: between machines they would pass by the owner's certificates, rules and log, so that a site
that listens on a network refuses the protocol, whatever its file allows.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.federated.messages import (
    Message,
    ProtocolError,
    Request,
    Takes,
    number,
    optional,
    or_none,
    rows_asked,
    text,
    texts,
    whole,
)
from discreet.federated.mpyc_backend import MpycParty, free_ports
from discreet.federated.parties import Party, Role, Transport, plays
from discreet.federated.ranked_elements import Grid

PROTOCOL = "mpyc-rank"
_BEGIN = {
    "columns": texts, "block": optional(text), "low": number, "step": number, "size": whole, "rank": whole,
    "share": or_none(number), "many": whole, "port": whole, "at": whole,
}  # fmt: skip


@plays
class Ranking(Role):
    """The part of a site: start a party with its own values, and end it when all is done."""

    protocol = PROTOCOL
    takes: ClassVar = {"begin": Takes(_BEGIN, asks=rows_asked(moments=False)), "end": Takes({})}
    sends: ClassVar = {"begun": "coordinator", "ended": "coordinator"}

    def on_begin(self, message: Request) -> list[Message]:
        """Start a party with the places of one's own values."""
        asked = message.values
        if not asked["many"] >= 3 or asked["at"] >= asked["many"]:
            raise ProtocolError("MPyC needs three parties for an honest majority. The run was ended.")
        (name,) = message.asked.columns
        values = numbers_at(self.party, name, message.asked.block)
        grid = Grid(float(asked["low"]), float(asked["step"]), int(asked["size"]))
        own = {"task": "rank", "rank": asked["rank"], "share": asked["share"], "size": grid.size,
               "values": grid.clipped(values).tolist()}  # fmt: skip
        self.child = MpycParty(own, int(asked["at"]), int(asked["many"]), int(asked["port"]))
        return [self.send(message.sender, "begun")]

    def on_end(self, message: Request) -> list[Message]:
        """Wait until the party has ended."""
        try:
            self.child.result()
        finally:
            self.child.end()
        return [self.send(message.sender, "ended")]


class Asking(Role):
    """The part of the coordinator."""

    protocol = PROTOCOL
    takes: ClassVar = {"begun": Takes({}, "site"), "ended": Takes({}, "site")}
    sends: ClassVar = {"begin": "site", "end": "site"}

    def on_begun(self, message: Request) -> list[Message]:
        """Take note."""
        return []

    on_ended = on_begun


def numbers_at(holder: Any, name: str, block: str) -> Any:
    """Return the numbers that a holder has in a column, without gaps."""
    frame = holder.frame(block)
    if name not in frame.columns:
        raise ColumnError(f"At '{holder.name}': {unknown_name(name, frame.columns)}")
    if not frame[name].dtype.is_numeric():
        raise ColumnError(f"At '{holder.name}': '{name}' does not hold numbers.")
    return frame[name].drop_nulls().cast(pl.Float64).drop_nans().to_numpy()


def mpyc_rank_over(  # noqa: PLR0917
    transport: Transport,
    central: Party,
    nodes: Any,
    column: str,
    grid: Grid,
    rank: int | None,
    share: float | None,
) -> tuple[int, int, int]:
    """Find the place of a rank over sites: the place, the rank, and how many values there are."""
    many = len(nodes) + 1
    if many < 3:
        raise ParameterError("MPyC needs three parties for an honest majority, the coordinator among them.")
    port, run = free_ports(many), transport.new_run()
    role = Asking(central, run)
    central.plays(role)
    asked = {"columns": [column], "low": grid.low, "step": grid.step, "size": grid.size, "rank": rank or 0,
             "share": share, "many": many, "port": port}  # fmt: skip
    own = {"task": "rank", "rank": rank or 0, "share": share, "size": grid.size, "values": []}
    transport.carry(role.send(node, "begin", **asked, at=at) for at, node in enumerate(nodes))
    here = MpycParty(own, many - 1, many, port)
    try:
        place, found, total = here.result()
        transport.carry(role.send(node, "end") for node in nodes)
    except ValueError as error:
        raise ProtocolError("The MPyC computation ended with something else than a rank.") from error
    finally:
        here.end()
        transport.forget(run)
    return int(np.clip(place, 0, grid.size - 1)), found, total
