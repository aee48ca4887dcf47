"""The most even law of records that has given tables: fitted on a junction tree, and drawn from.

Cliques hold the probabilities of their columns. A walk along the tree visits every clique, scales it to the tables it
is to have (iterative proportional fitting) and carries what changed to the next, so that the clique at which the walk
stands is always an exact margin of the model (Jiroušek and Přeučil 1995). Nothing but cliques is ever held in memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.numerics.alias_tables import alias_tables, draw
from discreet.synth.saved_models import stored

_AGREED = 1e-4  # of all records, beyond which another walk is made
_SMALLEST = 1e-300


@stored("graphical-model")
@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """Probabilities of the cliques of a junction tree, which agree on what they share."""

    tree: JunctionTree
    tables: tuple[Floats, ...]

    @classmethod
    def fitted(
        cls,
        tree: JunctionTree,
        sizes: Sequence[int],
        targets: Mapping[Clique, Floats],
        walks: int,
        zeros: Mapping[Clique, Floats] | None = None,
    ) -> GraphicalModel:
        """Fit the most even law with these shares; ``targets`` by columns, one of every single column among them.

        Examples
        --------
        >>> from discreet.synth.private_marginals.graphical_model import junction_tree
        >>> pair = np.array([[0.4, 0.1], [0.1, 0.4]])
        >>> wanted = {(0,): pair.sum(1), (1,): pair.sum(0), (0, 1): pair}
        >>> GraphicalModel.fitted(junction_tree([(0, 1)], [2, 2]), [2, 2], wanted, 5).tables[0].round(3).tolist()
        [[0.4, 0.1], [0.1, 0.4]]
        """
        cliques = [np.ones([sizes[column] for column in clique]) for clique in tree.cliques]
        own: list[list[tuple[tuple[int, ...], tuple[int, ...], Floats]]] = [[] for _ in cliques]
        covered = {column for columns in targets if len(columns) > 1 for column in columns}
        for columns, shares in targets.items():
            if len(columns) == 1 and columns[0] in covered:
                continue  # larger tables have it for a margin
            place = tree.holder(columns, sizes)
            clique = tree.cliques[place]
            away = tuple(at for at, column in enumerate(clique) if column not in columns)
            shape = tuple(1 if at in away else size for at, size in enumerate(cliques[place].shape))
            own[place].append((away, shape, shares))
        for columns, allowed in (zeros or {}).items():
            place = tree.holder(columns, sizes)
            clique = tree.cliques[place]
            shape = tuple(
                size if column in columns else 1
                for column, size in zip(clique, cliques[place].shape, strict=True)
            )
            cliques[place] *= allowed.reshape(shape)
        alone = {columns[0]: shares for columns, shares in targets.items() if len(columns) == 1}
        for place, clique in enumerate(tree.cliques):
            # Independent columns to start with: what cliques share is then the same already.
            for at, column in enumerate(clique):
                along = [1] * len(clique)
                along[at] = sizes[column]
                cliques[place] *= (alone[column] / alone[column].sum()).reshape(along)
        shared = [
            cls._onto(cliques[place], tree.cliques[place], tree.shared(place))
            for place in range(len(cliques))
        ]
        walk = list(_walk(tree.parents))
        for _ in range(walks):
            off = 0.0
            for before, place in walk:
                if before >= 0:
                    edge = place if tree.parents[place] == before else before
                    _carry(tree, cliques, shared, before, place, edge)
                for away, shape, shares in own[place]:
                    now = cliques[place].sum(axis=away, keepdims=True).reshape(shape)
                    wanted = shares.reshape(shape)
                    off = max(off, float(np.abs(now - wanted).sum()))
                    cliques[place] *= wanted / np.maximum(now, _SMALLEST)
            if off < _AGREED:
                break
        # A last walk without scaling leaves every clique agreeing with its neighbors.
        for before, place in walk:
            if before >= 0:
                edge = place if tree.parents[place] == before else before
                _carry(tree, cliques, shared, before, place, edge)
        return cls(tree, tuple(np.asarray(one / one.sum()) for one in cliques))

    @staticmethod
    def _onto(table: Floats, clique: Clique, columns: Clique) -> Floats:
        away = tuple(at for at, column in enumerate(clique) if column not in columns)
        return np.asarray(table.sum(axis=away))

    def margin(self, columns: Clique) -> Floats:
        """The shares of columns that one clique has together."""
        place = self.tree.holder(columns)
        return self._onto(self.tables[place], self.tree.cliques[place], columns)

    def drawn(self, n: int, rng: np.random.Generator) -> list[Integers]:
        """Draw so many records, as codes by column: clique by clique, given what is known already."""
        many = 1 + max(max(clique) for clique in self.tree.cliques)
        codes: list[Integers] = [np.zeros(0, dtype=np.int64)] * many
        for place, clique in enumerate(self.tree.cliques):
            shared = self.tree.shared(place)
            new = [column for column in clique if column not in shared]
            if not new:
                continue
            axes = [clique.index(column) for column in (*shared, *new)]
            table = self.tables[place].transpose(axes)
            known, fresh = table.shape[: len(shared)], table.shape[len(shared) :]
            given = np.zeros(n, dtype=np.int64)
            for column, size in zip(shared, known, strict=True):
                given = given * size + codes[column] if column != shared[0] else codes[column]
            cell = drawn_columns(table.reshape(int(np.prod(known, dtype=np.int64)), -1), given, rng)
            for column, code in zip(new, np.unravel_index(cell, fresh) if new[1:] else (cell,), strict=True):
                codes[column] = np.asarray(code, dtype=np.int64)
        return codes


def drawn_columns(table: Floats, rows: Integers, rng: np.random.Generator) -> Integers:
    """Draw a column of the table for every row given, in proportion to the numbers in that row.

    Examples
    --------
    >>> drawn_columns(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1]), np.random.default_rng(1)).tolist()
    [1, 0]
    """
    sums = table.sum(axis=1, keepdims=True)
    # A row that nothing is known of is drawn evenly.
    laws = np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), 1.0 / table.shape[1])
    return np.asarray(draw(rows, rng.random(len(rows)), *alias_tables(laws)))


def _walk(parents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Steps ``(from, to)`` along the tree, down and back, that end where they began."""
    children: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(place)
    steps: list[tuple[int, int]] = [(-1, 0)]
    pending: list[tuple[int, int]] = [(0, 0)]
    while pending:
        place, at = pending.pop()
        if at < len(children[place]):
            pending += [(place, at + 1), (children[place][at], 0)]
            steps.append((place, children[place][at]))
        elif parents[place] >= 0:
            steps.append((place, parents[place]))
    return iter(steps)


def _carry(  # noqa: PLR0917
    tree: JunctionTree, cliques: list[Floats], shared: list[Floats], before: int, place: int, edge: int
) -> None:
    """Bring a clique up to date with its neighbor, by what they share."""
    columns = tree.shared(edge)
    now = GraphicalModel._onto(cliques[before], tree.cliques[before], columns)
    clique = tree.cliques[place]
    shape = [
        size if column in columns else 1 for column, size in zip(clique, cliques[place].shape, strict=True)
    ]
    cliques[place] *= (now / np.maximum(shared[edge], _SMALLEST)).reshape(shape)
    shared[edge] = now


# Which tables must be held together, so that a model of overlapping tables can be worked out exactly?
#
# Columns that stand in one measured table are neighbors. The graph is filled up until every circle has a shortcut; its
# cliques then form a tree in which what two of them share lies on the way between them (Lauritzen and Spiegelhalter
# 1988). The work of everything that follows is the number of cells of the cliques.


Clique = tuple[int, ...]


@stored("junction-tree")
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
