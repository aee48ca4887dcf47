"""Hierarchies given as a table: every leaf with its label at each level."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import narwhals as nw
import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.hierarchy.algebra import TOP, Hierarchy
from discreet.hierarchy.values import canonical_scalar, is_categorical, is_textual, through_distinct


@dataclass(frozen=True, repr=False)
class Enumerated(Hierarchy):
    """A hierarchy that lists its leaves; build it with `tabulated`, `from_frame` or `planted`."""

    columns: tuple[tuple[str, ...], ...]
    kind: ClassVar[str] = "table"

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(set(column))) for column in self.columns)
        leaves = len(self.columns[0])
        return f"<Hierarchy table: {leaves} leaves, height {self.height}, labels per level {sizes}>"

    @property
    def height(self) -> int:
        """The number of levels above the leaves."""
        return len(self.columns) - 1

    @cached_property
    def _levels(self) -> tuple[pl.Series, ...]:
        return tuple(pl.Series(column, dtype=pl.String) for column in self.columns)

    def _lookup(self, values: pl.Series, answers: pl.Series) -> pl.Series:
        def answer(distinct: pl.Series) -> pl.Series:
            return canonical_text(distinct).replace_strict(
                self._levels[0], answers, default=None, return_dtype=answers.dtype
            )

        return through_distinct(values, answer)

    def _ancestors(self, values: pl.Series, level: int) -> pl.Series:
        labels = self._levels[level]
        if is_categorical(values.dtype):
            labels = labels.cast(pl.Enum(labels.unique(maintain_order=True)))
        return self._lookup(values, labels)

    def _shares(self, values: pl.Series, level: int) -> pl.Series:
        label = pl.col("label")
        counts = pl.DataFrame({"label": self._levels[level]}).select(pl.len().over(label) / pl.len())
        return self._lookup(values, counts.to_series())

    def _parameters(self) -> dict[str, Any]:
        return {"rows": [list(row) for row in zip(*self.columns, strict=True)]}

    def _misfit(self, values: pl.Series) -> str | None:
        if is_textual(values.dtype):
            return None
        return "a hierarchy table is for texts, numbers, dates and categories. Convert the column first."

    def _fixed_labels(self, level: int) -> list[str]:
        return list(dict.fromkeys(self.columns[level]))

    def _own_leaves(self) -> pl.Series:
        return self._levels[0]

    def _in_order(self, leaves: pl.Series) -> pl.Series:
        rows = pl.Series(range(len(self.columns[0])), dtype=pl.Int64)
        return leaves.gather(self._lookup(leaves, rows).arg_sort())


def tabulated(rows: Sequence[Sequence[Any]]) -> Enumerated:
    """Build a hierarchy from rows of equal length: leaf, level 1, level 2, ..."""
    given: Any = rows  # from a plan file, where it may be anything
    listed = isinstance(given, list | tuple) and all(isinstance(row, list | tuple) and row for row in given)
    if not listed or len({len(row) for row in rows}) != 1:
        raise ParameterError("A hierarchy table needs at least one row, and rows of one length.")
    labels = [[canonical_scalar(label) for label in row] for row in rows]
    return _validated(pl.DataFrame(labels, orient="row", schema=_names(len(rows[0]))))


def from_frame(frame: Any) -> Enumerated:
    """Build a hierarchy from a data frame of any eager kind."""
    try:
        polars = nw.from_native(frame, eager_only=True).to_polars()
    except TypeError as error:
        raise ParameterError(
            f"frame must be a Polars, pandas or PyArrow data frame, not {type(frame).__name__}."
        ) from error
    columns = polars.get_columns()
    if not columns or polars.is_empty():
        raise ParameterError("A hierarchy table needs at least one column and one row; this one is empty.")
    for column in columns:
        gaps = column.fill_nan(None).null_count() if column.dtype.is_float() else column.null_count()
        if gaps:
            raise ParameterError(
                f"Column '{column.name}' of the hierarchy table has {gaps} missing labels. Fill them: "
                "missing values need no row, they stay missing at every level."
            )
        if not is_textual(column.dtype):
            raise ParameterError(
                f"Column '{column.name}' of the hierarchy table has type {type_name(column.dtype)}."
            )
    texts = [canonical_text(column) for column in columns]
    return _validated(pl.DataFrame(dict(zip(_names(len(texts)), texts, strict=True))))


def planted(tree: Mapping[Any, Any] | Sequence[Any]) -> Enumerated:
    """Build a hierarchy from nested dictionaries and lists; shallow branches repeat their outermost group."""
    if isinstance(tree, str) or not isinstance(tree, (Mapping, Sequence)):
        raise ParameterError("tree must be nested dictionaries of groups with lists of leaves at the ends.")
    paths = list(_paths(tree, ()))
    if not paths:
        raise ParameterError("tree has no leaves.")
    depth = max(map(len, paths))
    return tabulated([[*path, *[path[-1]] * (depth - len(path))] for path in paths])


def _paths(branch: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Walk from the root to the leaves; each path starts at its leaf."""
    if isinstance(branch, Mapping):
        for group, below in branch.items():
            yield from _paths(below, (group, *above))
    elif isinstance(branch, Sequence) and not isinstance(branch, str):
        for below in branch:
            yield from _paths(below, above)
    else:
        yield (branch, *above)


def _names(width: int) -> list[str]:
    return ["leaf", *(f"level_{level}" for level in range(1, width))]


def _validated(frame: pl.DataFrame) -> Enumerated:
    names = frame.columns
    rows = frame.with_row_index("row", offset=1).unique(names, keep="first", maintain_order=True)
    for level, (name, parent) in enumerate(itertools.pairwise(names)):
        links = rows.unique([name, parent], keep="first", maintain_order=True)
        torn = links.filter(pl.col(name).is_duplicated())
        if not torn.is_empty():
            what = "leaves" if level == 0 else f"labels of level {level}"
            where = ", ".join(map(str, torn["row"].head(5).to_list()))
            raise ParameterError(
                f"The hierarchy does not nest: {torn[name].n_unique()} {what} have more than one parent at "
                f"level {level + 1} (see rows {where}, counting from 1). Give each one parent, or the "
                "labels different names."
            )
    columns = [tuple(rows[name].to_list()) for name in names]
    if len(columns) == 1 or len(set(columns[-1])) > 1:
        columns.append((TOP,) * len(rows))
    return Enumerated(tuple(columns))
