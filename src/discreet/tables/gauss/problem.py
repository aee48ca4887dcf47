"""From cells and roles to the columns that the elimination goes through.

Which cell plays which part is read from what the user gave and checked. Equal columns are brought together, virtual
cells are added, rows are given their kind, and the order of the candidates is fixed. Nothing is eliminated yet.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.core.arrays import Array, Flags, Integers, rows_of
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.randomness import generator
from discreet.core.wording import type_name


@dataclass(frozen=True)
class Problem:
    """Columns to publish in order (the forced ones first), columns to protect, and what is known of the rows.

    ``method`` is one of the kernel's codes; ``owner`` names the contributor whom a primary column belongs to
    (-1 nobody), ``guarded`` says whether it is protected against contributors.
    """

    columns: Any
    n_forced: int
    primaries: Any
    kind: npt.NDArray[np.int8]
    label: Integers
    order: Integers
    method: int
    within: bool
    parallel: bool
    combinations: bool
    owner: Integers
    guarded: Flags


def default_order(x: Any, values: Array | None, cells: Integers) -> Integers:
    """Most valuable first: by size of the value, margins before inner cells, larger before smaller margins."""
    sizes = np.diff(x.indptr)[cells]
    worth = np.zeros(len(cells)) if values is None else -np.abs(np.asarray(values, dtype=float)[cells])
    return cells[np.lexsort((cells, -sizes, sizes == 1, worth))]


def equal_columns(x: Any) -> Integers:
    """For each column the first column that is equal to it."""
    n = x.shape[1]
    first = np.arange(n)
    if n == 0:
        return first
    weights = generator(20010911, "tables/gauss/columns").integers(
        1, 2**63 - 1, size=(x.shape[0], 2), dtype=np.int64
    )
    with np.errstate(over="ignore"):
        marks = x.T.astype(np.int64) @ weights
    _, representative, group = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    first = representative[group.ravel()]
    doubles = np.flatnonzero(first != np.arange(n))
    if len(doubles):
        apart = x[:, doubles] - x[:, first[doubles]]
        apart.eliminate_zeros()
        differ = doubles[np.diff(apart.tocsc().indptr) > 0]
        first[differ] = differ
    return np.asarray(first, dtype=np.int64)


def merged_rows(x: Any, kind: npt.NDArray[np.int8]) -> Integers:
    """The rows to keep: of ordinary rows that occur in the same columns one is enough."""
    first = equal_columns(x.T.tocsc())
    own = np.arange(x.shape[0])
    keep = (first == own) | (kind != ORDINARY) | (kind[first] != ORDINARY)
    filled = np.diff(x.tocsr().indptr) > 0
    return np.flatnonzero(keep & filled)


def unit_columns(rows: Array, height: int) -> Any:
    """One column a row, with a one in it."""
    count = len(rows)
    return sparse.csc_matrix(
        (np.ones(count, dtype=np.int64), (rows, np.arange(count))), shape=(height, count)
    )


def moved_rows(x: Any, rows: Integers, height: int) -> Any:
    """Put the rows of a matrix elsewhere, in one of so many rows."""
    given = sparse.coo_matrix(x)
    return sparse.csc_matrix(
        (given.data.astype(np.int64), (rows[given.row], given.col)), shape=(height, given.shape[1])
    )


def distinct_columns(x: Any) -> Any:
    """Keep the first of all columns that are equal."""
    return x[:, np.unique(equal_columns(x))]


def zero_sums(x: Any, cells: Integers, special: Flags) -> Any:
    """For each of these cells the sum of its special rows, where there are at least two."""
    sums = x[:, cells].multiply(special[:, None]).tocsc()
    sums.eliminate_zeros()
    return distinct_columns(sums[:, np.diff(sums.indptr) >= 2])


def owners(x: Any, label: Integers, empty: Flags | None = None) -> Integers:
    """The contributor to whom all rows of a column belong that anybody contributes to, else -1."""
    x = x.tocsc()
    if empty is not None and empty.any():
        x = x.multiply(~empty[:, None]).tocsc()
        x.eliminate_zeros()
    owner = np.full(x.shape[1], -1, dtype=np.int64)
    filled = np.flatnonzero(np.diff(x.indptr) > 0)
    if len(filled):
        labels = label[x.indices]
        starts = x.indptr[:-1][filled]
        low, high = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
        owner[filled] = np.where(low == high, low, -1)
    return owner


def pair_sums(x: Any, primary: Integers, cells: Integers, label: Integers) -> Any:
    """Sums of two primary cells that are alone in a cell to publish, one of them a singleton.

    Of the primary cells inside a cell those count that lie in no other of them; where these are exactly two,
    disjoint, and one has a single contributor, that contributor could take its own figure off their sum.
    """
    nothing = sparse.csc_matrix((x.shape[0], 0), dtype=np.int64)
    if len(primary) < 2 or not len(cells):
        return nothing
    p = x[:, primary].astype(np.int64)
    single = owners(p, label) >= 0
    sizes = np.diff(p.indptr)
    ones = p.copy()
    ones.data[:] = 1
    among = _contained(ones, ones, sizes)
    among.setdiag(False)
    among.eliminate_zeros()
    cover = x[:, cells].astype(np.int64)
    cover.data[:] = 1
    inside = _contained(ones, cover, sizes)
    # A primary cell inside another primary cell that is itself inside counts once, as the larger one.
    within = (among.astype(np.int32) @ inside.astype(np.int32)).multiply(inside) > 0
    top = (inside.astype(np.int8) - within.astype(np.int8)).tocsc()
    top.eliminate_zeros()
    two = np.flatnonzero(np.diff(top.indptr) == 2)
    if not len(two):
        return nothing
    pairs = np.unique(
        np.sort(np.stack([top.indices[top.indptr[two]], top.indices[top.indptr[two] + 1]]), axis=0).T, axis=0
    )
    pairs = pairs[single[pairs].any(axis=1)]
    if not len(pairs):
        return nothing
    sums = (p[:, pairs[:, 0]] + p[:, pairs[:, 1]]).tocsc()
    disjoint = np.diff(sums.indptr) == sizes[pairs[:, 0]] + sizes[pairs[:, 1]]
    return sums[:, disjoint]


def _contained(inner: Any, outer: Any, sizes: Array) -> Any:
    """Which columns of ``inner`` lie in which columns of ``outer``."""
    shared = (inner.T @ outer).tocoo()
    full = shared.data == sizes[shared.row]
    return sparse.csc_matrix(
        (np.ones(int(full.sum()), dtype=bool), (shared.row[full], shared.col[full])), shape=shared.shape
    )


def row_kinds(
    height: int, special: Flags | None, label: Integers | None
) -> tuple[npt.NDArray[np.int8], Integers]:
    """What each row is, and its label (-1 none)."""
    kind = np.full(height, ORDINARY, dtype=np.int8)
    labels = np.full(height, -1, dtype=np.int64)
    if special is not None:
        kind[special] = SPECIAL
    if label is not None:
        labels = label
        kind[label >= 0] = LABELED
    return kind, labels


ZeroMethod = Literal["none", "virtual", "subspace", "any_sum"]
ZERO_METHODS = ("none", "virtual", "subspace", "any_sum")
SINGLETON_METHODS = ("virtual", "within", "parallel", "combinations")


@dataclass(frozen=True)
class Roles:
    """Which cell plays which part; ``ordered`` are the candidates, ``sensitive`` the primary and converted."""

    forced: Integers
    hidden: Integers
    converted: Integers
    sensitive: Integers
    ordered: Integers


@dataclass(frozen=True)
class Sought:
    """The columns to protect, and for each the cell it is or what kind of virtual cell it is."""

    columns: Any
    what: list[tuple[int | None, str | None]]


def whole_numbers(x: Any, name: str) -> Any:
    """Take a matrix of whole numbers as sparse columns, without stored zeros; refuse anything else."""
    x = sparse.csc_matrix(x)
    if x.dtype.kind not in "iub":
        raise ParameterError(
            f"{name} must be a sparse matrix of whole numbers (which inner cells add up to which cell), "
            f"not of type {type_name(x.dtype)}. Convert it with {name}.astype(int)."
        )
    x = x.astype(np.int64)
    x.sum_duplicates()
    x.eliminate_zeros()
    return x


def positions(given: Any, count: int, name: str, *, what: str = "cells") -> Integers:
    """Take a mask or positions; return positions without repetitions, in the order given."""
    array = rows_of(given, name, empty=True)
    if array.size == 0 and array.dtype != bool:
        return np.zeros(0, dtype=np.int64)
    if array.dtype == bool:
        if array.shape != (count,):
            raise ParameterError(f"{name} is a mask of length {array.size}, but there are {count} {what}.")
        return np.flatnonzero(array)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError(f"{name} must be a list of positions of {what}, or a mask of {count} of them.")
    if array.min() < 0 or array.max() >= count:
        raise ParameterError(f"{name} names positions outside of 0 to {count - 1}: there are {count} {what}.")
    _, opening = np.unique(array, return_index=True)
    return np.asarray(array[np.sort(opening)], dtype=np.int64)


def singleton_methods(given: Sequence[str] | str) -> set[str]:
    """Check the names of the singleton methods."""
    names = [given] if isinstance(given, str) else list(given)
    names = [name for name in names if name != "none"]
    for name in names:
        if name not in SINGLETON_METHODS:
            raise ParameterError(unknown_name(str(name), SINGLETON_METHODS, what="singleton method"))
    return set(names)


def special_of(given: Any, height: int, zero_method: str) -> Flags | None:
    """Read the special rows as a mask; None where there are none or no method needs them."""
    if zero_method == "none":
        return None
    if given is None:
        raise ParameterError(
            f"zero_method='{zero_method}' needs special_rows: the inner cells that are zero (or one, where zeros "
            "are public). Use zero_method='none' where zeros need no protection."
        )
    special = np.zeros(height, dtype=bool)
    special[positions(given, height, "special_rows", what="inner cells")] = True
    return special if special.any() else None


def labels_of(given: Any, height: int, methods: set[str]) -> tuple[Integers | None, list[Hashable]]:
    """Number the single contributors of the rows (-1 none); None where no method needs them."""
    if not methods:
        return None, []
    if given is None:
        raise ParameterError(
            "singleton_method needs contributors: for each inner cell its only contributor, or None. "
            "Use singleton_method=() where contributors are no threat."
        )
    given = list(given)
    if len(given) != height:
        raise ParameterError(f"contributors has {len(given)} entries, but x has {height} rows (inner cells).")
    numbers: dict[Hashable, int] = {}
    label = [-1 if who is None or _is_nan(who) else numbers.setdefault(who, len(numbers)) for who in given]
    return np.array(label, dtype=np.int64), list(numbers)


def roles_of(  # noqa: PLR0917
    x: Any, primary: Any, candidates: Any, values: Any, forced: Any, hidden: Any, special: Any
) -> Roles:
    """Sort the cells into forced, hidden, sensitive and candidates in order. Primary wins over candidate."""
    count = x.shape[1]
    if values is not None and len(values) != count:
        raise ParameterError(f"values has {len(values)} entries, but there are {count} cells.")
    primary = positions(primary, count, "primary")
    forced = positions(forced, count, "forced")
    hidden = np.setdiff1d(positions(hidden, count, "hidden"), np.concatenate([primary, forced]))
    converted = np.zeros(0, dtype=np.int64)
    if special is not None and len(primary):
        ordinary = (~special).astype(np.int64) @ abs(x)
        alone = np.flatnonzero((ordinary == 0) & (np.diff(x.indptr) > 0))
        converted = np.setdiff1d(alone, np.concatenate([primary, forced, hidden]))
    sensitive = np.union1d(primary, converted)
    taken = np.concatenate([sensitive, forced, hidden])
    first = np.zeros(0, dtype=np.int64) if candidates is None else positions(candidates, count, "candidates")
    first = first[~np.isin(first, taken)]
    rest = np.setdiff1d(np.arange(count), np.concatenate([first, taken]))
    ordered = np.concatenate([first, default_order(x, values, rest)])
    return Roles(forced, hidden, converted, sensitive, ordered)


def turns_of(roles: Roles, first: Integers) -> tuple[Integers, int]:
    """Which columns the elimination meets, one of equal ones, and how many of them are forced."""
    forced = np.unique(first[roles.forced])
    taken = np.concatenate([forced, first[roles.sensitive]])
    later = first[roles.ordered]
    _, opening = np.unique(later, return_index=True)
    later = later[np.sort(opening)]
    return np.concatenate([forced, later[~np.isin(later, taken)]]), len(forced)


def sought_of(  # noqa: PLR0917
    x: Any,
    roles: Roles,
    first: Integers,
    extra: Any,
    summed: Flags | None,
    label: Integers | None,
    methods: set[str],
    protect_missing: bool,
) -> Sought:
    """List the columns to protect: primary cells, extra ones, sums of zeros or of pairs, lone contributors."""
    cells = np.unique(first[roles.sensitive])
    named = {
        int(f): int(cell) for cell, f in zip(roles.sensitive[::-1], first[roles.sensitive][::-1], strict=True)
    }
    parts = [x[:, cells]]
    what: list[tuple[int | None, str | None]] = [(named[cell], None) for cell in cells.tolist()]

    def add(columns: Any, kind: str) -> None:
        parts.append(columns)
        what.extend([(None, kind)] * columns.shape[1])

    if extra is not None:
        extra = whole_numbers(extra, "extra_primary")
        if extra.shape[0] != x.shape[0]:
            raise ParameterError(f"extra_primary has {extra.shape[0]} rows, but x has {x.shape[0]}.")
        add(extra, "extra primary cell")
    to_publish = np.concatenate([roles.forced, roles.ordered])
    # A difference that is known, such as that of a cell written out in two tables, is no cell to sum within.
    to_publish = to_publish[np.diff((x[:, to_publish] < 0).tocsc().indptr) == 0]
    if summed is not None and len(cells):
        add(zero_sums(x, to_publish, summed), "sum of zeros")
    if label is not None and len(cells):
        if "virtual" in methods:
            add(pair_sums(x, roles.sensitive, to_publish, label), "sum of two primary cells")
        if protect_missing:
            single = np.flatnonzero(np.diff(x.indptr) == 1)
            missing = np.setdiff1d(np.flatnonzero(label >= 0), x.indices[x.indptr[single]])
            add(unit_columns(missing, x.shape[0]), "single contributor")
    return Sought(sparse.hstack(parts).tocsc(), what)


def _is_nan(who: Hashable) -> bool:
    return isinstance(who, float) and np.isnan(who)


# What the elimination holds between two candidates, and the numbers by which its parts speak to each other.
#
# Compiled code takes both.


# Positions in ``counters``.
PIVOTS, PIVOT_USED, PRIMARY_USED, NODES_USED, NEXT, WORK = 0, 1, 2, 3, 4, 5
WANTED_PIVOT, WANTED_PRIMARY, WANTED_NODES, REVEALED_ROWS = 6, 7, 8, 9
COUNTERS = 10

SAFE = 2.0**62


class State(NamedTuple):
    """The elimination between two candidates. Arrays that grow are replaced by the caller."""

    kind: Array
    label: Array
    order: Array
    key: Array
    static: Array
    used: Array
    pivot_of: Array
    pivot_start: Array
    pivot_length: Array
    pivot_row: Array
    pivot_largest: Array
    pivot_rows: Array
    pivot_values: Array
    start: Array
    length: Array
    room: Array
    largest: Array
    ordinary: Array
    mark: Array
    alive: Array
    owner: Array
    guarded: Array
    rows: Array
    values: Array
    head: Array
    follows: Array
    column_of: Array
    touching: Array
    dense: Array
    touched: Array
    seen: Array
    heap: Array
    queued: Array
    spare_rows: Array
    spare_values: Array
    counters: Array


# What a row is.
ORDINARY, SPECIAL, LABELED = 0, 1, 2

# What a candidate may meet.
PUBLISHED, DEPENDENT = 0, 1
PRIMARY, ZERO_SUM, ZERO_REUSED, CONTRIBUTOR, FEW_CONTRIBUTORS, ZERO_SPACE = 2, 3, 4, 5, 6, 7

# Why the sweep came back.
DONE, PAUSED, NEEDS_ROOM, OVERFLOW, REVEALED = 0, 1, 2, 3, 4

# Zero methods that change the sweep itself.
PLAIN, SUBSPACE, SUBSPACE_STRICT, ANY_SUM = 0, 1, 2, 3
