"""What is added up over the records of two files that are too large to hold, for their loss of information.

A sample says how each column is compared. Numbers with very many different values are placed among the others by
intervals between the values of the sample, whose records are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.engine.precision import Grid
from discreet.microdata import Microdata
from discreet.utility.column_loss import Kind, Known, comparable_kind, moved_loss
from discreet.utility.linked_files import equal_cells

_REPEATED = 0.2
"""Values are listed where the sample has at most this share of different ones."""


@dataclass(frozen=True)
class ComparedColumn:
    """How one column is compared, as the sample shows it."""

    place: int
    name: str
    kind: Kind
    category: bool
    grid: Grid | None
    centers: tuple[float, float]
    numeric: bool
    repeated: bool
    cuts: Floats

    @classmethod
    def of(
        cls, place: int, name: str, sample: tuple[Microdata, Microdata], coded: Sequence[str]
    ) -> ComparedColumn:
        """Look at a column of the sample; ``coded`` are numbers that are codes."""
        ours, theirs = (engine.collect(data, [name])[name] for data in sample)
        category = name in coded
        kind, x, y = comparable_kind(ours, theirs, category=category)
        grid = engine.agreed_grid(ours, theirs, "", None)
        pairs = (
            x.drop_nulls()
            if kind == "number"
            else pl.concat(
                [engine.as_text(engine.plain_text(ours)), engine.as_text(engine.plain_text(theirs))]
            )
        )
        different = pairs.n_unique()
        return cls(
            place,
            name,
            kind,
            category,
            grid if grid is not None and engine.of_writing(grid, ours, theirs) else None,
            # Distances from a value of its own are exactly zero where a column does not vary.
            tuple(_first(part) if kind == "number" else 0.0 for part in (x, y)),  # type: ignore[arg-type]
            kind == "number" and ours.dtype.is_numeric() and not category,
            different <= _REPEATED * max(len(pairs), 1),
            x.drop_nulls().unique().sort().to_numpy() if kind == "number" else np.zeros(0),
        )

    @property
    def labelled(self) -> bool:
        """Whether how often each value became which label is all there is to know."""
        return self.kind != "number"

    def read(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series, pl.Series, pl.Series]:
        """Give the cells of a batch as they are, and brought to what they are compared by."""
        ours, theirs = (_clean(rows[f"{side}{self.place}"]) for side in "xy")
        if self.kind == "number":
            x, y = (_as_number(part) for part in (ours, theirs))
        else:
            _, x, y = comparable_kind(ours, engine.as_text(engine.plain_text(theirs)), category=self.category)
        return ours, theirs, x, y

    def same(self, ours: pl.Series, theirs: pl.Series) -> Flags:
        """Say which cells are equal, on the grid that the sample agreed on."""
        if self.grid is not None:
            return equal_cells(engine.on_grid(ours, self.grid), engine.on_grid(theirs, self.grid))
        return equal_cells(ours, theirs)


def _first(values: pl.Series) -> float:
    known = values.drop_nulls()
    return float(known[0]) if len(known) else 0.0


def _clean(values: pl.Series) -> pl.Series:
    return values.fill_nan(None) if values.dtype.is_float() else values


def _as_number(values: pl.Series) -> pl.Series:
    if values.dtype.is_temporal():
        return values.to_physical().cast(pl.Float64)
    return values.cast(pl.Float64, strict=False)


@dataclass(frozen=True, eq=False)
class InIntervals:
    """Where numbers stand among very many others: counted at the values of a sample, and between them."""

    cuts: Floats
    at: Integers
    between: Integers

    @cached_property
    def records(self) -> int:
        """How many records have a number."""
        return int(self.at.sum() + self.between.sum())

    @property
    def off(self) -> float:
        """How far the loss of a cell may be off."""
        return 8 * float(self.between.max(initial=0)) / max(self.records, 1)

    @cached_property
    def _before(self) -> Integers:
        return np.cumsum(self.between)[:-1] + np.cumsum(self.at) - self.at

    def places(self, values: Floats, *, own: bool) -> tuple[Floats, Floats]:
        """Count the records below each value, and those up to it."""
        place = np.searchsorted(self.cuts, values, "right") - 1
        here = np.maximum(place, 0)
        met = (place >= 0) & (self.cuts[here] == values)
        start = np.where(place >= 0, self._before[here] + self.at[here], 0)
        following = np.minimum(place + 1, len(self.cuts) - 1)
        width = self.cuts[following] - self.cuts[here]
        inside = (place >= 0) & (place + 1 < len(self.cuts))
        part = np.where(inside, (values - self.cuts[here]) / np.where(width > 0, width, 1.0), 0.5)
        low = np.where(met, self._before[here], start + part * self.between[place + 1])
        return low, low + np.where(met, self.at[here], 1.0 if own else 0.0)


def numbers_known(
    original: Microdata, columns: Mapping[str, ComparedColumn], listed: set[str], rows: Any
) -> dict[str, Known | InIntervals]:
    """Count the numbers of the original: each of them where they repeat, else those between values of the sample."""
    found: dict[str, Known | InIntervals] = {}
    for name, column in columns.items():
        if column.kind == "category" or name not in listed:
            continue
        values = engine.scan(original, {"x": name})
        table = engine.collect(values.group_by("x").agg(nw.len().cast(nw.Int64).alias("n")))
        table = table.with_columns(_as_number(_clean(table["x"])).alias("x")).drop_nulls("x")
        table = table.group_by("x").agg(pl.col("n").sum()).sort("x")
        found[name] = Known(table["x"].to_numpy(), table["n"].to_numpy())
    fine = tuple(
        column
        for name, column in columns.items()
        if column.kind == "number" and name not in listed and len(column.cuts)
    )
    if fine:
        work = _Placing(fine)
        sums = engine.added_up(rows.select(*(f"x{column.place}" for column in fine)), work, work.size)
        for column, part in zip(fine, np.split(sums, work.ends), strict=True):
            many = len(column.cuts)
            counts = part.astype(np.int64)
            found[column.name] = InIntervals(column.cuts, counts[:many], counts[many:])
    return found


@dataclass(frozen=True)
class _Placing:
    """Counts the numbers of a batch at the cuts, and between them."""

    columns: tuple[ComparedColumn, ...]

    @property
    def ends(self) -> Integers:
        return np.cumsum([2 * len(column.cuts) + 1 for column in self.columns])[:-1]

    @property
    def size(self) -> int:
        return sum(2 * len(column.cuts) + 1 for column in self.columns)

    def __call__(self, rows: pl.DataFrame) -> Floats:
        parts = []
        for column in self.columns:
            values = _as_number(_clean(rows[f"x{column.place}"])).drop_nulls().to_numpy()
            place = np.searchsorted(column.cuts, values, "right") - 1
            met = (place >= 0) & (column.cuts[np.maximum(place, 0)] == values)
            many = len(column.cuts)
            parts += [
                np.bincount(place[met], minlength=many),
                np.bincount(place[~met] + 1, minlength=many + 1),
            ]
        return np.concatenate(parts).astype(np.float64)


@dataclass(frozen=True)
class BatchSums:
    """Everything that is added up over records, for a batch of them."""

    columns: tuple[ComparedColumn, ...]
    known: Mapping[str, Any]
    weighted: bool

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """The columns that are numbers in both files."""
        return tuple(column.name for column in self.columns if column.numeric)

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        of_cells = ("changed", "suppressed", "lost", "shown", "partly", "unread")
        of_numbers = ("n", "away", "squares", "relative", "zero", "x", "xx")
        many = len(self.numeric)
        shapes: dict[str, tuple[int, ...]] = {"records changed": (), "there": ()}
        shapes |= {f"{what} {column.name}": () for column in self.columns for what in of_cells}
        shapes |= {f"{what} of {name}": () for name in self.numeric for what in of_numbers}
        for side in ("before", "after"):
            shapes |= {f"{side} {what}": (many, many) for what in ("pairs", "mass", "sums", "cross")}
            shapes[f"{side} squared weights"] = (many,)
        return shapes

    @cached_property
    def size(self) -> int:
        """How many sums there are."""
        return sum(int(np.prod(shape)) for shape in self._shapes.values())

    def read(self, sums: Floats) -> dict[str, Any]:
        """Name the sums."""
        found, at = {}, 0
        for name, shape in self._shapes.items():
            wide = int(np.prod(shape))
            found[name] = sums[at : at + wide].reshape(shape) if shape else float(sums[at])
            at += wide
        return found

    def __call__(self, rows: pl.DataFrame) -> Floats:
        """Add up a batch of linked records."""
        there = rows[engine.THERE].is_not_null().to_numpy()
        any_change = np.zeros(rows.height, dtype=np.bool_)
        found: dict[str, Any] = {"there": there.sum()}
        numbers: dict[str, tuple[Floats, Floats]] = {}
        for column in self.columns:
            ours, theirs, x, y = column.read(rows)
            name = column.name
            changed = ~column.same(ours, theirs) & there
            any_change |= changed
            had, has = ours.is_not_null().to_numpy(), theirs.is_not_null().to_numpy()
            knows, shows = x.is_not_null().to_numpy(), y.is_not_null().to_numpy()
            found[f"changed {name}"] = changed.sum()
            found[f"suppressed {name}"] = (had & ~has & there).sum()
            found[f"lost {name}"] = (~there | (knows != shows)).sum()
            found[f"shown {name}"] = has.sum()
            found[f"unread {name}"] = (has & ~shows).sum() + (had & ~knows).sum()
            found[f"partly {name}"] = 0.0
            if column.kind == "number":
                a, b = x.to_numpy(), y.to_numpy()
                moved = changed & knows & shows
                if moved.any() and name in self.known:
                    found[f"partly {name}"] = moved_loss(self.known[name], a[moved], b[moved]).sum()
                if column.numeric:
                    numbers[name] = a, b
                    found |= _paired_sums(name, a, b, knows & shows, column.centers[0])
        found["records changed"] = any_change.sum()
        ones = np.ones(rows.height)
        ours_w = _clean(rows["w"]).cast(pl.Float64).fill_null(0.0).to_numpy() if self.weighted else ones
        theirs_w = (
            _clean(rows["v"]).cast(pl.Float64).fill_null(0.0).to_numpy() if "v" in rows.columns else ours_w
        )
        for at, (side, weight) in enumerate((("before", ours_w), ("after", theirs_w))):
            centers = [column.centers[at] for column in self.columns if column.name in self.numeric]
            found |= _moment_sums(side, [numbers[name][at] for name in self.numeric], centers, weight)
        return np.concatenate([np.ravel(np.asarray(found[name], dtype=np.float64)) for name in self._shapes])


def _paired_sums(name: str, before: Floats, after: Floats, both: Flags, center: float) -> dict[str, float]:
    x, y = before[both], after[both]
    away, own = np.abs(x - y), x - center
    return {
        f"n of {name}": len(x),
        f"away of {name}": away.sum(),
        f"squares of {name}": (away**2).sum(),
        f"relative of {name}": (away[x != 0] / np.abs(x[x != 0])).sum(),
        f"zero of {name}": (x == 0).sum(),
        f"x of {name}": own.sum(),
        f"xx of {name}": (own**2).sum(),
    }


def _moment_sums(side: str, columns: list[Floats], centers: list[float], weight: Floats) -> dict[str, Floats]:
    values = np.column_stack(columns) - np.array(centers) if columns else np.empty((len(weight), 0))
    known = ~np.isnan(values)
    away, flags = np.where(known, values, 0.0), known.astype(np.float64)
    heavy = away * weight[:, None]
    return {
        f"{side} pairs": flags.T @ flags,
        f"{side} mass": (flags * weight[:, None]).T @ flags,
        f"{side} sums": heavy.T @ flags,
        f"{side} cross": heavy.T @ away,
        f"{side} squared weights": (flags * weight[:, None] ** 2).sum(axis=0),
    }


def counted_pairs(rows: Any, column: ComparedColumn) -> pl.DataFrame:
    """Count how often each value ``x`` became which label ``y``; ``there`` is null where the record is gone."""
    names = [f"x{column.place}", f"y{column.place}", engine.THERE]
    counted = rows.select(*names).group_by(*names).agg(nw.len().cast(nw.Int64).alias("count"))
    table = engine.collect(counted)
    ours, theirs, x, y = column.read(table)
    same = column.same(ours, theirs)
    columns = [
        x.alias("x"),
        y.alias("y"),
        pl.Series("same", same),
        table[engine.THERE].alias("there"),
        table["count"],
    ]
    found = pl.DataFrame(columns)
    return (
        found.group_by("x", "y", "same", "there")
        .agg(pl.col("count").sum())
        .sort("x", "y", "same", nulls_last=True)
    )
