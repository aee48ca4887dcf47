"""Which is the k-th smallest value over sites that hold different people? Bisection by secure sums of counts.

`ranked_element` plays the protocol in one process, where only outcomes of comparisons become known. Between sites the
counts below and above a place are added by secure sums: the coordinator learns these joint counts, about 32 of
them, and no site's own. Where that is too much, ``backend="mpyc"`` opens outcomes of comparisons alone, between sites
of one machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.constraints import Share
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.core.wording import shown
from discreet.federated.counts_over_sites import rows_of
from discreet.federated.kinds import number, optional, or_none, text, texts, whole
from discreet.federated.layouts import coordinated
from discreet.federated.leakage import Leakage, Learned, seeded_note, told_by_subsets
from discreet.federated.messages import MAIN, Message, ProtocolError, Request, Takes, rows_asked
from discreet.federated.mpyc_backend import MpycParty, free_ports
from discreet.federated.parties import Holder, Party, Role, Transport, plays
from discreet.federated.quantities import Ring, quantity
from discreet.federated.ranked_elements import Grid
from discreet.federated.secure_sums import sum_over


@quantity("ranks", {"low": number, "step": number, "places": whole, "at": whole})
def _counts_around(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """How many values there are, and how many of them lie below and above a place of the agreed domain."""
    (name,) = (str(one) for one in asked["columns"])
    values = numbers_at(holder, name, str(asked.get("block", MAIN)))
    # A refusal of values beyond the domain would tell that there are some: they count at its ends.
    places = Grid(float(asked["low"]), float(asked["step"]), int(asked["places"])).clipped(values)
    at = int(asked["at"])
    below, above = (places < at).sum(), (places > at).sum()
    if holder.limits is not None:
        holder.limits.cells(np.array([below, above, len(places) - below, len(places) - above]))
    return np.array([len(places), below, above], dtype=np.float64)


@dataclass(frozen=True, repr=False)
class RankOverSites:
    """A ranked value over sites: the value, its rank, and how many values there are."""

    column: str
    value: float
    rank: int
    values: int
    rounds: int
    leakage: Leakage = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {**vars(self), "leakage": self.leakage.to_dict()}

    def __str__(self) -> str:
        return f"{self.column}: value {shown(self.value)} has rank {shown(self.rank)} of {shown(self.values)}"

    __repr__ = __str__


@checked
def rank_over_sites(
    sites: Any, column: str, *, domain: tuple[float, float], rank: int | None = None,
    share: Annotated[float, Share()] | None = None,
    precision: float = 1.0, backend: Literal["sums", "mpyc"] = "sums", transport: Any = None, seed: Seed = None,
) -> RankOverSites:  # fmt: skip
    """Which value has this rank among the values of all sites together?

    Also known as: secure ranking; Mann-Whitney over sites.

    Parameters
    ----------
    sites
        One table for each site, or `horizontal`.
    column
        The column.
    domain
        Bounds that were agreed beforehand, not read off the data; values beyond them count at the ends.
    rank, share
        1 for the smallest; or the share of all values that lie at or below, 0.5 for the median.
    precision
        The step between values; values between two steps are rounded.
    backend
        ``"sums"``: secure sums, on every transport. ``"mpyc"``: comparisons on Shamir shares, of which only the
        outcomes are opened; between parties of this machine.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; only for tests.

    Examples
    --------
    >>> import polars as pl
    >>> tables = [pl.DataFrame({"age": own}) for own in ([17, 23, 90], [19, 45], [20, 73, 88, 31])]
    >>> rank_over_sites(tables, "age", share=0.5, domain=(0, 120)).value
    31.0
    """
    if (rank is None) == (share is None):
        raise ParameterError("Give a rank, or the share of values that lie at or below: one of the two.")
    grid = Grid.between(domain, precision)
    layout = rows_of(sites, [column], seed)
    carrier, central = coordinated(layout, transport, seed)
    if backend == "mpyc":
        place, found_rank, many = mpyc_rank_over(carrier, central, layout.nodes, column, grid, rank, share)
        told = _told(grid.size.bit_length(), carrier, seed, (), mpyc=len(layout.nodes) + 1)
        return RankOverSites(column, float(grid.value(place)), found_rank, many, grid.size.bit_length(), told)
    low, high, rounds, total, wanted = 0, grid.size - 1, 0, None, rank or 0
    while low <= high:
        middle = (low + high) // 2
        asked = {"kind": "ranks", "columns": [column], "low": grid.low, "step": grid.step, "places": grid.size,
                 "at": middle}  # fmt: skip
        found = sum_over(carrier, central, layout.nodes, asked, size=3, ring=Ring(64, 0), seed=seed)
        many, below, above = (int(one) for one in np.rint(found))
        rounds += 1
        if total is None:
            total = many
            wanted = wanted if share is None else min(max(1, math.ceil(share * many)), max(many, 1))
            if not 1 <= wanted <= many:
                raise ParameterError(f"rank must lie between 1 and the number of all values, {many:,}.")
        if many != total or below + above > many:
            raise ProtocolError("The counts of the sites contradict their earlier ones. The run was ended.")
        if below >= wanted:
            high = middle - 1
        elif many - above < wanted:
            low = middle + 1
        else:
            told = _told(rounds, carrier, seed, layout.nodes)
            return RankOverSites(column, float(grid.value(middle)), wanted, many, rounds, told)
    raise ProtocolError("The counts of the sites contradict each other. The run was ended.")


def _told(rounds: int, carrier: Transport, seed: Seed, nodes: Sequence[str], *, mpyc: int = 0) -> Leakage:
    learned = Learned(
        "coordinator", "all sites", f"coordinator learns how many values there are, and at {rounds} places how many of "
        "all sites together lie below and above, and no count of a single site",
    )  # fmt: skip
    together = ("the two neighbors of a site in the ring learn its counts",)
    if mpyc:
        learned = Learned(
            "every party", "the others", "every party learns how many values there are in all, the value, and the "
            f"outcomes of at most {2 * rounds} comparisons",
        )  # fmt: skip
        together = (f"any {(mpyc - 1) // 2 + 1} of the {mpyc} parties recover the counts of the others",)
    return Leakage(
        "mpyc-rank" if mpyc else "secure-sum", (learned,), together,
        ("The smallest and the largest value are each the value of one person: ask for a share in between.",
         *seeded_note(seed is not None)),
        subsets=told_by_subsets(nodes), transcript=carrier.transcript,
    )  # fmt: skip


# Ranked values between sites that are processes of one machine, by MPyC: only outcomes of comparisons are opened.
#
# Each site starts a party of its own with its own values; the coordinator takes part without any. MPyC's connections
# are not those of the sites: between machines they would pass by the owner's certificates, rules and log, so that a
# site that listens on a network refuses the protocol, whatever its file allows.


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
    need_known([name], frame.columns, before=f"At '{holder.name}': ")
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
