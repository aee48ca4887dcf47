"""One output of a session: its numbers, its status, how its table is laid out, and its sheet in a workbook."""

from __future__ import annotations

import html
import importlib.util
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags
from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.register import Registered

if TYPE_CHECKING:
    from discreet.outputs.session_questions import Recorder


MARKS: dict[Status, str] = {"pass": "✓", "review": "?", "fail": "✗"}
FREE, SECONDARY = "F", "D"
FLAG_NAMES = {
    "F": "free for publication",
    "A": "primary confidentiality: small count",
    "O": "primary confidentiality: dominance by one unit",
    "T": "primary confidentiality: dominance by two units",
    "G": "primary confidentiality: dominance by one or two units",
    "M": "primary confidentiality: other measures of concentration",
    "C": "confidential: other rule",
    "D": "secondary confidentiality, set by the sender",
}


@dataclass(frozen=True)
class Draft:
    """What an analysis hands to the session: numbers, checks, and what the register keeps.

    Attributes
    ----------
    kind
        Name of the statistic.
    tables
        What would go out, by name.
    flags
        For each table, one of the same shape with an SDMX-style confidentiality flag for every number.
    result
        What the researcher works on with; the first table unless given.
    offered
        The mitigations that this analysis can do by itself.
    """

    kind: str
    tables: Mapping[str, pl.DataFrame]
    checked: CheckResult
    flags: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    entries: tuple[Registered, ...] = ()
    result: Any = None
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    mitigation: str | None = None
    offered: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, repr=False)
