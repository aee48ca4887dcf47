"""Columns as numbers: distinct values with codes, keys at every level, and records that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, need_known
from discreet.core.wording import type_name
from discreet.engine import ClassCounts
from discreet.engine.comparable import positions
from discreet.hierarchy import Hierarchy
from discreet.protect.privacy_models import Classes, KMap

_SPAN = 2**20
"""Whole numbers that lie closer together than this are looked up in a table, not in a hash."""


def coded(values: pl.Series) -> tuple[Integers, pl.Series]:
    """Give the code of each value among the distinct ones, which are sorted, missing last.

    Examples
    --------
    >>> codes, levels = coded(pl.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), levels.to_list()
    ([1, 0, 2, 1], ['a', 'b', None])
    """
    levels = values.unique().sort(nulls_last=True)
    known = levels.drop_nulls()
    if not len(known):
        return np.zeros(len(values), dtype=np.int64), levels
    if values.dtype == pl.String:
        numbers = values.cast(pl.Enum(known)).to_physical().cast(pl.Int64)
        return numbers.fill_null(len(known)).to_numpy(), levels
    if values.dtype.is_integer() and values.dtype not in (pl.UInt64, pl.Int128, pl.UInt128):
        low, high = int(known[0]), int(known[-1])
        if high - low < _SPAN:
            lookup = np.full(high - low + 2, len(known), dtype=np.int64)
            lookup[known.cast(pl.Int64).to_numpy() - low] = np.arange(len(known))
            numbers = values.cast(pl.Int64) - low
            return lookup[numbers.fill_null(high - low + 1).to_numpy()], levels
    return positions(values, levels), levels


def crossed(table: pl.DataFrame) -> tuple[Integers, pl.DataFrame]:
    """Give the code of each record's combination of values among those that occur.

    Examples
    --------
    >>> crossed(pl.DataFrame({"a": [1, 2, 1], "b": ["x", "x", "x"]}))[0].tolist()
    [0, 1, 0]
    """
    codes = np.zeros(table.height, dtype=np.int64)
    for number, column in enumerate(table):
        own, levels = coded(column)
        # Packing only what occurs keeps the numbers small, however many columns there are.
        codes = (
            np.unique(codes * len(levels) + own, return_inverse=True)[1].astype(np.int64) if number else own
        )
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int64)
    first[codes[::-1]] = np.arange(table.height)[::-1]
    return codes, table[first]


@dataclass(frozen=True)
class Units:
    """Records that are treated as one: the members of a household, the visits of a person.

    Attributes
    ----------
    of_record
        The number of each record's unit.
    first
        The first record of each unit, which stands for it.
    """

    of_record: Integers
    first: Integers

    @classmethod
    def of(cls, by: pl.Series | None, records: int) -> Units:
        """Number the units in order of appearance; without a column, and where it is missing, each record is one.

        Examples
        --------
        >>> Units.of(pl.Series(["x", None, "x", None]), 4).of_record.tolist()
        [0, 1, 0, 2]
        """
        if by is None:
            return cls(np.arange(records), np.arange(records))
        codes, levels = coded(by)
        if by.null_count():
            gone = by.is_null().to_numpy()
            codes = codes.copy()
            codes[gone] = len(levels) + np.arange(int(gone.sum()))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return cls(rank[inverse], np.sort(first).astype(np.int64))

    def __len__(self) -> int:
        return len(self.first)

    def sizes(self) -> Integers:
        """Count the records of each unit."""
        return np.bincount(self.of_record, minlength=len(self)).astype(np.int64)

    def check_same(self, table: pl.DataFrame, columns: Sequence[str], by: str) -> None:
        """Refuse columns that differ between records of one unit."""
        if len(self) == len(self.of_record):
            return
        for name in columns:
            column = table[name]
            differ = column.ne_missing(column.gather(self.first).gather(self.of_record))
            if differ.any():
                raise ColumnError(
                    f"Column '{name}' differs between records with the same '{by}' ({int(differ.sum()):,} records). "
                    f"It has to be one value for each '{by}' to be changed for all of them together."
                )


# Keys as numbers: every distinct value of a key with its code at each level of its hierarchy.


@dataclass(frozen=True)
class CodedKey:
    """One key, coded at every level of its hierarchy.

    Attributes
    ----------
    codes
        For each level the code of every distinct value; missing is a value of its own below the top.
    counts
        The number of records of every distinct value.
    shares
        For each level the share of the domain under the label of every distinct value; 1 where missing.
    records
        The position of each record's value among the distinct ones.
    outsiders
        The same for the people of each population file.
    """

    name: str
    hierarchy: Hierarchy | None
    codes: tuple[Integers, ...]
    counts: Integers
    shares: tuple[Floats, ...]
    records: Integers
    outsiders: tuple[Integers, ...] = ()

    @property
    def height(self) -> int:
        """The number of the level that says nothing."""
        return len(self.codes) - 1

    def released(self, column: pl.Series, level: int) -> pl.Series:
        """Give the column at a level; at the top missing values are no longer told from others."""
        if level == 0:
            return column
        if self.hierarchy is None:
            return pl.repeat("*", len(column), dtype=pl.String, eager=True).alias(column.name)
        labels: pl.Series = self.hierarchy.generalize(column, level)
        if level < self.height or not labels.null_count():
            return labels
        seen = labels.drop_nulls()
        top = pl.Series([seen[0] if len(seen) else "*"], dtype=labels.dtype)
        return labels.fill_null(top.item())


def people_of(model: KMap, keys: Sequence[str]) -> pl.DataFrame | None:
    """Fetch the key columns of the population of a k-map, where it has one."""
    if model.population is None:
        return None
    population = model.population
    if isinstance(population, str | Path):
        from discreet.io import read

        population = read(population)
    need_known(keys, population.columns, before="In the population of k-map: ")
    unit = engine.counted_unit(population)
    if unit is None:
        return engine.collect(population, list(keys))
    # One record a person: a person with several combinations protects one of them, not all.
    people = engine.collect(population, list(dict.fromkeys([*keys, unit])))
    return people.unique(subset=[unit], keep="first", maintain_order=True).select(list(keys))


def coded_key(
    column: pl.Series,
    hierarchy: Hierarchy | None,
    others: Sequence[pl.Series] = (),
    many: Integers | None = None,
) -> CodedKey:
    """Code a key at every level; values that only occur in ``others`` come after its own.

    ``many`` says how many records each value of the column stands for, where that is not one.
    """
    outside = [_like(series, column) for series in others]
    own = column.unique(maintain_order=True)
    new = pl.concat(outside).unique(maintain_order=True) if outside else own.clear()
    new = new.filter(~new.is_in(own.implode(), nulls_equal=True)) if outside else new
    distinct = pl.concat([own, new]) if len(new) else own
    gone = distinct.is_null().to_numpy()
    records = positions(column, distinct)
    if hierarchy is not None:
        hierarchy.check(column, column=column.name)
        if len(new):
            hierarchy.check(new, column=column.name)
    height = 1 if hierarchy is None else hierarchy.height
    codes, shares = [], []
    for level in range(height + 1):
        if level == height:
            codes.append(np.zeros(len(distinct), dtype=np.int64))
            shares.append(np.ones(len(distinct)))
            continue
        if level == 0:
            codes.append(np.arange(len(distinct), dtype=np.int64))
        else:
            labels: pl.Series = hierarchy.generalize(distinct, level)  # type: ignore[union-attr]
            known = labels.unique(maintain_order=True)
            codes.append(positions(labels, known))
        share = np.ones(len(distinct))
        if hierarchy is None:
            share[: len(own)] = 1.0 / max(int((~gone[: len(own)]).sum()), 1)
        else:
            share[: len(own)] = hierarchy.leaf_share(own, level).fill_null(1.0).to_numpy()
        share[gone] = 1.0
        shares.append(share)
    return CodedKey(
        column.name,
        hierarchy,
        tuple(codes),
        np.bincount(records, weights=many, minlength=len(distinct)).astype(np.int64),
        tuple(shares),
        records,
        tuple(positions(series, distinct) for series in outside),
    )


def _like(series: pl.Series, column: pl.Series) -> pl.Series:
    """Bring a population column to the type of the file's, so that equal values are equal."""
    try:
        return series.cast(column.dtype)
    except pl.exceptions.PolarsError as error:
        raise ColumnError(
            f"Column '{column.name}' is {type_name(column.dtype)} in the file but "
            f"{type_name(series.dtype)} in the population of k-map, "
            "and not every value can be converted. Bring both to one type."
        ) from error


