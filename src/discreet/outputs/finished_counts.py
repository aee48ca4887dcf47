"""The counts of a finished table: low ones, empty cells, full lines, and hidden cells that follow from totals.

Shares and means of indicators are counts too, as soon as the number of people behind them is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.outputs.check_results import Finding
from discreet.outputs.checks.frequencies import MOST_UNKNOWNS, check_counts, counted, fixed_by, given_away
from discreet.outputs.finished_sheets import Sheet, base_of, is_total, words_of
from discreet.outputs.output_policy import OutputPolicy


def frequencies(view: View) -> list[Finding]:
    """Judge the columns of counts by the rules of frequencies, and hidden cells by the totals beside them."""
    if not view.counts:
        return []
    values, hidden, rows, columns, ends = _crossed(view)
    total_rows, total_columns = ends
    inner_rows, inner_columns = np.flatnonzero(~total_rows), np.flatnonzero(~total_columns)
    if not len(inner_rows) or not len(inner_columns):
        inner_rows, inner_columns = np.arange(len(values)), np.arange(values.shape[1])
    inner = np.ix_(inner_rows, inner_columns)
    table, unseen = np.nan_to_num(values[inner]), hidden[inner] | np.isnan(values[inner])
    lone = len(inner_columns) == 1
    judged = (table[:, 0], unseen[:, 0]) if lone else (table, unseen)
    # Several columns of counts are a table only where they are one classification of the same people.
    apart = not lone and len(view.named_counts) > 1 and not total_columns.any() and rows is None
    policy = view.policy.but(zeros_are_disclosive=False) if apart else view.policy

    def located(finding: Finding, one_column: bool) -> Finding:
        """Put the places of its cells into a finding."""
        places = []
        for cell in finding.cells:
            i, j = int(inner_rows[cell[0]]), int(inner_columns[0 if one_column else cell[1]])
            row = i if rows is None else rows[i * len(columns) + j]
            if row >= 0:
                places.append((row, columns[j]))
        return at(view.sheet, finding, places, view.show_values)

    checked = check_counts(judged[0], policy, hidden=judged[1]).findings
    found = [located(finding, lone) for finding in checked]
    if apart and ((table == 0) & ~unseen).any() and view.policy.zeros_are_disclosive:
        places = [
            (int(inner_rows[i]), columns[int(inner_columns[j])])
            for i, j in np.argwhere((table == 0) & ~unseen)
        ]
        reason = f"{counted(len(places), 'count')} of zero: nobody is like that, or everybody is not."
        found.append(at(view.sheet, Finding("empty cell", "a", "fail", reason), places, view.show_values))
    outside = np.ones(values.shape, dtype=bool)
    outside[inner] = False
    low = outside & (values > 0) & (values < view.policy.threshold)
    if low.any():
        reason = f"{counted(int(low.sum()), 'total')} below {view.policy.threshold} people."
        places = [] if rows is not None else [(int(i), columns[int(j)]) for i, j in np.argwhere(low)]
        found.append(at(view.sheet, Finding("low total", "a", "fail", reason), places, view.show_values))
    totals = _margins(view, values, unseen, (inner_rows, inner_columns), ends, lone)
    found += [located(finding, False) for finding in totals]
    if not view.named_counts and not view.are_counts:
        reason = "The numbers look like counts, but nothing says that they are. A human confirms it."
        found.append(Finding("taken for counts", "a", "review", reason))
    return found


def _margins(  # noqa: PLR0917
    view: View,
    values: Floats,
    unseen: Flags,
    inner: tuple[Any, Any],
    ends: tuple[Flags, Flags],
    lone: bool,
) -> list[Finding]:
    """Judge hidden cells by the totals that are published, and only by those."""
    total_rows, total_columns = ends
    if not unseen.any() or not (total_rows.any() or total_columns.any()):
        return []
    if lone and view.sheet.is_label.sum() > 1 and total_rows.any():
        reason = (
            "Whether hidden cells of a table of several columns can be worked out: run discreet table audit."
        )
        return [Finding("margins", "a", "review", reason)]
    lines = _lines(values, unseen, inner, ends)
    given = _worked_out(unseen, lines)
    small = np.zeros(unseen.shape, dtype=bool)
    for cells, left in lines:
        if left < view.policy.threshold:
            small |= cells
    return given_away(given, small, "totals", "a")


def _crossed(view: View) -> tuple[Floats, Flags, list[int] | None, list[int], tuple[Flags, Flags]]:
    """Lay out a table that has one row a cell as rows and columns, where two labels say which cell it is."""
    sheet = view.sheet
    columns = list(view.counts)
    as_it_is = (
        sheet.numbers[:, columns],
        sheet.hidden[:, columns],
        None,
        columns,
        (sheet.is_total_row, np.array([is_total(sheet.names[j]) for j in columns], dtype=bool)),
    )
    labels = [j for j in np.flatnonzero(sheet.is_label).tolist() if any(row[j] for row in sheet.texts)]
    if len(columns) != 1 or len(labels) < 2:
        return as_it_is
    down, across = labels[:2]
    pairs = [(row[down], row[across]) for row in sheet.texts]
    if len(set(pairs)) < len(pairs) or len({row[down] for row in sheet.texts}) == len(pairs):
        return as_it_is
    rows = list(dict.fromkeys(one for one, _ in pairs))
    heads = list(dict.fromkeys(other for _, other in pairs))
    values, hidden = np.zeros((len(rows), len(heads))), np.zeros((len(rows), len(heads)), dtype=bool)
    at = [-1] * (len(rows) * len(heads))
    for place, (one, other) in enumerate(pairs):
        i, j = rows.index(one), heads.index(other)
        values[i, j], hidden[i, j] = sheet.numbers[place, columns[0]], sheet.hidden[place, columns[0]]
        at[i * len(heads) + j] = place
    ends = np.array([is_total(r) for r in rows]), np.array([is_total(h) for h in heads])
    return values, hidden, at, [columns[0]] * len(heads), ends


def counts_in_rows(view: View) -> list[Finding]:
    """Judge rows that are counts by their label, as in a table of statistics with one column a group."""
    rows = [i for i, role in enumerate(view.sheet.row_roles) if role == "count"]
    columns = [j for j in view.numeric if view.sheet.column_roles[j] in ("", "statistic")]
    places = [(i, j) for i in rows for j in columns if view.known[i, j]]
    if not places:
        return []
    return [view.low("low count", [(i, j, view.sheet.numbers[i, j]) for i, j in places], "a", "count")]


def _lines(
    values: Floats, unseen: Flags, inner: tuple[Any, Any], ends: tuple[Flags, Flags]
) -> list[tuple[Flags, float]]:
    """List the published totals that hold hidden cells: which ones, and how many people they leave for them."""
    rows, columns = inner
    total_rows, total_columns = (np.flatnonzero(flags) for flags in ends)
    shown = np.where(unseen, 0.0, np.nan_to_num(values[np.ix_(rows, columns)]))
    lines: list[tuple[Flags, float]] = []

    for place in range(len(rows)):
        for column in total_columns[:1]:
            cells = np.zeros(unseen.shape, dtype=bool)
            cells[place] = unseen[place]
            if cells.any() and np.isfinite(values[rows[place], column]):
                lines.append((cells, float(values[rows[place], column] - shown[place].sum())))
    for place in range(len(columns)):
        for row in total_rows[:1]:
            cells = np.zeros(unseen.shape, dtype=bool)
            cells[:, place] = unseen[:, place]
            if cells.any() and np.isfinite(values[row, columns[place]]):
                lines.append((cells, float(values[row, columns[place]] - shown[:, place].sum())))
    if len(total_rows) and len(total_columns) and np.isfinite(values[total_rows[0], total_columns[0]]):
        lines.append((unseen, float(values[total_rows[0], total_columns[0]] - shown.sum())))
    return lines


def _worked_out(unseen: Flags, lines: list[tuple[Flags, float]]) -> Flags:
    """Flag the hidden cells that the published totals determine."""
    found = np.zeros(unseen.shape, dtype=bool)
    if lines and unseen.sum() <= MOST_UNKNOWNS:
        found[unseen] = fixed_by(np.array([cells[unseen] for cells, _ in lines], dtype=np.float64))
    return found


# Shares, and means of indicators.


_MEANS = {"mean", "means", "average", "avg", "mittelwert", "moyenne", "media", "durchschnitt"}


def shares(view: View) -> list[Finding]:
    """Turn shares back into counts where the number of people behind them is there, and judge those."""
    sheet = view.sheet
    shares = view.having("share") & view.known
    means = indicator_means(view)
    cells: list[tuple[int, int, float, float]] = []
    unknown = 0
    for i, j in np.argwhere(shares | means):
        bases = _bases(view, int(i), int(j))
        number = float(sheet.numbers[i, j])
        percent = not means[i, j] and _is_percent(view, int(j))
        if not bases:
            unknown += 1
            continue
        cells += [(int(i), int(j), number / (100 if percent else 1) * base, base) for base in bases]
    if not cells and not unknown:
        return []
    found = []
    if cells:
        numerators = [(i, j, float(np.round(n))) for i, j, n, _ in cells]
        rest = [(i, j, float(np.round(base - n))) for i, j, n, base in cells if n <= base]
        found += [
            view.low("numerator", numerators, "a", "share"),
            view.low("complement", rest, "a", "complement of a share"),
        ]
    if unknown:
        reason = (
            f"{counted(unknown, 'share')} without the number of people behind: a share of few people is a count. A "
            "human asks for it."
        )
        found.append(Finding("shares without counts", "a", "review", reason))
    return found


def _is_percent(view: View, column: int) -> bool:
    values = view.sheet.numbers[view.known[:, column], column]
    named = "%" in view.sheet.names[column] or bool(
        set(words_of(view.sheet.names[column]))
        & {"percent", "percentage", "pct", "prozent", "perc", "pourcentage"}
    )
    return (
        named or any("%" in row[column] for row in view.sheet.texts) or bool(len(values) and values.max() > 1)
    )


def _bases(view: View, row: int, column: int) -> list[float]:
    """Find how many people a share may be of: a count in its row, a total below it, or the heading."""
    sheet = view.sheet
    found = [
        sheet.numbers[row, j]
        for j in view.named_counts
        if view.known[row, j] and not sheet.count_pairs[row, j]
    ]
    heading = base_of(sheet.names[column])
    if heading:
        found = [heading]
    below = [
        sheet.numbers[i, column]
        for i, role in enumerate(sheet.row_roles)
        if role == "count" and view.known[i, column] and i != row
    ]
    found = found or below
    if not found and view.counts:
        totals = [j for j in view.counts if is_total(sheet.names[j])] or view.counts[:1]
        found = [sheet.numbers[row, j] for j in totals if view.known[row, j]]
    if not found:
        # The number of people stands in the line of totals only.
        ends = np.flatnonzero(sheet.is_total_row)
        found = [
            sheet.numbers[i, j] for i in ends for j in view.named_counts if view.known[i, j] and i != row
        ]
    title = base_of(sheet.grid.notes)
    if not found and title:
        found = [title]
    return [float(base) for base in found if base >= 1]


def indicator_means(view: View) -> Flags:
    """Flag means between 0 and 1 that are whole numbers of people divided by the count beside them."""
    sheet = view.sheet
    found = np.zeros(sheet.numbers.shape, dtype=bool)
    for j in view.numeric:
        if (
            sheet.column_roles[j] != "statistic"
            or not set(words_of(sheet.names[j])) & _MEANS
            or not view.named_counts
        ):
            continue
        values = sheet.numbers[:, j]
        base = sheet.numbers[:, view.named_counts[0]]
        both = np.isfinite(values) & np.isfinite(base)
        if not both.any() or (values[both] < 0).any() or (values[both] > 1).any():
            continue
        people = values[both] * base[both]
        digits = max((len(t.split(".")[1]) if "." in (t := row[j]) else 0) for row in sheet.texts)
        if (np.abs(people - np.round(people)) <= base[both] * 0.51 * 10.0**-digits + 1e-6).all():
            found[both, j] = True
    return found


# A table under a policy: which of its numbers are counts, what its names say of the others, where they stand.


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
