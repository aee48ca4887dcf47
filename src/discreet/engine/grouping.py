"""How one column of two files becomes the same few groups, so that its cells can be counted side by side.

Numbers and dates are cut at breaks found in the pooled values of both files; categories keep their levels, the union
of both files. Missing values and special codes (-9 for "refused") are groups of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.wording import shown
from discreet.engine.comparable import as_text, number_or_text, plain_text

Style = Literal["quantile", "equal"]
Closed = Literal["left", "right"]

Kind = Literal["number", "category"]

_LOOKED_AT = 20_000
_WIDTHS: dict[Any, Any] = {pl.UInt8: np.uint8, pl.UInt16: np.uint16, pl.UInt32: np.uint32}


@dataclass(frozen=True)
class Cutting:
    """How numbers are cut into groups, as the user asked for it."""

    groups: int = 5
    style: Style = "quantile"
    closed: Closed = "right"
    breaks: Mapping[str, Sequence[float]] | None = None
    special: Mapping[str, Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.groups, bool) or not isinstance(self.groups, int) or self.groups < 1:
            raise ParameterError("groups must be a whole number, 1 or more.")
        if self.style not in ("quantile", "equal"):
            raise ParameterError(
                "style must be 'quantile' (equally filled groups) or 'equal' (equally wide ones)."
            )
        if self.closed not in ("left", "right"):
            raise ParameterError("closed must be 'left' or 'right'.")
        for name, breaks in (self.breaks or {}).items():
            if not len(breaks) or list(breaks) != sorted(set(breaks)):
                raise ParameterError(f"The breaks of '{name}' must be numbers in increasing order.")


@dataclass(frozen=True)
class Values:
    """The values of one column of one file: every one, or the distinct ones with how often each occurs."""

    values: pl.Series
    counts: pl.Series | None = None

    def keep(self, chosen: pl.Series) -> Values:
        """Keep some of them."""
        counts = None if self.counts is None else self.counts.filter(chosen)
        return Values(self.values.filter(chosen), counts)

    def known(self) -> Values:
        """Leave out what is missing."""
        return self.keep(self.values.is_not_null())


@dataclass(frozen=True)
class Groups:
    """The groups of one column: first its intervals or levels, then the special codes, missing last.

    Attributes
    ----------
    column
        Its name.
    kind
        Whether it is cut (``number``) or keeps its levels.
    dtype
        What values are brought to before they are held against breaks or levels.
    breaks
        Where numbers are cut.
    levels
        The levels of a category, in order.
    special
        Codes with a group of their own.
    missing
        Whether a value is missing in either file.
    ordered
        Whether the order of the groups means something.
    """

    column: str
    kind: Kind
    dtype: Any
    breaks: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    special: tuple[Any, ...] = ()
    missing: bool = False
    ordered: bool = False
    closed: Closed = "right"
    notes: tuple[str, ...] = ()

    @property
    def plain(self) -> int:
        """How many groups are neither special nor missing."""
        return len(self.breaks) + 1 if self.kind == "number" else len(self.levels)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.plain + len(self.special) + self.missing

    @property
    def code_type(self) -> Any:
        """The smallest type that holds the codes."""
        return pl.UInt8 if self.size <= 2**8 else pl.UInt16 if self.size <= 2**16 else pl.UInt32

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the groups are called."""
        more = [str(code) for code in self.special] + ["missing"] * self.missing
        return (*(self._intervals() if self.kind == "number" else self.levels), *more)

    def codes(self, values: pl.Series) -> Array:
        """Number the group of each value, in the smallest type that holds it."""
        width = _WIDTHS[self.code_type]
        brought = brought_to(values, self.dtype)
        if self.kind == "number":
            numbers = physical(brought)
            found = self._cut(np.nan_to_num(numbers, nan=0.0)).astype(width)
            for place, code in enumerate(self.special):
                found[numbers == code] = self.plain + place
            found[np.isnan(numbers)] = self.size - 1
            return found
        every = (*self.levels, *(str(code) for code in self.special))
        placed = brought.cast(pl.Enum(list(every))).to_physical() if every else brought.cast(pl.UInt32)
        return placed.fill_null(self.size - 1).to_numpy().astype(width)

    def expression(self, name: str) -> nw.Expr:
        """Give the group of each value as a query, for numbers; categories stay values, to be coded when counted."""
        column = nw.col(name)
        if self.kind != "number":
            return column
        breaks: list[Any] = list(self.breaks)
        if self.dtype != pl.Float64:
            breaks = self._moments()
        else:
            column = column.cast(nw.Float64)
        parts = [
            ((column > nw.lit(x)) if self.closed == "right" else (column >= nw.lit(x))).cast(nw.Int64)
            for x in breaks
        ]
        found = nw.sum_horizontal(*parts) if parts else (column.is_null()).cast(nw.Int64) * 0
        for place, code in enumerate(self.special):
            found = nw.when(column == nw.lit(code)).then(nw.lit(self.plain + place)).otherwise(found)
        return (
            nw.when(nw.col(name).is_null())
            .then(nw.lit(self.size - 1))
            .otherwise(found)
            .cast(nw.Int16 if self.size < 2**15 else nw.Int32)
        )

    def _cut(self, numbers: Floats) -> Array:
        if len(self.breaks) > 16:
            return np.searchsorted(self.breaks, numbers, "left" if self.closed == "right" else "right")
        # A few comparisons of whole arrays are quicker than a search for each value.
        found = np.zeros(len(numbers), dtype=np.uint8)
        for x in self.breaks:
            found += numbers > x if self.closed == "right" else numbers >= x
        return found

    def _intervals(self) -> list[str]:
        if self.dtype == pl.Float64:
            ends = [shown(float(f"{x:.6g}")) for x in self.breaks]
        else:
            ends = [str(x) for x in self._moments()]
        if not ends:
            return ["any"]
        low, high = ("≤", ">") if self.closed == "right" else ("<", "≥")
        between = [f"{a} to {b}" for a, b in itertools.pairwise(ends)]
        return [f"{low} {ends[0]}", *between, f"{high} {ends[-1]}"]

    def _moments(self) -> list[Any]:
        """Give the breaks of dates as dates; one that falls between two goes to the side that changes nothing."""
        whole = np.floor(self.breaks) if self.closed == "right" else np.ceil(self.breaks)
        stored = pl.Int32 if self.dtype == pl.Date else pl.Int64  # the whole numbers that it is kept as
        return pl.Series(whole).cast(pl.Int64).cast(stored).cast(self.dtype).to_list()


