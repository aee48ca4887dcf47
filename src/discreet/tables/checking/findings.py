"""Audit: what a table with suppressed cells still gives away, in numbers and in words."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from discreet.core.values import jsonable


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


@dataclass(frozen=True, repr=False)
class Audit:
    """What can be learned from a table with suppressed cells.

    Attributes
    ----------
    exact
        Primary cells that everybody can compute: ``cell`` and the codes.
    by_contributors
        Primary cells that a contributor can compute from its own figure: ``cell``, the codes. Who it is stays in
        the house, in the column ``contributor``.
    sums
        How many contributors have several cells of which everybody knows a sum or a difference.
    intervals
        For every primary cell the bounds that the table pins it down to, and whether they are wide enough; None
        where they were not tested.
    differences
        Pairs of published cells, one inside the other, that leave a small group; None where not asked for.
    successive
        Published cells that changed by few units since an earlier release.
    figures
        Counts of everything above, and what was tested.
    checks
        By test the plain sentence of its outcome.
    """

    exact: pl.DataFrame
    by_contributors: pl.DataFrame
    sums: int
    intervals: pl.DataFrame | None
    differences: pl.DataFrame | None
    successive: pl.DataFrame | None
    figures: Mapping[str, Any]
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def safe(self) -> bool:
        """Whether no test found a primary cell that is given away or too narrowly bounded.

        ``line`` says what was not tested.
        """
        return not (
            self.exact.height
            or self.by_contributors.height
            or (self.intervals is not None and not self.intervals["wide_enough"].all())
            or (self.differences is not None and self.differences.height)
            or (self.successive is not None and self.successive.height)
        )

    @property
    def line(self) -> str:
        """The outcome in one sentence."""
        if self.safe:
            protected = _many(self.figures["primary"], "primary cell is", "primary cells are")
            open_question = "" if self.intervals is not None else f" {self.checks['intervals']}"
            return f"The audit found nothing: {protected} protected against what was tested.{open_question}"
        return "The audit found a disclosure: " + " ".join(
            sentence for name, sentence in self.checks.items() if name in self._failed()
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was tested and found, one sentence a test."""
        return tuple(self.checks.values())

    def _failed(self) -> set[str]:
        failed = {
            "exact": self.exact.height > 0,
            "contributors": self.by_contributors.height > 0,
            "intervals": self.intervals is not None and not self.intervals["wide_enough"].all(),
            "differences": self.differences is not None and self.differences.height > 0,
            "successive": self.successive is not None and self.successive.height > 0,
        }
        return {name for name, bad in failed.items() if bad}

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome without any cell, ready for JSON."""
        return {
            "safe": self.safe,
            "line": self.line,
            "checks": dict(self.checks),
            "figures": jsonable(self.figures),
        }

    def __str__(self) -> str:
        return "\n".join([self.line, *(f"  - {sentence}" for sentence in self.sentences)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"<h4>{html.escape(self.line)}</h4><ul>{items}</ul>"
