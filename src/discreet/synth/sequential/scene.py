"""The records of a file while it is read or made: its columns, and the variables that stand for them in models."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from discreet.synth.variables import Rows, Variable


class Scene:
    """The columns that are there so far.

    The same object holds the observed file when models are fitted and the synthetic one while it grows.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.columns: dict[str, pl.Series] = {}
        self.parts: dict[str, tuple[Variable, ...]] = {}

    def add(self, series: pl.Series, parts: tuple[Variable, ...]) -> None:
        """Take in a column and its variables."""
        self.columns[series.name] = series
        self.parts[series.name] = parts

    def predictors(self, names: Sequence[str], rows: Rows | None = None) -> list[Variable]:
        """Return the variables of some columns, at some records."""
        found = [part for name in names for part in self.parts[name]]
        return found if rows is None else [variable.take(rows) for variable in found]

    def frame(self) -> pl.DataFrame:
        """Return the columns as a frame."""
        return pl.DataFrame(self.columns)

    def taken(self, rows: Rows, names: Sequence[str]) -> Scene:
        """Return some columns at some records, e.g. one stratum."""
        keep = pl.Series(rows) if not isinstance(rows, slice) else rows
        part = Scene(0)
        for name in names:
            column = self.columns[name]
            part.add(
                column.filter(keep)
                if isinstance(keep, pl.Series) and keep.dtype == pl.Boolean
                else column[keep],
                tuple(variable.take(rows) for variable in self.parts[name]),
            )
        part.size = len(next(iter(part.columns.values()))) if part.columns else 0
        return part
