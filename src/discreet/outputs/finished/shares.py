"""Shares and means of indicators in a finished table: with the number of people behind them they are counts."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Flags
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import base_of, is_total, words_of
from discreet.outputs.finished.views import View

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
