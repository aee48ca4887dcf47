"""What the engine counts for a table: the inner cells, the groups of codes, single contributions, and contributors.

Everything runs where the data is and comes back as a small Polars table, the same from every engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, need_known
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.engine.classes import key_names
from discreet.microdata import Microdata
from discreet.tables.dimension import MISSING

if TYPE_CHECKING:
    from discreet.tables.table import Table


def check_columns(data: Microdata, columns: Sequence[str], role: str, *, numeric: bool = False) -> None:
    """Refuse columns that are not there or, where numbers are needed, are none."""
    for column in columns:
        need_known([column], data.columns, after=f" It was named under '{role}'.")
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
    return plain_texts(values).fill_null(MISSING)


def plain_texts(values: pl.Series) -> pl.Series:
    """Write values as texts; those of a category by their levels."""
    return canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)


def coded(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Write a column of inner cells as text; return the texts and the distinct ones in the order of the values.

    Missing becomes a code of its own, the last.
    """
    distinct = values.unique().drop_nulls()
    # Categories from files have no order of their own; an Enum has.
    distinct = distinct.cast(pl.String) if distinct.dtype == pl.Categorical else distinct
    listed = canonical_text(distinct.sort()).unique(maintain_order=True)
    texts = plain_texts(values)
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
    rows, value = _contributions(data, names, contributor, measure, weight)
    rows = rows.with_columns(value.alias("value"))
    gone = nw.col("contributor").is_null()
    summed = engine.collect(rows.filter(~gone).group_by(*names, "contributor").agg(nw.col("value").sum()))
    unknown = engine.collect(rows.filter(gone).select(*names, "contributor", "value"))
    summed = summed.with_columns(canonical_text(summed["contributor"]).alias("contributor"))
    unknown = unknown.with_columns(pl.lit(None, dtype=pl.String).alias("contributor"))
    return pl.concat([summed, unknown.select(summed.columns)], how="vertical_relaxed").with_columns(
        pl.col("value").fill_null(0.0)
    )


def _contributions(
    data: Microdata, names: dict[str, str], contributor: str, measure: str | None, weight: str | None
) -> tuple[Any, nw.Expr]:
    """Open a query of records with their contributor, and say what a record contributes."""
    extra = {"contributor": contributor} | ({"value": measure} if measure else {})
    rows = engine.scan(data, {**names, **extra} | ({"weight": weight} if weight else {}))
    value = nw.col("value").cast(nw.Float64) if measure else nw.lit(1.0)
    return rows, value * nw.col("weight").cast(nw.Float64) if weight else value


def smallest_weight(data: Microdata, weight: str) -> float:
    """The smallest weight of any record; 1 where there is none."""
    found = engine.collect(engine.scan(data, {"w": weight}).select(nw.col("w").cast(nw.Float64).min()))
    return float(found.item() or 1.0)


def entries_needed(respondents: int, lightest: float) -> int:
    """How many entries may be needed to fill so many respondents, where entries stand for less than one."""
    return math.ceil(respondents / min(1.0, lightest))


# Who is in a cell? The engine adds up contributors where the data is; only cells are collected.
#
# A contributor may have records in many inner cells, so that the largest contribution to a total is no sum of largest
# ones. The engine is given the list of inner cells and of the published cells they are part of; it adds up what each
# contributor has in a published cell, and hands over the largest few of every cell, or how many there are.


def contributors_by_cell(data: Microdata, table: Table, contributor: str) -> pl.DataFrame:
    """Count the contributors of every published cell: ``cell``, ``many``. A record without one is one by itself."""
    entries = _by_contributor(data, table, contributor, None, None)
    return engine.collect(entries.group_by("cell").agg(nw.len().cast(nw.Int64).alias("many")))


