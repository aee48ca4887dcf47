"""How is the privacy budget of a network divided, and what does it guarantee?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.core.guarantees import DifferentialPrivacy
from discreet.dp import rational_epsilon
from discreet.synth.bayesian_network.structure import Node


@dataclass(frozen=True)
class Budgets:
    """How the privacy budget is divided."""

    structure: float = 0.0
    counts: float = 0.0
    bins: float = 0.0

    @classmethod
    def of(cls, epsilon: float, within_bin: str, *, has_numbers: bool) -> Budgets:
        """Halve it; finer histograms within bins take half of what the structure has."""
        if within_bin == "histogram2" and has_numbers:
            return cls(epsilon / 4, epsilon / 2, epsilon / 4)
        return cls(epsilon / 2, epsilon / 2)

    def check_drawable(self, columns: int, numbers: int) -> None:
        """Refuse a budget whose shares are too small to be drawn exactly, before it is spent.

        How many tables are counted follows from the network; there are never more than columns.
        """
        for share, draws in (
            (self.structure, columns - 1),
            (self.counts, 2 * columns),
            (self.bins, 2 * numbers),
        ):
            if share and draws:
                rational_epsilon(share, draws)


def shared_table(network: Sequence[Node]) -> int:
    """Return the last place whose column and parents are all columns placed so far: one table serves them all."""
    last = 0
    for place, node in enumerate(network):
        if {node.child, *node.parents} == {own.child for own in network[: place + 1]}:
            last = place
        else:
            break
    return last


def claimed(epsilon: float) -> DifferentialPrivacy | None:
    """Return what a network with this budget guarantees; None without noise."""
    if not epsilon:
        return None
    return DifferentialPrivacy(
        epsilon,
        against="the replacement of one record",
        covers=" for the network and its counts, and so for any number of files drawn from it; the number of records "
        "and the declared domain count as public",
        adjacency="replace",
    )
