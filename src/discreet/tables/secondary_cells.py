"""Which cells are left out beside the primary ones: a table read for suppression, the two methods, and what is mended.

Everybody who could compute a primary cell did so by some combination of published cells and, perhaps, of own figures.
Protected like a primary cell, the combination is out of reach; the elimination then decides what has to go for it, the
least worthy cells first.

The elimination leaves out no cell in vain. But what is left out afterwards to make intervals wider may do the work of
cells that were left out before: those are published again, the worthiest first, wherever every primary cell stays
protected in the same sense.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import NothingLeftWarning
from discreet.core.randomness import generator
from discreet.tables import table_cells
from discreet.tables.exact_disclosure import Computable, computable, disclosing_columns, knowledge, together
from discreet.tables.gauss import Elimination, secondary
from discreet.tables.gauss.problem import SINGLETON_METHODS, default_order
from discreet.tables.interval_widening import Aim, widest, with_decoy, zero_groups
from discreet.tables.optimal_suppression import Optimum, cheapest

if TYPE_CHECKING:
    from discreet.tables.table import Table
    from discreet.tables.table_suppression import Suppression


Progress = Callable[[int, int], None] | None
# More rounds than any table has needed; what is left after them is mended cell by cell.
_ROUNDS = 12


@dataclass(frozen=True)
class Case:
    """A table read for suppression: columns of this and of earlier releases, and the part of every cell."""

    table: Table
    x: Any
    inner: Floats
    secret: Integers
    forced: Integers
    hidden: Integers
    worth: Floats
    last_time: Integers
    zeros: Integers
    known: Integers
    empty: Flags
    previous: tuple[tuple[Table, Any], ...]
    contributors: Sequence[Any] | None

    @cached_property
    def x_unknown(self) -> Any:
        """The columns without the inner cells that everybody knows."""
        if not len(self.known):
            return self.x
        moving = np.ones(len(self.inner), dtype=np.int64)
        moving[self.known] = 0
        x = self.x.multiply(moving[:, None]).tocsc()
        x.eliminate_zeros()
        return x

    @staticmethod
    def of(plan: Suppression, table: Table) -> Case:
        """Read a table, and the earlier releases a plan names."""
        secret = table_cells.cell_places(table, "primary", "primary")
        hidden = np.setdiff1d(table_cells.cell_places(table, plan.hidden, "hidden"), secret)
        forced = np.setdiff1d(table_cells.cell_places(table, plan.forced, "forced"), hidden)
        previous = tuple(
            (item.table, item.suppressed) if hasattr(item, "suppressed") else item for item in plan.previous
        )
        held = knowledge(table, previous)
        inner, count = held.inner, table.cells.height
        x = held.x[:, np.concatenate([np.ones(count, dtype=bool), held.open])]
        value = np.asarray(inner @ x).ravel()[:count]
        # What readers have already cannot be taken back.
        taken = np.concatenate([secret, hidden])
        forced = np.union1d(forced, np.setdiff1d(np.flatnonzero(held.before), taken))
        forced = np.union1d(forced, np.arange(count, x.shape[1]))
        # A zero that needs no protection is published where intervals can do without it, and costs nothing to show.
        zeros = np.setdiff1d(np.flatnonzero(value == 0), np.concatenate([taken, forced]))
        forced = np.union1d(forced, zeros)
        worth = np.abs(np.asarray(inner @ x).ravel())
        if plan.cost is not None:
            worth[: table.cells.height] = table_cells.cell_numbers(table, plan.cost, "cost")
        readers_have = np.zeros(x.shape[1], dtype=bool)
        readers_have[forced] = True
        singles: list[Any] | None = None
        if not table_cells.counts_only(table) and plan.singleton_method not in ("none", ()):
            singles = table_cells.single_contributors(table)
            singles += [None] * (len(inner) - len(singles))
        return Case(
            table,
            x,
            inner,
            secret,
            forced.astype(np.int64),
            hidden,
            worth,
            np.flatnonzero(held.last_time),
            zeros.astype(np.int64),
            table_cells.known_zero_rows(x, inner, readers_have),
            table_cells.empty_rows(table, len(inner)),
            previous,
            singles,
        )


@dataclass(frozen=True)
class Choice:
    """What a method chose: its own outcome, the columns that stay published, and how many cells went for repair."""

    found: Elimination | Optimum
    published: Flags
    repaired: int = 0


def by_elimination(plan: Suppression, case: Case, aim: Aim | None, progress: Progress) -> Choice:
    """Choose by elimination and, where there is an aim, widen intervals."""
    best: Choice | None = None
    said: dict[str, warnings.WarningMessage] = {}
    for order in _orders(case.x_unknown, case, plan.tries):
        with warnings.catch_warnings(record=True, action="always") as heard:
            made = _eliminated(plan, case, order, progress)
        said |= {str(one.message): one for one in heard}
        if best is None or _loss(made.found, case) < _loss(best.found, case):
            best = made
    assert best is not None
    for one in said.values():
        # Every order says the same, and whether any cell is left is seen at the end.
        if not issubclass(one.category, NothingLeftWarning):
            warnings.warn(one.message, one.category, stacklevel=4)
    if aim is None:
        return best
    wide = widest(aim, case, best.published, progress)
    return replace(best, published=tidied(aim, case, best.published, wide) if plan.repair else wide)


def _eliminated(plan: Suppression, case: Case, order: Integers, progress: Progress) -> Choice:
    """Eliminate in one order; and again, with what contributors could then compute protected, until they cannot."""
    zero_method, special = _zeros(plan, case)
    methods: Sequence[str] = ()
    if case.contributors is not None:
        methods = SINGLETON_METHODS if plan.singleton_method == "auto" else plan.singleton_method
    guarded, first = None, None
    for _ in range(_ROUNDS):
        found = secondary(
            case.x_unknown, case.secret, order, forced=case.forced, hidden=case.hidden, zero_method=zero_method,  # type: ignore[arg-type]
            strict=plan.strict, special_rows=special, contributors=case.contributors if methods else None,
            empty_rows=case.empty, singleton_method=methods, extra_primary=guarded, progress=progress,
        )  # fmt: skip
        first = len(found.secondary) if first is None else first
        if not plan.repair or case.contributors is None:
            break
        pairs = pairs_given_away(case, computed(case, found.published))
        if not pairs:
            break
        guarded = together(guarded, columns_of(case, found.published, pairs))
    return Choice(found, found.published, max(0, len(found.secondary) - (first or 0)))


def by_integer_program(plan: Suppression, case: Case, aim: Aim, progress: Progress) -> Choice:
    """Choose the cheapest cells.

    The program knows nothing of contributors who use their own figures, nor of intervals that only whole numbers show
    to be too narrow. Where mending that costs more than what the elimination chose, which knows of both, its choice is
    taken.
    """
    quick = replace(plan, method="gauss")
    begun = by_elimination(quick, case, aim, None).published
    secret, widths, one_of_many = case.secret, aim.widths, False
    if aim.zeros_open and aim.room.whole:
        groups = zero_groups(aim, case)
        decoy = next((group for group in groups if not begun[group].any()), groups[0])
        secret, widths = with_decoy(aim, case, decoy)
        one_of_many = len(groups) > 1
    found = cheapest(
        case.x, case.inner, secret, lower=widths.lower, upper=widths.upper, sliding=widths.sliding, cost=case.worth,
        forced=np.flatnonzero(aim.room.fixed), hidden=case.hidden, least=aim.room.least, whole=aim.room.whole,
        start=np.flatnonzero(~begun), equations=_equations(case), time_limit=plan.time_limit, progress=progress,
    )  # fmt: skip
    published = np.ones(case.x.shape[1], dtype=bool)
    published[np.concatenate([secret, case.hidden, found.secondary])] = False
    # With another zero left out it might have been cheaper.
    found = replace(found, proved=found.proved and not one_of_many)
    if not plan.repair:
        return Choice(found, published)
    mended = repaired(case, widest(aim, case, published))
    more = int((published & ~mended).sum())
    if more and case.worth[~begun].sum() < case.worth[~mended].sum():
        return Choice(replace(found, proved=False), begun)
    return Choice(replace(found, proved=found.proved and not more), mended, more)


def _equations(case: Case) -> Any:
    """The sums between cells of the table, over the columns of earlier releases too."""
    found = table_cells.equations(case.table)
    return sparse.hstack([found, sparse.csr_matrix((found.shape[0], case.x.shape[1] - found.shape[1]))])


def _zeros(plan: Suppression, case: Case) -> tuple[str, Flags | None]:
    """Which inner cells cannot protect each other, and how that is dealt with."""
    if plan.zero_method == "none" or not table_cells.counts_only(case.table):
        return "none", None
    value = np.asarray(case.inner @ case.x).ravel()
    hidden_zero = bool((value[case.secret] == 0).any())
    special = (case.inner == 0) if hidden_zero else (case.inner == 1)
    special[case.known] = False
    if plan.zero_method == "auto":
        secret_ones = bool((value[case.secret] == 1).any())
        return ("any_sum", special) if hidden_zero or secret_ones else ("none", None)
    return plan.zero_method, special


def _orders(x: Any, case: Case, tries: int) -> list[Integers]:
    """Orders of the candidates by worth, that differ in how equal ones are put.

    What was published last time, of other people, comes first: readers expect the same cells again.
    """
    cells, worth = np.arange(x.shape[1]), case.worth
    orders = [default_order(x, worth, cells)]
    if tries > 1:
        orders.append(cells[np.lexsort((-cells, -worth))])
    rng = generator(7, "tables/suppression/ties")
    orders += [cells[np.lexsort((rng.random(len(cells)), -worth))] for _ in range(tries - 2)]
    if not len(case.last_time):
        return orders
    again = np.zeros(len(cells), dtype=bool)
    again[case.last_time] = True
    return [np.concatenate([order[again[order]], order[~again[order]]]) for order in orders]


def _loss(found: Any, case: Case) -> tuple[int, int, float]:
    return len(found.unsafe), len(found.secondary), float(case.worth[found.secondary].sum())


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


# Every cell tried costs a round of linear programs over all primary cells.
_MOST_TRIED = 40


def tidied(aim: Aim, case: Case, before: Flags, wide: Flags) -> Flags:
    """Which cells stay published after widening, with those published again that nothing hangs on any more."""
    # Where a zero is hidden so that counts may be zero, it must stay free itself: nothing is put back.
    if (wide == before).all() or (aim.zeros_open and aim.room.whole):
        return wide
    found = wide.copy()
    for cell in _no_longer_needed(case, wide).tolist()[:_MOST_TRIED]:
        trial = found.copy()
        trial[cell] = True
        if _protected(aim, case, trial):
            found = trial
    return found


def _no_longer_needed(case: Case, published: Flags) -> Integers:
    """Cells left out that give no primary cell away exactly when they are published, the worthiest first."""
    out = secondary_of(case, published)
    # A zero is left out so that readers do not know it for one; that is not for the elimination to judge.
    out = np.setdiff1d(out, case.zeros)
    stays = np.union1d(case.hidden, case.zeros[~published[case.zeros]])
    kept = secondary(
        case.x_unknown, case.secret, default_order(case.x, case.worth, out),
        forced=np.flatnonzero(published), hidden=stays,
    )  # fmt: skip
    free = np.setdiff1d(out, kept.secondary)
    return free[np.argsort(-case.worth[free], kind="stable")]


def _protected(aim: Aim, case: Case, published: Flags) -> bool:
    """Does every primary cell that can be protected stay so, exactly, from contributors, and by its interval?"""
    found = computed(case, published)
    if len(found.cells) or found.by_contributors:
        return False
    down, up = aim.room.reach(published, case.secret, aim.widths)
    return not aim.widths.missed(down, up).any()