def largest_by_cell(
    data: Microdata, table: Table, contributor: str, measure: str, *, weight: str | None, n: int
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """The n largest contributors of every published cell (``cell``, ``value``), the totals, and how many are negative.

    Contributions are taken by their size, without sign; ``totals`` has ``cell`` and ``value``.
    """
    entries = _by_contributor(data, table, contributor, measure, weight)
    sizes = entries.with_columns(
        nw.col("value").abs().alias("value"), (nw.col("value") < 0).cast(nw.Int64).alias("below")
    )
    sums = sizes.group_by("cell").agg(nw.col("value").sum(), nw.col("below").sum())
    totals = engine.collect(sums)
    rank = nw.col("value").rank("ordinal", descending=True).over("cell")
    first = sizes.select("cell", "value").with_columns(rank.alias("rank")).filter(nw.col("rank") <= n)
    largest = engine.collect(first.select("cell", "value"))
    below = int(totals["below"].sum())
    return largest, totals.select("cell", "value"), below


def only_contributors(data: Microdata, table: Table, contributor: str) -> list[Any]:
    """For each inner cell its only contributor, else None."""
    names = key_names(table.dimensions)
    rows = engine.scan(data, {**names, "who": contributor})
    gone = nw.col("who").is_null()
    different = (
        rows.filter(~gone)
        .unique()
        .group_by(*names)
        .agg(nw.len().cast(nw.Int64).alias("many"), nw.col("who").min().alias("who"))
    )
    unknown = rows.filter(gone).group_by(*names).agg(nw.len().cast(nw.Int64).alias("gone"))
    on = list(table.dimensions)
    cells = table.inner.select(on)
    # Codes of several types may be one text, and so one cell.
    named = _by_text(engine.collect(different), names).group_by(on)
    named_alone = named.agg(
        who=pl.when(pl.col("many").max() == 1, pl.col("who").n_unique() == 1).then(pl.col("who").first())
    ).with_columns(named=pl.lit(True))
    nameless = _by_text(engine.collect(unknown), names).group_by(on).agg(pl.col("gone").sum())
    for part in (named_alone, nameless):
        cells = cells.join(part, on=on, how="left", maintain_order="left")
    one = pl.when(pl.col("gone").is_null()).then("who")
    other = pl.when(pl.col("named").is_null() & (pl.col("gone") == 1))
    return (
        cells.select(pl.coalesce(one, other.then(pl.format("record {}", pl.int_range(pl.len())))))
        .to_series()
        .to_list()
    )


def _by_text(found: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Give the keys of a query their names, and keys and contributors their texts."""
    texts = [code_texts(found[k]).alias(name) for k, name in names.items()]
    rest = [
        code_texts(found[name]).alias(name) if name == "who" else found[name]
        for name in found.columns
        if name not in names
    ]
    return pl.DataFrame([*texts, *rest])


def _by_contributor(
    data: Microdata, table: Table, contributor: str, measure: str | None, weight: str | None
) -> Any:
    """What every contributor has in every published cell, as a query: ``cell`` and ``value``."""
    names = key_names(table.dimensions)
    rows, value = _contributions(data, names, contributor, measure, weight)
    rows = rows.with_columns(nw.when(~value.is_null()).then(value).otherwise(nw.lit(0.0)).alias("value"))
    places = _places(data, table)
    gone, who = nw.col("contributor").is_null(), "contributor"
    inner = rows.filter(~gone).group_by(*names, who).agg(nw.col("value").sum())
    summed = _in_cells(data, inner, places, names).group_by("cell", who).agg(nw.col("value").sum())
    alone = _in_cells(data, rows.filter(gone), places, names)
    return nw.concat([summed.select("cell", "value"), alone.select("cell", "value")], how="vertical")


def _in_cells(data: Microdata, rows: Any, places: pl.DataFrame, names: dict[str, str]) -> Any:
    """Give every row the published cells it is part of, one row each."""
    return engine.beside_classes(data, rows, places, names).filter(~nw.col("cell").is_null())


def _places(data: Microdata, table: Table) -> pl.DataFrame:
    """The combinations of codes as the file has them, and the published cells of each: ``k0``…, ``cell``."""
    names = key_names(table.dimensions)
    found = engine.collect(engine.scan(data, names).unique())
    texts = pl.DataFrame([code_texts(found[k]).alias(name) for k, name in names.items()])
    rows = table.inner.select(table.dimensions).with_row_index("inner")
    place = texts.join(rows, on=table.dimensions, how="left", maintain_order="left")["inner"]
    matrix = table.x.tocoo()
    pairs = pl.DataFrame({"inner": matrix.row.astype(np.int64), "cell": matrix.col.astype(np.int64)})
    known = found.with_columns(place.cast(pl.Int64).alias("inner")).drop_nulls("inner")
    return known.join(pairs, on="inner").drop("inner")
