"""Suppression: choose the cells that are left out beside the primary ones, and audit the outcome."""

from __future__ import annotations

import html
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.constraints import Above, AtLeast, ColumnName, OneOf, Public
from discreet.core.errors import DiscreetWarning, NothingLeftWarning, ParameterError
from discreet.core.parameters import typed_parameters
from discreet.core.value_gate import name_in_documents
from discreet.core.values import jsonable
from discreet.tables.feasibility_intervals import Protection
from discreet.tables.gauss import Elimination, Reason
from discreet.tables.gauss.problem import ZERO_METHODS, singleton_methods
from discreet.tables.interval_widening import Aim, aim_of
from discreet.tables.optimal_suppression import Optimum
from discreet.tables.secondary_cells import Case, Progress, by_elimination, by_integer_program, repaired
from discreet.tables.table_audit import Audit, audit, intervals_wanted
from discreet.tables.table_cells import MOST_SOLVED, need_few_cells

if TYPE_CHECKING:
    from discreet.tables.table import Table


@dataclass(frozen=True)
@typed_parameters
class Suppression:
    """Leave out further cells, so that the primary ones cannot be computed from what is published.

    Also known as: GaussSuppression; secondary suppression; complementary suppression; cell suppression.

    Parameters
    ----------
    method
        ``gauss``: elimination, for tables of any size, linked and hierarchical ones included. ``optimal``: the
        cheapest choice by integer programming, with intervals, for small tables.
    zero_method
        ``auto`` takes ``any_sum`` for tables of counts whose small cells cannot protect each other: suppressed zeros,
        or suppressed ones where zeros are published. Else as in `discreet.tables.gauss.secondary`.
    singleton_method
        ``auto`` takes all four for tables of sums. Else any of ``virtual``, ``within``, ``parallel``, ``combinations``.
    strict
        With ``zero_method="subspace"``: see `discreet.tables.gauss.secondary`.
    intervals
        With ``gauss``: leave out further cells until the intervals are wide enough, and audit them; counts in whole
        numbers. By default in tables of up to 5,000 cells; in larger ones the verdict says that it was not tested.
        False protects against exact disclosure alone. Zeros stay published where that is possible; but where readers
        see all zeros they know every other count to be one or more, so that a count of one may need a zero that is left
        out as well. Cells that no choice protects as asked are named in ``unsafe``, and the audit says so.
    protection
        How wide: a share of the value to both sides, the name of a column of levels, or a `Protection`. By default the
        column ``protection`` where the rules left one.
    forced, hidden
        Cells that must be published, and cells that are neither published nor in need of protection: positions, a mask,
        codes, or the name of a flag column.
    cost
        The column that says what a cell is worth (by default its value): the worthier, the sooner it is published.
    previous
        Earlier releases: results of this class, or pairs of a table and its suppressed cells. What they published of
        the same people stays published, and is part of what an intruder has; they may have other dimensions and other
        levels. What they published of other people (last year's table) is published again where that is safe.
    successive
        A published cell of other people that changed by fewer units than this since an earlier release is reported by
        the audit; 0 where people come and go anyway.
    tries
        How many orders of cells of equal worth are tried (``gauss``); the one that loses least is kept.
    repair
        Leave out further cells where the audit finds that a primary cell can be computed after all, or (where
        ``intervals`` was not asked for or against) that it is bounded too closely.
    time_limit
        Seconds for ``optimal``.
    workers
        Threads for linear programs.
    max_cells
        A table with more cells is refused before the work, which could take hours; most of its cells would be left out
        in any case where they come from crossing columns of thousands of codes. Raise it where you can wait.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table, Threshold, primary
    >>> people = pl.DataFrame({"place": ["a"] * 9 + ["b"] * 8, "sex": (["f"] * 8 + ["m"]) + ["f", "m"] * 4})
    >>> table = primary(Table.from_microdata(people, "place*sex"), Threshold(3))
    >>> result = Suppression().apply(table)
    >>> len(result.secondary), result.audit.safe
    (3, True)
    """

    method: Literal["gauss", "optimal"] = "gauss"
    zero_method: Annotated[str, OneOf("auto", *ZERO_METHODS)] = "auto"
    singleton_method: Annotated[str, Public()] | Annotated[Sequence[str], Public()] = "auto"
    strict: bool = False
    intervals: bool | None = None
    protection: float | ColumnName | Protection | None = None
    forced: Any = ()
    hidden: Any = ()
    cost: ColumnName | None = None
    previous: Sequence[Any] = ()
    successive: int = 3
    tries: Annotated[int, AtLeast(1)] = 2
    repair: bool = True
    time_limit: Annotated[float, Above(0)] = 600.0
    workers: Annotated[int, AtLeast(1)] = 1
    max_cells: Annotated[int, AtLeast(1)] = MOST_SOLVED

    def __post_init__(self) -> None:
        if self.singleton_method != "auto":
            singleton_methods(self.singleton_method)

    def apply(self, table: Table, *, progress: Progress = None) -> SuppressionResult:
        """Choose the cells to leave out, and audit the outcome."""
        began = time.perf_counter()
        if "primary" not in table.cells.columns:
            raise ParameterError(
                "The table has no primary cells yet. Flag them first, e.g. tables.primary(table, Threshold(3))."
            )
        need_few_cells(table, self.max_cells)
        case = Case.of(self, table)
        _warn_of_gaps(case)
        wide = self.method == "optimal" or intervals_wanted(table, self.intervals)
        aim = (
            aim_of(self, case)
            if wide and (self.repair or self.intervals or self.method == "optimal")
            else None
        )
        if aim is not None and self.method == "optimal":
            choice = by_integer_program(self, case, aim, progress)
        else:
            choice = by_elimination(self, case, aim, progress)
        chosen = choice.found
        mended = repaired(case, choice.published) if self.repair else choice.published
        left_out = np.flatnonzero(~mended[: table.cells.height])
        if len(case.secret) and len(left_out) == table.cells.height:
            warnings.warn(
                "Every cell is suppressed: nothing is left to publish. Publish fewer details, ask for less protection, "
                "or force the cells that you need and look at the unsafe ones.",
                NothingLeftWarning,
                stacklevel=2,
            )
        status = np.full(table.cells.height, None, dtype=object)
        status[left_out] = SECONDARY
        status[case.hidden] = HIDDEN
        status[case.secret] = PRIMARY
        protected = table.with_cells(suppressed=pl.Series(status.tolist(), dtype=pl.String))
        found = audit(
            table, left_out, intervals=wide, protection=self.protection, previous=case.previous,
            successive=self.successive,
            contributors=False if case.contributors is None else case.contributors[: table.inner.height],
            workers=self.workers, max_cells=self.max_cells,
        )  # fmt: skip
        found = _with_what_cannot_be_had(found, aim)
        narrow = [] if found.intervals is None else [found.intervals.filter(~pl.col("wide_enough"))]
        unsafe = (
            pl.concat([frame["cell"] for frame in [found.exact, found.by_contributors, *narrow]])
            .unique()
            .sort()
        )
        worth = np.abs(np.asarray(table.values, dtype=float))
        extra = np.setdiff1d(left_out, np.concatenate([case.secret, case.hidden]))
        figures = {
            "cells": table.cells.height,
            "primary": len(case.secret),
            "secondary": len(extra),
            "published": int(table.cells.height - len(left_out)),
            "secondary_value": float(worth[extra].sum()),
            "repaired": choice.repaired + int((choice.published & ~mended).sum()),
            "seconds": time.perf_counter() - began,
        }
        if isinstance(chosen, Optimum):
            figures |= {
                "proved_optimal": chosen.proved and not figures["repaired"],
                "cost": float(case.worth[extra].sum()),
                "bound": chosen.bound,
            }
        named = (
            "method",
            "zero_method",
            "singleton_method",
            "strict",
            "intervals",
            "cost",
            "tries",
            "repair",
        )
        asked = asdict(self.protection) if isinstance(self.protection, Protection) else self.protection
        parameters = {name: getattr(self, name) for name in named} | {"protection": asked}
        reasons = chosen.reasons if isinstance(chosen, Elimination) else ()
        return SuppressionResult(protected, found, tuple(reasons), unsafe.to_numpy(), figures, parameters)


