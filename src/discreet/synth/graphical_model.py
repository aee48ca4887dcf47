"""The most even law of records that has given tables: fitted on a junction tree, and drawn from.

Cliques hold the probabilities of their columns. A walk along the tree visits every clique, scales it to the tables it
is to have (iterative proportional fitting) and carries what changed to the next, so that the clique at which the walk
stands is always an exact margin of the model (Jiroušek and Přeučil 1995). Nothing but cliques is ever held in memory.

The tables are margins of one and two columns, counted, made noisy, and made to agree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.dp.samplers import LARGEST_VARIANCE
from discreet.engine.counting_kernels import count_pair, count_triple
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
        >>> from discreet.synth.graphical_model import junction_tree
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
            cliques[place] *= _along(allowed, columns, tree.cliques[place], cliques[place].shape)
        alone = {columns[0]: shares for columns, shares in targets.items() if len(columns) == 1}
        for place, clique in enumerate(tree.cliques):
            # Independent columns to start with: what cliques share is then the same already.
            for column in clique:
                shares = alone[column] / alone[column].sum()
                cliques[place] *= _along(shares, (column,), clique, cliques[place].shape)
        shared = [
            cls._onto(cliques[place], tree.cliques[place], tree.shared(place))
            for place in range(len(cliques))
        ]
        # Each step with the edge that it crosses, named after its lower end.
        walk = [(a, b, b if tree.parents[b] == a else a) for a, b in _walk(tree.parents)]
        for _ in range(walks):
            off = 0.0
            for before, place, edge in walk:
                if before >= 0:
                    _carry(tree, cliques, shared, before, place, edge)
                for away, shape, shares in own[place]:
                    now = cliques[place].sum(axis=away, keepdims=True).reshape(shape)
                    wanted = shares.reshape(shape)
                    off = max(off, float(np.abs(now - wanted).sum()))
                    cliques[place] *= wanted / np.maximum(now, _SMALLEST)
            if off < _AGREED:
                break
        # A last walk without scaling leaves every clique agreeing with its neighbors.
        for before, place, edge in walk:
            if before >= 0:
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


def _along(table: Floats, columns: Clique, clique: Clique, shape: tuple[int, ...]) -> Floats:
    """Lay a table of some columns along the axes of a clique that holds them, in the same order."""
    return table.reshape(
        [size if column in columns else 1 for column, size in zip(clique, shape, strict=True)]
    )


def _carry(  # noqa: PLR0917
    tree: JunctionTree, cliques: list[Floats], shared: list[Floats], before: int, place: int, edge: int
) -> None:
    """Bring a clique up to date with its neighbor, by what they share."""
    columns = tree.shared(edge)
    now = GraphicalModel._onto(cliques[before], tree.cliques[before], columns)
    factor = now / np.maximum(shared[edge], _SMALLEST)
    cliques[place] *= _along(factor, columns, tree.cliques[place], cliques[place].shape)
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


# Noisy tables of one and two columns, and how they are made to agree.
#
# Everything here works on codes, and on tables that carry noise already, except the counting itself. What is done to a
# noisy table costs no privacy.
#
# Exact counts, before any noise, never leave the rounds in which they are taken.
CLEAR = 3.0  # standard deviations of the noise above which a level stands for itself
_ROUNDS = 200
_AGREED_MARGINS = 1e-9


_NEVER = 1e-9  # a count instead of zero, so that margins can always be reached


@stored("grouping")
@dataclass(frozen=True, eq=False)
class Grouping:
    """Levels of one column in groups that are large enough to be told from noise.

    Attributes
    ----------
    group
        The group of each level.
    shares
        The estimated count of each level; how records are divided within their group.
    size
        Number of groups.
    """

    group: Integers
    shares: Floats
    size: int


def variance_of(rho: float, tables: int, most: int = 1) -> Fraction:
    """The variance of noise on so many tables that cost rho together, where one unit has at most so many records.

    All records of a unit may lie in one cell, so that it moves a table by their number.

    Examples
    --------
    >>> variance_of(0.5, 3), variance_of(0.5, 1, most=2)
    (Fraction(3, 1), Fraction(4, 1))
    """
    return Fraction(tables * most * most) / (2 * Fraction(rho))


def check_noise(rho: float, tables: int, most: int) -> None:
    """Refuse a budget for which noise could not be drawn exactly, before anything is spent."""
    if variance_of(rho, tables, most) > LARGEST_VARIANCE:
        raise ParameterError(
            "The budget is too small for so many columns and records a person: its noise cannot be drawn exactly. "
            "Raise epsilon or delta, leave columns out, or take fewer records_per_person."
        )


def noisy(counts: Integers, variance: Fraction, words: dp.Words) -> Floats:
    """Add discrete Gaussian noise to counts."""
    return (counts + dp.discrete_gaussian(variance, len(counts), words)).astype(np.float64)


def grouped(counts: Floats, records: float, spread: float, ordered: int, groups: int) -> Grouping:
    """Put levels that cannot be told from noise together: neighbors of a number, or all rare levels of a category.

    Parameters
    ----------
    counts
        Noisy counts by level.
    records
        The estimated number of records.
    spread
        The standard deviation of the noise.
    ordered
        How many levels at the start have an order; the rest (missing) stands for itself.
    groups
        About how many groups a number gets.

    Examples
    --------
    >>> grouped(np.array([500.0, 1.0, 2.0, 480.0]), 983.0, 5.0, 0, 16).group.tolist()
    [0, 2, 2, 1]
    >>> grouped(np.array([500.0, 1.0, 2.0, 480.0]), 983.0, 5.0, 4, 16).group.tolist()
    [0, 1, 1, 1]
    """
    shares = on_simplex(counts, records)
    group = np.zeros(len(counts), dtype=np.int64)
    if not ordered:
        clear = shares >= CLEAR * spread
        group[clear] = np.arange(clear.sum())
        group[~clear] = clear.sum()
        return Grouping(group, shares, int(group.max()) + 1)
    wanted, held, at = max(CLEAR * spread, records / groups), 0.0, 0
    for level in range(ordered):
        group[level] = at
        held += shares[level]
        if held >= wanted and level < ordered - 1:
            at, held = at + 1, 0.0
    if held < CLEAR * spread and at:
        group[:ordered][group[:ordered] == at] = at - 1
        at -= 1
    group[ordered:] = np.arange(at + 1, at + 1 + len(counts) - ordered)
    return Grouping(group, shares, int(group.max()) + 1)


def as_they_are(counts: Floats, records: float) -> Grouping:
    """Every level a group of its own, for bins that are public."""
    return Grouping(np.arange(len(counts)), on_simplex(counts, records), len(counts))


def group_margin(counts: Floats, grouping: Grouping, variance: float) -> tuple[Floats, Floats]:
    """The noisy counts of groups, and their variance."""
    levels = np.bincount(grouping.group, minlength=grouping.size).astype(np.float64)
    sums = np.bincount(grouping.group, weights=counts, minlength=grouping.size)
    return sums.astype(np.float64), levels * variance


def on_simplex(counts: Floats, total: float) -> Floats:
    """The nearest counts that are not negative and add up to the total.

    Examples
    --------
    >>> on_simplex(np.array([5.0, -1.0, 3.0]), 6.0).tolist()
    [4.0, 0.0, 2.0]
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)
    return np.asarray(np.clip(counts - excess[last[-1] if len(last) else 0], 0.0, None))


