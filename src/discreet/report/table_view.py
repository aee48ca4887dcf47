"""The parts of a table report, worked out before any HTML is written: the grids of cells, the cards, the words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.wording import percent, shown
from discreet.report.chart_kinds import Bars

if TYPE_CHECKING:
    from discreet.core.results import Measure
    from discreet.tables.building.table import Table

_MOST_ROWS = 60
_MOST_COLUMNS = 14
_MARKS = {"primary": "× p", "secondary": "× s", "hidden": "×"}


@dataclass(frozen=True)
class Square:
    """One cell of a grid: what stands in it, what it was (where values may be shown), and its state."""

    text: str
    state: str
    was: str = ""


@dataclass(frozen=True)
class Sheet:
    """One table laid out: the dimensions down, the codes across, and a square for each.

    A row is named by its codes, each with how far it stands below the total of its dimension.
    """

    name: str
    down: tuple[str, ...]
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[tuple[str, int], ...], tuple[Square, ...]], ...]
    left_out: int
    columns_left_out: int


def sheets_of(before: Table, after: Any, states: list[str | None], *, show_values: bool) -> list[Sheet]:
    """Lay out every linked table; ``after`` has one published value a cell (NaN where left out).

    ``states`` says for each cell why it is left out, None where it is published.
    """
    return [_sheet(before, name, after, states, show_values) for name in before.tables]


def _sheet(before: Table, name: str, after: Any, states: list[str | None], show_values: bool) -> Sheet:
    columns = before.formula.terms[before.tables.index(name)].columns
    across, down = columns[-1], columns[:-1]
    inside = np.flatnonzero(before.in_table(name))
    codes = {column: before.cells[column].gather(inside).to_list() for column in columns}
    present = set(codes[across])
    heads = [code for code in before.hierarchy[across].codes if code in present]
    kept = heads[:_MOST_COLUMNS]
    old = before.cells[before.value].cast(pl.Float64).to_numpy()
    lines: dict[tuple[str, ...], dict[str, Square]] = {}
    for at, cell in enumerate(inside.tolist()):
        row = tuple(codes[column][at] for column in down) or (before.value,)
        lines.setdefault(row, {})[codes[across][at]] = _square(
            old[cell], after[cell], states[cell], show_values
        )
    empty = Square("·", "empty")
    rows = [
        (_indented(before, down, row), tuple(found.get(code, empty) for code in kept))
        for row, found in lines.items()
    ]
    return Sheet(
        name,
        down or ("",),
        across,
        tuple(kept),
        tuple(rows[:_MOST_ROWS]),
        max(0, len(rows) - _MOST_ROWS),
        len(heads) - len(kept),
    )


def _indented(table: Table, down: tuple[str, ...], row: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    if not down:
        return tuple((code, 0) for code in row)
    dimensions = [table.hierarchy[column] for column in down]
    return tuple(
        (code, int(dimension.depth[dimension.place[code]]))
        for dimension, code in zip(dimensions, row, strict=True)
    )


def _square(old: float, new: float, state: str | None, show_values: bool) -> Square:
    was = number(old) if show_values else ""
    if state is not None or np.isnan(new):
        return Square(_MARKS.get(state or "", "×"), state or "hidden", was)
    changed = not np.isclose(old, new, rtol=1e-12, atol=0.0)
    return Square(number(new), "changed" if changed and show_values else "plain", was if changed else "")


def number(value: float) -> str:
    """Write a published value as people read it: whole numbers without decimals, others with four digits that count.

    Examples
    --------
    >>> number(1974310.0), number(1234567.25), number(3.14159), number(0.00012345)
    ('1,974,310', '1,234,567.2', '3.142', '0.0001234')
    """
    if np.isnan(value):
        return "·"
    if value == round(value):
        return f"{value:,.0f}"
    decimals = max(1, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def cards_of(lost: Measure) -> list[tuple[str, str, str]]:
    """The headline figures of what it cost: number, label, sentence."""
    f = lost.figures
    found = [(f"{f['cells']:,}", "cells", "of all tables together, left out or not.")]
    if f["suppressed"]:
        cells, value = percent(_share(f, "suppressed_share")), percent(_share(f, "suppressed_value_share"))
        found.append((f"{f['suppressed']:,}", "left out", f"{cells} of the cells, {value} of the value."))
    if f["changed"]:
        found.append((f"{f['changed']:,}", "changed", "are published with another value."))
        found.append((shown(f["mean_absolute"]), "mean deviation", "of a published cell from the true one."))
        found.append((shown(f["largest_absolute"]), "largest deviation", "of any published cell."))
    found.append(
        (
            f"{f['broken_sums']:,}",
            "broken sums",
            "published totals that no longer equal the sum of their parts.",
        )
    )
    return found


def level_chart(lost: Measure) -> list[Bars]:
    """How many cells of each level are left out, or how far they deviate, from the grand total down."""
    levels = lost.detail["levels"]
    labels = tuple("grand total" if level == 0 else f"level {level}" for level in levels["level"].to_list())
    charts = []
    if lost.figures["suppressed"]:
        shares = tuple((levels["suppressed"] / levels["cells"]).to_list())
        charts.append(
            Bars(
                "Cells left out, by level",
                labels,
                shares,
                "Share of the cells of a level, from the grand total down",
                tuple(False for _ in labels),
                horizontal=True,
            )
        )
    if lost.figures["changed"]:
        gaps = tuple(float(gap or 0.0) for gap in levels["mean_absolute"].to_list())
        charts.append(
            Bars(
                "Mean deviation, by level",
                labels,
                gaps,
                "Mean deviation of published cells, from the grand total down",
                tuple(False for _ in labels),
                horizontal=True,
                as_share=False,
            )
        )
    return charts


def _share(figures: Mapping[str, Any], name: str) -> float | None:
    value = figures[name]
    return None if value is None else float(value)
