"""The tables of two files over the same cells: one-way, two-way and larger ones, counted where the data is.

Every column is coded once, a small whole number a value, and each table is counted from the codes. A query engine codes
its numbers itself and hands over the codes in one pass. Where even those are too many to hold, it counts combinations
of several columns at a time, as many as keep the answer small, and the tables are read off those.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.engine.by_record import types_in_polars
from discreet.engine.frames import collect, in_memory, scan
from discreet.engine.grouping import Cutting, Groups, Values, grouping_of, inner_breaks
from discreet.engine.resolved_roles import added_by, overview
from discreet.engine.summary_statistics import known_numbers, number_range, values_at
from discreet.microdata import Microdata

Table = tuple[str, ...]

# Cells of a lazy Polars frame that are rather brought into memory than counted many times.
_MOST_IN_MEMORY = 10**8
_MOST_LISTED = 100_000  # different numbers of a query that are listed with their counts
_MOST_COUNTED = 10**6  # combinations that a query engine is asked for at once
_CHEAPER_COUNTED = 1.5  # what fetching the codes of a column costs, in columns of a group-by
_DENSE = 2**24
_MOST_THREADS = 8
_BATCH = 64  # tables counted ahead of those that are asked for


@dataclass(frozen=True)
class CodedFile:
    """One file, its columns as codes of their groups.

    ``frame`` is there where the data is in memory anyway; ``by_rows`` says whether the codes of all records are to be
    held, or only counts asked for.
    """

    data: Microdata
    groups: dict[str, Groups]
    frame: pl.DataFrame | None
    weight: str | None
    by_rows: bool

    @property
    def codes(self) -> dict[str, Array]:
        """The codes of every column, record by record."""
        return self._held[0]

    @property
    def weights(self) -> Floats | None:
        """The survey weights, record by record."""
        return self._held[1]

    @cached_property
    def _held(self) -> tuple[dict[str, Array], Floats | None]:
        if self.frame is not None:
            codes = {name: groups.codes(self.frame[name]) for name, groups in self.groups.items()}
            weights = None if self.weight is None else self.frame[self.weight]
        else:
            codes, table = self.fetched(list(self.groups))
            weights = table["w"] if self.weight else None
        return codes, None if weights is None else weights.cast(pl.Float64).to_numpy()

    def fetched(
        self, columns: Sequence[str], *, counted: bool = False
    ) -> tuple[dict[str, Array], pl.DataFrame]:
        """Let the engine code some columns, and fetch the codes; or, ``counted``, how often each combination occurs."""
        names = {f"k{place}": column for place, column in enumerate(columns)}
        rows = scan(self.data, {**names, **({"w": self.weight} if self.weight else {})})
        coded = rows.with_columns(
            *(self.groups[column].expression(name).alias(name) for name, column in names.items())
        )
        if counted:
            many = ("w", "sum") if self.weight else ("", "len")
            table = added_by(coded, list(names), self.data, many=many)
            table = table.with_columns(pl.col("many").cast(pl.Float64))
        else:
            table = in_memory(coded)
        codes = {
            column: table[name].cast(self.groups[column].code_type).to_numpy()
            if self.groups[column].kind == "number"
            else self.groups[column].codes(table[name])
            for name, column in names.items()
        }
        return codes, table

    @cached_property
    def size(self) -> tuple[float, float]:
        """The sum of the weights, and the number of records that they are worth (Kish's effective size)."""
        if self.weight is None:
            rows = float(overview(self.data, ()).rows)
            return rows, rows
        w = nw.col("w").cast(nw.Float64)
        records = scan(self.data, {"w": self.weight}).select(nw.lit(0).alias("all"), a=w, b=w * w)
        sums = added_by(records, ["all"], self.data, a=("a", "sum"), b=("b", "sum"))
        total, squares = float(sums["a"][0]), float(sums["b"][0])
        return total, total**2 / squares


@dataclass(frozen=True)
class SharedTables:
    """Two files whose columns are grouped alike."""

    groups: dict[str, Groups]
    original: CodedFile
    released: CodedFile

    def cells_of(self, table: Table) -> int:
        """Say how many cells a table can have."""
        return math.prod(self.groups[name].size for name in table)

    def counted(self, tables: Sequence[Table]) -> Iterator[tuple[Table, Integers, Floats, Floats]]:
        """Count tables: the numbers of the cells that either file fills, and their counts (or weights) in both.

        Cells are numbered with the last variable turning fastest.
        """
        files = [self._where_it_is_cheap(file, tables) for file in (self.original, self.released)]
        if not all(file.by_rows for file in files):
            held = [list(_each(file, tables)) for file in files]
            for table, *counts in zip(tables, *held, strict=True):
                yield table, *_merged(*counts)
            return
        for file in files:
            _ = file.codes  # threads must not all make what is made once
        count = [file_counter(file) for file in files]
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
            for start in range(0, len(tables), _BATCH):
                batch = tables[start : start + _BATCH]
                for table, *counts in zip(batch, *(pool.map(each, batch) for each in count), strict=True):
                    yield table, *_merged(*counts)

    def _where_it_is_cheap(self, file: CodedFile, tables: Sequence[Table]) -> CodedFile:
        """Leave the counting to a query engine where a few group-bys hold all tables.

        Weights are rather added up here, in the same order every time.
        """
        if file.frame is not None or file.weight is not None or not file.by_rows:
            return file
        sets = covering(tables, {name: groups.size for name, groups in self.groups.items()})
        asked = sum(len(columns) for columns, _ in sets)
        named = {name for table in tables for name in table}
        return replace(file, by_rows=False) if asked <= _CHEAPER_COUNTED * len(named) else file

    def labels(self, table: Table, cells: Integers) -> list[str]:
        """Name cells by their groups."""
        parts, rest = [], cells
        for name in reversed(table):
            labels = np.asarray(self.groups[name].labels, dtype=object)
            parts.append(labels[rest % self.groups[name].size])
            rest = rest // self.groups[name].size
        return [", ".join(cell) for cell in zip(*reversed(parts), strict=True)]


Counts = tuple[Array | None, Array]


def shared_tables(
    original: Microdata,
    released: Microdata,
    columns: Sequence[str],
    cutting: Cutting,
    *,
    categorical: Sequence[str] = (),
    weights: tuple[str | None, str | None] = (None, None),
) -> SharedTables:
    """Group the columns of two files alike, ready to be counted."""
    frames = [
        _held(data, columns, weight) for data, weight in zip((original, released), weights, strict=True)
    ]
    groups = {}
    given = dict(cutting.breaks or {})
    for name in columns:
        counted = _breaks_by_counting((original, released), frames, name, cutting, name in categorical)
        if counted is not None:
            ours, theirs = (_gaps_only(data, name) for data in (original, released))
            own = replace(cutting, breaks=given | {name: counted}) if counted else replace(cutting, groups=1)
            groups[name] = grouping_of(name, ours, theirs, own, category=False)
            continue
        ours, theirs = (
            _values(data, frame, name) for data, frame in zip((original, released), frames, strict=True)
        )
        if (ours.counts is None) != (theirs.counts is None):
            ours, theirs = (part if part.counts is not None else _tallied(part) for part in (ours, theirs))
        dtype = original.schema[name]
        levels = tuple(map(str, dtype.categories)) if isinstance(dtype, nw.Enum) else ()
        groups[name] = grouping_of(name, ours, theirs, cutting, category=name in categorical, levels=levels)
    files = [
        CodedFile(data, groups, frame, weight, frame is not None or _fits(data, columns))
        for data, frame, weight in zip((original, released), frames, weights, strict=True)
    ]
    return SharedTables(groups, *files)


def file_counter(file: CodedFile) -> Any:
    """Count tables of a file from its codes, one call a table."""
    from discreet.engine.counting_kernels import count_pair

    def count(table: Table) -> Counts:
        sizes = [file.groups[name].size for name in table]
        cells = math.prod(sizes)
        codes = [file.codes[name] for name in table]
        if cells > _DENSE:
            return _sparse(_packed(codes, sizes), file.weights)
        if file.weights is not None:
            return None, np.bincount(_packed(codes, sizes), file.weights, cells)
        if len(table) == 2:
            first, second = codes
        elif len(table) == 1:
            first, second = codes[0], np.zeros(len(codes[0]), dtype=np.uint8)
        else:
            first, second = _packed(codes[:-1], sizes[:-1]), codes[-1]
        width = sizes[-1] if len(table) > 1 else 1
        return None, count_pair(first, second, width, cells)

    return count


def _packed(codes: Sequence[Any], sizes: Sequence[int]) -> Array:
    kind = np.uint32 if math.prod(sizes) < 2**32 else np.int64
    packed: Array = codes[0].astype(kind)
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        packed *= kind(size)
        packed += code
    return packed


def _sparse(numbers: Array, weights: Floats | None) -> Counts:
    frame = pl.DataFrame({"cell": numbers.astype(np.int64)})
    if weights is not None:
        frame = frame.with_columns(w=weights)
    how = ("", "len") if weights is None else ("w", "sum")
    table = added_by(frame.lazy(), ["cell"], many=how)
    return table["cell"].to_numpy(), table["many"].cast(pl.Float64).to_numpy()


def _merged(ours: Counts, theirs: Counts) -> tuple[Integers, Floats, Floats]:
    """Bring the counts of both files to the cells that either fills."""
    if ours[0] is None and theirs[0] is None:
        filled = np.flatnonzero((ours[1] > 0) | (theirs[1] > 0))
        return filled, ours[1][filled].astype(np.float64), theirs[1][filled].astype(np.float64)
    (a, x), (b, y) = (_listed(*part) for part in (ours, theirs))
    filled = np.union1d(a, b)
    left, right = np.zeros(len(filled)), np.zeros(len(filled))
    left[np.searchsorted(filled, a)] = x
    right[np.searchsorted(filled, b)] = y
    return filled, left, right


def _listed(cells: Array | None, counts: Array) -> tuple[Array, Array]:
    if cells is not None:
        return cells, counts
    filled = np.flatnonzero(counts > 0)
    return filled, counts[filled]


def _held(data: Microdata, columns: Sequence[str], weight: str | None) -> pl.DataFrame | None:
    """Bring a frame into memory where it is there already, or small enough; None for a query engine."""
    if isinstance(data.wrapped, nw.LazyFrame) and not (
        data.wrapped.implementation.is_polars() and _fits(data, columns)
    ):
        return None
    return collect(data, [*columns, *([weight] if weight and weight not in columns else [])])


def _fits(data: Microdata, columns: Sequence[str]) -> bool:
    """Whether the codes of all records may be held here; a cluster counts, and hands over counts."""
    return (
        not data.wrapped.implementation.is_pyspark()
        and overview(data, ()).rows * len(columns) <= _MOST_IN_MEMORY
    )


def _values(data: Microdata, frame: pl.DataFrame | None, name: str) -> Values:
    if frame is not None:
        return Values(frame[name])
    rows = scan(data, {"v": name})
    counted = collect(rows.group_by("v").agg(nw.len().cast(nw.Int64).alias("n")))
    return Values(counted["v"], counted["n"])


def _breaks_by_counting(
    files: Sequence[Microdata],
    frames: Sequence[pl.DataFrame | None],
    name: str,
    cutting: Cutting,
    category: bool,
) -> tuple[float, ...] | None:
    """Find the breaks of numbers of which two queries have too many different ones to be listed; None for others.

    They are those of `discreet.engine.grouping.pooled_breaks`, which has all values at hand.
    """
    numbers = all(frame is None for frame in frames) and all(data.schema[name].is_numeric() for data in files)
    if not numbers or category:
        return None
    if name in (cutting.breaks or {}):
        return tuple(float(x) for x in (cutting.breaks or {})[name])
    codes = [float(code) for code in (cutting.special or {}).get(name, ()) if not isinstance(code, str)]
    least, most, many = number_range(files, name, without=codes)
    if many <= max(_MOST_LISTED, len(files) * cutting.groups) or not math.isfinite(most - least):
        return None
    breaks = None
    if cutting.style == "quantile":
        total = known_numbers(files, name, without=codes)
        ranks = [max(math.ceil(i * total / cutting.groups), 1) for i in range(1, cutting.groups)]
        breaks = np.unique(values_at(files, name, ranks, without=codes)) if ranks else np.zeros(0)
    return inner_breaks(breaks, least, most, cutting)


def _gaps_only(data: Microdata, name: str) -> Values:
    """Say of what type a column is and whether values are missing, where its breaks are known already."""
    kind = types_in_polars(data, [name])[name]
    gaps = [None] if overview(data, [name]).missing[name] else []
    return Values(pl.Series(name, gaps, dtype=kind))


def _tallied(part: Values) -> Values:
    counted = pl.DataFrame({"v": part.values}).group_by("v").len(name="n")
    return Values(counted["v"], counted["n"].cast(pl.Int64))


def _each(file: CodedFile, tables: Sequence[Table]) -> Iterator[Counts]:
    """Count the tables of one file, whatever holds it, in their order."""
    if file.by_rows:
        yield from map(file_counter(file), tables)
        return
    groups = file.groups
    found: dict[Table, Counts] = {}
    for columns, covered in covering(tables, {name: groups[name].size for name in groups}):
        codes, table_of = file.fetched(columns, counted=True)
        counts = table_of["many"].cast(pl.Float64).to_numpy()
        for table in covered:
            sizes = [groups[name].size for name in table]
            numbers = _packed([codes[name] for name in table], sizes)
            found[table] = (
                _sparse(numbers, counts)
                if math.prod(sizes) > _DENSE
                else (None, np.bincount(numbers, weights=counts, minlength=math.prod(sizes)))
            )
    for table in tables:
        yield found[table]


def covering(tables: Sequence[Table], sizes: dict[str, int]) -> Iterator[tuple[list[str], list[Table]]]:
    """Choose sets of columns whose combinations stay few and that together hold every table.

    Each set is grown from a table that is still open by the columns that close the most others.
    """
    left = dict.fromkeys(tables)
    while left:
        chosen = list(next(iter(left)))
        cells = math.prod(sizes[name] for name in chosen)
        while True:
            inside = set(chosen)
            gain: dict[str, int] = {}
            for table in left:
                outside = [name for name in table if name not in inside]
                if len(outside) == 1 and cells * sizes[outside[0]] <= _MOST_COUNTED:
                    gain[outside[0]] = gain.get(outside[0], 0) + 1
            if not gain:
                break
            best = max(gain, key=lambda name: (gain[name], -sizes[name]))
            chosen.append(best)
            cells *= sizes[best]
        covered = [table for table in left if set(table) <= set(chosen)]
        for table in covered:
            del left[table]
        yield chosen, covered
