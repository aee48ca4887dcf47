"""JJ tables (``.jj``): cells with their status and bounds, and the equations between them.

::

    0
    3
    0 30 30 s 0 60 0 0 0
    1 20 20 u 0 60 2 2 0
    2 10 10 u 0 60 1 1 0
    1
    0 3 : 0 (-1) 1 (1) 2 (1)

A line of a cell holds its number, value, cost, status (``s`` safe, ``u`` unsafe, ``z`` fixed), lower and upper bound,
and the lower, upper and sliding protection levels. An equation holds its right-hand side, the number of cells, and the
cells with their coefficients.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.tables.argus.hierarchies import text_lines
from discreet.tables.building.relations import equations
from discreet.tables.building.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NUMBERS = ("value", "cost", "lower", "upper", "lower_protection", "upper_protection", "sliding_protection")
_COLUMNS = ("cell", "value", "cost", "status", *NUMBERS[2:])
_PAIR = re.compile(r"(\d+)\s*\(\s*([-+]?\d+)\s*\)")


@dataclass(frozen=True)
class JJ:
    """A table as a list of cells and the equations between them.

    Attributes
    ----------
    cells
        ``cell``, ``value``, ``cost``, ``status``, ``lower``, ``upper`` and the three protection levels.
    equations
        A sparse matrix: rows equations, columns cells.
    right
        The right-hand sides, as a rule all zero.
    """

    cells: pl.DataFrame
    equations: csr_array
    right: tuple[float, ...]

    def check(self, tolerance: float = 1e-6) -> int:
        """Count the equations that the values do not meet."""
        values = self.cells["value"].to_numpy()
        left = self.equations @ values
        allowed = tolerance * np.maximum(np.abs(self.equations) @ np.abs(values), 1.0)
        return int((np.abs(left - np.asarray(self.right)) > allowed).sum())


def jj_of(table: Table) -> JJ:
    """Write a table as cells and equations; sensitive cells are unsafe, forced ones fixed.

    Costs are the column ``cost`` of the cells, else the absolute values; protection levels the column ``protection``.
    """
    cells = table.cells
    value = table.values.astype(np.float64)
    size = np.abs(value)
    unsafe = _flags(table, "primary")
    fixed = _flags(table, "forced")
    protection = cells["protection"].to_numpy() if "protection" in cells.columns else np.zeros(len(value))
    most = float(size.max(initial=0.0))
    frame = pl.DataFrame(
        {
            "cell": np.arange(len(value)),
            "value": value,
            "cost": cells["cost"].cast(pl.Float64) if "cost" in cells.columns else pl.Series(size),
            "status": np.where(unsafe, "u", np.where(fixed, "z", "s")),
            "lower": np.where((value < 0).any(), -2 * most, 0.0) * np.ones(len(value)),
            "upper": np.full(len(value), 2 * most),
            "lower_protection": protection,
            "upper_protection": protection,
            "sliding_protection": np.zeros(len(value)),
        }
    )
    sums = equations(table)
    return JJ(frame, sums, (0.0,) * sums.shape[0])


def write_jj(table: Table | JJ, path: str | Path) -> Path:
    """Write a JJ file and return its path; numbers keep all their digits."""
    jj = table if isinstance(table, JJ) else jj_of(table)
    lines = ["0", str(jj.cells.height)]
    lines += [
        f"{cell} {_number(value)} {_number(cost)} {status} " + " ".join(map(_number, rest))
        for cell, value, cost, status, *rest in jj.cells.select(_COLUMNS).iter_rows()
    ]
    lines.append(str(jj.equations.shape[0]))
    starts, indices, entries = jj.equations.indptr, jj.equations.indices, jj.equations.data
    for row, right in enumerate(jj.right):
        here = range(starts[row], starts[row + 1])
        parts = " ".join(f"{indices[at]} ({entries[at]:d})" for at in here)
        lines.append(f"{_number(right)} {len(here)} : {parts}")
    with replacing(path) as unfinished:
        unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(path)


def read_jj(path: str | Path) -> JJ:
    """Read a JJ file."""
    from scipy.sparse import csr_array

    name = Path(path).name
    lines = text_lines(Path(path))
    many = _count(lines, 1, name)
    body = lines[2 : 2 + many]
    split = [line.split() for line in body]
    if len(body) < many or any(len(parts) != len(_COLUMNS) for parts in split):
        raise InputError(
            f"'{name}' promises {many:,} cells of {len(_COLUMNS)} entries and does not hold them."
        )
    try:
        cells = pl.DataFrame(split, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row").with_columns(
            pl.col("cell").cast(pl.Int64), pl.col(NUMBERS).cast(pl.Float64)
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"'{name}' has a cell line with something else than numbers in it.") from error
    if not cells["status"].is_in(["s", "u", "z", "m", "p"]).all():
        raise InputError(f"'{name}' has a cell whose status is none of s, u, z, m and p.")
    place = {cell: at for at, cell in enumerate(cells["cell"].to_list())}
    count = _count(lines, 2 + many, name)
    rows, columns, entries, right = [], [], [], []
    for row, line in enumerate(lines[3 + many : 3 + many + count]):
        head, _, parts = line.partition(":")
        pairs = _PAIR.findall(parts)
        numbers = head.split()
        if (
            len(numbers) != 2
            or len(pairs) != int(numbers[1])
            or any(int(cell) not in place for cell, _ in pairs)
        ):
            raise InputError(f"Equation {row + 1} of '{name}' cannot be read or names an unknown cell.")
        right.append(float(numbers[0]))
        rows += [row] * len(pairs)
        columns += [place[int(cell)] for cell, _ in pairs]
        entries += [int(entry) for _, entry in pairs]
    if len(right) < count:
        raise InputError(f"'{name}' promises {count:,} equations and holds {len(right):,}.")
    matrix = csr_array((np.asarray(entries, dtype=np.int32), (rows, columns)), shape=(count, many))
    return JJ(cells, matrix, tuple(right))


def _count(lines: list[str], at: int, name: str) -> int:
    if len(lines) <= at or not lines[at].strip().isdigit():
        raise InputError(f"'{name}' is no JJ file: a number of cells or equations is missing.")
    return int(lines[at])


def _number(number: float) -> str:
    if not np.isfinite(number):
        raise ParameterError(
            "A JJ file cannot hold infinite or missing numbers. Check the values of the table."
        )
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(float(number))


def _flags(table: Table, column: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if column not in table.cells.columns:
        return np.zeros(table.cells.height, dtype=bool)
    return table.cells[column].to_numpy().astype(bool)
