"""Outputs as an Excel workbook: a status symbol for each, and a confidentiality flag beside every number."""

from __future__ import annotations

import importlib.util
import io
import math
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.outputs.result import FLAG_NAMES, FREE, MARKS

if TYPE_CHECKING:
    from discreet.outputs.recording import Recorder
    from discreet.outputs.result import Output

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