class Output:
    """An output with its status.

    Attributes
    ----------
    name
        Its name in the session.
    status
        ``pass``, ``review`` or ``fail``.
    reasons
        Why it does not pass, failures first.
    mitigations
        What could mend it.
    questions
        What only a human can judge.
    result
        The numbers to work on with: a table of the kind of the data, or the fitted model.
    tables
        What would go out.
    exception
        The researcher's reason why it should go out although it does not pass; empty unless asked for.
    """

    name: str
    draft: Draft
    checked: CheckResult
    command: str
    created: str
    result: Any
    comments: tuple[str, ...] = ()
    exception: str = ""

    @property
    def status(self) -> Status:
        """Fail if any check fails, else review if any needs a human, else pass."""
        return self.checked.status

    @property
    def kind(self) -> str:
        """Name of the statistic."""
        return self.draft.kind

    @property
    def barns(self) -> tuple[str, ...]:
        """The statbarns whose rules were checked."""
        return self.checked.barns

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Check by check."""
        return self.checked.findings

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not pass, failures first."""
        return self.checked.reasons

    @property
    def mitigations(self) -> tuple[str, ...]:
        """What could mend it, of what the analysis can do by itself."""
        return tuple(how for how in self.checked.mitigations if how in self.draft.offered)

    @property
    def questions(self) -> tuple[str, ...]:
        """What only a human can judge."""
        return self.checked.questions

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """What would go out, by name."""
        return self.draft.tables

    @property
    def table(self) -> pl.DataFrame:
        """The first table."""
        return next(iter(self.draft.tables.values()), pl.DataFrame())

    @property
    def flags(self) -> pl.DataFrame:
        """The confidentiality flags of the first table."""
        return next(iter(self.draft.flags.values()), pl.DataFrame())

    @property
    def line(self) -> str:
        """Status and reasons in one line."""
        why = f" {' '.join(self.reasons)}" if self.reasons else ""
        how = (
            f" Could help: {', '.join(self.mitigations)}."
            if self.status == "fail" and self.mitigations
            else ""
        )
        return f"{self.name} ({self.kind}): {self.status}.{why}{how}"

    def but(self, **changes: Any) -> Output:
        """Return the output with something changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the numbers, ready for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "command": self.command,
            "created": self.created,
            "variables": list(self.draft.variables),
            "notes": list(self.draft.notes),
            "mitigation": self.draft.mitigation,
            "comments": list(self.comments),
            "exception": self.exception,
            **self.checked.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{MARKS[self.status]} {self.line}"]
        with pl.Config(
            tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=40, tbl_cols=20
        ):
            lines += [str(table) for table in self.tables.values()]
        lines += [f"Note: {note}" for note in self.draft.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{MARKS[self.status]} {html.escape(self.line)}</strong></p>"]
        parts += [table._repr_html_() for table in self.tables.values()]
        parts += [f"<p>{html.escape(note)}</p>" for note in self.draft.notes]
        return "".join(parts)


# How cells become a table to read: rows, columns, margins, and a flag for every number.


TOTAL = "Total"
MISSING = "(missing)"


@dataclass(frozen=True)
class Margins:
    """The totals of a table over its rows, its columns, and both; missing where they are not shown."""

    rows: Array
    columns: Array
    all: Any


def wide(
    by: Sequence[str],
    levels: Sequence[Sequence[Any]],
    numbers: Array,
    *,
    columns: int = 0,
    margins: Margins | None = None,
    heading: str = "count",
) -> pl.DataFrame:
    """Lay cells out: the last ``columns`` dimensions go across, the others down.

    Examples
    --------
    >>> table = wide(["sex", "job"], [["f", "m"], ["a", "b"]], np.array([[1, 2], [3, 4]]), columns=1)
    >>> table.columns, table.rows()
    (['sex', 'a', 'b'], [('f', 1, 2), ('m', 3, 4)])
    """
    down = len(by) - columns
    row_keys = list(product(*(map(text, known) for known in levels[:down]))) or [()]
    column_keys = list(product(*(map(text, known) for known in levels[down:]))) or [()]
    flat = numbers.reshape(len(row_keys), len(column_keys))
    names = _column_names(column_keys, heading, taken=set(by[:down]))
    frame: dict[str, list[Any]] = {name: [key[i] for key in row_keys] for i, name in enumerate(by[:down])}
    for j, name in enumerate(names):
        frame[name] = _plain(flat[:, j])
    if margins is not None:
        if down:
            for i, name in enumerate(by[:down]):
                frame[name].append(TOTAL if i == 0 else "")
            for j, name in enumerate(names):
                frame[name] += _plain(np.asarray(margins.columns).reshape(-1)[j : j + 1])
        if columns:
            ends = _plain(np.asarray(margins.rows).reshape(-1)) + (
                _plain(np.asarray([margins.all])) if down else []
            )
            frame[_free(TOTAL, set(frame))] = ends
    return pl.DataFrame(frame, strict=False)


def flags_of(
    shape: tuple[int, ...],
    checked: CheckResult,
    *,
    primary: Flags | None = None,
    secondary: Flags | None = None,
) -> Array:
    """Give every cell its confidentiality flag, by the rule that hit; small counts and dominance go before others.

    Examples
    --------
    >>> from discreet.outputs.checks import check_counts
    >>> flags_of((2, 2), check_counts([[12, 9], [0, 30]])).tolist()
    [['C', 'A'], ['C', 'C']]
    """
    flags = np.full(shape, FREE, dtype=object)
    order = ["low count", "numerator", "complement", "denominator", "dominance", "p%"]
    failing = [finding for finding in checked.findings if finding.status == "fail"]
    failing.sort(key=lambda f: order.index(f.check) if f.check in order else len(order), reverse=True)
    for finding in failing:
        for cell in finding.cells:
            if len(cell) == len(shape) and all(i < n for i, n in zip(cell, shape, strict=True)):
                flags[cell] = _flag(finding.check, finding.figures.get("n"))
    if primary is not None:
        flags[primary & (flags == FREE)] = "C"
    if secondary is not None:
        flags[secondary] = SECONDARY
    return flags


def text(level: Any) -> str:
    """Write a level of a dimension."""
    return MISSING if level is None else str(level)


def _flag(check: str, n: Any) -> str:
    if check in ("low count", "numerator", "complement", "denominator"):
        return "A"
    if check == "dominance":
        return {1: "O", 2: "T"}.get(n, "M")
    return "G" if check == "p%" else "C"


def _column_names(keys: list[tuple[str, ...]], heading: str, taken: set[str]) -> list[str]:
    names: list[str] = []
    for key in keys:
        name = _free(" / ".join(key) or heading, taken)
        taken.add(name)
        names.append(name)
    return names


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += " "
    return name


def _plain(numbers: Array) -> list[Any]:
    listed = numbers.tolist()
    return [None if isinstance(n, float) and np.isnan(n) else n for n in listed]


# Outputs as an Excel workbook: a status symbol for each, and a confidentiality flag beside every number.


_COLORS = {"pass": "#C6EFCE", "review": "#FFEB9C", "fail": "#FFC7CE"}
_LONGEST = 31


def workbook(session: Recorder) -> bytes | None:
    """Write the outputs of a session as a workbook; None where the extra for Excel is not installed."""
    if importlib.util.find_spec("xlsxwriter") is None:
        return None
    import xlsxwriter

    stream = io.BytesIO()
    # Texts stay texts: a label that starts with "=" must not become a formula, and no time of writing is kept.
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "nan_inf_to_errors": True,
    }
    book = xlsxwriter.Workbook(stream, options)
    import datetime

    book.set_properties(
        {"title": "Outputs for checking", "created": datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC)}
    )
    bold = book.add_format({"bold": True})
    shades = {status: book.add_format({"bg_color": color}) for status, color in _COLORS.items()}
    front = book.add_worksheet("status")
    titles = ("", "output", "statistic", "status", "why", "exception asked for", "sheet")
    front.write_row(0, 0, titles, bold)
    taken = {"status", "flags"}
    for row, output in enumerate(session, start=1):
        sheet = _sheet_name(output.name, taken)
        front.write(row, 0, MARKS[output.status], shades[output.status])
        front.write_row(
            row,
            1,
            (output.name, output.kind, output.status, " ".join(output.reasons), output.exception, sheet),
        )
        _write_output(book.add_worksheet(sheet), output, bold, shades)
    front.autofit()
    legend = book.add_worksheet("flags")
    legend.write_row(0, 0, ("flag", "meaning (after the SDMX code list of confidentiality status)"), bold)
    for row, (flag, meaning) in enumerate(FLAG_NAMES.items(), start=1):
        legend.write_row(row, 0, (flag, meaning))
    book.close()
    return stream.getvalue()


def _write_output(sheet: Any, output: Output, bold: Any, shades: dict[str, Any]) -> None:
    sheet.write(0, 0, f"{MARKS[output.status]} {output.status}", shades[output.status])
    sheet.write(0, 1, output.line)
    row = 2
    for title, table in output.tables.items():
        sheet.write(row, 0, title, bold)
        row = _write_table(sheet, row + 1, table, output.draft.flags.get(title), bold, shades) + 1
    for note in output.draft.notes:
        sheet.write(row, 0, note)
        row += 1


def _write_table(  # noqa: PLR0917
    sheet: Any, row: int, table: pl.DataFrame, flags: pl.DataFrame | None, bold: Any, shades: dict[str, Any]
) -> int:
    """Write a table with a narrow column of flags behind every column of numbers."""
    place = 0
    for name in table.columns:
        flagged = flags is not None and name in flags.columns and table.schema[name] != pl.String
        sheet.write(row, place, name, bold)
        marks = flags[name].to_list() if flags is not None and flagged else []
        if flagged:
            sheet.write(row, place + 1, "conf_status", bold)
        for i, value in enumerate(table[name].to_list()):
            mark = marks[i] if i < len(marks) else None
            shade = shades["fail"] if mark not in (None, FREE) else None
            _write_value(sheet, row + 1 + i, place, value, shade)
            if flagged:
                sheet.write(row + 1 + i, place + 1, mark or FREE, shade)
        place += 2 if flagged else 1
    return row + 1 + table.height


def _write_value(sheet: Any, row: int, column: int, value: Any, shade: Any) -> None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        sheet.write(row, column, "c" if shade is not None else "", shade)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value, shade)
    else:
        sheet.write_string(row, column, str(value), shade)


def _sheet_name(name: str, taken: set[str]) -> str:
    plain = "".join("_" if sign in "[]:*?/\\'" else sign for sign in name)[:_LONGEST]
    number = 2
    candidate = plain
    while candidate.lower() in taken:
        candidate = f"{plain[: _LONGEST - 4]}_{number}"
        number += 1
    taken.add(candidate.lower())
    return candidate
