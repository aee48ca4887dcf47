"""SuppressionResult: a table with its suppressed cells, what may go out of it, and the audit."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.values import jsonable
from discreet.tables.gauss import Reason
from discreet.tables.table_audit import Audit

if TYPE_CHECKING:
    from discreet.tables.table import Table


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
