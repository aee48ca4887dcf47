"""Leave out further cells where the audit shows that a primary cell can be computed after all.

Everybody who could compute a primary cell did so by some combination of published cells and, perhaps, of own figures.
Protected like a primary cell, the combination is out of reach; the elimination then decides what has to go for it, the
least worthy cells first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Flags, Integers
from discreet.tables.checking.combinations import disclosing_columns, together
from discreet.tables.checking.rank import Computable, computable
from discreet.tables.gauss import secondary
from discreet.tables.gauss.problem import default_order

if TYPE_CHECKING:
    from discreet.tables.suppressing.choosing import Case


Pairs = list[tuple[int, Any]]


def repaired(case: Case, published: Flags) -> Flags:
    """Which of the published cells can stay so that no primary cell is computable, by anybody; the worthiest do.

    Forced cells stay; a primary cell that they give away stays lost.
    """
    fixed = np.zeros(len(published), dtype=bool)
    fixed[case.forced] = True
    guarded = None
    while True:
        found = computed(case, published)
        pairs = pairs_given_away(case, found)
        exact = np.setdiff1d(found.cells, _lost(case, found).cells)
        if not len(exact) and not pairs:
            return published
        if pairs:
            guarded = together(guarded, columns_of(case, published, pairs))
        order = np.flatnonzero(published & ~fixed)
        gone = np.setdiff1d(np.flatnonzero(~published & ~fixed), case.secret)
        kept = secondary(
            case.x_unknown, case.secret, default_order(case.x, case.worth, order), forced=case.forced, hidden=gone,
            extra_primary=guarded,
        ).published  # fmt: skip
        if (kept == published).all():
            return published
        published = kept


def computed(case: Case, published: Flags) -> Computable:
    """What can be computed of a case when these cells are published."""
    return computable(
        case.x,
        published,
        case.secret,
        contributors=case.contributors,
        known_rows=case.known,
        empty_rows=case.empty,
    )


def pairs_given_away(case: Case, found: Computable) -> Pairs:
    """Cells and contributors who can compute them, but for those whom the forced cells alone enable to."""
    if not found.by_contributors:
        return []
    lost = set(_lost(case, found).by_contributors)
    return [pair for pair in found.by_contributors if pair not in lost]


def columns_of(case: Case, published: Flags, pairs: Pairs) -> Any:
    """The combinations that these contributors compute."""
    assert case.contributors is not None
    return disclosing_columns(case.x, published, pairs, case.contributors, case.known)


def _lost(case: Case, found: Computable) -> Computable:
    """What the forced cells alone give away, and to whom: leaving out others is in vain."""
    if not len(found.cells) and not found.by_contributors:
        return found
    fixed = np.zeros(case.x.shape[1], dtype=bool)
    fixed[case.forced] = True
    return computed(case, fixed)


def secondary_of(case: Case, published: Flags) -> Integers:
    """The cells left out that are neither primary nor hidden."""
    taken = np.concatenate([case.secret, case.hidden])
    return np.setdiff1d(np.flatnonzero(~published), taken)
