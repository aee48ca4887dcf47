"""What the engine counts for a table: the inner cells, the groups of codes, and the single contributions.

Everything runs where the data is and comes back as a small Polars table, the same from every engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import narwhals as nw
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, unknown_name
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.engine.classes import key_names
from discreet.microdata import Microdata
from discreet.tables.building.dimension import MISSING


def check_columns(data: Microdata, columns: Sequence[str], role: str, *, numeric: bool = False) -> None:
    """Refuse columns that are not there or, where numbers are needed, are none."""
    for column in columns:
        if column not in data.schema:
            raise ColumnError(f"{unknown_name(column, data.columns)} It was named under '{role}'.")
        if numeric and not (data.schema[column].is_numeric() or data.schema[column] == nw.Boolean):
            raise ColumnError(
                f"Column '{column}' cannot be summed: it is {type_name(data.schema[column])}, not a number. Convert "
                "it first, or name another column."
            )


def inner_cells(
    data: Microdata,
    dimensions: Sequence[str],
    measures: Sequence[str],
    *,
    weight: str | None,
    count: str | None,
    absolute: bool = False,
) -> pl.DataFrame:
    """Count and sum every combination of codes: ``k0``…, ``count``, ``weighted``, ``m0``….

    Measures are summed, with the weights where there are some. ``count`` names a column that says how many units a
    record stands for.
    """
    names = key_names(dimensions)
    extra = {f"m{i}": measure for i, measure in enumerate(measures)}
    if weight:
        extra["w"] = weight
    if count:
        extra["c"] = count
    units = nw.col("c") if count else None
    sums = [(units.sum() if units is not None else nw.len()).cast(nw.Int64).alias("count")]
    rows = engine.scan(data, {**names, **extra})
    if absolute:
        rows = rows.with_columns(*(nw.col(f"m{i}").abs() for i in range(len(measures))))
    if weight:
        weights = nw.col("w").cast(nw.Float64)
        each = weights if units is None else weights * units.cast(nw.Float64)
        rows = rows.with_columns(
            each.alias("weighted"),
            *((nw.col(f"m{i}").cast(nw.Float64) * weights).alias(f"m{i}") for i in range(len(measures))),
        )
        sums.append(nw.col("weighted").sum().alias("weighted"))
    sums += [_sum_of(data, measure, f"m{i}", bool(weight)) for i, measure in enumerate(measures)]
    table = engine.collect(rows.group_by(*names).agg(*sums))
    filled = [column for column in table.columns if column not in names]
    return table.with_columns(pl.col(filled).fill_null(0))


def _sum_of(data: Microdata, measure: str, name: str, weighted: bool) -> nw.Expr:
    column = nw.col(name)
    if weighted or not (data.schema[measure].is_integer() or data.schema[measure] == nw.Boolean):
        return column.cast(nw.Float64).sum().alias(name)
    return column.cast(nw.Int64).sum().cast(nw.Int64).alias(name)


def groups_of(data: Microdata, column: str, levels: Sequence[str]) -> pl.DataFrame:
    """The distinct combinations of a column and coarser ones, as texts: ``leaf``, ``l1``, ``l2``…."""
    names = {"leaf": column} | {f"l{i}": level for i, level in enumerate(levels, 1)}
    rows = engine.scan(data, names)
    table = engine.collect(rows.group_by(*names).agg(nw.len().alias("records")))
    return (
        pl.DataFrame([canonical_text(table[name]).alias(name) for name in names]).unique().sort(list(names))
    )


def code_texts(values: pl.Series) -> pl.Series:
    """Write codes as the texts by which a table knows them; a missing one is a code of its own."""
    texts = canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)
    return texts.fill_null(MISSING)


def coded(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Write a column of inner cells as text; return the texts and the distinct ones in the order of the values.

    Missing becomes a code of its own, the last.
    """
    distinct = values.unique().drop_nulls()
    # Categories from files have no order of their own; an Enum has.
    distinct = distinct.cast(pl.String) if distinct.dtype == pl.Categorical else distinct
    listed = canonical_text(distinct.sort()).unique(maintain_order=True)
    texts = canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)
    if values.null_count():
        listed = pl.concat([listed.filter(listed != MISSING), pl.Series([MISSING])])
        texts = texts.fill_null(MISSING)
    return texts, listed


def largest_entries(
    data: Microdata,
    dimensions: Sequence[str],
    measure: str,
    *,
    weight: str | None,
    multiply: bool,
    most: int,
    absolute: bool,
) -> pl.DataFrame:
    """The largest entries of every inner cell: ``k0``…, ``value``, ``weight``.

    ``multiply`` makes the entry weight times value, of weight 1.
    """
    names = key_names(dimensions)
    rows = engine.scan(data, {**names, "value": measure} | ({"weight": weight} if weight else {}))
    rows = rows.filter(~nw.col("value").is_null()).with_columns(nw.col("value").cast(nw.Float64))
    size = nw.col("value").abs() if absolute else nw.col("value")
    if weight and multiply:
        size = size * nw.col("weight").cast(nw.Float64)
    rows = rows.with_columns(size.alias("value"))
    weighted = bool(weight) and not multiply
    if most == 1 and not weighted:
        found = engine.collect(rows.group_by(*names).agg(nw.col("value").max()))
        return found.with_columns(weight=pl.lit(1.0))
    rank = nw.col("value").rank("ordinal", descending=True).over(*names)
    rows = rows.with_columns(rank.alias("rank")).filter(nw.col("rank") <= most)
    found = engine.collect(rows.select(*names, "value", *(["weight"] if weighted else [])))
    weights = pl.col("weight").cast(pl.Float64) if weighted else pl.lit(1.0)
    return found.with_columns(weights.alias("weight"))


def entries_by_contributor(
    data: Microdata,
    dimensions: Sequence[str],
    contributor: str,
    measure: str | None,
    *,
    weight: str | None,
) -> pl.DataFrame:
    """What every contributor adds to every inner cell: ``k0``…, ``contributor``, ``value``.

    A record without a contributor stands for itself; such records are left as they are, ``contributor`` missing.
    """
    names = key_names(dimensions)
    extra = {"contributor": contributor} | ({"value": measure} if measure else {})
    rows = engine.scan(data, {**names, **extra} | ({"weight": weight} if weight else {}))
    value = nw.col("value").cast(nw.Float64) if measure else nw.lit(1.0)
    if weight:
        value = value * nw.col("weight").cast(nw.Float64)
    rows = rows.with_columns(value.alias("value"))
    known = rows.filter(~nw.col("contributor").is_null())
    summed = engine.collect(known.group_by(*names, "contributor").agg(nw.col("value").sum()))
    unknown = engine.collect(
        rows.filter(nw.col("contributor").is_null()).select(*names, "contributor", "value")
    )
    summed = summed.with_columns(canonical_text(summed["contributor"]).alias("contributor"))
    unknown = unknown.with_columns(pl.lit(None, dtype=pl.String).alias("contributor"))
    return pl.concat([summed, unknown.select(summed.columns)], how="vertical_relaxed").with_columns(
        pl.col("value").fill_null(0.0)
    )


def smallest_weight(data: Microdata, weight: str) -> float:
    """The smallest weight of any record; 1 where there is none."""
    found = engine.collect(engine.scan(data, {"w": weight}).select(nw.col("w").cast(nw.Float64).min()))
    return float(found.item() or 1.0)


def entries_needed(respondents: int, lightest: float) -> int:
    """How many entries may be needed to fill so many respondents, where entries stand for less than one."""
    return math.ceil(respondents / min(1.0, lightest))
