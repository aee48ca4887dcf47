"""Into which classes do the values of a column fall? Intervals, groups and label maps for two files at once.

Continuous keys and targets hardly ever match exactly, so attribution is measured on classes of values. Both
files use the same classes, and the figures depend on how fine they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata

_OWN = 2.0  # people a number, up to which a column is one of numbers that few share
Strategy = Literal["equal_frequency", "equal_length"]
Source = Literal["released", "pooled", "original"]
Spec = Annotated[int, AtLeast(1)] | Sequence[float] | Mapping[Any, str]

_OUTSIDE = -1


@dataclass(frozen=True)
class Classes:
    """The classes of one column: intervals between edges, codes that stay alone, or a map of labels.

    Intervals are closed on the left, the last one on both sides. Missing stays a class of its own.
    """

    edges: tuple[float, ...] = ()
    special: tuple[float, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def assign(self, values: pl.Series, column: str) -> tuple[pl.Series, Flags]:
        """Name the class of each value, and say which values are inside some class."""
        if self.labels:
            return self._labelled(values, column), np.ones(len(values), dtype=bool)
        numbers = values.cast(pl.Float64, strict=False)
        if (numbers.is_null() & values.is_not_null()).any():
            raise ColumnError(
                f"Column '{column}' cannot be put into intervals: it has values that are no numbers. "
                "Give it a map of labels instead, or leave its intervals out."
            )
        missing = numbers.is_null().to_numpy()
        at = np.where(missing, self.edges[0], numbers.to_numpy())
        position = interval_of(at, self.edges)
        alone = np.isin(at, self.special) & ~missing
        names = [*(f"[{a!r}, {b!r})" for a, b in zip(self.edges[:-2], self.edges[1:-1], strict=True))]
        names.append(f"[{self.edges[-2]!r}, {self.edges[-1]!r}]")
        classes = pl.Series([*names, "outside"])[np.where(position == _OUTSIDE, len(names), position)]
        classes = pl.select(
            pl.when(pl.Series(missing))
            .then(None)
            .when(pl.Series(alone))
            .then(engine.as_text(numbers))
            .otherwise(classes)
        ).to_series()
        return classes, missing | alone | (position != _OUTSIDE)

    def _labelled(self, values: pl.Series, column: str) -> pl.Series:
        text = engine.as_text(values)
        known = pl.Series(list(self.labels.values()))
        mapped = text.replace_strict(dict(self.labels), default=None, return_dtype=pl.String)
        named = pl.select(
            pl.when(mapped.is_null() & text.is_in(known.implode())).then(text).otherwise(mapped)
        ).to_series()
        lost = int((named.is_null() & text.is_not_null()).sum())
        if lost:
            raise ParameterError(
                f"The labels given for '{column}' leave out {lost:,} of its values or value combinations. "
                "Give every value a label; a value that is itself a label needs none."
            )
        return named


def interval_of(values: Floats, edges: Sequence[float]) -> Integers:
    """Find the interval of each value, counted from 0; -1 outside.

    Examples
    --------
    >>> interval_of(np.array([0.0, 1.0, 2.0, 2.5]), (0, 1, 2)).tolist()
    [0, 1, 1, -1]
    """
    position = np.searchsorted(edges, values, side="right") - 1
    position = np.where(values == edges[-1], len(edges) - 2, position)
    return np.where((values < edges[0]) | (values > edges[-1]), _OUTSIDE, position).astype(np.int64)


def edges_of(values: Floats, count: int, strategy: Strategy) -> tuple[float, ...]:
    """Draw the edges of so many intervals over some values; equal quantiles are merged.

    Examples
    --------
    >>> edges_of(np.array([0.0, 1.0, 2.0, 10.0]), 2, "equal_length")
    (0.0, 5.0, 10.0)
    >>> edges_of(np.array([0.0, 1.0, 2.0, 10.0]), 2, "equal_frequency")
    (0.0, 1.5, 10.0)
    """
    if strategy == "equal_length":
        edges = np.linspace(values.min(), values.max(), count + 1)
    else:
        edges = np.quantile(values, np.linspace(0, 1, count + 1))
    edges = np.unique(edges)
    return tuple(float(x) for x in (edges if len(edges) > 1 else np.repeat(edges, 2)))


def _classes_for(
    column: str, spec: Spec, files: tuple[Microdata, list[Microdata]], strategy: Strategy, source: Source
) -> tuple[Classes, list[str]]:
    """Turn what a user asks for (a number, edges or a map of labels) into the classes of a column."""
    if isinstance(spec, Mapping):
        if not spec:
            raise ParameterError(f"The map of labels for '{column}' is empty.")
        texts = [str(int(x)) if isinstance(x, float) and x.is_integer() else str(x) for x in spec]
        return Classes(labels=dict(zip(texts, map(str, spec.values()), strict=True))), []
    if isinstance(spec, int) and not isinstance(spec, bool):
        edges = edges_of(source_values(column, *files, source), spec, strategy)
        found = len(edges) - 1
        note = f"'{column}' fell into {found} intervals instead of {spec}: many of its values are equal."
        return Classes(edges=edges), [note] if found < spec else []
    edges = _given_edges(column, spec)
    shown = source_values(column, *files, "released")
    if (interval_of(shown, edges) == _OUTSIDE).any():
        raise ParameterError(
            f"The intervals given for '{column}' do not cover all its released values. Widen the first or the last."
        )
    return Classes(edges=edges), []


def grouped(
    column: str,
    count: int,
    original: Microdata,
    releases: Sequence[Microdata],
    special: Sequence[float] = (),
) -> tuple[Classes | None, list[str]]:
    """Group a numeric column by the quantiles of both files together; codes in ``special`` stay alone.

    Where fewer than three groups come of it, the groups get equal widths instead. A column that is not numeric
    is left as it is.
    """
    if isinstance(count, bool) or count < 2:
        raise ParameterError(f"'{column}' cannot be put into {count} group: give 2 or more, or leave it out.")
    if not original.schema[column].is_numeric():
        return None, [f"'{column}' is not numeric and was not grouped."]
    values = source_values(column, original, releases, "pooled")
    notes = []
    for code in special:
        seen = int((values == code).sum())
        if not seen:
            raise ParameterError(
                f"A special value given for '{column}' does not occur in it. Check the code."
            )
        if seen < 10:
            notes.append(f"A special value of '{column}' occurs only {seen} times.")
    ordinary = values[~np.isin(values, list(special))]
    if not len(ordinary):
        raise ColumnError(f"Column '{column}' has only special values; there is nothing to group.")
    edges = edges_of(ordinary, count, "equal_frequency")
    if len(edges) - 1 < min(3, count):
        edges = edges_of(ordinary, count, "equal_length")
        notes.append(
            f"'{column}' has too many equal values for groups of equal size; groups of equal width were used."
        )
    return Classes(edges=edges, special=tuple(float(x) for x in special)), notes


def source_values(column: str, original: Microdata, releases: Sequence[Microdata], source: Source) -> Floats:
    """Collect the values of a numeric column that set the edges."""
    files = {"original": [original], "released": list(releases), "pooled": [original, *releases]}[source]
    parts = []
    for data in files:
        engine.must_be_released(data, [column], "column")
        values = engine.collect(data, [column])[column]
        numbers = values.cast(pl.Float64, strict=False)
        if values.dtype == pl.Boolean or (numbers.is_null() & values.is_not_null()).any():
            raise ColumnError(
                f"Column '{column}' cannot be put into intervals: it has values that are no numbers. "
                "Give it a map of labels instead, or leave its intervals out."
            )
        parts.append(numbers.drop_nulls().to_numpy())
    found = np.concatenate(parts)
    if not len(found):
        raise ColumnError(f"Column '{column}' has no values in the files that set its intervals.")
    return found


def coarsened(
    joint: engine.JointCounts,
    keys: Sequence[str],
    targets: Sequence[str],
    classes: Mapping[str, Classes],
) -> tuple[engine.JointCounts, Integers]:
    """Put the cells of two files into the classes of their columns; also say where each cell went."""
    return joint.regrouped(
        _put(joint.class_labels, "k", keys, classes), _put(joint.value_labels, "s", targets, classes)
    )


def overlapping(joint: engine.JointCounts, keys: Sequence[str]) -> engine.JointCounts:
    """Refuse keys that are coded differently in the two files: they would wrongly give "no match".

    Decimal numbers, and others of which most are one person's own, may well differ everywhere without being coded
    differently; they get a note.
    """
    here, there = joint.class_original > 0, joint.class_released > 0
    notes = []
    for i, key in enumerate(keys):
        values, codes = joint.key_levels(i)
        known = values.is_not_null().to_numpy()
        ours = np.bincount(codes[here], minlength=len(values)) > 0
        theirs = np.bincount(codes[there & joint.class_inside], minlength=len(values)) > 0
        if (ours & theirs & known).any():
            continue
        people = np.bincount(codes, weights=joint.class_original, minlength=len(values))
        if values.dtype.is_float() or (values.dtype.is_numeric() and people[ours].mean() < _OWN):
            notes.append(
                f"The key '{key}' holds numbers that few people share and has no value in common between the two "
                "files, so nobody matches. Band it in both if an intruder would not know it that exactly."
            )
            continue
        raise ColumnError(
            f"The key '{key}' has no value in common between the original and the released file, so nothing "
            "could match. If the release is coarser, recode the original in the same way (attribution takes "
            f"intervals={{'{key}': {{value: label}}}}); if it is numeric, band both files."
        )
    return replace(joint, notes=(*joint.notes, *notes)) if notes else joint


def _put(
    labels: pl.DataFrame, letter: str, columns: Sequence[str], classes: Mapping[str, Classes]
) -> engine.Grouping:
    named = [(f"{letter}{i}", column) for i, column in enumerate(columns)]
    if not any(column in classes for column in columns):
        return engine.Grouping.none(labels)
    inside = np.ones(labels.height, dtype=bool)
    combined = np.zeros(labels.height, dtype=np.int64)
    new: dict[str, pl.Series] = {}
    for name, column in named:
        series = labels[name]
        if column in classes:
            series, within = classes[column].assign(series, column)
            inside &= within
        values, codes = distinct_values(series)
        combined = np.unique(combined * len(values) + codes, return_inverse=True)[1]
        new[name] = series
    _, first, position = np.unique(combined, return_index=True, return_inverse=True)
    return engine.Grouping(position.astype(np.int64), pl.DataFrame(new)[first], inside[first])


def _given_edges(column: str, spec: Any) -> tuple[float, ...]:
    try:
        edges = tuple(float(x) for x in spec)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"intervals for '{column}' must be a number of intervals, a list of edges or a map of labels."
        ) from error
    if len(edges) < 2 or list(edges) != sorted(set(edges)):
        raise ParameterError(
            f"The edges of the intervals for '{column}' must be at least two numbers in increasing order, each once: "
            "overlapping intervals would put one value into two classes."
        )
    return edges


def classes_of_columns(
    original: Microdata,
    copies: list[Microdata],
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    intervals: Mapping[str, Spec] | None,
    strategy: Strategy,
    edges_from: Source | None,
) -> tuple[dict[str, Classes], list[str]]:
    """Put the numbers of the columns that were named into classes, and say what was done."""
    classes: dict[str, Classes] = {}
    notes: list[str] = []
    for column, spec in (intervals or {}).items():
        if column not in (*keys, *columns):
            raise ParameterError(f"intervals names '{column}', which is neither a key nor sensitive here.")
        source: Source = edges_from or ("pooled" if column in keys else "released")
        files = original, copies or [original]
        classes[column], said = _classes_for(column, spec, files, strategy, source)
        notes += said
    return classes, notes