def best_margin(estimates: list[tuple[Floats, Floats]], total: float) -> Floats:
    """Average several noisy versions of one margin, each ``(counts, variance)``, by their precision."""
    weights = sum(1 / variance for _, variance in estimates)
    means = sum(counts / variance for counts, variance in estimates) / weights
    return on_simplex(np.asarray(means), total)


def agreeing(
    table: Floats, margins: Sequence[tuple[tuple[int, ...], Floats]], allowed: Floats | None = None
) -> Floats:
    """A table near a noisy one that has these margins: no negative count, then raked.

    Parameters
    ----------
    table
        Noisy counts.
    margins
        Counts and the axes of the table that they belong to; all add up to the same.
    allowed
        0 for cells that cannot occur, 1 for all others.

    Examples
    --------
    >>> wanted = [((0,), np.array([2.0, 4.0])), ((1,), np.array([3.0, 3.0]))]
    >>> made = agreeing(np.array([[3.0, -1.0], [0.0, 4.0]]), wanted)
    >>> made.sum(axis=1).round(6).tolist(), made.sum(axis=0).round(6).tolist()
    ([2.0, 4.0], [3.0, 3.0])
    """
    total = float(margins[0][1].sum())
    kept = np.ones(table.shape) if allowed is None else allowed
    made = np.zeros(table.shape)
    open_ = kept > 0
    if not open_.any():
        raise ParameterError("No cell of a table is left that can occur. Declare less as impossible.")
    made[open_] = on_simplex(table[open_], total) + _NEVER
    shaped = []
    for axes, counts in margins:
        away = tuple(at for at in range(table.ndim) if at not in axes)
        shape = tuple(size if at in axes else 1 for at, size in enumerate(table.shape))
        shaped.append((away, counts.reshape(shape)))
    for _ in range(_ROUNDS):
        off = 0.0
        for away, counts in shaped:
            sums = made.sum(axis=away, keepdims=True)
            off = max(off, float(np.abs(sums - counts).max()))
            made *= counts / np.maximum(sums, _SMALLEST)
        if off <= _AGREED_MARGINS * max(total, 1.0):
            break
        made += _NEVER * 1e-3 * kept
    return np.asarray(made)


