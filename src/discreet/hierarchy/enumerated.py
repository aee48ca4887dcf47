"""Hierarchies given as a table: every leaf with its label at each level."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import named_separator
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.hierarchy.algebra import TOP, Hierarchy


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


# Hierarchies of codes that are read from the left: postcodes, classifications, regions.


@dataclass(frozen=True, repr=False)
class Prefixes(Hierarchy):
    """Keep ever fewer leading characters; masked codes keep their length, cut ones do not."""

    keep: Sequence[int]
    mask: str = TOP
    kind: ClassVar[str] = "prefixes"

    def __post_init__(self) -> None:
        keep = as_tuple(self.keep, "keep")
        if not keep or not all(
            type(c) is not bool and isinstance(c, (int, np.integer)) and c >= 1 for c in keep
        ):
            raise ParameterError("keep must list whole numbers of characters, each at least 1.")
        if any(next_ >= previous for previous, next_ in itertools.pairwise(keep)):
            raise ParameterError("keep must get smaller from level to level, e.g. [4, 3, 2].")
        if not isinstance(self.mask, str) or len(self.mask) > 1:
            raise ParameterError("mask must be one character, or an empty text to cut the rest off.")
        object.__setattr__(self, "keep", tuple(map(int, keep)))

    def __repr__(self) -> str:
        return f"<Hierarchy prefixes: height {self.height}, keep {', '.join(map(str, self.keep))}>"

    @property
    def height(self) -> int:
        """The number of prefix lengths, and one for the top."""
        return len(self.keep) + 1

    def _ancestors(self, values: pl.Series, level: int) -> pl.Series:
        return through_distinct(values, lambda distinct: self._masked(canonical_text(distinct), level))

    def _masked(self, text: pl.Series, level: int) -> pl.Series:
        if level == self.height:
            return pl.repeat(TOP, len(text), dtype=pl.String, eager=True)
        kept = text.str.head(self.keep[level - 1])
        if not self.mask:
            return kept
        # Only the tail is masked: replacing every one of its characters keeps the length of the code.
        return kept + text.str.slice(self.keep[level - 1]).str.replace_all(
            r"(?s).", self.mask.replace("$", "$$")
        )

    def _shares(self, values: pl.Series, level: int) -> pl.Series:
        def share(distinct: pl.Series) -> pl.Series:
            labels = canonical_text(distinct) if level == 0 else self._masked(canonical_text(distinct), level)
            label = pl.col("label")
            return pl.DataFrame({"label": labels}).select(pl.len().over(label) / pl.len()).to_series()

        return through_distinct(values, share)

    def _parameters(self) -> dict[str, Any]:
        return {"keep": list(self.keep), "mask": self.mask}

    def _misfit(self, values: pl.Series) -> str | None:
        return (
            None if is_textual(values.dtype) else "prefixes are for codes. Convert the column to text first."
        )


# Hierarchy files: separated text, one line a leaf.


_SEPARATORS = (";", ",", "\t", "|")


def read_rows(path: Path, *, separator: str | None, header: bool, encoding: str) -> list[list[str]]:
    """Read the rows of a hierarchy file; every line must have the same number of fields."""
    if separator is not None and len(separator) != 1:
        raise ParameterError("separator must be one character, or None to detect it.")
    named, text = named_separator(_text(path, encoding))
    separator = separator or named
    try:
        rows = _split(text, separator) if separator else _best_split(text)
    except csv.Error as error:
        raise InputError(f"The hierarchy file '{path}' is not separated text: {error}.") from error
    rows = rows[1:] if header else rows
    if not rows:
        raise InputError(f"The hierarchy file '{path}' holds no rows.")
    widths = [len(row) for row in rows]
    usual = max(set(widths), key=widths.count)
    ragged = [number for number, width in enumerate(widths, start=1 + header) if width != usual]
    if ragged:
        raise InputError(
            f"The hierarchy file '{path}' has {usual} fields on most lines but another number on "
            f"{len(ragged)} of them, first on line {ragged[0]}. Complete these lines, or name the separator."
        )
    return rows


def write_rows(path: Path, rows: Iterable[Sequence[str]], *, separator: str) -> None:
    """Write rows as separated text, whole or not at all."""
    from discreet.core.files.atomic import replacing

    if len(separator) != 1:
        raise ParameterError("separator must be one character.")
    with replacing(path) as unfinished, unfinished.open("x", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def _text(path: Path, encoding: str) -> str:
    note_read(path)
    try:
        text = path.read_text(encoding=encoding)
    except OSError as error:
        raise InputError(f"Cannot read the hierarchy file '{path}': {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"The hierarchy file '{path}' is not {encoding} text. Name its encoding, e.g. encoding='latin-1'."
        ) from error
    except ValueError as error:
        raise InputError("The name of a hierarchy file holds a character that no name can have.") from error
    except LookupError as error:
        raise ParameterError(f"encoding '{encoding}' is unknown. Use for instance 'utf-8'.") from error
    return text.removeprefix("\ufeff")


def _split(text: str, separator: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


def _best_split(text: str) -> list[list[str]]:
    """Prefer the separator that splits every line alike into the most fields."""
    splits = [_split(text, separator) for separator in _SEPARATORS]
    widths = [{len(row) for row in rows} for rows in splits]
    regular = [len(seen) == 1 for seen in widths]
    best = max(
        range(len(splits)), key=lambda i: (regular[i] and max(widths[i]) > 1, max(widths[i], default=0))
    )
    return splits[best]


# Series in and out: any eager series becomes Polars for the work and goes back as what it was.


_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_MOST_CODES = 2**16


def through_distinct(values: pl.Series, label: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Label each distinct value once (they are handed over sorted) and carry the labels to every record."""
    if values.dtype in _WHOLE and len(values) > values.null_count():
        least, most = values.min(), values.max()
        assert isinstance(least, int)
        assert isinstance(most, int)
        if most - least <= _MOST_CODES:
            return _by_place(values, least, most, label)
    distinct = values.unique().drop_nulls().sort()
    labels = label(distinct)
    if distinct.is_empty():
        return pl.repeat(None, len(values), dtype=labels.dtype, eager=True)
    # Physical codes spare a comparison of texts for categorical columns.
    return values.to_physical().replace_strict(
        distinct.to_physical(), labels, default=None, return_dtype=labels.dtype
    )


