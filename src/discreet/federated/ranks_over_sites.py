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
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.core.wording import shown
from discreet.federated.counts_over_sites import rows_of
from discreet.federated.leakage import Leakage, Learned, seeded_note, told_by_subsets
from discreet.federated.masking import Masks
from discreet.federated.messages import MAIN, ProtocolError, number, whole
from discreet.federated.mpyc_sites import mpyc_rank_over, numbers_at
from discreet.federated.parties import Holder, Party, Transport
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
        return {
            "column": self.column, "value": self.value, "rank": self.rank, "values": self.values,
            "rounds": self.rounds, "leakage": self.leakage.to_dict(),
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.column}: value {shown(self.value)} has rank {shown(self.rank)} of {shown(self.values)}"

    __repr__ = __str__


@checked
def rank_over_sites(
    sites: Any, column: str, *, domain: tuple[float, float], rank: int | None = None, share: float | None = None,
    precision: float = 1.0, backend: Literal["sums", "mpyc"] = "sums", transport: Any = None, seed: Seed = None,
) -> RankOverSites:  # fmt: skip
    """Which value has this rank among the values of all sites together?

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
    if share is not None and not 0 <= share <= 1:
        raise ParameterError("share must lie between 0 and 1.")
    grid = Grid.between(domain, precision)
    layout = rows_of(sites, [column], seed)
    central = Party("coordinator", Masks(seed))
    carrier = transport or Transport(layout.holders.values())
    carrier.join(central)
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
            return RankOverSites(
                column,
                float(grid.value(middle)),
                wanted,
                many,
                rounds,
                _told(rounds, carrier, seed, layout.nodes),
            )
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