def _with_what_cannot_be_had(found: Audit, aim: Aim | None) -> Audit:
    """Say of intervals that are too narrow that no choice of cells would have made them wider."""
    if aim is None or found.intervals is None:
        return found
    narrow = found.intervals.filter(~pl.col("wide_enough"))["cell"].to_numpy()
    lost = len(np.intersect1d(narrow, aim.lost))
    if not lost:
        return found
    whose = "it" if lost == len(narrow) == 1 else ("them" if lost == len(narrow) else f"{lost:,} of them")
    ones = aim.room.least is not None and bool((aim.room.least > 0).any())
    more = (
        f"No choice of further cells gives {whose} room enough, not even leaving out all that may go: ask for less "
        "protection, or force fewer cells."
    ) + (" Readers see where the zeros are, and so know every other count to be one or more." if ones else "")
    figures = {**found.figures, "out_of_reach": lost}
    return replace(
        found, figures=figures, checks={**found.checks, "intervals": f"{found.checks['intervals']} {more}"}
    )


def _warn_of_gaps(case: Case) -> None:
    """Rounded or wrong totals: the elimination goes by which cells are sums of which, not by their values."""
    count = case.table.cells.height
    given = np.asarray(case.table.values, dtype=float)
    made = np.asarray(case.inner @ case.x).ravel()[:count]
    apart = int((np.abs(given - made) > 1e-6 * (1.0 + np.abs(made))).sum())
    if apart:
        warnings.warn(
            f"{apart} of {count} cells are not the sum of their inner cells. The protection goes by which cells belong "
            "to which sum; intervals and differences of rounded values can say more than is shown here.",
            DiscreetWarning,
            stacklevel=3,
        )


