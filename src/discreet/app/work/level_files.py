"""Which levels stand above the codes of a column? Read from a file as people have it, in whichever of three forms.

A ``.hrc`` file of tau-ARGUS; a code list with the columns child and parent; or a table with one column a level, the
finest first or last, with or without a line of names.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from discreet import engine
from discreet.errors import InputError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.hierarchy.files import read_rows
from discreet.microdata import Microdata
from discreet.tables.argus import read_hierarchy
from discreet.tables.building.dimension_sources import from_code_list
from discreet.value_text import canonical_text


def levels_of(data: Microdata, column: str, file: str) -> Hierarchy:
    """Read the levels above the codes of a column of a file."""
    path = Path(file).expanduser()
    if not path.is_absolute():
        raise ParameterError(f"Name the hierarchy file of '{column}' in full, from the root of this machine.")
    codes = engine.collect(data, [column])[column].unique().drop_nulls()
    return hierarchy_from(path, set(canonical_text(codes).to_list()))


def hierarchy_from(path: Path, codes: set[str]) -> Hierarchy:
    r"""Read a file of levels; ``codes`` are those of the column and tell which end of a line is the finest.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = place.write_text("region,town\nNorth,a\nNorth,b\nSouth,c\n")
    >>> hierarchy_from(place, {"a", "b", "c"}).table().rows()
    [('a', 'North', '*'), ('b', 'North', '*'), ('c', 'South', '*')]
    """
    if not path.is_file():
        raise InputError(f"There is no hierarchy file '{path.name}'.")
    if path.suffix.lower() == ".hrc":
        return read_hierarchy(path)
    rows = [
        [str(label) for label in row]
        for row in read_rows(path, separator=None, header=False, encoding="utf-8")
    ]
    names = [label.strip().lower() for label in rows[0]]
    if {"child", "parent"} <= set(names):
        return from_code_list(pl.DataFrame(rows[1:], schema=names, orient="row"))
    first, last = (sum(row[place] in codes for row in rows) for place in (0, -1))
    if not first and not last:
        raise InputError(
            f"'{path.name}' holds no code of the column, neither in its first nor in its last column. Give one line a "
            "code, with the codes of the file at one end and coarser ones beside them."
        )
    lines = rows if first >= last else [row[::-1] for row in rows]
    if lines[0][0] not in codes:  # a line of names
        lines = lines[1:]
    levels = [f"level {place}" for place in range(len(names))]
    return Hierarchy.from_table(pl.DataFrame(lines, schema=levels, orient="row"))
