"""The HTML report of a protected table: the pattern, the audit, before and after, what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet._version import __version__
from discreet.core.charts import Bars
from discreet.core.guarantees import NOT_COMPARED
from discreet.core.values import jsonable
from discreet.core.wording import label_of, percent, shown, worded
from discreet.report.page_words import flat
from discreet.report.templating import rendered, written_page
from discreet.tables.table_protection import ProtectedTable

if TYPE_CHECKING:
    from discreet.core.guarantees import DifferentialPrivacy, Spending
    from discreet.core.results import Measure
    from discreet.tables.table import Table
    from discreet.tables.table_suppression import SuppressionResult


_SIGNED = ("name", "role", "date", "decision", "remarks")
_LABELS = {
    "cells": "Cells",
    "primary": "Sensitive cells (primary)",
    "secondary": "Left out to protect them (secondary)",
    "secondary_value": "Sum of the cells left out to protect others",
    "repaired": "Cells left out when the pattern was mended",
    "mean_absolute": "Mean change of a cell",
    "largest_absolute": "Largest change of a cell",
    "root_mean_square": "Root mean square change of a cell",
    "mean_relative": "Mean change of a cell, relative",
}
"""Under this name the words of figures are those of tables: their cells are no groups of records."""


@dataclass(frozen=True)
class _Case:
    """What both kinds of result have in common, ready to be shown."""

    method: str
    before: Table
    after: Any
    states: list[str | None]
    lost: Measure | None
    state: str
    mark: str
    heading: str
    sentence: str
    checks: tuple[str, ...]
    notes: tuple[str, ...]
    settings: dict[str, Any]
    figures: dict[str, Any]
    guarantee: str | None
    why_none: str
    private: DifferentialPrivacy | None = None
    spending: Spending | None = None


def render_table_report(
    result: ProtectedTable | SuppressionResult,
    *,
    show_values: bool = False,
    signed: Mapping[str, str] | None = None,
) -> str:
    """Return the report of a protected table as HTML text.

    Parameters
    ----------
    result
        What a protection gave back.
    show_values
        Show the true values beside the published ones. The report must then be handled like the data.
    signed
        What is filled in in the block to sign: name, role, date, decision (``release``, ``conditions``, ``no``) and
        remarks. Left empty without, to be signed by hand.

    Examples
    --------
    >>> from discreet.tables import ControlledRounding, Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 7 + ["b"] * 4}), "place")
    >>> "controlled-rounding" in render_table_report(ControlledRounding(base=5).apply(table))
    True
    """
    case = (
        _protected(result, show_values=show_values)
        if isinstance(result, ProtectedTable)
        else _suppressed(result)
    )
    lost = case.lost
    about: dict[str, Any] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
    }
    if signed:
        about["signed"] = {name: signed.get(name, "") for name in _SIGNED}
    return rendered(
        "table.html",
        about=about,
        case=case,
        cards=cards_of(lost) if lost else (),
        charts=tuple(level_chart(lost)) if lost else (),
        facts=_facts(case),
        figures=[(_label(n), n, flat(v)) for n, v in jsonable(case.figures).items() if v is not None],
        losses=[] if lost is None else _figures(lost),
        not_compared=NOT_COMPARED,
        settings=[
            (name, flat(value)) for name, value in jsonable(case.settings).items() if value is not None
        ],
        sheets=sheets_of(case.before, case.after, case.states, show_values=show_values),
        show_values=show_values,
        title=" + ".join(case.before.tables),
    )


def write_table_report(
    result: ProtectedTable | SuppressionResult,
    path: str | Path,
    *,
    show_values: bool = False,
    signed: Mapping[str, str] | None = None,
) -> Path:
    """Write the report of a protected table and return its path; an older report there is replaced.

    The parameters are those of `render_table_report`.

    Raises
    ------
    InputError
        When the folder is missing or cannot be written to. Nothing half-written is left behind.
    """
    from discreet.core.files.atomic import check_target

    check_target(Path(path), overwrite=True)
    return written_page(path, render_table_report(result, show_values=show_values, signed=signed))


def _protected(result: ProtectedTable, *, show_values: bool) -> _Case:
    step = result.log[-1]
    value = result.table.value
    guaranteed = result.guarantee is not None
    # What it cost is counted in the true table: a report that may show true values may show that too.
    lost = None if guaranteed and not show_values else result.information
    return _Case(
        method=step.treatment,
        before=result.original,
        after=result.table.cells[value].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        states=[None] * result.original.cells.height,
        lost=lost,
        state="pass" if guaranteed else "open",
        mark="✓" if guaranteed else "?",
        heading="Protected, with a formal guarantee"
        if guaranteed
        else "Protected, without a formal guarantee",
        sentence=lost.meaning if lost else NOT_COMPARED,
        checks=(),
        notes=result.notes,
        settings=dict(step.parameters),
        figures=dict(result.figures),
        guarantee=result.guarantee,
        why_none=result.why_none,
        private=result.private,
        spending=result.spending,
    )


def _suppressed(result: SuppressionResult) -> _Case:
    from discreet.tables.information_loss import information_loss

    table = result.table
    after = np.where(result.suppressed, np.nan, table.cells[table.value].cast(pl.Float64).to_numpy())
    safe = result.audit.safe
    # What was not tested belongs where the verdict is read.
    nothing = "The audit found nothing" + (
        "" if result.audit.intervals is not None else "; intervals were not tested"
    )
    return _Case(
        method=f"suppression ({result.parameters.get('method', 'gauss')})",
        before=table,
        after=after,
        states=table.cells["suppressed"].to_list(),
        lost=information_loss(table, after),
        state="pass" if safe else "fail",
        mark="✓" if safe else "✗",
        heading=nothing if safe else "The audit found a disclosure",
        sentence=result.summary(),
        checks=tuple(result.audit.sentences),
        notes=tuple(table.notes),
        settings=dict(result.parameters),
        figures=dict(result.figures),
        guarantee=None,
        why_none="suppressed cells are protected against what the audit tested, not against what else may be known.",
    )


def _facts(case: _Case) -> list[tuple[str, str]]:
    table, published = case.before, int((~np.isnan(case.after)).sum())
    codes = ", ".join(f"{name} ({len(table.hierarchy[name].codes):,} codes)" for name in table.dimensions)
    return [
        ("Tables", table.formula.text),
        ("Value", table.value),
        ("Dimensions", codes),
        ("Sensitive by", ", ".join(case.before.rules) or "no rule was named"),
        ("Cells", f"{len(case.after):,}"),
        ("Published cells", f"{published:,}"),
        ("Left out", f"{len(case.after) - published:,}"),
        ("Inner cells", f"{table.inner.height:,}"),
    ]


def _figures(lost: Measure) -> list[tuple[str, str, str]]:
    return [
        (_label(name), name, worded(name, figure, measure=lost.name))
        for name, figure in lost.figures.items()
        if figure is not None
    ]


def _label(name: str) -> str:
    return _LABELS.get(name) or label_of(name)


# The parts of the report, worked out before any HTML is written: the grids of cells, the cards, the words.


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
