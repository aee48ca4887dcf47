"""Which cell plays which part, read from what the user gave and checked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from discreet.arrays import Flags, Integers
from discreet.errors import ParameterError, unknown_name
from discreet.number_arrays import rows_of
from discreet.tables.gauss.problem import default_order, pair_sums, unit_columns, zero_sums
from discreet.wording import type_name

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
