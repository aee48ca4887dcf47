"""Who is in a cell, asked where the data is: contributors are added up by the engine, and only cells come home.

A contributor may have records in many inner cells, so that the largest contribution to a total is no sum of largest
ones. The engine is given the list of inner cells and of the published cells they are part of; it adds up what each
contributor has in a published cell, and hands over the largest few of every cell, or how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.engine.classes import key_names
from discreet.microdata import Microdata
from discreet.tables.building.counting import code_texts

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


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
    extra = {"who": contributor} | ({"value": measure} if measure else {})
    rows = engine.scan(data, {**names, **extra} | ({"weight": weight} if weight else {}))
    value = nw.col("value").cast(nw.Float64) if measure else nw.lit(1.0)
    if weight:
        value = value * nw.col("weight").cast(nw.Float64)
    rows = rows.with_columns(nw.when(~value.is_null()).then(value).otherwise(nw.lit(0.0)).alias("value"))
    places = _places(data, table)
    known = rows.filter(~nw.col("who").is_null())
    inner = known.group_by(*names, "who").agg(nw.col("value").sum())
    summed = _in_cells(data, inner, places, names).group_by("cell", "who").agg(nw.col("value").sum())
    alone = _in_cells(data, rows.filter(nw.col("who").is_null()), places, names)
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
    pairs = pl.DataFrame({"inner": _whole(matrix.row), "cell": _whole(matrix.col)})
    known = found.with_columns(place.cast(pl.Int64).alias("inner")).drop_nulls("inner")
    return known.join(pairs, on="inner").drop("inner")


def _whole(places: Any) -> Integers:
    return np.asarray(places, dtype=np.int64)
