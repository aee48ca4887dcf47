"""A table under a policy: which of its numbers are counts, what its names say of the others, where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from discreet.core.arrays import Flags
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import is_total
from discreet.outputs.finished.sheets import Sheet
from discreet.outputs.settings import OutputPolicy

_MOST_PLACES = 200


class View:
    """One table under a policy: which of its columns are counts, and what its names say."""

    def __init__(
        self, sheet: Sheet, policy: OutputPolicy, *, are_counts: bool, named_only: bool, show_values: bool
    ) -> None:
        self.sheet, self.policy, self.show_values = sheet, policy, show_values
        self.are_counts, self.named_only = are_counts, named_only
        self.known = np.isfinite(sheet.numbers)
        self.numeric = [
            j
            for j in range(len(sheet.names))
            if not sheet.is_label[j] and not sheet.is_index[j] and self.known[:, j].any()
        ]
        self.named_counts = [j for j in self.numeric if self._counts(j)]
        self.counts = self._count_columns()

    def having(self, *roles: str) -> Flags:
        """Flag the numbers (or ranges written as text) whose column or row has one of these roles."""
        columns = np.array([role in roles for role in self.sheet.column_roles])
        rows = np.array([role in roles for role in self.sheet.row_roles])
        free = np.array([role in ("", "statistic") for role in self.sheet.column_roles])
        here = columns[None, :] | (rows[:, None] & free[None, :])
        return np.asarray(here & ~self.sheet.is_label[None, :] & ~self.sheet.hidden)

    def whole(self, column: int) -> bool:
        """Whether a column holds whole numbers and nothing else."""
        values = self.sheet.numbers[self.known[:, column], column]
        others = ~self.known[:, column] & ~self.sheet.hidden[:, column]
        return (
            bool(len(values))
            and not others.any()
            and bool((values >= 0).all() and (values == np.round(values)).all())
        )

    def _counts(self, column: int) -> bool:
        if self.sheet.count_pairs[:, column].any():
            return True
        return self.sheet.column_roles[column] == "count" and self.whole(column)

    def _count_columns(self) -> list[int]:
        """Choose the columns of counts: those named so, and whole numbers that nothing else says anything about."""
        # Where most rows are named after statistics, a column holds several of them and is no column of counts.
        by_row = 2 * sum(bool(role) for role in self.sheet.row_roles) > len(self.sheet.texts)
        plain = [
            j
            for j in self.numeric
            if j not in self.named_counts
            and not by_row
            and self.whole(j)
            and (self.sheet.column_roles[j] == "" or is_total(self.sheet.names[j]))
        ]
        if self.named_only:
            return list(self.named_counts)
        if not self.named_counts:
            return plain
        # Beside a number of people, whole numbers that never exceed it are taken for counts, too.
        base = np.nan_to_num(self.sheet.numbers[:, self.named_counts]).max(axis=1)
        fits = [j for j in plain if (np.nan_to_num(self.sheet.numbers[:, j]) <= np.nan_to_num(base)).all()]
        return [j for j in self.numeric if j in self.named_counts or j in fits]

    def low(self, check: str, cells: Sequence[tuple[int, int, float]], barn: str, what: str) -> Finding:
        """Hold counts against the threshold, and say where the low ones stand."""
        limit = self.policy.threshold
        low = [(i, j) for i, j, number in cells if 0 < number < limit]
        if not low:
            return Finding(check, barn, "pass", f"Every {what} that can be seen is zero or {limit} or more.")
        reason = f"{counted(len(low), what)} below the threshold of {limit} people."
        return at(self.sheet, Finding(check, barn, "fail", reason), low, self.show_values)


def at(
    sheet: Sheet, finding: Finding, cells: Iterable[tuple[int, int]], show_values: bool = False
) -> Finding:
    """Add the places in the file to a finding."""
    places = [sheet.place(i, j, show_values=show_values) for i, j in list(cells)[:_MOST_PLACES]]
    return replace(finding, places=tuple(places))
