"""Which further cells must be left out, so that no sensitive one can be computed from the rest?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Array, Flags, Integers
from discreet.core.errors import DiscreetWarning, NothingLeftWarning, ParameterError, unknown_name
from discreet.tables.gauss import problem as setup
from discreet.tables.gauss.elimination_runs import Outcome, run

RULES = {
    setup.PRIMARY: "reveals a primary cell",
    setup.ZERO_SUM: "is a sum of zeros",
    setup.ZERO_REUSED: "reuses zeros of another published cell",
    setup.ZERO_SPACE: "consists of zeros",
    setup.CONTRIBUTOR: "lets a contributor compute a primary cell",
    setup.FEW_CONTRIBUTORS: "consists of one or two single contributors",
}
EQUAL = "is equal to a primary cell"


@dataclass(frozen=True)
class Reason:
    """Why a cell is suppressed.

    ``primary`` is the cell it would reveal; None where that is a virtual one, described by ``virtual``, or where
    the rule is about the cell itself. ``contributor`` is who could compute it.
    """

    cell: int
    rule: str
    primary: int | None = None
    virtual: str | None = None
    contributor: Hashable | None = None


@dataclass(frozen=True, repr=False)
class Elimination:
    """What the elimination decided.

    Attributes
    ----------
    secondary
        The further cells to leave out, in the order in which they were met.
    primary
        The primary cells, with those that were made primary (`converted`).
    converted
        Cells that consist of special rows only and were not primary.
    published
        True for the cells that are published; hidden, primary and secondary ones are not.
    reasons
        One a secondary or converted cell.
    unsafe
        Primary cells that cannot be protected: forced cells give them away, or they have no rows.
    figures
        Counts, seconds, the arithmetic (``int64`` or ``big``), and how many virtual cells were protected.
    """

    secondary: Integers
    primary: Integers
    converted: Integers
    published: Flags
    reasons: tuple[Reason, ...]
    unsafe: Integers
    figures: dict[str, float | int | str]

    def __repr__(self) -> str:
        return (
            f"Elimination: {len(self.primary)} primary and {len(self.secondary)} secondary cells of "
            f"{len(self.published)}, {len(self.unsafe)} unsafe"
        )


def secondary(
    x: Any,
    primary: Sequence[int] | Array,
    candidates: Sequence[int] | Array | None = None,
    *,
    values: Sequence[float] | Array | None = None,
    forced: Sequence[int] | Array = (),
    hidden: Sequence[int] | Array = (),
    extra_primary: Any = None,
    zero_method: setup.ZeroMethod = "none",
    strict: bool = False,
    special_rows: Sequence[int] | Array | None = None,
    contributors: Sequence[Hashable | None] | None = None,
    empty_rows: Flags | None = None,
    singleton_method: Sequence[str] | str = (),
    protect_missing_singletons: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Elimination:
    """Which further cells must be left out, so that no primary cell can be computed from the rest?

    Goes through the cells from the most valuable to the least and publishes each one, unless a primary cell
    would then be a combination of published cells (Langsrud 2024). Works on any set of linked and hierarchical
    tables at once, because it sees only which inner cells add up to which published cell.

    Also known as: GaussSuppression; Gaussian elimination; SSBtools.

    Parameters
    ----------
    x
        Sparse matrix of whole numbers: one row an inner cell, one column a cell to publish.
    primary
        The sensitive cells: positions or a mask.
    candidates
        The other cells, most valuable first. Cells that are left out of the list come after it. By default by
        decreasing value; ties: margins before inner cells, then the margin with more inner cells.
    values
        The value of each cell, for the default order.
    forced
        Cells that must be published. Primary cells that they give away are returned as ``unsafe``.
    hidden
        Cells that are neither published nor in need of protection.
    extra_primary
        Further columns to protect (virtual cells), with the rows of `x`.
    zero_method
        How suppressed zeros are treated, which cannot protect each other: ``virtual`` protects their sums,
        ``subspace`` never publishes a sum of zeros, ``any_sum`` allows for every possible sum.
    strict
        With ``subspace``: primary cells may not be revealed up to a sum of zeros either.
    special_rows
        The inner cells that are zero and to be protected; or one, where zeros are public.
    contributors
        For each inner cell its only contributor, else None.
    empty_rows
        True for inner cells that nobody contributes to, so that a cell of one contributor and of nobody else is known
        for its own.
    singleton_method
        Any of ``virtual``, ``within``, ``parallel``, ``combinations``: protection against contributors who know
        their own figure.
    protect_missing_singletons
        Protect inner cells of a single contributor that are not among the cells, too.
    progress
        Called now and then with the number of cells done and their total; may raise to stop the run.

    Examples
    --------
    >>> x = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 1], [0, 0, 0, 1, 1]])
    >>> found = secondary(sparse.csc_matrix(x), primary=[0], values=[1, 7, 8, 4, 12])
    >>> found.secondary.tolist(), found.reasons[0].rule
    ([1], 'reveals a primary cell')
    """
    began = time.perf_counter()
    x = setup.whole_numbers(x, "x")
    methods = setup.singleton_methods(singleton_method)
    if zero_method not in setup.ZERO_METHODS:
        raise ParameterError(unknown_name(str(zero_method), setup.ZERO_METHODS, what="zero method"))
    special = setup.special_of(special_rows, x.shape[0], zero_method)
    label, names = setup.labels_of(contributors, x.shape[0], methods)
    if special is not None and methods - {"virtual"}:
        raise ParameterError(
            "zero_method is for frequency tables and singleton_method for magnitude tables: their rules about "
            "rows cannot both hold. Set zero_method='none' or singleton_method=()."
        )
    in_rows = special if zero_method in {"subspace", "any_sum"} else None
    roles = setup.roles_of(x, primary, candidates, values, forced, hidden, in_rows)
    first = setup.equal_columns(x)
    turns, n_forced = setup.turns_of(roles, first)
    sought = setup.sought_of(
        x, roles, first, extra_primary,
        None if in_rows is not None else special, label, methods, protect_missing_singletons,
    )  # fmt: skip
    if not sought.what:
        turns, n_forced = turns[:0], 0
    problem = _problem(
        x[:, turns], n_forced, sought, in_rows, label, methods, _method(zero_method, strict), empty_rows
    )
    outcome = run(problem, progress)

    verdict = np.full(x.shape[1], setup.DEPENDENT, dtype=np.int64)
    verdict[turns] = outcome.verdict
    turn = np.zeros(x.shape[1], dtype=np.int64)
    turn[turns] = np.arange(len(turns))
    equals_primary = np.isin(first, first[roles.sensitive])
    out = equals_primary[roles.ordered] | (verdict[first[roles.ordered]] > setup.DEPENDENT)
    found = roles.ordered[out]
    reasons = [
        Reason(cell, EQUAL, int(roles.sensitive[first[roles.sensitive] == first[cell]][0]))
        if equals_primary[cell]
        else _reason(cell, outcome, int(turn[first[cell]]), sought, names)
        for cell in found.tolist()
    ]
    reasons += [Reason(cell, RULES[setup.ZERO_SPACE]) for cell in roles.converted.tolist()]
    published = np.ones(x.shape[1], dtype=bool)
    published[np.concatenate([roles.sensitive, found, roles.hidden])] = False
    published[roles.forced] = True
    unsafe = _unsafe(outcome, problem, sought, roles, first)
    _warn(x, roles, published)
    return Elimination(
        secondary=found,
        primary=roles.sensitive,
        converted=roles.converted,
        published=published,
        reasons=tuple(reasons),
        unsafe=unsafe,
        figures={
            "cells": x.shape[1],
            "inner_cells": x.shape[0],
            "primary": len(roles.sensitive),
            "secondary": len(found),
            "published": int(published.sum()),
            "virtual": sum(kind is not None for _, kind in sought.what),
            "arithmetic": outcome.arithmetic,
            "seconds": time.perf_counter() - began,
        },
    )


def _problem(  # noqa: PLR0917
    columns: Any,
    n_forced: int,
    sought: setup.Sought,
    special: Flags | None,
    label: Integers | None,
    methods: set[str],
    method: int,
    empty: Flags | None,
) -> setup.Problem:
    kind, labels = setup.row_kinds(columns.shape[0], special, label if methods - {"virtual"} else None)
    every = sparse.hstack([columns, sought.columns]).tocsc()
    rows = setup.merged_rows(every, kind)
    every = every[rows].tocsc()
    every.sort_indices()
    width = columns.shape[1]
    return setup.Problem(
        columns=every[:, :width],
        n_forced=n_forced,
        primaries=every[:, width:],
        kind=kind[rows],
        label=labels[rows],
        order=np.arange(len(rows), dtype=np.int64),
        method=method,
        within="within" in methods,
        parallel="parallel" in methods,
        combinations="combinations" in methods,
        # Before rows are brought together: an empty row and one with people in it may stand in the same columns.
        owner=setup.owners(sought.columns, labels, empty),
        guarded=np.array([kind in {None, "single contributor"} for _, kind in sought.what], dtype=np.bool_),
    )


def _method(zero_method: str, strict: bool) -> int:
    if zero_method == "subspace":
        return setup.SUBSPACE_STRICT if strict else setup.SUBSPACE
    return setup.ANY_SUM if zero_method == "any_sum" else setup.PLAIN


def _reason(cell: int, outcome: Outcome, turn: int, sought: setup.Sought, names: list[Hashable]) -> Reason:
    because, who = int(outcome.because[turn]), int(outcome.who[turn])
    primary, virtual = sought.what[because] if because >= 0 else (None, None)
    return Reason(
        cell, RULES[int(outcome.verdict[turn])], primary, virtual, names[who] if names and who >= 0 else None
    )


def _unsafe(
    outcome: Outcome, problem: setup.Problem, sought: setup.Sought, roles: setup.Roles, first: Integers
) -> Integers:
    """Primary cells that forced cells give away, to everybody or to a contributor, or that have no rows."""
    left = outcome.left
    gone = left.sizes == 0
    if problem.within:
        for b in np.flatnonzero(problem.guarded & ~gone):
            rows = left.rows[left.indptr[b] : left.indptr[b + 1]]
            labels = np.unique(problem.label[rows])
            gone[b] = len(labels) == 1 and labels[0] >= 0 and labels[0] != problem.owner[b]
    columns = [
        first[cell] for (cell, _), lost in zip(sought.what, gone, strict=True) if lost and cell is not None
    ]
    return roles.sensitive[np.isin(first[roles.sensitive], columns)]


def _warn(x: Any, roles: setup.Roles, published: Flags) -> None:
    empty = int((np.diff(x.indptr)[roles.sensitive] == 0).sum())
    if empty:
        warnings.warn(
            f"{empty} primary cells have no inner cells (structural zeros): they are known anyway and cannot be "
            "protected.",
            DiscreetWarning,
            stacklevel=3,
        )
    if len(roles.sensitive) and not published.any() and len(published) > len(roles.hidden):
        warnings.warn(
            "Every cell is suppressed: nothing is left to publish. Publish fewer details, or force the cells that "
            "you need and look at the unsafe ones.",
            NothingLeftWarning,
            stacklevel=3,
        )
