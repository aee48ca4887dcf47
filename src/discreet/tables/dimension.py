"""One dimension of a table: its lowest codes, the codes published for it, and which covers which.

A dimension is made of one or more chains. A chain gives every leaf its label at each level, fine to coarse;
several chains over the same leaves are overlapping hierarchies (regions by county, and by type of municipality).
The total covers everything and stands above all chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.hierarchy.algebra import TOP

TOTAL = "Total"
MISSING = "Missing"


Chain = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Dimension:
    """The codes of one column of a table; made by `dimension_of`.

    Attributes
    ----------
    name
        The column.
    leaves
        The lowest codes, in the order in which they are shown.
    codes
        All codes that can be published: the total first, then the others, each group before what it holds.
    depth
        How far each code is below the total.
    chains
        The hierarchies, each a tuple of levels (the leaves first), each level one label a leaf.
    total
        The code of the total.
    declared
        Whether codes and groups were given with the table, and none was read from the data.

    Examples
    --------
    >>> place = dimension_of("place", ["a", "b", "c"], [[["a", "b", "c"], ["X", "X", "Y"]]])
    >>> place.codes, place.depth.tolist()
    (('Total', 'X', 'a', 'b', 'Y', 'c'), [0, 1, 2, 2, 1, 2])
    >>> place.above(0).tolist()
    [0, 1, 2]
    """

    name: str
    leaves: tuple[str, ...]
    codes: tuple[str, ...]
    depth: Integers = field(compare=False, repr=False)
    chains: tuple[Chain, ...] = field(repr=False)
    starts: Integers = field(compare=False, repr=False)
    covering: Integers = field(compare=False, repr=False)
    total: str = TOTAL
    declared: bool = field(default=False, compare=False)

    def above(self, leaf: int) -> Integers:
        """The places of the codes that cover one leaf: the total, its groups, itself."""
        return self.covering[self.starts[leaf] : self.starts[leaf + 1]]

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each code stands among `codes`."""
        return {code: place for place, code in enumerate(self.codes)}

    @cached_property
    def own(self) -> Integers:
        """Where each leaf stands among `codes`."""
        return np.asarray([self.place[leaf] for leaf in self.leaves], dtype=np.int64)

    @cached_property
    def is_leaf(self) -> Flags:
        """Whether each code is one of the lowest."""
        found = np.zeros(len(self.codes), dtype=bool)
        found[self.own] = True
        return found

    @cached_property
    def leaf_sets(self) -> dict[str, frozenset[int]]:
        """The leaves (by place) that each code covers."""
        found: dict[str, set[int]] = {code: set() for code in self.codes}
        for leaf in range(len(self.leaves)):
            for code in self.above(leaf):
                found[self.codes[code]].add(leaf)
        return {code: frozenset(leaves) for code, leaves in found.items()}

    def layers(self) -> list[Integers]:
        """Lists of codes, one a leaf (-1 for none), that together hold every code above each leaf once."""
        widths = np.diff(self.starts)
        found = []
        for layer in range(int(widths.max(initial=0))):
            codes = np.full(len(self.leaves), -1, dtype=np.int64)
            there = widths > layer
            codes[there] = self.covering[self.starts[:-1][there] + layer]
            found.append(codes)
        return found

    def children(self, chain: int = 0) -> dict[str, tuple[str, ...]]:
        """What each group of a chain (the total included) holds on the level right below it."""
        found: dict[str, dict[str, None]] = {self.total: {}}
        for labels in zip(*reversed(self.chains[chain]), strict=True):
            above = self.total
            for label in labels:
                if label != above:
                    found.setdefault(above, {})[label] = None
                    above = label
        return {group: tuple(below) for group, below in found.items()}


def dimension_of(
    name: str,
    leaves: Sequence[str],
    chains: Sequence[Sequence[Sequence[str]]] = (),
    *,
    total: str = TOTAL,
    declared: bool = False,
) -> Dimension:
    """Put a dimension together from its leaves and its hierarchies.

    A code that turns up twice (a branch that does not reach all levels, a group that two hierarchies share) is one
    code where it covers the same leaves; where it does not, two things bear one name, which is refused.
    """
    leaves = tuple(leaves)
    clean = tuple(tuple(tuple(level) for level in chain) for chain in chains) or ((leaves,),)
    clean = tuple(_below_total(chain, total) for chain in clean)
    members: dict[str, dict[int, None]] = {total: dict.fromkeys(range(len(leaves)))}
    depth = {total: 0}
    seen_at: dict[str, frozenset[int]] = {}
    order: dict[str, None] = {total: None}
    for chain in clean:
        here: dict[int, dict[str, set[int]]] = {}
        for leaf in range(len(leaves)):
            below, above = 0, None
            for rank in range(len(chain) - 1, -1, -1):
                label = chain[rank][leaf]
                here.setdefault(rank, {}).setdefault(label, set()).add(leaf)
                if label != above:
                    below += 1
                    depth.setdefault(label, below)
                    order.setdefault(label, None)
                    above = label
        for found in here.values():
            for label, covered in found.items():
                whole = frozenset(covered)
                if seen_at.setdefault(label, whole) != whole:
                    raise ParameterError(
                        f"In the hierarchies of column '{name}' one code stands for different things on different "
                        "levels. Give the groups names of their own, for instance with a prefix."
                    )
                members.setdefault(label, dict.fromkeys(covered))
    if total in seen_at and len(seen_at[total]) < len(leaves):
        raise ColumnError(
            f"Column '{name}' has a code that is also the code of the total. Name another one with total=."
        )
    codes = tuple(order)
    place = {code: at for at, code in enumerate(codes)}
    pairs = np.asarray(
        [(leaf, place[code]) for code, held in members.items() for leaf in held], dtype=np.int64
    )
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    starts = np.searchsorted(pairs[:, 0], np.arange(len(leaves) + 1)).astype(np.int64)
    return Dimension(
        name,
        leaves,
        codes,
        np.asarray([depth[code] for code in codes], dtype=np.int64),
        clean,
        starts,
        pairs[:, 1].copy(),
        total,
        declared,
    )


def _below_total(chain: Chain, total: str) -> Chain:
    """Leave out the levels that only repeat the total."""
    kept = list(chain)
    while len(kept) > 1 and len(set(kept[-1])) == 1 and set(kept[-1]) <= {TOP, total}:
        kept.pop()
    return tuple(kept)


def places_of(labels: pl.Series, known: Sequence[str]) -> Integers:
    """Find the place of every label in a list of codes."""
    places = pl.Series(np.arange(len(known)), dtype=pl.Int64)
    return labels.replace_strict(pl.Series(known, dtype=pl.String), places, return_dtype=pl.Int64).to_numpy()


def code_frame(dimension: Dimension) -> pl.DataFrame:
    """Lay out the codes of a dimension: ``code``, ``depth``, ``leaves`` (how many it covers)."""
    sizes = {code: len(held) for code, held in dimension.leaf_sets.items()}
    return pl.DataFrame(
        {
            "code": dimension.codes,
            "depth": dimension.depth,
            "leaves": [sizes[code] for code in dimension.codes],
        }
    )


def described(dimension: Dimension) -> dict[str, Any]:
    """Describe a dimension in plain lists and texts."""
    return {
        "name": dimension.name,
        "total": dimension.total,
        "chains": [[list(level) for level in chain] for chain in dimension.chains],
    }
