"""Counts of keys by target in two files, side by side: all that attribution and disclosure measures need.

The classes of both files are numbered once, the values of a target once a target; what is left is a sparse list
of cells (class, value) with two counts. Missing is a value. A frame in memory is counted on the class numbers of
its rows; a query engine groups by the key values in place and only the counted cells are fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.engine.classes import Missing, class_table, key_names, keyed_rows
from discreet.engine.comparable import as_text, comparable, distinct_values, must_be_released, plain_text
from discreet.engine.frames import collect, has_row_order, scan
from discreet.engine.precision import Grid, Setting, on_grid
from discreet.engine.rebuild import _flagged, carry_back, uploaded
from discreet.engine.resolved_roles import added_by, all_suppressed, by_unit, counted_unit, some_key_known
from discreet.microdata import Microdata

Levels = dict[int, tuple[pl.Series, Integers]]


@dataclass(frozen=True)
class Grouping:
    """Which group each class or value goes to, the labels of the groups, and whether a group is a real one."""

    of: Integers
    labels: pl.DataFrame
    inside: Flags

    @classmethod
    def none(cls, labels: pl.DataFrame) -> Grouping:
        """Leave everything where it is."""
        return cls(np.arange(labels.height), labels, np.ones(labels.height, dtype=bool))


@dataclass(frozen=True)
class Side:
    """One of the two files: its distinct key combinations ``k0``… with their ``records`` and class number ``q``.

    ``rows`` holds the class number of every row of a frame in memory; a query engine has none.
    """

    data: Microdata
    members: pl.DataFrame
    rows: pl.Series | None


@dataclass(frozen=True)
class SharedClasses:
    """The key combinations of two files, numbered alike.

    Attributes
    ----------
    keys
        The key columns.
    labels
        The key values of each class, ``k0``…; row j is class j.
    original, released
        The two files.
    missing
        Whether records with a missing key are a class of their own or left out.
    notes
        What the reader must know about how the two files were made comparable.
    levels
        Where the values of each key and their positions are kept once they were looked up.
    precision
        At which precision numbers are compared.
    grids
        By column: what its numbers were rounded to, where they were.
    """

    keys: tuple[str, ...]
    labels: pl.DataFrame
    original: Side
    released: Side
    missing: Missing
    notes: tuple[str, ...]
    levels: Levels = field(default_factory=dict)
    precision: Setting = None
    grids: dict[str, Grid] = field(default_factory=dict)


@dataclass(frozen=True)
class JointCounts:
    """Sparse counts of the cells (class, target value) that occur in either file, ordered by class.

    Attributes
    ----------
    owners, values
        The class and the target value of each cell, as positions in the labels.
    original, released
        How many records of each file are in the cell.
    mass
        The survey weight of the original records of the cell; their number where there is no weight.
    class_labels, value_labels
        The key values ``k0``… of the classes and the target values ``s0``….
    class_inside, value_inside
        False for a class or value that falls outside the intervals it was put into: nothing matches it.
    """

    owners: Integers
    values: Integers
    original: Integers
    released: Integers
    mass: Floats
    class_labels: pl.DataFrame
    value_labels: pl.DataFrame
    class_inside: Flags
    value_inside: Flags
    notes: tuple[str, ...] = ()
    levels: Levels = field(default_factory=dict, repr=False)

    def key_levels(self, key: int) -> tuple[pl.Series, Integers]:
        """List the values of one key, and the position of each class's value among them; found once."""
        if key not in self.levels:
            self.levels[key] = distinct_values(self.class_labels[f"k{key}"])
        return self.levels[key]

    @cached_property
    def class_original(self) -> Integers:
        """The number of original records of each class."""
        return _summed(self.owners, self.original, self.class_labels.height)

    @cached_property
    def class_released(self) -> Integers:
        """The number of released records of each class."""
        return _summed(self.owners, self.released, self.class_labels.height)

    @cached_property
    def value_original(self) -> Integers:
        """The number of original records with each target value."""
        return _summed(self.values, self.original, self.value_labels.height)

    def regrouped(self, classes: Grouping, values: Grouping) -> tuple[JointCounts, Integers]:
        """Merge classes and values into coarser ones; also say in which new cell each old one is."""
        counts = (self.original, self.released, self.mass)
        return _cells(self.owners, self.values, counts, classes, values, self.notes)