def grouping_of(
    column: str, ours: Values, theirs: Values, cutting: Cutting, *, category: bool, levels: Sequence[str] = ()
) -> Groups:
    """Find the groups of one column of two files.

    ``levels`` is the declared order of a category, where there is one.
    """
    kind, dtype, notes = compared_as(column, ours.values, theirs.values, category=category)
    breaks = (cutting.breaks or {}).get(column)
    special = tuple(dict.fromkeys((cutting.special or {}).get(column, ())))
    if breaks is not None and kind != "number":
        raise ColumnError(
            f"groups names breaks for '{column}', which does not hold numbers or dates in both files."
        )
    ours, theirs = (Values(brought_to(part.values, dtype), part.counts) for part in (ours, theirs))
    missing = any(part.values.null_count() > 0 for part in (ours, theirs))
    known = [part.known() for part in (ours, theirs)]
    if kind == "number":
        if any(isinstance(code, str) for code in special):
            raise ParameterError(f"The special codes of '{column}' must be numbers, as its values are.")
        numbers = [_without(part, special) for part in known]
        ends = _given(breaks, dtype) if breaks is not None else pooled_breaks(numbers, cutting)
        return Groups(column, kind, dtype, ends, (), special, missing, True, cutting.closed, notes)
    found = [level for part in known for level in part.values.unique().to_list()]
    texts = tuple(str(code) for code in special)
    place = {level: at for at, level in enumerate(levels)}
    every = sorted(set(found) - set(texts), key=lambda level: (place.get(level, len(place)), level))
    return Groups(
        column,
        kind,
        dtype,
        (),
        tuple(every),
        texts,
        missing,
        bool(levels) or dtype == pl.Boolean,
        notes=notes,
    )