PRIMARY, SECONDARY, HIDDEN = "primary", "secondary", "hidden"


@dataclass(frozen=True, repr=False)
class SuppressionResult:
    """A table with its suppressed cells, and the audit of it.

    Attributes
    ----------
    table
        The table, whose cells have gained ``suppressed`` (``"primary"``, ``"secondary"`` or null).
    audit
        What can still be learned from it.
    reasons
        One a secondary cell, where the elimination chose it.
    unsafe
        Positions of primary cells that could not be protected.
    figures
        Counts, the information that is lost, seconds.
    parameters
        How it was made.
    """

    table: Table
    audit: Audit
    reasons: tuple[Reason, ...]
    unsafe: Integers
    figures: Mapping[str, Any]
    parameters: Mapping[str, Any]

    @property
    def suppressed(self) -> Flags:
        """True for every cell that is left out."""
        return self.table.cells["suppressed"].is_not_null().to_numpy()

    @property
    def secondary(self) -> list[tuple[str, ...]]:
        """The codes of the cells that are left out beside the primary ones."""
        kept = self.table.cells.filter(pl.col("suppressed") == SECONDARY)
        return kept.select(self.table.dimensions).rows()

    @property
    def secondary_cells(self) -> Integers:
        """Their positions."""
        return np.flatnonzero((self.table.cells["suppressed"] == SECONDARY).fill_null(False).to_numpy())

    @property
    def published(self) -> pl.DataFrame:
        """What may go out: the codes, every figure (empty where it is left out), and a status.

        ``status`` is ``"published"`` or ``"suppressed"``: a reader must not learn which cells are primary.
        """
        figures = [
            name
            for name in dict.fromkeys([self.table.value, *self.table.measures, "count", "weighted"])
            if name in self.table.cells.columns
        ]
        left_out = pl.col("suppressed").is_not_null()
        return self.table.cells.select(
            *self.table.dimensions,
            *(pl.when(left_out).then(None).otherwise(pl.col(name)).alias(name) for name in figures),
            pl.when(left_out).then(pl.lit("suppressed")).otherwise(pl.lit("published")).alias("status"),
        )

    def published_in(self, name: str) -> pl.DataFrame:
        """What may go out of one of the linked tables, by its own dimensions: see `Table.tables` for the names."""
        mine = self.published.filter(pl.Series(self.table.in_table(name)))
        own = self.table.formula.terms[self.table.tables.index(name)].columns
        return mine.select(*own, *(column for column in mine.columns if column not in self.table.dimensions))

    def summary(self) -> str:
        """What was done and what is left, in a few sentences."""
        f = self.figures
        rules = f" by {', '.join(self.table.rules)}" if self.table.rules else ""
        published = f["cells"] - int(self.suppressed.sum())
        return (
            f"{f['primary']:,} of {f['cells']:,} cells are primary{rules}, {f['secondary']:,} more are left out to "
            f"protect them ({self.parameters['method']}); {published:,} are published. {self.audit.line}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return figures, parameters and the audit without any cell, ready for JSON."""
        return {
            "treatment": "suppression",
            "figures": jsonable(self.figures),
            "parameters": jsonable(self.parameters),
            "rules": list(self.table.rules),
            "unsafe": len(self.unsafe),
            "audit": self.audit.to_dict(),
        }

    def to_html(self, path: str | Path) -> Path:
        """Write a report with the suppression pattern and the audit, and return its path."""
        from discreet.report.table_report import write_table_report

        return write_table_report(self, path)

    def __str__(self) -> str:
        return f"{self.summary()}\n" + "\n".join(f"  - {sentence}" for sentence in self.audit.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary())}</p>{self.audit._repr_html_()}"


name_in_documents("treatment", {"suppression": Suppression})
