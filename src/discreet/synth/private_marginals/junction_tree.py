"""Which tables must be held together, so that a model of overlapping tables can be worked out exactly?

Columns that stand in one measured table are neighbors. The graph is filled up until every circle has a shortcut; its
cliques then form a tree in which what two of them share lies on the way between them (Lauritzen and Spiegelhalter
1988). The work of everything that follows is the number of cells of the cliques.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

Clique = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns and how they hang together.

    Attributes
    ----------
    cliques
        Columns of each clique, in rising order.
    parents
        The place of the clique from which each is reached, -1 for the first; a parent comes before its children.
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    def shared(self, place: int) -> Clique:
        """The columns that a clique has in common with its parent."""
        if self.parents[place] < 0:
            return ()
        above = self.cliques[self.parents[place]]
        return tuple(column for column in self.cliques[place] if column in above)

    def holder(self, columns: Iterable[int], sizes: Sequence[int] | None = None) -> int:
        """The place of a clique that has all these columns; with sizes of the columns, of the smallest such clique."""
        wanted = set(columns)
        places = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique)]
        if sizes is None:
            return places[0]
        return min(places, key=lambda place: math.prod(sizes[column] for column in self.cliques[place]))


def junction_tree(tables: Collection[Clique], sizes: Sequence[int]) -> JunctionTree:
    """Make the tree of cliques for tables over columns of these sizes; every column is in it.

    Examples
    --------
    >>> tree = junction_tree([(0, 1), (1, 2), (0, 2), (2, 3)], [2, 2, 2, 2])
    >>> tree.cliques, tree.parents
    (((0, 1, 2), (2, 3)), (-1, 0))
    """
    cliques = _cliques(tables, sizes)
    order, parents = [0], [-1]
    left = set(range(1, len(cliques)))
    while left:
        # The pair that shares most columns next: this is what makes it a junction tree.
        place, above = max(
            ((one, at) for one in sorted(left) for at in range(len(order))),
            key=lambda pair: len(cliques[pair[0]] & cliques[order[pair[1]]]),
        )
        order.append(place)
        parents.append(above)
        left.remove(place)
    return JunctionTree(tuple(tuple(sorted(cliques[place])) for place in order), tuple(parents))


def cells_needed(tables: Collection[Clique], sizes: Sequence[int]) -> int:
    """How many cells the cliques have together.

    Examples
    --------
    >>> cells_needed([(0, 1), (1, 2), (0, 2)], [2, 3, 4])
    24
    """
    return _cells(_cliques(tables, sizes), sizes)


def _cliques(tables: Collection[Clique], sizes: Sequence[int]) -> list[frozenset[int]]:
    """The cliques of the graph once it is filled up; none is added where it has its shortcuts already."""
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for table in tables:
        for column in table:
            near[column].update(other for other in table if other != column)
    logs = [math.log(size) for size in sizes]
    by_fill, added = _eliminated(near, logs, fill_first=True)
    if not added:
        return by_fill
    by_size, _ = _eliminated(near, logs, fill_first=False)
    return min(by_fill, by_size, key=lambda found: _cells(found, sizes))


def _cells(cliques: Iterable[Iterable[int]], sizes: Sequence[int]) -> int:
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)


def _eliminated(
    graph: dict[int, set[int]], logs: Sequence[float], *, fill_first: bool
) -> tuple[list[frozenset[int]], int]:
    """Take columns out one by one: those first that add fewest neighbors, or make the smallest table.

    Gives the cliques, and how many neighbors were added.
    """
    near = {column: set(others) for column, others in graph.items()}

    def rank(column: int) -> tuple[float, float, int]:
        around = near[column]
        weight = sum(logs[other] for other in around) + logs[column]
        missing = sum(len(around - near[other]) - 1 for other in around) if fill_first else 0
        return missing, weight, column

    ranks = {column: rank(column) for column in near}
    found: list[frozenset[int]] = []
    added = 0
    while near:
        column = min(near, key=ranks.__getitem__)
        added += int(ranks[column][0])
        around = near.pop(column)
        clique = frozenset(around | {column})
        if not any(clique <= other for other in found):
            found.append(clique)
        touched = set(around)
        for other in around:
            near[other].discard(column)
            near[other] |= around - {other}
            touched |= near[other]
        for other in touched:
            ranks[other] = rank(other)
    return sorted(found, key=sorted), added
