"""A sample as population models see it: coded key combinations, their counts, and the size of the population.

How far an estimate could be off because another sample had been drawn is told by leaving out groups of its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.engine import Missing
from discreet.engine.classes import key_names
from discreet.microdata import Microdata
from discreet.risk.class_size_models import Sizes

_MOST_PEOPLE = 10**15
"""Counts of people stay exact up to there, and no population is larger."""


@dataclass(frozen=True)
class CodedSample:
    """The classes of a sample: codes by key, records and sum of weights by class, and the people they stand for.

    ``counts`` may hold zeros, where records were left out for a jackknife.
    """

    keys: tuple[str, ...]
    codes: tuple[Integers, ...]
    ordered: tuple[bool, ...]
    counts: Integers
    weights: Floats | None
    population: int
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Number of records, n."""
        return int(self.counts.sum())

    @property
    def classes(self) -> int:
        """Number of classes that have a record, K."""
        return int((self.counts > 0).sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of every key."""
        return tuple(int(codes.max()) + 1 for codes in self.codes)

    def sizes(self) -> Sizes:
        """Count the classes of each size."""
        return Sizes.of(self.counts, self.population)

    def columns(self) -> list[Integers]:
        """Return the codes of every key, one entry a record."""
        return [np.repeat(codes, self.counts) for codes in self.codes]

    def record_weights(self) -> Floats | None:
        """Return the mean weight of the class of every record, or None without weights."""
        if self.weights is None:
            return None
        there = self.counts > 0
        return np.repeat(self.weights[there] / self.counts[there], self.counts[there])

    def in_population(self, population: int) -> CodedSample:
        """Return the same sample of a population of another size."""
        return replace(self, population=population)

    def leave_out(self, groups: int, rng: np.random.Generator) -> list[CodedSample]:
        """Deal the records into groups at random and return the samples without one group each."""
        dealt = rng.multinomial(self.counts, np.full(groups, 1 / groups))
        left = self.counts[:, None] - dealt
        share = None if self.weights is None else self.weights / np.maximum(self.counts, 1)
        return [
            replace(self, counts=column, weights=None if share is None else share * column)
            for column in left.T
            if column.sum() > 0
        ]


def coded_sample(
    data: Microdata,
    keys: Sequence[str],
    missing: Missing,
    *,
    population_size: int | None,
    sampling_fraction: float | None,
) -> CodedSample:
    """Count the classes of a file, code their keys, and find out how many people they were drawn from."""
    if missing == "wildcard":
        raise ParameterError(
            "Population models need classes that do not overlap, and missing='wildcard' has none. "
            "Use missing='category' or 'drop'."
        )
    weight = engine.resolve_weight(data)
    table = _weighted_classes(data, keys, missing, weight) if weight else None
    if table is None:
        table = engine.class_table(data, keys, missing)
    if table.is_empty():
        raise ParameterError(
            "No record is left: every one misses some key, and missing='drop' leaves those out. "
            "Use missing='category', or drop the key with the most missing values."
        )
    names = list(key_names(keys))
    table = table.with_columns(
        engine.in_declared_order(table[name], data.schema[key]) for name, key in zip(names, keys, strict=True)
    )
    coded = code_table(table, names).sort(names)
    records = int(coded["records"].sum())
    # Everybody of the file, also who is in no class: the population is taken smaller in that proportion.
    rows = records + engine.left_out(data, keys, missing)
    weights = coded["weights"].to_numpy().astype(float) if weight else None
    people, notes = _population(population_size, sampling_fraction, weights, records, rows)
    return CodedSample(
        keys=tuple(keys),
        codes=tuple(coded[name].to_numpy().astype(np.int64) for name in names),
        ordered=tuple(_ordered(table.schema[name]) for name in names),
        counts=coded["records"].to_numpy().astype(np.int64),
        weights=weights,
        population=people,
        notes=tuple(notes),
    )


def code_table(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace the key values of a class table by their numbers, in the order of the values.

    Examples
    --------
    >>> code_table(pl.DataFrame({"k0": ["b", None, "a"]}), ["k0"])["k0"].to_list()
    [2, 0, 1]
    """
    return table.with_columns(_coded(table[name]) for name in names)


def _weighted_classes(data: Microdata, keys: Sequence[str], missing: Missing, weight: str) -> pl.DataFrame:
    rows = engine.weighted_rows(data, keys, missing, weight)
    sums = (nw.len().cast(nw.Int64).alias("records"), nw.col("w").cast(nw.Float64).sum().alias("weights"))
    return engine.collect(rows.group_by(*key_names(keys)).agg(*sums))


def _coded(values: pl.Series) -> pl.Series:
    """Number the values in their order, a missing one first."""
    if isinstance(values.dtype, pl.Categorical):
        values = values.cast(pl.String)
    elif isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    offset = 0 if values.null_count() else 1
    return (values.rank("dense").fill_null(0).cast(pl.Int64) - offset).alias(values.name)


def _ordered(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, pl.Enum)


def _countable(people: float, cause: str) -> int:
    if people > _MOST_PEOPLE:
        raise ParameterError(f"{cause} would make the population larger than {_MOST_PEOPLE:,} people.")
    return round(people)


def _population(
    size: int | None, fraction: float | None, weights: Floats | None, records: int, rows: int
) -> tuple[int, list[str]]:
    if size is not None and fraction is not None:
        raise ParameterError("Give population_size or sampling_fraction, not both.")
    notes = []
    if fraction is not None:
        if not 0 < fraction <= 1:
            raise ParameterError("sampling_fraction must be above 0 and at most 1, e.g. 0.1 for one in ten.")
        people = _countable(records / fraction, "sampling_fraction")
    elif size is not None:
        if size < rows:
            raise ParameterError(
                f"population_size ({size:,}) is smaller than the file ({rows:,} records). "
                "Give the size of the population the file was drawn from."
            )
        people = max(round(size * records / rows), records)
        if records < rows:
            notes.append(
                f"{rows - records:,} records with a missing key were left out, and the population was taken smaller "
                "in proportion."
            )
    elif weights is not None:
        people = max(_countable(float(weights.sum()), "The weights"), records)
        notes.append(f"The population was taken as the sum of the survey weights, {people:,} people.")
    else:
        raise ParameterError(
            "How large is the population? Give population_size=… or sampling_fraction=…, or name the survey weight "
            "of the file (weight='column'), whose sum is used otherwise."
        )
    if weights is not None:
        notes.append(
            "The formulas assume that everybody was equally likely to be drawn; survey weights shape no more than the "
            "margins of the copulas."
        )
    return people, notes


# How far could an estimate be off because another sample had been drawn? The delete-a-group jackknife.


#: Standard errors on either side of an estimate for an interval of 95 %.
WIDTH = 1.96


def jackknife_error(left_out: Sequence[float | None]) -> float | None:
    """Return the standard error from estimates that each leave one random group of records out (Wolter 2007).

    Groups for which nothing could be estimated are passed over; with fewer than three the answer is None.

    Examples
    --------
    >>> round(jackknife_error([0.9, 1.0, 1.1]), 4)
    0.1155
    >>> jackknife_error([0.9, None, 1.1]) is None
    True
    """
    known = np.array([value for value in left_out if value is not None], dtype=float)
    if len(known) < 3:
        return None
    return float(np.sqrt((len(known) - 1) / len(known) * ((known - known.mean()) ** 2).sum()))


def interval(
    value: float, error: float | None, lowest: float, highest: float
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a value, within the limits it cannot leave.

    Examples
    --------
    >>> interval(0.5, 0.1, 0.4, 1.0)
    (0.4, 0.696)
    """
    if error is None:
        return None, None
    return max(value - WIDTH * error, lowest), min(value + WIDTH * error, highest)
