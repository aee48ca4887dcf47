"""The margins of a table of statistics: the same statistics over whole lines of groups, and over everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Flags, Integers
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.output import Margins
from discreet.outputs.output_cells import Cells
from discreet.outputs.question import Question
from discreet.outputs.register import Registered

Axes = tuple[int, ...]
Figures = Mapping[str, Array]


@dataclass(frozen=True)
class Line:
    """The statistics over some dimensions: the figures by name, how many people, and what the rules say."""

    figures: Figures
    people: Integers
    checked: CheckResult


@dataclass(frozen=True)
class WholeLines:
    """Statistics by the rows alone, by the columns alone and over everybody, by the axes that are kept."""

    lines: Mapping[Axes, Line]
    down: Axes
    across: Axes

    @staticmethod
    def of(question: Question, cells: Cells, across: int, compute: Callable[[Question], Line]) -> WholeLines:
        """Compute the statistics of every line, each from its own records."""
        number = len(question.by)
        down, over = tuple(range(number - across)), tuple(range(number - across, number))
        wanted = dict.fromkeys(axes for axes in (down, over, ()) if len(axes) < number)
        return WholeLines({axes: compute(_part(question, cells, axes)) for axes in wanted}, down, over)

    def findings(self) -> list[Finding]:
        """What is wrong with the lines, without places: they are no cells of the table."""
        return [
            Finding(finding.check, finding.barn, finding.status, f"In the margins: {finding.reason}")
            for line in self.lines.values()
            for finding in line.checked.findings
            if finding.status != "pass"
        ]

    def without(self, hidden: Flags) -> WholeLines:
        """Hide every line that holds a hidden cell, which it would give away."""

        def change(axes: Axes, table: Array) -> Array:
            gone = np.asarray(hidden.any(axis=tuple(a for a in range(hidden.ndim) if a not in axes)))
            made = table.astype(object)
            made[gone.reshape(table.shape)] = None
            return made

        return self._changed(change)

    def rounded(self, to_base: Callable[[Any], Any]) -> WholeLines:
        """Round every number that is shown."""

        def change(axes: Axes, table: Array) -> Array:
            del axes
            made = np.empty(table.shape, dtype=object)
            for place in np.ndindex(table.shape):
                number: Any = table[place]
                made[place] = number if number is None or isinstance(number, str) else to_base(number)
            return made

        return self._changed(change)

    def margins(self, name: str) -> Margins:
        """The lines of one statistic, as a table shows them."""
        everybody = self.lines[()].figures[name].reshape(-1)
        rows = self.lines[self.down].figures[name] if self.down in self.lines else everybody
        columns = self.lines[self.across].figures[name] if self.across in self.lines else everybody
        return Margins(rows, columns, everybody[0])

    def entries(self, entry: Registered) -> tuple[Registered, ...]:
        """Enter the lines that are shown beside the cells, for differencing with later outputs."""
        found = []
        for axes, line in self.lines.items():
            gone = np.array([number is None for number in next(iter(line.figures.values())).ravel()])
            counts = np.where(gone, np.nan, line.people.ravel().astype(np.float64))
            found.append(
                replace(
                    entry,
                    by=tuple(entry.by[a] for a in axes),
                    levels=tuple(entry.levels[a] for a in axes),
                    counts=counts.reshape(tuple(len(entry.levels[a]) for a in axes)),
                    question=None
                    if entry.question is None
                    else replace(entry.question, by=tuple(entry.question.by[a] for a in axes)),
                )
            )
        return tuple(found)

    def _changed(self, change: Callable[[Axes, Array], Array]) -> WholeLines:
        made = {
            axes: replace(
                line, figures={name: change(axes, np.asarray(table)) for name, table in line.figures.items()}
            )
            for axes, line in self.lines.items()
        }
        return replace(self, lines=made)


def _part(question: Question, cells: Cells, axes: Axes) -> Question:
    levels = {question.by[a]: [level for level in cells.levels[a] if level is not None] for a in axes}
    return replace(question, by=tuple(question.by[a] for a in axes), levels=levels)
