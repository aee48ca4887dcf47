"""How a table looks: wide, as text, in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError, need_known

if TYPE_CHECKING:
    from discreet.tables.table import Table


_SHOWN = 12


def laid_out(
    table: Table,
    rows: str | Sequence[str] | None,
    columns: str | None,
    *,
    value: str,
    table_name: str | None = None,
) -> pl.DataFrame:
    """Lay a table out with one dimension across; see `Table.wide`."""
    across = columns or table.dimensions[-1]
    every = [name for name in table.dimensions if name != across]
    down = every if rows is None else [rows] if isinstance(rows, str) else list(rows)
    need_known((*down, across), table.dimensions, what="dimension")
    need_known([value], table.cells.columns)
    if across in down:
        raise ParameterError(f"'{across}' cannot be both down and across. Choose another one for columns.")
    kept = np.ones(table.cells.height, dtype=bool) if table_name is None else table.in_table(table_name)
    for name in table.dimensions:
        if name not in (*down, across):
            kept &= table.codes[name] == 0
    cells = table.cells.filter(pl.Series(kept))
    there = [code for code in table.hierarchy[across].codes if code in set(cells[across].unique().to_list())]
    frame = cells.select(*down, across, value)
    if not down:
        frame = frame.with_columns(pl.lit(value).alias("cells"))
    spread = frame.pivot(across, index=down or ["cells"], values=value, maintain_order=True)
    return spread.select(*(down or ["cells"]), *there)


def summary_line(table: Table) -> str:
    """Say in one line what the table holds."""
    linked = f"{len(table.tables)} linked tables" if len(table.tables) > 1 else "table"
    primary = ""
    if "primary" in table.cells.columns:
        primary = f", {int(table.cells['primary'].sum()):,} of them sensitive"
    return (
        f"{linked} {' + '.join(table.tables)} of {table.value}: {table.cells.height:,} cells{primary}, "
        f"made of {table.inner.height:,} inner cells"
    )


def as_text(table: Table) -> str:
    """Print a table: what it is, its dimensions and its first cells."""
    lines = [f"<Table: {summary_line(table)}>"]
    for name in table.dimensions:
        dimension = table.hierarchy[name]
        lines.append(
            f"  {name}: {len(dimension.leaves):,} lowest codes, {len(dimension.codes):,} in all"
            + (f", {len(dimension.chains)} hierarchies" if len(dimension.chains) > 1 else "")
        )
    lines += [f"Note: {note}" for note in table.notes]
    return "\n".join(lines)


def as_html(table: Table) -> str:
    """Render a table for a notebook: the first cells in a tidy grid, sensitive ones marked."""
    shown = table.cells.head(_SHOWN)
    heads = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in shown.columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape('' if entry is None else str(entry))}</td>" for entry in row)
        + "</tr>"
        for row in shown.iter_rows()
    )
    more = table.cells.height - shown.height
    rest = f"<p>… and {more:,} more cells.</p>" if more > 0 else ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    return (
        f"<p>{html.escape(summary_line(table).capitalize())}.</p><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{rest}" + (f"<ul>{notes}</ul>" if notes else "")
    )
