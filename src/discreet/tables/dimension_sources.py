"""Where the hierarchies of a table come from: trees, code lists, tau-ARGUS files, columns of the data.

For one column a user may give

- a `Hierarchy`, or a tree of nested dictionaries and lists as `Hierarchy.from_tree` takes it;
- the names of coarser columns of the data, fine to coarse: ``("county", "state")`` or just ``"county"``;
- a code list: a data frame with the columns ``child`` and ``parent``;
- the path of a file of levels: a tau-ARGUS hierarchy (``.hrc``), or a CSV file with the columns ``child`` and
  ``parent``, or with one column a level, the finest first (as ARX has it) or last, with or without names;
- a list of any of these: overlapping hierarchies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.values import canonical_text
from discreet.hierarchy import Hierarchy
from discreet.hierarchy.enumerated import Enumerated, read_rows, tabulated
from discreet.tables.dimension import MISSING, Chain, Dimension, dimension_of

Source = Any


def sources(given: Any) -> list[Source]:
    """Take what a user gave for one column as a list of hierarchies."""
    if given is None:
        return []
    return list(given) if isinstance(given, list) else [given]


def level_columns(source: Source) -> tuple[str, ...]:
    """The columns of the data that a hierarchy names, if that is how it is given."""
    if isinstance(source, str):
        return (source,)
    if isinstance(source, tuple) and source and all(isinstance(name, str) for name in source):
        return source
    return ()


def built_dimension(
    name: str,
    values: pl.Series,
    given: Sequence[Source],
    lookups: Mapping[tuple[str, ...], pl.DataFrame],
    *,
    total: str,
    complete: bool,
) -> Dimension:
    """Build the dimension of a column from its distinct values (sorted, without missing) and hierarchies.

    ``lookups`` has, for hierarchies given as columns, the distinct combinations of value and coarser values.
    ``complete`` takes in the leaves that the hierarchy has and the data does not. `MISSING` among the values is
    covered by no hierarchy and stands right below the total. The dimension is declared where a list of codes was given
    and the data added none to it; whether anybody's code is missing is read from the data.
    """
    gone = values.filter(values == MISSING) if values.dtype == pl.String else values.clear()
    known = values.filter(values != MISSING) if len(gone) else values
    chains: list[Chain] = []
    leaves: list[str] = canonical_text(known).to_list()
    read = [readable(name, source, leaves, closed=complete) for source in given]
    if complete:
        extra = [leaf for source in read for leaf in _listed(source)]
        leaves = list(dict.fromkeys([*leaves, *extra]))
    for source in read:
        columns = level_columns(source)
        levels = (
            _from_columns(name, lookups[columns], leaves)
            if columns
            else _from_hierarchy(name, source, leaves)
        )
        order = {leaf: place for place, leaf in enumerate(_listed(source))}
        if order and not chains:
            leaves.sort(key=lambda leaf: order[leaf])
            levels = _from_hierarchy(name, source, leaves)
        chains.append(levels)
    if not chains:
        chains = [(tuple(leaves),)]
    order_of = branch_order(chains[0])
    leaves = [leaves[place] for place in order_of]
    chains = [tuple(tuple(level[place] for place in order_of) for level in chain) for chain in chains]
    if len(gone):
        leaves.append(MISSING)
        chains = [tuple((*level, MISSING) for level in chain) for chain in chains]
    listed = set(_listed(read[0])) if read else set()
    declared = (
        complete
        and not len(gone)
        and not any(level_columns(source) for source in read)
        and bool(listed)
        and set(leaves) <= listed
    )
    return dimension_of(name, leaves, chains, total=total, declared=declared)


def branch_order(chain: Chain) -> list[int]:
    """Order the leaves so that the branches of a hierarchy stay together, as they first appear."""
    first: list[dict[str, int]] = []
    for level in reversed(chain):
        seen: dict[str, int] = {}
        for place, label in enumerate(level):
            seen.setdefault(label, place)
        first.append(seen)
    paths = list(zip(*reversed(chain), strict=True))
    return sorted(
        range(len(paths)), key=lambda leaf: [first[level][label] for level, label in enumerate(paths[leaf])]
    )


def readable(name: str, source: Source, codes: Sequence[str], *, closed: bool) -> Source:
    """Turn files, trees and code lists into a `Hierarchy`; leave column names as they are.

    ``codes`` are those of the column, by which the finest level of a file is known; what is ``closed`` declares all
    codes that can occur.
    """
    if level_columns(source) or isinstance(source, Hierarchy):
        return source
    if isinstance(source, Path):
        return hierarchy_from(source, name, codes, closed=closed)
    if isinstance(source, Mapping):
        return Hierarchy.from_tree(source)
    try:
        frame = nw.from_native(source, eager_only=True).to_polars()
    except TypeError as error:
        raise ParameterError(
            f"The hierarchy of column '{name}' is a {type(source).__name__}. Give a Hierarchy, a tree (nested "
            "dictionaries), a tuple of coarser columns, a data frame with columns child and parent, a path, or a "
            "list of these."
        ) from error
    return from_code_list(frame)


def from_code_list(frame: pl.DataFrame) -> Hierarchy:
    """Make a hierarchy from pairs of a code and the code right above it.

    Examples
    --------
    >>> pairs = pl.DataFrame({"child": ["a", "b", "X"], "parent": ["X", "X", "All"]})
    >>> from_code_list(pairs).table().rows()
    [('a', 'X', 'All'), ('b', 'X', 'All')]
    """
    if not {"child", "parent"} <= set(frame.columns):
        raise ParameterError(
            f"A code list needs the columns 'child' and 'parent'; this one has {', '.join(frame.columns)}."
        )
    pairs = pl.DataFrame([canonical_text(frame[name]).alias(name) for name in ("child", "parent")])
    child, parent = pl.col("child"), pl.col("parent")
    # A comparison with a missing code is neither true nor false, and leaves the pair out.
    pairs = pairs.filter(child != parent, child != "", parent != "").unique(maintain_order=True)
    above = dict(pairs.iter_rows())
    if len(above) < len(pairs):
        raise ParameterError(
            "In the code list some codes have two parents. Give one list for each hierarchy, in a list."
        )
    groups = set(above.values())
    paths = [_path(leaf, above) for leaf in above if leaf not in groups]
    if not paths:
        raise ParameterError("The code list has no lowest codes: every code is somebody's parent.")
    depth = max(map(len, paths))
    padded = [
        [*path[:-1], *[path[-2] if len(path) > 2 else path[0]] * (depth - len(path)), path[-1]]
        for path in paths
    ]
    return tabulated(padded)


def _path(leaf: str, above: Mapping[str, str]) -> list[str]:
    path = [leaf]
    while path[-1] in above:
        path.append(above[path[-1]])
        if len(path) > len(above) + 1:
            raise ParameterError("The code list runs in a circle: a code is above itself. Mend the parents.")
    return path


def _listed(source: Source) -> list[str]:
    """The leaves a hierarchy lists by itself."""
    return list(source.columns[0]) if isinstance(source, Enumerated) else []


def _from_columns(name: str, lookup: pl.DataFrame, leaves: Sequence[str]) -> Chain:
    lookup = lookup.filter(pl.col("leaf").is_not_null())
    torn = lookup.filter(pl.col("leaf").is_duplicated())
    if len(torn):
        raise ColumnError(
            f"{torn['leaf'].n_unique():,} codes of column '{name}' lie in more than one group of the columns named as "
            "its hierarchy, or the group is sometimes missing. Each code needs one group on every level."
        )
    if lookup.null_count().select(pl.sum_horizontal(pl.all())).item():
        raise ColumnError(
            f"Some codes of column '{name}' have no group in the columns named as its hierarchy."
        )
    ordered = pl.DataFrame({"leaf": leaves}, schema={"leaf": pl.String}).join(
        lookup, on="leaf", how="left", maintain_order="left"
    )
    levels = [tuple(ordered[column].to_list()) for column in lookup.columns]
    return tuple(levels)


def _from_hierarchy(name: str, hierarchy: Hierarchy, leaves: Sequence[str]) -> Chain:
    series = pl.Series(name, leaves, dtype=pl.String)
    values: pl.Series = series
    if hierarchy.ordered or hierarchy._misfit(series):
        values = _typed(series)
    hierarchy.check(values, column=name)
    levels: list[tuple[str, ...]] = [tuple(leaves)]
    # The top level of a hierarchy says nothing; it is the total of the table.
    for level in range(1, hierarchy.height):
        labels = hierarchy.generalize(values, level)
        levels.append(tuple(labels.cast(pl.String).to_list()))
    return tuple(levels)


def _typed(texts: pl.Series) -> pl.Series:
    """Numbers and dates travel as text through a table; rules for intervals and dates want them back."""
    numbers = texts.cast(pl.Float64, strict=False)
    if not numbers.null_count():
        return numbers
    try:
        return texts.str.to_date(strict=True)
    except pl.exceptions.PolarsError:
        return texts


# Files of levels as people have them, in whichever of three forms.
#
# A ``.hrc`` file of tau-ARGUS; a code list with the columns child and parent; or a table with one column a level, the
# finest first or last, with or without a line of names.


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
