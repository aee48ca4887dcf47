"""Judge the tables of a finished file by what their names and numbers say.

Every number is held against the rules of the statbarn that its name (or that of its row) puts it into: counts and
shares as frequencies, minima and maxima as endpoints, quantiles by the people between them, numbers at risk as survival
tables. What cannot be judged from the file is left to a human.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.outputs.checks.frequencies import counted
from discreet.outputs.findings import Finding
from discreet.outputs.finished.counting import counts_in_rows, frequencies
from discreet.outputs.finished.grids import Grid
from discreet.outputs.finished.modeled import models, survival
from discreet.outputs.finished.positions import endpoints, quantiles, spread
from discreet.outputs.finished.records import check_records
from discreet.outputs.finished.shares import indicator_means, shares
from discreet.outputs.finished.sheets import sheet_of
from discreet.outputs.finished.views import View
from discreet.outputs.settings import OutputPolicy

MOST_ROWS = 500


def judge(
    grid: Grid,
    policy: OutputPolicy,
    *,
    are_counts: bool = False,
    named_only: bool = False,
    show_values: bool = False,
) -> list[Finding]:
    """Judge one table.

    Parameters
    ----------
    are_counts
        Whether it is known from elsewhere that its numbers are counts of people.
    named_only
        Whether only what is named is judged: a text is cut into a table by its gaps, which may be none.
    show_values
        Whether the places of what fails come with the numbers.
    """
    sheet = sheet_of(grid)
    if sheet is None or not np.isfinite(sheet.numbers).any():
        return []
    records = check_records(sheet)
    if records is not None:
        first = sheet.place(0, 0)
        return [replace(records, places=(replace(first, name="", value=None),))]
    judged = View(sheet, policy, are_counts=are_counts, named_only=named_only, show_values=show_values)
    return _findings(judged)


def counts_in(grid: Grid) -> dict[tuple[str, ...], float]:
    """Return the counts of a table by the texts of their labels and the name of their column.

    Examples
    --------
    >>> counts_in(Grid((("region", "n"), ("north", "40"), ("south", "35"))))
    {('north', 'n'): 40.0, ('south', 'n'): 35.0}
    """
    sheet = sheet_of(grid)
    if sheet is None or check_records(sheet) is not None:
        return {}
    seen = View(sheet, OutputPolicy(), are_counts=False, named_only=False, show_values=False)
    labels = np.flatnonzero(sheet.is_label)
    return {
        (*(row[j] for j in labels), sheet.names[column]): float(sheet.numbers[i, column])
        for i, row in enumerate(sheet.texts)
        for column in seen.counts
        if np.isfinite(sheet.numbers[i, column])
    }


def _findings(view: View) -> list[Finding]:
    """All that the rules say about the table."""
    found = [
        *survival(view),
        *frequencies(view),
        *counts_in_rows(view),
        *shares(view),
        *endpoints(view),
        *quantiles(view),
        *models(view),
        *spread(view),
    ]
    return found if view.named_only else [*found, *_left_over(view, bool(found))]


def _left_over(view: View, something: bool) -> list[Finding]:
    """Say what was not judged."""
    sheet = view.sheet
    judged = ("count", "share", "endpoint", "quantile", "dof", "fit", "at risk", "events")
    other = [
        j
        for j in view.numeric
        if j not in view.counts
        and sheet.column_roles[j] not in judged
        and not indicator_means(view)[:, j].any()
    ]
    rows = any(role and role not in judged for role in sheet.row_roles)
    found = []
    if other or rows:
        number = len(other) or sum(bool(role) for role in sheet.row_roles)
        what = counted(number, "column" if other else "row")
        reason = f"{what} of other numbers: what stands behind them is for a human to say."
        found.append(Finding("other numbers", "d", "review", reason))
    if not view.counts and not something and not found:
        reason = (
            "No column looks like counts of people, so the table cannot be judged by itview. A human looks."
        )
        found.append(Finding("no counts", "a", "review", reason))
    if len(sheet.texts) > MOST_ROWS:
        reason = f"{len(sheet.texts):,} rows: a very fine table. A human looks."
        found.append(Finding("many rows", "a", "review", reason))
    return found
