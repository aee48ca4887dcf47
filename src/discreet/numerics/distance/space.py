"""How far apart are two records of mixed columns?

A `MixedSpace` is fitted on a reference file and then places the records of any file of the same columns in it, so
that all distances of a study are in the same unit. Two distances are offered, both defined column by column:

- ``gower`` (Gower 1971): the mean over columns of the absolute difference over the reference range (numbers and
  dates) or of 0/1 for equal/different (categories). Values outside the reference range are not clipped.
- ``euclidean``: the root of the summed squared differences in reference standard deviations; categories as one-hot
  columns of 0 and 1, so that a difference adds 2 to the square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Codes, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


Distance = Literal["gower", "euclidean"]
MissingRule = Literal["category", "ignore"]
Scale = Literal["range", "sd", "none"]


@dataclass(frozen=True)
class Points:
    """Records placed in a space: scaled and weighted numbers (NaN is missing), category codes (-1 is missing)."""

    numbers: Floats
    codes: Codes

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Integers | slice) -> Points:
        """Return some of the records."""
        return Points(np.ascontiguousarray(self.numbers[rows]), np.ascontiguousarray(self.codes[rows]))

    def with_rows_of(self, other: Points) -> Points:
        """Return the records of both, these first."""
        return Points(np.vstack([self.numbers, other.numbers]), np.vstack([self.codes, other.codes]))


@dataclass(frozen=True)
class MixedSpace:
    """A space of mixed columns with a distance, fitted on a reference file.

    Attributes
    ----------
    distance
        ``gower`` or ``euclidean``.
    numeric, categorical
        The columns that count, by how they are compared.
    constant
        Numeric columns without spread in the reference file: they have no unit and are left out.
    missing
        ``category``: missing is one more value, equal to itself and at full distance (that of two different
        categories) from every other. ``ignore``: a column counts only where both records have a value, and the
        rest is scaled up (Gower's own rule); no longer a metric, but what an intruder would do with blanks.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 30, 60], "sex": ["f", "f", "m"]})
    >>> space = MixedSpace.fit(people)
    >>> points = space.place(people)
    >>> space.matrix(points, points).round(3).tolist()
    [[0.0, 0.125, 1.0], [0.125, 0.0, 0.875], [1.0, 0.875, 0.0]]
    """

    distance: Distance
    numeric: tuple[str, ...]
    categorical: tuple[str, ...]
    constant: tuple[str, ...] = ()
    missing: MissingRule = "category"
    origins: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    units: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    number_weights: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    category_weights: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    levels: tuple[pl.Series, ...] = field(default=(), repr=False)

    @classmethod
    def fit(
        cls,
        reference: pl.DataFrame,
        *others: pl.DataFrame,
        columns: Sequence[str] | None = None,
        distance: Distance = "gower",
        categorical: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        scale: Scale | None = None,
        missing: MissingRule = "category",
    ) -> MixedSpace:
        """Learn ranges, scales and category levels.

        Parameters
        ----------
        reference
            The file that sets ranges and scales (usually the original).
        others
            Further files that will be placed; only their category levels are taken.
        columns
            The columns that count; all of the reference unless named.
        distance, missing
            As described above.
        categorical
            Numeric columns whose numbers are codes.
        weights
            Weight of a column's (absolute or squared) difference; 1 unless given.
        scale
            Unit of numbers: ``range`` (what ``gower`` takes), ``sd`` (what ``euclidean`` takes), or ``none``.
        """
        _check_options(distance, scale, missing)
        names = tuple(columns) if columns is not None else tuple(reference.columns)
        if not names:
            raise ParameterError("A distance needs at least one column. Name some with columns=[…].")
        kinds = {name: _kind_of(name, (reference, *others), categorical) for name in names}
        given = {name: float((weights or {}).get(name, 1.0)) for name in names}
        if any(not np.isfinite(weight) or weight < 0 for weight in given.values()):
            raise ParameterError("Column weights must be finite numbers of zero or above.")
        unit_rule = scale or ("range" if distance == "gower" else "sd")
        numeric, constant, origins, units = [], [], [], []
        for name in (name for name in names if kinds[name] == "number" and given[name] > 0):
            origin, unit = _origin_and_unit(as_float(reference[name]), unit_rule)
            if unit > 0:
                numeric.append(name)
                origins.append(origin)
                units.append(unit)
            else:
                constant.append(name)
        labels = tuple(name for name in names if kinds[name] == "category" and given[name] > 0)
        return cls(
            distance=distance,
            numeric=tuple(numeric),
            categorical=labels,
            constant=tuple(constant),
            missing=missing,
            origins=np.array(origins, dtype=np.float64),
            units=np.array(units, dtype=np.float64),
            number_weights=np.array([given[name] for name in numeric], dtype=np.float64),
            category_weights=np.array([given[name] for name in labels], dtype=np.float64),
            levels=tuple(_levels_of(name, (reference, *others)) for name in labels),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that count."""
        return (*self.numeric, *self.categorical)

    @property
    def metric(self) -> Metric:
        """What the compiled loops need to know."""
        from discreet.numerics.distance.distance_kernels import Metric

        full = 1.0 if self.distance == "gower" else 2.0
        gaps, costs = self.number_weights * full, self.category_weights * full
        return Metric(gaps, costs, self.distance == "euclidean", self.missing == "ignore")

    def place(self, table: pl.DataFrame) -> Points:
        """Place the records of a table; the table must have the columns and known category levels."""
        numbers = np.empty((table.height, len(self.numeric)))
        factor = self.number_weights if self.distance == "gower" else np.sqrt(self.number_weights)
        for j, name in enumerate(self.numeric):
            numbers[:, j] = (as_float(table[name]) - self.origins[j]) / self.units[j] * factor[j]
        codes = np.empty((table.height, len(self.categorical)), dtype=np.int32)
        for j, name in enumerate(self.categorical):
            codes[:, j] = _codes_of(table[name], self.levels[j])
        return Points(numbers, codes)

    def finished(self, raw: Floats) -> Floats:
        """Turn the raw sums of the compiled loops into distances."""
        if self.distance == "euclidean":
            return np.sqrt(raw)
        whole = float(self.number_weights.sum() + self.category_weights.sum())
        return raw / whole if whole > 0 else raw

    def between(self, points: Points, others: Points) -> Floats:
        """Give the distance of each record to the one in the same row of the other file."""
        from discreet.numerics.distance.distance_kernels import paired

        return self.finished(paired(points.numbers, points.codes, others.numbers, others.codes, self.metric))

    def matrix(self, points: Points, others: Points) -> Floats:
        """Give the distance of each record to every record of the other file, all in memory."""
        from discreet.numerics.distance.distance_kernels import crossed

        return self.finished(crossed(points.numbers, points.codes, others.numbers, others.codes, self.metric))


def _check_options(distance: str, scale: str | None, missing: str) -> None:
    if distance not in ("gower", "euclidean"):
        raise ParameterError("distance must be 'gower' or 'euclidean'.")
    if scale not in (None, "range", "sd", "none"):
        raise ParameterError("scale must be 'range', 'sd' or 'none'.")
    if missing not in ("category", "ignore"):
        raise ParameterError("missing must be 'category' or 'ignore'.")


def _kind_of(name: str, tables: Sequence[pl.DataFrame], categorical: Sequence[str]) -> str:
    for table in tables:
        if name not in table.columns:
            raise ColumnError(f"Column '{name}' is not in all of the files that are to be compared.")
    types = [table.schema[name] for table in tables if table.schema[name] != pl.Null]
    kinds = {
        "number" if dtype.is_numeric() else "time" if dtype.is_temporal() else "category" for dtype in types
    }
    if len(kinds) > 1:
        raise ColumnError(
            f"Column '{name}' is of different types in the two files ({' and '.join(map(str, types))}). "
            "Convert it to one type in both."
        )
    if name in categorical or kinds <= {"category"}:
        return "category"
    return "number"


def as_float(column: pl.Series) -> Floats:
    """Write numbers, dates (in days) and times as floats; missing is NaN."""
    if column.dtype.is_temporal():
        # A day is the natural step of a date; a clock time or a duration is measured in days, too.
        if column.dtype in (pl.Date, pl.Time):
            days = column.to_physical().cast(pl.Float64) / (1 if column.dtype == pl.Date else 86_400e9)
        else:
            kind = pl.Duration("us") if isinstance(column.dtype, pl.Duration) else pl.Datetime("us")
            plain = column.dt.replace_time_zone(None) if isinstance(column.dtype, pl.Datetime) else column
            days = plain.cast(kind).to_physical().cast(pl.Float64) / 86_400e6
        return days.fill_null(float("nan")).to_numpy().astype(np.float64)
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
    if np.isinf(values).any():
        raise ColumnError(
            f"Column '{column.name}' has infinite values, which have no distance. Make them missing or drop them."
        )
    return values


def _origin_and_unit(values: Floats, rule: str) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if rule == "none":
        return 0.0, 1.0
    if not known.size or known.min() == known.max():
        return 0.0, 0.0
    if rule == "range":
        return float(known.min()), float(known.max() - known.min())
    return float(known.mean()), float(known.std())


def _text(column: pl.Series) -> pl.Series:
    """Write categories as text; codes that are numbers read the same whether stored as 1 or as 1.0."""
    if column.dtype.is_numeric():
        column = column.cast(pl.Float64)
    return column.cast(pl.String)


def _levels_of(name: str, tables: Sequence[pl.DataFrame]) -> pl.Series:
    found = [_text(table[name].unique()).drop_nulls() for table in tables]
    return pl.concat(found).unique().sort()


def _codes_of(column: pl.Series, levels: pl.Series) -> Codes:
    text = _text(column)
    coded = text.cast(pl.Enum(levels), strict=False)
    if coded.null_count() > text.null_count():
        raise ColumnError(
            f"Column '{column.name}' has {coded.null_count() - text.null_count():,} values of categories that the "
            "space was not fitted on. Fit it on all files that are to be compared."
        )
    return coded.to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