def _cells(  # noqa: PLR0917 - the two halves of an entry, and what they are merged by
    owners: Integers,
    targets: Integers,
    counts: tuple[Integers, Integers, Floats],
    classes: Grouping,
    values: Grouping,
    notes: tuple[str, ...],
) -> tuple[JointCounts, Integers]:
    """Merge entries into the cells of groups of classes and values; also say in which cell each entry is."""
    width = max(values.labels.height, 1)
    code = classes.of[owners] * width + values.of[targets]
    occupied, position = _numbered(code, classes.labels.height * width)
    original, released, mass = counts
    joint = JointCounts(
        owners=occupied // width,
        values=occupied % width,
        original=_summed(position, original, len(occupied)),
        released=_summed(position, released, len(occupied)),
        mass=np.bincount(position, weights=mass, minlength=len(occupied)).astype(np.float64),
        class_labels=classes.labels,
        value_labels=values.labels,
        class_inside=classes.inside,
        value_inside=values.inside,
        notes=notes,
    )
    return joint, position


def shared_classes(
    original: Microdata,
    released: Microdata,
    keys: Sequence[str],
    missing: Missing = "category",
    precision: Setting = None,
) -> SharedClasses:
    """Number the key combinations of two files alike.

    Numbers are compared as numbers, at the precision that both files have unless another is named, and text as text;
    where one file has numbers and the other text, they are compared as numbers if all the text can be read so, else by
    their text, and a note says so.
    """
    must_be_released(released, keys, "key")
    tables = [_with_silent(data, keys, missing) for data in (original, released)]
    labels: dict[str, pl.Series] = {}
    notes: list[str] = []
    grids: dict[str, Grid] = {}
    combined: Integers = np.zeros(tables[0].height + tables[1].height, dtype=np.int64)
    for name, key in key_names(keys).items():
        both, note = comparable(tables[0][name], tables[1][name], key, precision, grids)
        notes += note
        _, codes = distinct_values(both)
        combined = np.unique(combined * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        labels[name] = both
    _, first = np.unique(combined, return_index=True)
    members = [
        table.select(*key_names(keys), "records", pl.Series("q", part, dtype=pl.Int64))
        for table, part in zip(tables, np.split(combined, [tables[0].height]), strict=True)
    ]
    return SharedClasses(
        keys=tuple(keys),
        labels=pl.DataFrame(labels)[first],
        original=Side(original, members[0], _class_of_rows(original, keys, members[0])),
        released=Side(released, members[1], _class_of_rows(released, keys, members[1])),
        missing=missing,
        notes=tuple(notes),
        precision=precision,
        grids=grids,
    )


def _with_silent(data: Microdata, keys: Sequence[str], missing: Missing) -> pl.DataFrame:
    """Count the classes; records without a known key are one more here, because shares are of the whole file.

    The published measures of attribution and disclosure take missing as a value, and have options of their own.
    """
    table = class_table(data, keys, missing)
    if missing == "drop" or not all_suppressed(data, keys):
        return table
    unit, names = counted_unit(data), list(key_names(keys))
    rows = keyed_rows(data, keys, missing, {"u": unit} if unit else None, silent=True)
    rows = by_unit(rows, names) if unit else rows
    silent = collect(rows.filter(~some_key_known(names)).select(nw.len().cast(nw.Int64))).item()
    counts = [name for name in table.columns if name not in names]
    row = table.clear(1).with_columns(pl.lit(int(silent), dtype=pl.Int64).alias(name) for name in counts)
    return pl.concat([table, row])


def joint_counts(shared: SharedClasses, targets: Sequence[str], weight: str | None = None) -> JointCounts:
    """Count the cells of keys by target (several targets: their combinations) in both files."""
    must_be_released(shared.released.data, targets, "target")
    ours = _side_counts(shared.original, shared, targets, weight)
    theirs = _side_counts(shared.released, shared, targets, None)
    value_labels, codes, notes = _coded_values(ours, theirs, targets, shared)
    owners = np.concatenate([ours["q"].to_numpy(), theirs["q"].to_numpy()])
    here = np.arange(len(codes)) < ours.height
    counts = np.concatenate([ours["count"].to_numpy(), theirs["count"].to_numpy()])
    mass = np.zeros(len(codes))
    mass[: ours.height] = ours["weighted" if weight else "count"].to_numpy()
    # The two files' entries still stand one after the other; merging brings the common cells together.
    groups = Grouping.none(shared.labels), Grouping.none(value_labels)
    split = (np.where(here, counts, 0), np.where(here, 0, counts), mass)
    joint, _ = _cells(owners, codes, split, *groups, (*shared.notes, *notes))
    return replace(joint, levels=shared.levels)


def key_counts(shared: SharedClasses) -> JointCounts:
    """Count the classes of both files without any target: one cell a class."""
    ours, theirs = shared.original.members, shared.released.members
    size = shared.labels.height
    original = _summed(ours["q"].to_numpy(), ours["records"].to_numpy(), size)
    released = _summed(theirs["q"].to_numpy(), theirs["records"].to_numpy(), size)
    nothing, counts = np.zeros(size, dtype=np.int64), (original, released, original.astype(np.float64))
    groups = Grouping.none(shared.labels), Grouping.none(pl.DataFrame({"s0": [True]}))
    joint, _ = _cells(np.arange(size), nothing, counts, *groups, shared.notes)
    return replace(joint, levels=shared.levels)


def original_only(original: Microdata, keys: Sequence[str], targets: Sequence[str]) -> JointCounts:
    """Count the cells of one file, beside an empty release."""
    joint = joint_counts(shared_classes(original, original, keys), targets)
    return replace(joint, released=np.zeros_like(joint.released))


def carry_scores(
    shared: SharedClasses, joint: JointCounts, targets: Sequence[str], scores: pl.DataFrame
) -> Any:
    """Give every original record the scores of its cell, in the kind of frame that came in.

    ``scores`` has one row a cell of ``joint``; a record left out of the classes gets missing scores.
    """
    names = list(key_names(shared.keys))
    values = [f"s{i}" for i in range(len(targets))]
    exact = _exact_cells(shared.original, shared, targets)
    code = _values_of(exact, joint.value_labels, targets, shared.grids)
    width = max(joint.value_labels.height, 1)
    at = np.searchsorted(joint.owners * width + joint.values, exact["q"].to_numpy() * width + code)
    columns = (*shared.keys, *targets)
    renamed = dict(zip([*names, *values], key_names(columns), strict=True))
    table = pl.concat([exact.select(*names, *values).rename(renamed), scores[at]], how="horizontal")
    return carry_back(shared.original.data, columns, "category", table)


def without_classes(data: Microdata, keys: Sequence[str], classes: pl.DataFrame) -> Any:
    """Drop the records of some classes (rows ``k0``…, as counted in this file), in the kind that came in."""
    names = list(key_names(keys))
    classes = classes.select(names)
    wrapped = data.wrapped
    if isinstance(wrapped, nw.DataFrame):
        marked = classes.with_columns(gone=pl.lit(True))
        rows = collect(scan(data, key_names(keys)))
        gone = rows.join(marked, on=names, how="left", nulls_equal=True, maintain_order="left")["gone"]
        return wrapped.filter(gone.is_null().to_list()).to_native()
    columns = {f"c{i}": column for i, column in enumerate(data.columns)}
    rows_in_place = scan(data, {**key_names(keys), **columns})
    table = classes.with_columns(gone=pl.lit(True))
    if wrapped.implementation.is_polars():
        native = rows_in_place.to_native().join(
            table.lazy(), on=names, how="anti", nulls_equal=True, maintain_order="left"
        )
        kept = nw.from_native(native)
    else:
        flags = [f"{name}_{part}" for name in names for part in ("gone", "known")]
        right = _flagged(uploaded(data, table), names).drop(*names)
        joined = _flagged(rows_in_place, names).join(right, on=flags, how="left")
        kept = joined.filter(nw.col("gone").is_null())
    return kept.select(*(nw.col(name).alias(column) for name, column in columns.items())).to_native()


def _side_counts(
    side: Side, shared: SharedClasses, targets: Sequence[str], weight: str | None
) -> pl.DataFrame:
    """Count one file by class number and target values ``s0``…"""
    if side.rows is None:
        sums = ["count", "weighted"] if weight else ["count"]
        cells = _exact_cells(side, shared, targets, weight)
        return cells.select("q", *(f"s{i}" for i in range(len(targets))), *sums)
    unit = counted_unit(side.data)
    columns = _extra(targets, weight) | ({"u": unit} if unit else {})
    rows = collect(scan(side.data, columns)).lazy().with_columns(q=side.rows).drop_nulls("q")
    cell = ["q", *(f"s{i}" for i in range(len(targets)))]
    if unit:
        # A person counts once a cell, with the mean of the weights that its records there have.
        rows = rows.group_by(*cell, "u").agg(*([pl.col("w").cast(pl.Float64).mean()] if weight else []))
    return added_by(rows, cell, side.data, **_figures(weight))


def _exact_cells(
    side: Side, shared: SharedClasses, targets: Sequence[str], weight: str | None = None
) -> pl.DataFrame:
    """Count one file by key and target values, as they are in the file, with the class number ``q``."""
    names = list(key_names(shared.keys))
    unit = counted_unit(side.data)
    extra = _extra(targets, weight) | ({"u": unit} if unit else {})
    rows = keyed_rows(side.data, shared.keys, shared.missing, extra, silent=True)
    cell = [*names, *(f"s{i}" for i in range(len(targets)))]
    if unit and weight:
        rows = rows.group_by(*cell, "u").agg(nw.col("w").cast(nw.Float64).mean())
    elif unit:
        rows = by_unit(rows, cell)
    cells = added_by(rows, cell, side.data, **_figures(weight))
    return cells.join(side.members, on=names, how="inner", nulls_equal=True)


def _figures(weight: str | None) -> dict[str, tuple[str, str]]:
    return {"count": ("", "len")} | ({"weighted": ("w", "sum")} if weight else {})


def _extra(targets: Sequence[str], weight: str | None) -> dict[str, str]:
    return {f"s{i}": target for i, target in enumerate(targets)} | ({"w": weight} if weight else {})


def _coded_values(
    ours: pl.DataFrame, theirs: pl.DataFrame, targets: Sequence[str], shared: SharedClasses
) -> tuple[pl.DataFrame, Integers, list[str]]:
    labels: dict[str, pl.Series] = {}
    notes: list[str] = []
    combined: Integers = np.zeros(ours.height + theirs.height, dtype=np.int64)
    for i, target in enumerate(targets):
        both, note = comparable(ours[f"s{i}"], theirs[f"s{i}"], target, shared.precision, shared.grids)
        notes += note
        labels[f"s{i}"] = both
        values, codes = distinct_values(both)
        combined = codes if i == 0 else combined * len(values) + codes
    if len(targets) == 1:
        return values.rename("s0").to_frame(), combined, notes
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    return pl.DataFrame(labels)[first], codes, notes


def _values_of(
    exact: pl.DataFrame, labels: pl.DataFrame, targets: Sequence[str], grids: Mapping[str, Grid]
) -> Integers:
    """Find the position of each cell's target values among the labels, which may be of a wider type."""
    names = [f"s{i}" for i in range(len(targets))]
    wide = {}
    for name, target in zip(names, targets, strict=True):
        ours = plain_text(exact[name])
        if target in grids:
            ours = on_grid(ours if ours.dtype.is_numeric() else ours.cast(pl.Float64), grids[target])
        wide[name] = (
            as_text(ours)
            if labels.schema[name] == pl.String
            else ours.cast(labels.schema[name], strict=False)
        )
    found = pl.DataFrame(wide).join(
        labels.with_row_index("code"), on=names, how="left", nulls_equal=True, maintain_order="left"
    )
    return found["code"].to_numpy().astype(np.int64)


def _class_of_rows(data: Microdata, keys: Sequence[str], members: pl.DataFrame) -> pl.Series | None:
    """Number the rows of a frame in memory by class; a query engine has none."""
    if not isinstance(data.wrapped, nw.DataFrame) or not has_row_order(data):
        return None
    rows = collect(scan(data, key_names(keys)))
    names = list(key_names(keys))
    return rows.join(members, on=names, how="left", nulls_equal=True, maintain_order="left")["q"]


def _summed(position: Integers, counts: Integers, size: int) -> Integers:
    # bincount adds in double precision, which is exact for any number of records a file can have
    return np.bincount(position, weights=counts, minlength=size).astype(np.int64)


def _numbered(code: Integers, span: int) -> tuple[Integers, Integers]:
    """List the codes that occur in order, and the position of each; by counting where that beats sorting."""
    if span > 4 * len(code) + 1024:
        occupied, position = np.unique(code, return_inverse=True)
        return occupied, position.astype(np.int64)
    present = np.bincount(code, minlength=span) > 0
    occupied = np.flatnonzero(present).astype(np.int64)
    where = np.cumsum(present) - 1
    return occupied, where[code].astype(np.int64)