def pooled_breaks(parts: Sequence[tuple[Floats, Floats | None]], cutting: Cutting) -> tuple[float, ...]:
    """Place the breaks by the values of all files together.

    As many distinct values as groups, or fewer, stay apart. Where equally filled groups come out as fewer than three,
    because most values are the same, the groups are made equally wide.
    """
    values = np.concatenate([part for part, _ in parts])
    counted = parts[0][1] is not None
    counts = np.concatenate([count for _, count in parts if count is not None]) if counted else None
    finite = np.isfinite(values)
    if not finite.all():
        values, counts = values[finite], None if counts is None else counts[finite]
    if not len(values):
        return ()
    few = np.unique(values[:_LOOKED_AT])
    if len(few) <= cutting.groups:
        few = np.unique(values)
    if len(few) <= cutting.groups:
        # Between two values, so that the breaks do not depend on which side of them is closed.
        return tuple(float(x) for x in (few[1:] + few[:-1]) / 2)
    if cutting.style == "quantile":
        return inner_breaks(
            _order_statistics(values, counts, cutting.groups), values.min(), values.max(), cutting
        )
    return inner_breaks(None, values.min(), values.max(), cutting)


def inner_breaks(quantiles: Floats | None, least: float, most: float, cutting: Cutting) -> tuple[float, ...]:
    """Cut at quantiles where they leave enough groups, else into groups of equal width."""
    if quantiles is not None:
        breaks = quantiles[quantiles > least if cutting.closed == "left" else quantiles < most]
        if len(breaks) >= min(2, cutting.groups - 1):
            return tuple(float(x) for x in breaks)
    return tuple(float(x) for x in np.linspace(least, most, cutting.groups + 1)[1:-1])


def _given(breaks: Sequence[Any], dtype: Any) -> tuple[float, ...]:
    if dtype == pl.Float64:
        return tuple(float(x) for x in breaks)
    return tuple(float(x) for x in physical(pl.Series(list(breaks)).cast(dtype)))


def _order_statistics(values: Floats, counts: Floats | None, groups: int) -> Floats:
    total = len(values) if counts is None else int(counts.sum())
    ranks = np.maximum(np.ceil(np.arange(1, groups) * total / groups).astype(np.int64) - 1, 0)
    if counts is None:
        return np.unique(np.partition(values, np.unique(ranks))[ranks])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(counts[order])
    return np.unique(values[order][np.searchsorted(below, ranks, "right")])


def _without(part: Values, special: Sequence[Any]) -> tuple[Floats, Floats | None]:
    numbers = physical(part.values)
    counts = None if part.counts is None else part.counts.to_numpy().astype(np.float64)
    if special:
        keep = ~np.isin(numbers, np.asarray(special, dtype=np.float64))
        numbers, counts = numbers[keep], None if counts is None else counts[keep]
    return numbers, counts


def brought_to(values: pl.Series, dtype: Any) -> pl.Series:
    """Bring values to the type in which both files are compared; text is the words of whatever it was."""
    if dtype == pl.String:
        return as_text(plain_text(values))
    return values if values.dtype == dtype else values.cast(dtype)


def physical(values: pl.Series) -> Floats:
    """Give numbers and dates as numbers, NaN where missing."""
    held = values if values.dtype.is_numeric() else values.to_physical()
    numbers: Floats = held.cast(pl.Float64).to_numpy()
    return numbers


def compared_as(
    column: str, ours: pl.Series, theirs: pl.Series, *, category: bool = False
) -> tuple[Kind, Any, tuple[str, ...]]:
    """Decide how a column is compared, and in which type."""
    left, right = ours.dtype, theirs.dtype
    if left == pl.Null and right == pl.Null:
        raise InputError(f"Column '{column}' holds no values in either file. Leave it out.")
    if category:
        return "category", pl.String, ()
    if pl.Null in (left, right):
        left = right = right if left == pl.Null else left
    if left.is_temporal() and right.is_temporal():
        if left == right:
            return "number", left, ()
        if pl.Time not in (left, right) and pl.Duration not in (left, right):
            return "number", pl.Datetime("us"), ()
    numbers = [dtype.is_numeric() for dtype in (left, right)]
    if all(numbers) or (any(numbers) and pl.Boolean in (left, right)):
        return "number", pl.Float64, ()
    if any(numbers) and pl.String in (left, right):
        met, note = number_or_text(ours, theirs, column)
        return "number" if met == pl.Float64 else "category", met, (note,)
    texts = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    if all(isinstance(dtype, texts) for dtype in (left, right)):
        return "category", pl.String, ()
    raise ColumnError(
        f"Column '{column}' is {left} in the original and {right} in the release; the two cannot be compared. "
        "Read both files with the same type, or leave the column out."
    )