# Classes counted in people: distinct persons, one value a person, one weight a person.
#
# The same rules as in `discreet.engine`: the records of one person in a class count once, and of several sensitive
# values a person stands for the one that most persons of the class have, among equals for the rarest in the file.


def distinct_people(owners: Integers, units: Integers, many: int) -> Integers:
    """Count the persons of each class.

    Examples
    --------
    >>> distinct_people(np.array([0, 0, 1, 1]), np.array([7, 7, 7, 8]), 2).tolist()
    [1, 2]
    """
    pairs = np.unique(_paired(owners, units))
    return np.bincount(pairs // _span(units), minlength=many).astype(np.int64)


def one_value_each(
    owners: Integers, units: Integers, codes: Integers, domain: pl.Series, many: int
) -> ClassCounts:
    """Count the persons of each class by the value each of them stands for; values are positions in the domain."""
    width, span = max(len(domain), 1), _span(units)
    triples = np.unique(_paired(owners, units) * width + codes)
    pair, value = triples // width, triples % width
    owner = pair // span
    cell = owner * width + value
    _, place, in_class = np.unique(cell, return_inverse=True, return_counts=True)
    in_file = np.bincount(value, minlength=width)
    order = np.lexsort((value, in_file[value], -in_class[place], pair))
    chosen = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
    cells, counts = np.unique(cell[chosen], return_counts=True)
    starts = np.searchsorted(cells // width, np.arange(many + 1)).astype(np.int64)
    several = int(len(triples) - len(np.unique(pair)))
    return ClassCounts(pl.DataFrame, domain, starts, cells % width, counts.astype(np.int64), several=several)


def weight_of_people(owners: Integers, units: Integers, weights: Floats, many: int) -> Floats:
    """Add up the weights of each class, every person with the mean weight of its records there."""
    pairs, place = np.unique(_paired(owners, units), return_inverse=True)
    mean = np.bincount(place, weights=weights) / np.bincount(place)
    return np.bincount(pairs // _span(units), weights=mean, minlength=many).astype(np.float64)


def _span(units: Integers) -> int:
    return int(units.max(initial=0)) + 1


def _paired(owners: Integers, units: Integers) -> Integers:
    """Number the pairs of class and person; with at most as many of each as records, they fit easily."""
    return owners.astype(np.int64) * _span(units) + units


@dataclass(frozen=True)
class Watched:
    """What the models look at beside the keys: sensitive values (domain, codes), weights, and whose records they are.

    ``units`` number the persons, in whom classes are counted; None where every record is a person. ``many`` says how
    many records a row stands for, where the rows are combinations of values and not records.
    """

    sensitive: Mapping[str, tuple[pl.Series, Integers]]
    weights: Mapping[str, Floats]
    units: Integers | None = None
    many: Integers | None = None


@dataclass(frozen=True)
class Pieces:
    """The classes that a treatment proposes; records that are not on trial make up one more: the file is whole.

    ``table`` knows the people of a population file behind each class, where there is one.
    """

    owners: Integers
    many: int
    watched: Watched
    table: Classes | None = None

    @cached_property
    def sizes(self) -> Integers:
        """The number of records (or persons) of each piece."""
        if self.watched.units is not None:
            return distinct_people(self.owners, self.watched.units, self.many)
        return np.bincount(self.owners, weights=self.watched.many, minlength=self.many).astype(np.int64)

    def values(self, column: str) -> ClassCounts:
        """Count the values of a sensitive column in each piece."""
        domain, codes = self.watched.sensitive[column]
        if self.watched.units is not None:
            return one_value_each(self.owners, self.watched.units, codes, domain, self.many)
        pairs, place = np.unique(self.owners * len(domain) + codes, return_inverse=True)
        counts = np.bincount(place, weights=self.watched.many, minlength=len(pairs))
        starts = np.searchsorted(pairs // len(domain), np.arange(self.many + 1)).astype(np.int64)
        return ClassCounts(pl.DataFrame, domain, starts, pairs % len(domain), counts.astype(np.int64))

    def population(self, model: KMap) -> Floats:
        """Add up the weights of each piece."""
        if model.weight is None and self.table is not None:
            return self.table.population(model)
        weights = self.watched.weights[str(model.weight)]
        if self.watched.units is not None:
            return weight_of_people(self.owners, self.watched.units, weights, self.many)
        return np.asarray(np.bincount(self.owners, weights=weights, minlength=self.many), dtype=np.float64)
