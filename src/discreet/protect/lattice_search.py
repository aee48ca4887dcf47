"""Which node of the lattice loses least among those that keep everybody safe?

A best-first search that proves its answer. Every node has a lower bound of its loss; nodes are visited by rising
bound until the bound reaches the best loss found. Nodes whose closed models suppress too many records condemn all
finer nodes with them (predictive tagging: Samarati 2001, El Emam et al. 2009, Kohlmayer et al. 2012); the search
therefore climbs from such a node as far as the bound allows before it condemns. A lighter search for recodings of the
whole file stands at the end.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags
from discreet.numerics import loss
from discreet.protect.lattice_classes import ClassTable, Lattice, Node, RankedNodes
from discreet.protect.privacy_models import PrivacyModel

TOLERANCE = 1e-12
"""Losses closer than this are equal: they are sums of rounded numbers."""


@dataclass(frozen=True)
class Evaluated:
    """What was found at a node.

    Attributes
    ----------
    node
        The level of each key.
    suppressed
        The records in violating classes.
    loss
        The loss with those suppressed; infinite where they are more than the limit.
    condemned
        The records that violate the models which prune: no finer node can suppress fewer.
    """

    node: Node
    suppressed: int
    loss: float
    condemned: int


@dataclass(frozen=True)
class Answer:
    """The best node, what is proved about it, and how the search went."""

    best: Evaluated | None
    lower_bound: float
    evaluated: tuple[Evaluated, ...]
    nodes: int

    @property
    def proven(self) -> bool:
        """Whether no node can be better."""
        return self.best is not None and self.lower_bound >= self.best.loss - TOLERANCE

    @property
    def gap(self) -> float:
        """By how much the loss may be above the least possible one."""
        return 0.0 if self.best is None or self.proven else self.best.loss - self.lower_bound


class Objective(Protocol):
    """A loss as the search needs it."""

    def loss(self, table: ClassTable, violating: Flags) -> float:
        """The loss of releasing the file at the node of the table, violating classes suppressed."""

    def bound(self, node: Node) -> float:
        """A number the loss of this node cannot be below; it does not fall from a node to a coarser one."""

    def learn(self, table: ClassTable) -> None:
        """Take note of a table, where that makes bounds sharper."""

    def step_cost(self, node: Node, key: int) -> float:
        """How much coarsening one key by a level costs, roughly; the search climbs along the cheapest."""


class CellObjective:
    """A loss that adds up over cells: its total without suppression is a bound, known before any counting."""

    def __init__(self, lattice: Lattice, kind: str, weights: Sequence[float]) -> None:
        costs = lattice.cell_costs(kind, weights)
        self._lattice = lattice
        self._suppressed = sum(key.suppressed for key in costs)
        self._offsets, self._costs = lattice.flat_costs(costs)
        self._totals = [
            [float(key.counts @ kept[codes]) for codes, kept in zip(key.codes, cost.kept, strict=True)]
            for key, cost in zip(lattice.keys, costs, strict=True)
        ]

    def loss(self, table: ClassTable, violating: Flags) -> float:
        """Add up what the kept and the suppressed records cost."""
        return self._lattice.total_cost(table, self._offsets, self._costs, violating, self._suppressed)

    def bound(self, node: Node) -> float:
        """Add up what the cells cost when nothing is suppressed."""
        return sum(totals[level] for totals, level in zip(self._totals, node, strict=True))

    def learn(self, table: ClassTable) -> None:
        """Nothing: the bounds are known from the start."""

    def step_cost(self, node: Node, key: int) -> float:
        """Say by how much the bound rises."""
        return self._totals[key][node[key] + 1] - self._totals[key][node[key]]


class ClassObjective:
    """A loss of classes: what a node loses without suppression bounds all coarser nodes from below."""

    def __init__(self, lattice: Lattice, kind: str, target: str | None) -> None:
        self._kind = kind
        self._target = target
        self._records = lattice.records
        self._heights = lattice.heights
        self._known = RankedNodes(len(lattice.heights))
        self.learn(lattice.base)

    def loss(self, table: ClassTable, violating: Flags) -> float:
        """Compute the loss from the sizes of the classes that stay."""
        kept = table.sizes[~violating]
        suppressed = self._records - int(kept.sum())
        if self._kind == "discernibility":
            return loss.discernibility(kept, suppressed)
        if self._kind == "average-class-size":
            return loss.average_class_size(kept, suppressed)
        counts = table.values(str(self._target))
        largest = np.maximum.reduceat(counts.counts, counts.starts[:-1])
        return loss.classification_loss(largest[~violating], self._records)

    def bound(self, node: Node) -> float:
        """Take the largest unsuppressed loss of the finer nodes that have been counted."""
        return float(self._known.first_finer(node))

    def learn(self, table: ClassTable) -> None:
        """Note what the node loses without suppression."""
        least = self.loss(table, np.zeros(len(table.sizes), dtype=np.bool_))
        self._known.add(-least, table.node, least)

    def step_cost(self, node: Node, key: int) -> float:
        """Prefer keys that are still far from their top."""
        return (node[key] + 1) / self._heights[key]


@dataclass
class Search:
    """One search through a lattice; `run` gives the answer."""

    lattice: Lattice
    models: Sequence[PrivacyModel]
    limit: int
    objective: Objective
    time_limit: float | None = None
    _found: dict[Node, Evaluated] = field(default_factory=dict)
    _best: Evaluated | None = None

    def __post_init__(self) -> None:
        suppression = self.limit > 0
        monotone = [model for model in self.models if model.monotone(suppression=suppression)]
        implied = [closed for model in self.models if model not in monotone for closed in model.implied()]
        self._safe_to_prune = list(dict.fromkeys([*monotone, *implied]))
        self._others = [model for model in self.models if model not in monotone]
        self._condemned = RankedNodes(len(self.lattice.heights))
        self._until = float("inf") if self.time_limit is None else time.perf_counter() + self.time_limit

    def run(self) -> Answer:
        """Search until the best node is proved or the time is up."""
        top = self.evaluate(self.lattice.heights)
        if top.condemned > self.limit:
            return self._answer(float("inf"))
        bottom: Node = (0,) * len(self.lattice.heights)
        self._visit(bottom)
        if self._best is not None:
            self._descend(self._best.node)
        queue = [(self.objective.bound(bottom), 0, bottom, 0)]
        while queue:
            bound, _, node, first = heapq.heappop(queue)
            if self._best is not None and bound >= self._best.loss - TOLERANCE:
                return self._answer(bound)
            if time.perf_counter() > self._until:
                return self._answer(bound)
            sharper = self.objective.bound(node)
            if sharper > bound + TOLERANCE:
                heapq.heappush(queue, (sharper, sum(node), node, first))
                continue
            # Only keys from the last raised one on are raised further, so that each node is queued once.
            for key in range(first, len(node)):
                if node[key] < self.lattice.heights[key]:
                    coarser = _raised(node, key)
                    reach = max(bound, self.objective.bound(coarser))
                    if self._best is None or reach < self._best.loss - TOLERANCE:
                        heapq.heappush(queue, (reach, sum(coarser), coarser, key))
            self._visit(node)
        return self._answer(float("inf"))

    def _answer(self, bound: float) -> Answer:
        if self._best is not None:
            self._descend(self._best.node)
        best = self._best
        lower = bound if best is None else min(bound, best.loss)
        return Answer(best, lower, tuple(self._found.values()), self.lattice.nodes)

    def _visit(self, node: Node) -> None:
        if node in self._found or self._is_condemned(node):
            return
        if self.evaluate(node).condemned > self.limit:
            self._climb(node)

    def evaluate(self, node: Node) -> Evaluated:
        """Count what violates the models at a node and what it loses; each node once."""
        if node in self._found:
            return self._found[node]
        table = self.lattice.table(node)
        sizes = table.sizes
        violating = self.lattice.violating(table, self._safe_to_prune)
        condemned = int(sizes[violating].sum())
        if self._others:
            violating = violating | self.lattice.violating(table, self._others)
        suppressed = int(sizes[violating].sum())
        self.objective.learn(table)
        feasible = suppressed <= self.limit
        cost = self.objective.loss(table, violating) if feasible else float("inf")
        found = Evaluated(node, suppressed, cost, condemned)
        self._found[node] = found
        if feasible and (self._best is None or cost < self._best.loss):
            self._best = found
        return found

    def _climb(self, node: Node) -> None:
        """From a condemned node go up, cheapest key first, to the last node below the best loss, and condemn."""
        path = [node]
        while True:
            here = path[-1]
            steps = [
                (self.objective.step_cost(here, key), key)
                for key in range(len(here))
                if here[key] < self.lattice.heights[key]
            ]
            raised = [_raised(here, key) for _, key in sorted(steps)]
            ahead = [
                up
                for up in raised
                if self._best is None or self.objective.bound(up) < self._best.loss - TOLERANCE
            ]
            if not ahead:
                break
            path.append(ahead[0])
        low, high = 0, len(path)
        middle = len(path) - 1
        while high - low > 1:
            if self.evaluate(path[middle]).condemned > self.limit:
                low = middle
            else:
                high = middle
            middle = (low + high) // 2
        worst = path[low]
        # Finer than a condemned node is the same as coarser in the upside-down lattice; the highest come first.
        self._condemned.add(-sum(worst), _upside_down(worst), True)

    def _is_condemned(self, node: Node) -> bool:
        return self._condemned.first_finer(_upside_down(node)) is not None

    def _descend(self, node: Node) -> None:
        """From a feasible node go down as long as the loss does not rise: a good answer early, a fine one late."""
        while time.perf_counter() < self._until:
            lower = [_raised(node, key, -1) for key in range(len(node)) if node[key] > 0]
            tried = [self.evaluate(down) for down in lower if not self._is_condemned(down)]
            better = [
                found
                for found in tried
                if found.suppressed <= self.limit and found.loss < self._found[node].loss
            ]
            if not better:
                return
            chosen = min(better, key=lambda found: (found.loss, found.node))
            node = chosen.node
            if self._best is None or chosen.loss <= self._best.loss + TOLERANCE:
                self._best = chosen


def _upside_down(node: Node) -> Node:
    return tuple(-level for level in node)


def _raised(node: Node, key: int, by: int = 1) -> Node:
    return (*node[:key], node[key] + by, *node[key + 1 :])


# Which recodings of the whole file give every class k records, and which of them loses least?
#
# Optimal lattice analysis (El Emam et al. 2009): k-anonymity without record suppression is kept by every coarser
# node, so a node that is tested speaks for all coarser or all finer ones. The least loss is then at one of the
# minimal nodes. The loss is the mean over records of log2(size of the class after / before recoding): it looks at
# the keys jointly and grows towards coarser nodes.


def joint_entropy_loss(before: npt.ArrayLike, after: npt.ArrayLike) -> float:
    """How many bits does an intruder lose, on average, when classes of these sizes merge into those?

    Parameters
    ----------
    before, after
        The sizes of the classes, of the same records.

    Examples
    --------
    >>> round(joint_entropy_loss([2, 3], [5]), 6)
    0.970951
    """
    fine, coarse = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    return float((coarse @ np.log2(coarse) - fine @ np.log2(fine)) / fine.sum())


def nodes_by_loss(lattice: Lattice, k: int, heights: Sequence[int]) -> Iterator[tuple[Node, float]]:
    """List the nodes at which every class has k records, by rising loss; none are coarser than ``heights``.

    The first is the optimum. As the loss grows along the lattice, a node is looked at only after a finer one.
    """
    bottom = lattice.base.sizes

    def loss(node: Node) -> float:
        return joint_entropy_loss(bottom, lattice.table(node).sizes)

    queue = [(loss(node), node) for node in minimal_nodes(lattice, k, heights)]
    heapq.heapify(queue)
    seen = {node for _, node in queue}
    while queue:
        lost, node = heapq.heappop(queue)
        yield node, lost
        for coarser in _raised_nodes(node, heights):
            if coarser not in seen:
                seen.add(coarser)
                heapq.heappush(queue, (loss(coarser), coarser))


def minimal_nodes(lattice: Lattice, k: int, heights: Sequence[int]) -> list[Node]:
    """Find the nodes at which every class has k records and no finer node will do.

    From every node that is still open a chain of open nodes goes up; a bisection finds where on it k is reached,
    and each test tags all coarser or all finer nodes of the lattice.
    """
    tags = np.zeros([height + 1 for height in heights], dtype=np.int8)
    by_height = sorted(np.ndindex(tags.shape), key=lambda node: (sum(node), node))
    for start in by_height:
        while tags[start] == 0:
            chain = _open_chain(start, tags, heights)
            low, high = 0, len(chain)
            while low < high:
                middle = (low + high) // 2
                node = chain[middle]
                if tags[node] == 0:
                    reached = int(lattice.table(node).sizes.min()) >= k
                    where = tuple(slice(level, None) if reached else slice(level + 1) for level in node)
                    tags[where] = 1 if reached else -1
                low, high = (low, middle) if tags[node] > 0 else (middle + 1, high)
    good = tags > 0
    minimal = good.copy()
    for axis in range(good.ndim):
        finer = np.zeros_like(good)
        inner = [slice(None)] * good.ndim
        outer = list(inner)
        inner[axis], outer[axis] = slice(1, None), slice(None, -1)
        finer[tuple(inner)] = good[tuple(outer)]
        minimal &= ~finer
    return [tuple(int(level) for level in node) for node in np.argwhere(minimal)]


def _open_chain(start: Node, tags: npt.NDArray[np.int8], heights: Sequence[int]) -> list[Node]:
    chain = [start]
    while True:
        above = [node for node in _raised_nodes(chain[-1], heights) if tags[node] == 0]
        if not above:
            return chain
        chain.append(above[0])


def _raised_nodes(node: Node, heights: Sequence[int]) -> list[Node]:
    return [_raised(node, key) for key in range(len(node)) if node[key] < heights[key]]
