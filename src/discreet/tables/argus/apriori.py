"""A-priori files (``.hst``): what is known of single cells before the rules are applied.

::

    Nr,4,u
    Zd,6,p
    Total,5,c,5
    Nr,8,pl,10,5

The codes of the cell come first, then ``u`` (unsafe), ``s`` (safe), ``p`` (protected: must be published), ``c`` and a
new cost, or ``pl`` and the lower and upper protection level.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.tables.argus.hierarchies import text_lines
from discreet.tables.building.table import Table
from discreet.tables.rules.judging import flags_of

_MORE = {"u": 0, "s": 0, "p": 0, "c": 1, "pl": 2}


def read_apriori(
    path: str | Path,
    dimensions: Sequence[str],
    *,
    separator: str = ",",
    total: str = "Total",
    encoding: str = "utf-8",
) -> pl.DataFrame:
    r"""Read an a-priori file.

    Parameters
    ----------
    path
        The file.
    dimensions
        The columns that the codes belong to, in the order of the file.
    separator
        What stands between the entries.
    total
        The code of the totals; an empty code is one as well.
    encoding
        The text encoding.

    Returns
    -------
    DataFrame
        The dimensions, ``status``, ``cost``, ``lower_protection``, ``upper_protection``.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "known.hst"
    >>> _ = file.write_text("Nr,4,u\nTotal,5,c,5\n")
    >>> read_apriori(file, ["region", "size"]).select("region", "size", "status", "cost").rows()
    [('Nr', '4', 'u', None), ('Total', '5', 'c', 5.0)]
    """
    rows = []
    for number, line in enumerate(text_lines(Path(path), encoding), 1):
        parts = [part.strip().strip('"') for part in line.split(separator)]
        codes, rest = parts[: len(dimensions)], parts[len(dimensions) :]
        status = rest[0].lower() if rest else ""
        if status not in _MORE or len(rest) < 1 + _MORE[status]:
            raise InputError(
                f"Line {number} of '{Path(path).name}' is not {len(dimensions)} codes and a status (u, s, p, c with a "
                "cost, pl with two levels). Check the dimensions and the separator."
            )
        try:
            numbers = [float(entry) for entry in rest[1 : 1 + _MORE[status]]]
        except ValueError as error:
            raise InputError(
                f"Line {number} of '{Path(path).name}' has a cost or level that is no number."
            ) from error
        rows.append(
            [
                *(code or total for code in codes),
                status,
                numbers[0] if status == "c" else None,
                *(numbers if status == "pl" else [None, None]),
            ]
        )
    figures = ("cost", "lower_protection", "upper_protection")
    texts = [(name, pl.String()) for name in (*dimensions, "status")]
    return pl.DataFrame(rows, schema=[*texts, *((name, pl.Float64()) for name in figures)], orient="row")


def write_apriori(known: pl.DataFrame, path: str | Path, *, separator: str = ",") -> Path:
    """Write what `read_apriori` reads and return the path."""
    figures = ("cost", "lower_protection", "upper_protection")
    dimensions = [column for column in known.columns if column not in ("status", *figures)]
    lines = []
    for row in known.iter_rows(named=True):
        status = row["status"]
        if status not in _MORE:
            raise ParameterError("status must be u, s, p, c or pl.")
        more = {"c": figures[:1], "pl": figures[1:]}.get(status, ())
        entries = [*(str(row[name]) for name in dimensions), status, *(f"{row[name]:g}" for name in more)]
        if any(separator in entry for entry in entries):
            raise ParameterError("A code holds the separator. Choose another separator.")
        lines.append(separator.join(entries) + "\n")
    with replacing(path) as unfinished:
        unfinished.write_text("".join(lines), encoding="utf-8")
    return Path(path)


def apply_apriori(table: Table, known: pl.DataFrame) -> Table:
    """Apply what is known of single cells, after the rules and over their heads.

    Unsafe cells become sensitive (rule ``a priori``), safe ones not; protected cells get ``forced``; costs and
    protection levels go to ``cost`` and ``protection`` (the larger of the two levels).
    """
    cells = table.cells
    on = list(table.dimensions)
    primary = (
        cells["primary"].to_numpy().copy()
        if "primary" in cells.columns
        else np.zeros(cells.height, dtype=bool)
    )
    rule = cells["rule"].to_list() if "rule" in cells.columns else [None] * cells.height
    forced = np.zeros(cells.height, dtype=bool)
    cost = cells["cost"].to_numpy().copy() if "cost" in cells.columns else np.abs(table.values.astype(float))
    protection = (
        cells["protection"].to_numpy().copy() if "protection" in cells.columns else np.zeros(cells.height)
    )
    for status in _MORE:
        wanted = known.filter(pl.col("status") == status)
        if wanted.is_empty():
            continue
        hit = flags_of(table, wanted.select(on), "known")
        if status in ("u", "s"):
            primary[hit] = status == "u"
            for at in np.flatnonzero(hit):
                rule[at] = "a priori" if status == "u" else None
        elif status == "p":
            forced |= hit
        else:
            figure = "cost" if status == "c" else "level"
            level = wanted.with_columns(level=pl.max_horizontal("lower_protection", "upper_protection"))
            values = cells.select(on).join(level, on=on, how="left", maintain_order="left")[figure].to_numpy()
            target = cost if status == "c" else protection
            target[hit] = values[hit]
    rules = pl.Series("rule", rule, dtype=pl.String)
    return table.with_cells(primary=primary, rule=rules, forced=forced, cost=cost, protection=protection)
