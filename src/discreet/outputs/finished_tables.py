"""Judge the tables of a finished file by what their names and numbers say, and tell them from lists of people.

Every number is held against the rules of the statbarn that its name (or that of its row) puts it into: counts and
shares as frequencies, minima and maxima as endpoints, quantiles by the people between them, numbers at risk as survival
tables. What cannot be judged from the file is left to a human.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from discreet.outputs.check_results import Finding
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.finished_counts import View, counts_in_rows, frequencies, indicator_means, shares
from discreet.outputs.finished_grids import Grid
from discreet.outputs.finished_sheets import Sheet, sheet_of, words_of
from discreet.outputs.finished_statistics import endpoints, models, quantiles, spread, survival
from discreet.outputs.output_policy import OutputPolicy

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


# Is this file a table of results, or are its rows people?
#
# A table has one row a cell: its labels name each row once, and nearly every combination of them is there. Records
# repeat their categories, or are told apart by an identifier only, or have a value of their own in column after column.


_FEW_ROWS = 15
_FILLED, _FILLED_BY_RESULTS = 0.4, 0.02
_MOST_LABELS = 4
_RESULTS = {
    "mean", "average", "avg", "median", "coef", "coefficient", "estimate", "pvalue", "percent", "percentage", "pct",
    "mittelwert", "moyenne", "media", "mediana", "prozent", "stderr", "se", "freq", "gini", "survival",
}  # fmt: skip
_MANY_LEVELS = 60


def check_records(sheet: Sheet, *, barn: str = "a") -> Finding | None:
    """Fail a table whose rows are people; None where it looks like a table.

    Examples
    --------
    >>> from discreet.outputs.finished_grids import Grid
    >>> from discreet.outputs.finished_sheets import sheet_of
    >>> rows = [("pid", "sex", "pay")] + [(f"P{i}", "f", str(1000 + 7 * i)) for i in range(30)]
    >>> check_records(sheet_of(Grid(tuple(rows)))).status
    'fail'
    """
    rows = len(sheet.texts)
    why = _named_people(sheet) or (_not_crossed(sheet) if rows >= _FEW_ROWS else "")
    if not why:
        return None
    reason = (
        f"The {rows:,} rows look like records of people, not like results: {why}. Records are not an output."
    )
    return Finding("records", barn, "fail", reason)


def _named_people(sheet: Sheet) -> str:
    """Find a column that identifies people and has a value of its own in (nearly) every row."""
    rows = len(sheet.texts)
    if rows < 3:
        return ""
    for j, role in enumerate(sheet.column_roles):
        values = [row[j] for row in sheet.texts if row[j]]
        numbered = bool(np.isfinite(sheet.numbers[:, j]).all()) and bool(
            (np.diff(sheet.numbers[:, j]) == 1).all()
        )
        if numbered and _has_results(sheet):
            # The rows of a table of results, numbered.
            continue
        if role == "identifier" and len(values) >= 0.8 * rows and len(set(values)) >= 0.5 * len(values):
            return f"column '{sheet.names[j]}' identifies them"
    return ""


def _not_crossed(sheet: Sheet) -> str:
    """Say why no labels name the rows as those of a table; empty where some do."""
    body = [
        j for j in range(len(sheet.names)) if not sheet.is_index[j] and any(row[j] for row in sheet.texts)
    ]
    rows = [
        row for i, row in enumerate(sheet.texts) if not sheet.is_total_row[i] and any(row[j] for j in body)
    ]
    if len(rows) < _FEW_ROWS or len(body) < 2:
        return ""
    statistics = [j for j in body if sheet.column_roles[j] not in ("", "identifier") and not sheet.is_text[j]]
    labels = [j for j in body if sheet.is_label[j]]
    # Numbers with few values may be codes of a dimension, as long as nothing says that they are results.
    codes = [
        j
        for j in body
        if j not in labels
        and j not in statistics
        and _levels(rows, j) <= min(_MANY_LEVELS // 2, len(rows) - 1)
    ]
    if _is_curve(sheet, body):
        return ""
    results = _has_results(sheet)
    if results and labels and len(_distinct(rows, labels)) == len(rows):
        return ""
    for chosen in (labels, [*labels, *codes]):
        if chosen and _names_rows(rows, chosen, _FILLED_BY_RESULTS if results else _FILLED):
            return ""
    if any(_levels(rows, j) == len(rows) for j in labels):
        # One column names every row. The others are results, or what is known of each.
        others = [j for j in labels if _levels(rows, j) < len(rows)]
        return (
            ""
            if len(others) < 2 or results
            else "one column names them, and the others repeat their categories"
        )
    if len(_distinct(rows, labels)) < len(rows) and labels:
        return "the same labels come again and again"
    return "nothing in them names the rows as the cells of a table"


def _has_results(sheet: Sheet) -> bool:
    """Whether some column says of itself that it holds a result: a count, a mean, a percentage.

    A total or a rate may just as well be something that every person has.
    """
    named = ("count", "spread", "quantile", "at risk", "events")
    return any(
        (role in named or bool(set(words_of(sheet.names[j])) & _RESULTS)) and not sheet.is_text[j]
        for j, role in enumerate(sheet.column_roles)
    )


def _names_rows(rows: list[tuple[str, ...]], columns: list[int], filled: float) -> bool:
    """Whether some of these columns name every row once, and most of their combinations are there."""
    wanted = columns[:_MOST_LABELS]
    for size in range(1, len(wanted) + 1):
        chosen = wanted[:size]
        if len(_distinct(rows, chosen)) < len(rows):
            continue
        if size == 1:
            return len(columns) == 1 or all(_levels(rows, j) == len(rows) for j in columns[1:])
        return len(rows) >= filled * prod(_levels(rows, j) for j in chosen)
    return False


def _is_curve(sheet: Sheet, body: list[int]) -> bool:
    """Whether the rows follow a number that rises (or falls) from row to row: a time, the end of a bin, a share."""
    if any(sheet.is_text[j] for j in body):
        return False
    first = sheet.numbers[:, body[0]]
    known = first[np.isfinite(first)]
    steps = np.diff(known)
    return len(known) > 2 and (bool((steps > 0).all()) or bool((steps < 0).all()))


def _levels(rows: list[tuple[str, ...]], column: int) -> int:
    return len({row[column] for row in rows})


def _distinct(rows: list[tuple[str, ...]], columns: list[int]) -> set[tuple[str, ...]]:
    return {tuple(row[j] for j in columns) for row in rows}
