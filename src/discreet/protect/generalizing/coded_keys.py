"""Keys as numbers: every distinct value of a key with its code at each level of its hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, unknown_name
from discreet.core.wording import type_name
from discreet.hierarchy import Hierarchy
from discreet.protect.generalizing.privacy_models import KMap


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
    for key in keys:
        if key not in population.schema:
            raise ColumnError(f"In the population of k-map: {unknown_name(key, population.columns)}")
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


def positions(values: pl.Series, distinct: pl.Series) -> Integers:
    """Find each value, missing included, among the distinct ones."""
    table = pl.DataFrame({"value": distinct}).with_row_index("at")
    found = pl.DataFrame({"value": values}).join(
        table, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return found["at"].to_numpy().astype(np.int64)
