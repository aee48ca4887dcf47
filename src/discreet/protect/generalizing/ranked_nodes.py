"""Nodes of a lattice in order of a number, asked for the first one that is finer than another."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np


class RankedNodes:
    """Nodes with a rank and an item each, smallest rank first.

    Examples
    --------
    >>> known = RankedNodes(keys=2)
    >>> known.add(3.0, (0, 0), "bottom")
    >>> known.add(1.0, (1, 0), "one up")
    >>> known.first_finer((1, 1)), known.first_finer((0, 1)), known.first_finer((0, -1))
    ('one up', 'bottom', None)
    """

    def __init__(self, keys: int) -> None:
        self._ranks: list[float] = []
        self._items: list[Any] = []
        self._nodes = np.empty((64, keys), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, rank: float, node: tuple[int, ...], item: Any) -> None:
        """Put a node in its place."""
        many = len(self._items)
        if many == len(self._nodes):
            self._nodes = np.concatenate([self._nodes, np.empty_like(self._nodes)])
        at = bisect_right(self._ranks, rank)
        self._nodes[at + 1 : many + 1] = self._nodes[at:many]
        self._nodes[at] = node
        self._ranks.insert(at, rank)
        self._items.insert(at, item)

    def first_finer(self, node: tuple[int, ...]) -> Any:
        """Give the item of the first node that is nowhere coarser, None where there is none."""
        from discreet.protect.generalizing.lattice_kernels import first_finer

        at = first_finer(self._nodes, len(self._items), np.array(node, dtype=np.int64))
        return None if at < 0 else self._items[at]
