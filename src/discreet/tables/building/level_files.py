"""Which levels stand above the codes of a column? Read from a file as people have it, in whichever of three forms.

A ``.hrc`` file of tau-ARGUS; a code list with the columns child and parent; or a table with one column a level, the
finest first or last, with or without a line of names.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from discreet.core.errors import InputError
from discreet.hierarchy import Hierarchy
from discreet.hierarchy.enumerated import read_rows


def hierarchy_from(path: Path, column: str, codes: Collection[str], *, closed: bool = False) -> Hierarchy:
    r"""Read a file of levels; ``codes`` are those of the column and tell which end of a line is the finest.

    A first line with the name of the column holds names. So does one that holds no code of the column and no group of
    another line, except where the file is ``closed``: there it declares which codes can occur, and what it declares
    must not hang on the data.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = place.write_text("region,town\nNorth,a\nNorth,b\nSouth,c\n")
    >>> hierarchy_from(place, "town", ["a", "b", "c"]).table().rows()
    [('a', 'North', '*'), ('b', 'North', '*'), ('c', 'South', '*')]
    """
    if not path.is_file():
        raise InputError(f"There is no hierarchy file '{path.name}'.")
    if path.suffix.lower() == ".hrc":
        from discreet.tables.argus import read_hierarchy

        return read_hierarchy(path)
    rows = read_rows(path, separator=None, header=False, encoding="utf-8")
    names = [label.strip().lower() for label in rows[0]]
    if {"child", "parent"} <= set(names):
        from discreet.tables.building.dimension_sources import from_code_list

        return from_code_list(pl.DataFrame(rows[1:], schema=names, orient="row"))
    known = set(codes)
    lines = rows if _is_finest_first(rows, known, path) else [row[::-1] for row in rows]
    if column.lower() in names or not (closed or _may_be_codes(lines, known)):
        lines = lines[1:]
    if not lines:
        raise InputError(f"The hierarchy file '{path.name}' holds names of levels and no codes.")
    levels = [f"level {place}" for place in range(len(names))]
    return Hierarchy.from_table(pl.DataFrame(lines, schema=levels, orient="row"))


def _is_finest_first(rows: list[list[str]], codes: set[str], path: Path) -> bool:
    """Whether the codes of the column stand first; groups may be codes too, but the finer end has more of them."""
    first, last = (len({row[place] for row in rows} & codes) for place in (0, -1))
    if codes and not first and not last:
        raise InputError(
            f"'{path.name}' holds no code of the column, neither in its first nor in its last column. Give one line a "
            "code, with the codes of the file at one end and coarser ones beside them."
        )
    return first >= last


def _may_be_codes(lines: list[list[str]], codes: set[str]) -> bool:
    """Whether the first line holds a code of the column, or a group that other codes have too."""
    first, *others = lines
    grouped = (label in {line[place] for line in others} for place, label in enumerate(first) if place)
    return first[0] in codes or any(grouped)
