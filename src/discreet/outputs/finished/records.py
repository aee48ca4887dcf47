"""Is this file a table of results, or are its rows people?

A table has one row a cell: its labels name each row once, and nearly every combination of them is there. Records repeat
their categories, or are told apart by an identifier only, or have a value of their own in column after column.
"""

from __future__ import annotations

from math import prod

import numpy as np

from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import words_of
from discreet.outputs.finished.sheets import Sheet

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
    >>> from discreet.outputs.finished.grids import Grid
    >>> from discreet.outputs.finished.sheets import sheet_of
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