def _by_place(values: pl.Series, least: int, most: int, label: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Look labels up by place, which is faster than by value where whole numbers lie close together."""
    places = (values.cast(pl.Int64) - least).cast(pl.UInt32)
    there = np.zeros(most - least + 1, dtype=np.bool_)
    there[places.drop_nulls().to_numpy()] = True
    distinct = pl.Series(np.flatnonzero(there)) + least
    labels = label(distinct.cast(values.dtype))
    at = np.cumsum(there, dtype=np.uint32) - 1
    return labels.gather(pl.Series(at).gather(places))


def canonical_scalar(value: Any) -> str:
    """Write one label of a tree or of a row as text, the way `canonical_text` would."""
    if isinstance(value, str):
        return value
    beyond_arrays = isinstance(value, int) and abs(value) >= 2**64
    if isinstance(value, (bool, int, float, datetime.date)) and not beyond_arrays:
        text = canonical_text(pl.Series([value])).item()
        if text is not None and text != "NaN":
            return str(text)
    raise ParameterError(
        f"A hierarchy label must be text, a number of up to 19 digits, a date or a boolean, not {type(value).__name__}."
    )


def as_tuple(values: Any, parameter: str) -> tuple[Any, ...]:
    """Take a list-like parameter; a lone number or text is refused by name."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{parameter} must be a list, not {type(values).__name__}.")
    return tuple(values)


def is_textual(dtype: pl.DataType) -> bool:
    """Say whether values of this type have one canonical text."""
    return not dtype.is_nested() and dtype != pl.Binary


def is_categorical(dtype: pl.DataType) -> bool:
    """Say whether values of this type carry a list of categories."""
    return isinstance(dtype, (pl.Categorical, pl.Enum))
