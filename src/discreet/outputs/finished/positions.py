"""Minima, maxima, quantiles and spread in a finished table."""

from __future__ import annotations

import numpy as np

from discreet.outputs.checks.frequencies import counted
from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import quantile_of
from discreet.outputs.finished.views import View, at


def endpoints(view: View) -> list[Finding]:
    """Fail minima, maxima and ranges: a file cannot say that they are structural or shared."""
    here = view.having("endpoint")
    # "18-94" is no number, and yet both ends; only the first column of words is always a label.
    for j in np.flatnonzero(view.sheet.is_text)[1:]:
        here[:, j] |= view.sheet.column_roles[j] == "endpoint"
    places = [
        (int(i), int(j))
        for i, j in np.argwhere(here)
        if any(sign.isdigit() for sign in view.sheet.texts[i][j])
    ]
    if not places:
        return []
    reason = (
        f"{counted(len(places), 'minimum or maximum').replace('maximums', 'maxima')}: usually one person's value. Not "
        f"to be released unless it is structural or shared by {view.policy.threshold} people, which the file does "
        "not say."
    )
    return [at(view.sheet, Finding("endpoints", "c", "fail", reason), places, view.show_values)]


def quantiles(view: View) -> list[Finding]:
    """Judge quantiles by the people between them, where the number of people is there."""
    sheet = view.sheet
    shares = {j: q for j in view.numeric if (q := quantile_of(sheet.names[j])) and 0 < q < 1}
    by_row = {i: q for i, row in enumerate(sheet.texts) if (q := _row_quantile(view, row)) and 0 < q < 1}
    cells: list[tuple[int, int, float]] = []
    unknown = False
    if shares:
        steps = np.diff([0.0, *sorted(set(shares.values())), 1.0]).min()
        for i in range(len(sheet.texts)):
            some = [j for j in shares if view.known[i, j]]
            base = [sheet.numbers[i, j] for j in view.named_counts if view.known[i, j]]
            unknown |= bool(some) and not base
            cells += [(i, j, max(np.floor(steps * base[0] + 1e-9), 1)) for j in some if base]
    elif by_row:
        steps = np.diff([0.0, *sorted(set(by_row.values())), 1.0]).min()
        counts = [i for i, role in enumerate(sheet.row_roles) if role == "count"]
        for j in view.numeric:
            base = [sheet.numbers[i, j] for i in counts if view.known[i, j]]
            some = [i for i in by_row if view.known[i, j]]
            unknown |= bool(some) and not base
            cells += [(i, j, max(np.floor(steps * base[0] + 1e-9), 1)) for i in some if base]
    found = [view.low("between quantiles", cells, "b", "quantile with people around it")] if cells else []
    if unknown:
        reason = "Quantiles without the number of people behind them. A human asks for it."
        found.append(Finding("quantiles without counts", "b", "review", reason))
    return found


def _row_quantile(view: View, row: tuple[str, ...]) -> float | None:
    labels = np.flatnonzero(view.sheet.is_text)
    return next((q for j in labels if (q := quantile_of(row[j])) is not None), None)


def spread(view: View) -> list[Finding]:
    """Fail a spread of zero: everybody has the same value."""
    flat = view.having("spread") & view.known & (view.sheet.numbers == 0)
    if not flat.any():
        return []
    reason = f"{counted(int(flat.sum()), 'group')} without spread: everybody has the same value."
    places = [(int(i), int(j)) for i, j in np.argwhere(flat)]
    return [at(view.sheet, Finding("no spread", "i", "fail", reason), places, view.show_values)]
