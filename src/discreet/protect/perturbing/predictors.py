"""Columns that others are predicted from, as numbers: categories become one column a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Microdata
from discreet.protect.treatment import existing

_MOST = 1_000
"""Predicting columns beyond which a dense matrix of them would take too much memory and time."""


@dataclass(frozen=True)
class Predictors:
    """The predicting columns of a file.

    Attributes
    ----------
    matrix
        One row a record; NaN where the column it comes from is missing.
    source
        For each column of the matrix, the position of the file's column it comes from.
    names
        The file's columns.
    """

    matrix: Floats
    source: Integers
    names: tuple[str, ...]

    @property
    def known(self) -> Flags:
        """Whether each record knows each of the file's columns."""
        if not self.names:
            return np.zeros((len(self.matrix), 0), dtype=bool)
        first = np.array([np.flatnonzero(self.source == at)[0] for at in range(len(self.names))])
        return np.asarray(~np.isnan(self.matrix[:, first]))

    def at(self, records: Integers) -> Predictors:
        """Return the predictors of some records."""
        return replace(self, matrix=self.matrix[records])

    @classmethod
    def read(
        cls,
        data: Microdata,
        names: Sequence[str] | None,
        changed: Sequence[str],
        *,
        ordered: bool,
        treatment: str,
    ) -> Predictors:
        """Read the columns: numbers and dates as they are, categories as one 0/1 column for each level but one.

        With ``ordered``, categories that have an order (Enum) count as numbers by their place in it.
        """
        names = () if not names else existing(data, names, treatment=treatment)
        both = [name for name in names if name in changed]
        if both:
            raise ParameterError(f"'{both[0]}' is both changed by {treatment} and given. Decide for one.")
        table = engine.collect(data, names) if names else pl.DataFrame()
        parts: list[Floats] = []
        source: list[int] = []
        for at, name in enumerate(names):
            made = _numbers(table[name], ordered)
            parts.append(made)
            source += [at] * made.shape[1]
            if len(source) > _MOST:
                raise ParameterError(
                    f"The columns given to {treatment} have too many levels together (more than {_MOST:,}, at "
                    f"'{name}'). Group the levels first, or leave the column out."
                )
        rows = table.height if names else engine.overview(data, ()).rows
        matrix = np.hstack(parts) if parts else np.zeros((rows, 0))
        return cls(matrix, np.array(source, dtype=np.int64), tuple(names))


def _numbers(column: pl.Series, ordered: bool) -> Floats:
    kind = column.dtype
    if kind.is_numeric() or kind == pl.Boolean:
        numbers = column.cast(pl.Float64)
    elif kind.is_temporal() or (ordered and isinstance(kind, pl.Enum)):
        numbers = column.to_physical().cast(pl.Float64)
    else:
        return _levels(column)
    if numbers.is_infinite().any():
        raise ColumnError(f"Column '{column.name}' holds infinite numbers. Make them missing first.")
    return numbers.to_numpy().reshape(-1, 1)


def _levels(column: pl.Series) -> Floats:
    """Make a 0/1 column for each level but the most frequent, and a column of zeros where there is no other."""
    text = column.cast(pl.String).rename("level")
    counts = text.drop_nulls().value_counts().sort(["count", "level"], descending=[True, False])
    others = counts["level"][1 : _MOST + 2]
    gone = text.is_null().to_numpy()
    made = np.zeros((len(text), max(len(others), 1)))
    if len(others):
        place = text.replace_strict(others, pl.Series(range(len(others))), default=-1, return_dtype=pl.Int64)
        spot = place.fill_null(-1).to_numpy()
        hit = np.flatnonzero(spot >= 0)
        made[hit, spot[hit]] = 1.0
    made[gone] = np.nan
    return made
