"""A table of the file: which cells are sensitive, which others must go with them, and whether that holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench, history_of
from discreet.app.work.releasing import check_signed
from discreet.core.errors import ParameterError
from discreet.core.files.atomic import check_target, replacing_together
from discreet.core.values import canonical_text
from discreet.hierarchy import Hierarchy
from discreet.io import write
from discreet.microdata import Microdata
from discreet.report.table_report import Sheet, sheets_of, write_table_report
from discreet.tables import Dominance, PPercent, Suppression, SuppressionResult, Table, Threshold, primary
from discreet.tables.dimension_sources import hierarchy_from
from discreet.tables.earlier_tables import (
    TableRequest,
    earlier_tables,
    enter_table,
    not_held,
    suppressed_beside,
)

LEFT_OUT = ("primary", "secondary", "hidden")
RULES = {"threshold": 1, "p-percent": 1, "dominance": 2}


def protect_table(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    table: str,
    measure: str,
    hierarchies: Mapping[str, Sequence[str] | str],
    rule: str,
    numbers: Sequence[float],
    out: str | None = None,
    overwrite: bool = False,
    signed: Mapping[str, str] | None = None,
    show_values: bool = False,
) -> dict[str, Any]:
    """Build the table, suppress what must not be seen, audit it, and write it where it was asked for."""
    data = bench.with_roles(source, roles)
    targets = []
    if out is not None:
        with caused_by("out"):
            targets = _targets(Path(out.strip()).expanduser(), signed or {})
            for target in targets:  # known before any work is done
                check_target(target, overwrite=overwrite)
    with caused_by("hierarchies"):
        told = {
            column: _levels_of(data, column, given) if isinstance(given, str) else tuple(given)
            for column, given in hierarchies.items()
            if given
        }
    with caused_by("table"):
        if not table.strip():
            raise ParameterError("Choose at least one column for the rows and columns.")
        built = Table.from_microdata(data, table, measure=[measure] if measure else None, hierarchies=told)
    with caused_by("rule"):
        judged = primary(built, _rule(rule, list(numbers)))
        history = history_of(data, synthetic=True)
        asked = TableRequest(
            table,
            measure=[measure] if measure else None,
            hierarchies={
                name: [given if isinstance(given, str) else list(given)]
                for name, given in hierarchies.items()
                if given
            },
        )
        earlier, left = earlier_tables(history, data, asked, "suppression")
        result = suppressed_beside(Suppression(), judged, earlier)
    states = result.table.cells["suppressed"].to_list()
    after = np.where(
        result.suppressed, np.nan, result.table.cells[result.table.value].cast(pl.Float64).to_numpy()
    )
    written: list[str] = []
    if out is not None:
        clears = None if result.audit.safe and left else bool(result.audit.safe)
        otherwise = (
            "An earlier table could not be held against it." if left else "The audit found a disclosure."
        )
        check_signed(signed or {}, clears=clears, otherwise=otherwise)
        with caused_by("out"):
            written = _written(result, targets, signed or {}, overwrite=overwrite)
            if len(targets) > 1 and (result.audit.safe or (signed or {}).get("decision")):
                made = {**asked.to_dict(), "method": "suppression", "rules": [f"{rule}={numbers}"]}
                enter_table(history, result, targets[-1], made)
    return {
        "summary": result.summary(),
        "safe": bool(result.audit.safe),
        "audit": [*result.audit.sentences, *(not_held(name) for name in left), history.line],
        "notes": list(result.table.notes),
        "primary": states.count("primary"),
        "secondary": sum(state is not None for state in states) - states.count("primary"),
        "cells": len(states),
        "sheets": [
            _sheet(sheet, show_values=show_values)
            for sheet in sheets_of(result.table, after, states, show_values=show_values)
        ],
        "written": written,
        "signed": dict(signed or {}),
        "show_values": show_values,
    }


def _levels_of(data: Microdata, column: str, file: str) -> Hierarchy:
    """Read the levels above the codes of a column here, so that a fault of the file stands beside its field."""
    path = Path(file).expanduser()
    if not path.is_absolute():
        raise ParameterError(f"Name the hierarchy file of '{column}' in full, from the root of this machine.")
    codes = engine.collect(data, [column])[column].unique().drop_nulls()
    return hierarchy_from(path, column, canonical_text(codes).to_list())


def _rule(rule: str, numbers: list[float]) -> Any:
    if (
        rule not in RULES
        or len(numbers) < RULES[rule]
        or any(number is None for number in numbers[: RULES[rule]])
    ):
        raise ParameterError(
            "The rule needs its numbers: one for a threshold or p percent, two for dominance."
        )
    whole = [int(number) if float(number).is_integer() else float(number) for number in numbers]
    if rule == "threshold":
        return Threshold(whole[0])
    if rule == "p-percent":
        return PPercent(p=whole[0])
    return Dominance(n=int(whole[0]), k=whole[1])


def _sheet(sheet: Sheet, *, show_values: bool) -> dict[str, Any]:
    """Lay out one table; without values only the pattern is shown, and codes are numbers of rows and columns."""
    rows = []
    for number, (codes, squares) in enumerate(sheet.rows, start=1):
        # A code stands as far in as it is below the total of its dimension, also where it is masked.
        depth = max((below for _, below in codes), default=0)
        named = " / ".join(code for code, _ in codes) if show_values else f"row {number}"
        name = "\N{EM SPACE}" * depth + named
        rows.append(
            {
                "name": name,
                "cells": [
                    {
                        "text": square.text if show_values or square.state in LEFT_OUT else "●",
                        "state": square.state,
                    }
                    for square in squares
                ],
            }
        )
    columns = sheet.columns if show_values else [f"{number}" for number in range(1, len(sheet.columns) + 1)]
    return {
        "name": sheet.name,
        "down": " / ".join(sheet.down),
        "across": sheet.across,
        "columns": list(columns),
        "rows": rows,
        "left_out": sheet.left_out,
        "columns_left_out": sheet.columns_left_out,
    }


def _targets(place: Path, signed: Mapping[str, str]) -> list[Path]:
    """Where report and table go; where the table is not to be released, the report alone."""
    if not place.is_absolute() or not place.name:
        raise ParameterError("Name the file in full, from the root of this machine.")
    report = place.with_name(place.name.split(".")[0] + "-report.html")
    return [report] if signed.get("decision") == "no" else [report, place]


def _written(
    result: SuppressionResult, targets: list[Path], signed: Mapping[str, str], *, overwrite: bool
) -> list[str]:
    """Write the table and its report, both or none."""
    with replacing_together(targets, overwrite=overwrite) as (page, *table):
        write_table_report(result, page, signed=signed)
        for unfinished in table:
            write(Microdata(result.published), unfinished)
    return [str(target) for target in reversed(targets)]
