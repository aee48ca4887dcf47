"""The counts of a finished table: low ones, empty cells, full lines, and hidden cells that follow from totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.outputs.checks.frequencies import check_counts, counted, positions
from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import is_total
from discreet.outputs.finished.views import View, at

_MOST_UNKNOWNS = 1500


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
    found = [
        _located(view, finding, inner_rows, inner_columns, rows, columns, lone)
        for finding in check_counts(judged[0], policy, hidden=judged[1]).findings
    ]
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
    found += [
        _located(view, finding, inner_rows, inner_columns, rows, columns, False)
        for finding in _margins(view, values, unseen, (inner_rows, inner_columns), ends, lone)
    ]
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
    return [
        Finding(
            "margins",
            "a",
            "fail" if given.any() else "pass",
            f"{counted(int(given.sum()), 'suppressed cell')} can be worked out from the totals."
            if given.any()
            else "No suppressed cell follows from the totals.",
            positions(given),
        ),
        Finding(
            "line remainder",
            "a",
            "fail" if small.any() else "pass",
            f"{counted(int(small.sum()), 'suppressed cell')} in lines whose suppressed cells add up to too few people."
            if small.any()
            else "What is suppressed in a line adds up to enough people.",
            positions(small),
        ),
    ]


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


def _located(  # noqa: PLR0917
    view: View,
    finding: Finding,
    inner_rows: Any,
    inner_columns: Any,
    rows: list[int] | None,
    columns: list[int],
    lone: bool,
) -> Finding:
    """Say where the cells of a finding stand in the file."""
    places = []
    for cell in finding.cells:
        i, j = int(inner_rows[cell[0]]), int(inner_columns[0 if lone else cell[1]])
        row = i if rows is None else rows[i * len(columns) + j]
        if row >= 0:
            places.append((row, columns[j]))
    return at(view.sheet, finding, places, view.show_values)


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
    number = int(unseen.sum())
    if not lines or number > _MOST_UNKNOWNS:
        return found
    from scipy.linalg import null_space

    free = null_space(np.array([cells[unseen] for cells, _ in lines], dtype=np.float64))
    moving = (np.abs(free) > 1e-9).any(axis=1) if free.size else np.zeros(number, dtype=bool)
    found[unseen] = ~moving
    return found