# How many records has every cell of a table? Exact counts, before any noise: they never leave the rounds.
#
# Every column is coded once, in the smallest whole numbers that hold its codes, so that a table of a million records
# is counted in about a millisecond.
Small = npt.NDArray[np.integer[Any]]

_SIDE_BY_SIDE = 2**16  # cells up to which several tallies fit into the nearer memory
_IN_REACH = 2**14  # cells up to which a table of three columns costs little more than one of two


def counted(columns: Sequence[int], codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """The table of these columns, cell by cell; the last column moves fastest.

    Examples
    --------
    >>> codes = [np.array([0, 1, 1], dtype=np.uint8), np.array([2, 0, 0], dtype=np.uint8)]
    >>> counted((0, 1), codes, [2, 3]).tolist(), counted((1,), codes, [2, 3]).tolist()
    ([0, 0, 1, 2, 0, 0], [2, 0, 1])
    """
    own = [codes[column] for column in columns]
    shape = [sizes[column] for column in columns]
    cells = math.prod(shape)
    if cells > _SIDE_BY_SIDE:
        return np.bincount(_joined(own, shape), minlength=cells)
    if len(own) == 1:
        return np.bincount(own[0], minlength=cells)
    first = own[0] if len(own) == 2 else _joined(own[:-1], shape[:-1])
    return np.asarray(count_pair(first, own[-1], shape[-1], cells))


def counted_pairs(
    pairs: Sequence[tuple[int, int]], codes: Sequence[Small], sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Integers]]:
    """The tables of many pairs of columns, each once: three at a time where a third column ties them together.

    Examples
    --------
    >>> codes = [np.array(own, dtype=np.uint8) for own in ([0, 1, 1], [2, 0, 0], [1, 1, 0])]
    >>> {pair: cells.tolist() for pair, cells in counted_pairs([(0, 1), (0, 2), (1, 2)], codes, [2, 3, 2])}[0, 2]
    [0, 1, 1, 1]
    """
    left = dict.fromkeys(pairs)
    while left:
        a, b = next(iter(left))
        del left[a, b]
        third = next(
            (
                c
                for c in range(b + 1, len(codes))
                if (a, c) in left and (b, c) in left and sizes[a] * sizes[b] * sizes[c] <= _IN_REACH
            ),
            None,
        )
        if third is None:
            yield (a, b), counted((a, b), codes, sizes)
            continue
        del left[a, third], left[b, third]
        shape = (sizes[a], sizes[b], sizes[third])
        joint = count_triple(codes[a], codes[b], codes[third], shape[1:], math.prod(shape)).reshape(shape)
        yield (a, b), joint.sum(axis=2).ravel()
        yield (a, third), joint.sum(axis=1).ravel()
        yield (b, third), joint.sum(axis=0).ravel()


def _joined(codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """One number for the codes of several columns."""
    made = codes[0].astype(np.int64)
    for own, size in zip(codes[1:], sizes[1:], strict=True):
        made *= size
        made += own
    return made
