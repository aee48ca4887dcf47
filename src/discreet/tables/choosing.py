"""Which cells are left out beside the primary ones: a table read for suppression, and the two methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from discreet.errors import ParameterError, unknown_name
from discreet.randomness import generator
from discreet.tables.auditing.auditing import least_values
from discreet.tables.auditing.levels import levels
from discreet.tables.cells import cell_places, counts_only, known_zero_rows, single_contributors
from discreet.tables.gauss import Elimination, secondary
from discreet.tables.gauss.problem import Integers, default_order
from discreet.tables.gauss.roles import SINGLETON_METHODS
from discreet.tables.optimal import Optimum, cheapest
from discreet.tables.relations import equations
from discreet.tables.releases import knowledge
from discreet.tables.suppressed import SuppressionResult
from discreet.tables.widening import widened

if TYPE_CHECKING:
    from discreet.tables.suppression import Suppression
    from discreet.tables.table import Table

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int], None] | None


@dataclass(frozen=True)
class Case:
    """A table read for suppression: columns of this and of earlier releases, and the part of every cell."""

    table: Table
    x: Any
    inner: npt.NDArray[np.float64]
    secret: Integers
    forced: Integers
    hidden: Integers
    worth: npt.NDArray[np.float64]
    last_time: Integers
    known: Integers
    previous: tuple[tuple[Table, Any], ...]
    contributors: Sequence[Any] | None

    @staticmethod
    def of(plan: Suppression, table: Table) -> Case:
        """Read a table, and the earlier releases a plan names."""
        secret = cell_places(table, "primary", "primary")
        hidden = np.setdiff1d(cell_places(table, plan.hidden, "hidden"), secret)
        forced = np.setdiff1d(cell_places(table, plan.forced, "forced"), hidden)
        previous = tuple(
            (item.table, item.suppressed) if isinstance(item, SuppressionResult) else tuple(item)
            for item in plan.previous
        )
        held = knowledge(table, previous)
        inner, count = held.inner, table.cells.height
        x = held.x[:, np.concatenate([np.ones(count, dtype=bool), held.open])]
        value = np.asarray(inner @ x).ravel()[:count]
        # A zero that needs no protection is published: it would protect nothing, and costs nothing to show.
        taken = np.concatenate([secret, hidden])
        shown = np.union1d(np.flatnonzero(value == 0), np.flatnonzero(held.before))
        forced = np.union1d(forced, np.setdiff1d(shown, taken))
        forced = np.union1d(forced, np.arange(count, x.shape[1]))
        worth = np.abs(np.asarray(inner @ x).ravel())
        if plan.cost is not None:
            if plan.cost not in table.cells.columns:
                raise ParameterError(
                    unknown_name(plan.cost, table.cells.columns, what="column of table.cells")
                )
            worth[: table.cells.height] = table.cells[plan.cost].cast(pl.Float64).fill_null(0.0).to_numpy()
        readers_have = np.zeros(x.shape[1], dtype=bool)
        readers_have[forced] = True
        singles: list[Any] | None = None
        if not counts_only(table) and plan.singleton_method not in ("none", ()):
            singles = single_contributors(table)
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
            known_zero_rows(x, inner, readers_have),
            previous,
            singles,
        )

    def least(self) -> npt.NDArray[np.float64] | None:
        """What everybody knows each inner cell to be at least; None where values may be negative."""
        return least_values(self.inner, self.known, counts=counts_only(self.table))


def by_elimination(
    plan: Suppression, case: Case, progress: Progress
) -> tuple[Elimination, npt.NDArray[np.bool_]]:
    """Choose by elimination and, where intervals are asked for, widen them; also which columns stay published."""
    zero_method, special = _zeros(plan, case)
    methods: Sequence[str] = ()
    if case.contributors is not None:
        methods = SINGLETON_METHODS if plan.singleton_method == "auto" else plan.singleton_method
    x = case.x.multiply(_moving(case)[:, None]).tocsc() if len(case.known) else case.x
    x.eliminate_zeros()
    best: Elimination | None = None
    for order in _orders(x, case, plan.tries):
        found = secondary(
            x, case.secret, order, forced=case.forced, hidden=case.hidden, zero_method=zero_method,  # type: ignore[arg-type]
            strict=plan.strict, special_rows=special, contributors=case.contributors if methods else None,
            singleton_method=methods, progress=progress,
        )  # fmt: skip
        if best is None or _loss(found, case) < _loss(best, case):
            best = found
    assert best is not None
    published = best.published
    if plan.intervals:
        lower, upper, sliding = _wanted(plan, case)
        fixed = np.zeros(len(published), dtype=bool)
        fixed[case.forced] = True
        published, _ = widened(
            case.x, case.inner, published, case.secret, lower=lower, upper=upper, sliding=sliding,
            cost=case.worth + 1.0, fixed=fixed, least=case.least(), known=case.known, progress=progress,
        )  # fmt: skip
    return best, published


def by_integer_program(
    plan: Suppression, case: Case, progress: Progress
) -> tuple[Optimum, npt.NDArray[np.bool_]]:
    """Choose the cheapest cells; also which columns stay published."""
    lower, upper, sliding = _wanted(plan, case)
    forced = np.union1d(case.forced, np.arange(case.table.cells.height, case.x.shape[1]))
    quick = replace(plan, method="gauss", intervals=True, repair=False)
    start = np.flatnonzero(~by_elimination(quick, case, None)[1])
    found = cheapest(
        case.x, case.inner, case.secret, lower=lower, upper=upper, sliding=sliding, cost=case.worth, forced=forced,
        hidden=case.hidden, least=case.least(), start=start,
        equations=_equations(case), time_limit=plan.time_limit, progress=progress,
    )  # fmt: skip
    published = np.ones(case.x.shape[1], dtype=bool)
    published[np.concatenate([case.secret, case.hidden, found.secondary])] = False
    return found, published


def _equations(case: Case) -> Any:
    """The sums between cells of the table, over the columns of earlier releases too."""
    found = equations(case.table)
    return sparse.hstack([found, sparse.csr_matrix((found.shape[0], case.x.shape[1] - found.shape[1]))])


def _wanted(plan: Suppression, case: Case) -> tuple[Floats, Floats, Floats]:
    """The levels asked for; where nothing is asked the interval must at least not be a single value."""
    lower, upper, sliding = levels(case.table, case.secret, plan.protection)
    value = np.abs(np.asarray(case.inner @ case.x).ravel()[case.secret])
    tiny = np.ones(len(value)) if counts_only(case.table) else 1e-3 * np.maximum(value, 1e-6)
    return lower, upper, np.maximum(sliding, tiny)


def _moving(case: Case) -> npt.NDArray[np.int64]:
    moving = np.ones(len(case.inner), dtype=np.int64)
    moving[case.known] = 0
    return moving


def _zeros(plan: Suppression, case: Case) -> tuple[str, npt.NDArray[np.bool_] | None]:
    """Which inner cells cannot protect each other, and how that is dealt with."""
    if plan.zero_method == "none" or not counts_only(case.table):
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


def _loss(found: Elimination, case: Case) -> tuple[int, int, float]:
    return len(found.unsafe), len(found.secondary), float(case.worth[found.secondary].sum())
