"""Which recodings of the whole file give every class k records, and which of them loses least?

Optimal lattice analysis (El Emam et al. 2009): k-anonymity without record suppression is kept by every coarser
node, so a node that is tested speaks for all coarser or all finer ones. The least loss is then at one of the
minimal nodes. The loss is the mean over records of log2(size of the class after / before recoding): it looks at
the keys jointly and grows towards coarser nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from discreet.protect.generalizing.lattice_classes import Lattice, Node


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
        for coarser in _raised(node, heights):
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
                    where = (
                        tuple(slice(level, None) for level in node)
                        if reached
                        else tuple(slice(level + 1) for level in node)
                    )
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
        above = [node for node in _raised(chain[-1], heights) if tags[node] == 0]
        if not above:
            return chain
        chain.append(above[0])


def _raised(node: Node, heights: Sequence[int]) -> list[Node]:
    return [
        (*node[:key], node[key] + 1, *node[key + 1 :]) for key in range(len(node)) if node[key] < heights[key]
    ]
