"""Tables from records: count the inner cells in the engine, then roll them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, refuse_too_many_cells
from discreet.formula import Formula, parsed
from discreet.microdata import Microdata
from discreet.tables.contributors import Contributing
from discreet.tables.dimension import MISSING, TOTAL, Dimension, places_of
from discreet.tables.dimension_sources import built_dimension, level_columns, sources
from discreet.tables.table import Table
from discreet.tables.table_cells import MOST_CELLS, possible_cells, published_cells
from discreet.tables.table_counting import check_columns, coded, groups_of, inner_cells

RESERVED = ("count", "weighted", "contributors", "table", "level", "inner_cells", "primary", "rule")


def table_from_microdata(
    data: Any,
    tables: str | Sequence[str] | Sequence[Sequence[str]],
    *,
    measure: str | Sequence[str] | None,
    weight: str | None,
    count: str | None,
    hierarchies: Mapping[str, Any],
    contributor: str | None,
    margins: bool,
    zeros: str,
    structural: Any,
    missing: str,
    total: str | Mapping[str, str],
) -> Table:
    """Build a table from records; see `Table.from_microdata`."""
    micro = data if isinstance(data, Microdata) else Microdata(data)
    formula = parsed(tables) if margins else parsed(tables).without_margins()
    measures = (measure,) if isinstance(measure, str) else tuple(measure or ())
    weight = engine.resolve_weight(micro, weight)
    contributor = contributor or micro.roles.contributor or micro.roles.person
    check_columns(micro, formula.columns, "tables")
    check_columns(micro, measures, "measure", numeric=True)
    check_columns(micro, [count] if count else [], "count", numeric=True)
    check_columns(micro, [contributor] if contributor else [], "contributor")
    check_names(formula, measures, hierarchies)
    micro.need_plain_names((*formula.columns, *measures))
    for given in hierarchies.values():
        for source in sources(given):
            check_columns(micro, level_columns(source), "hierarchies")
    check_choices(zeros, missing)
    raw = inner_cells(micro, formula.columns, measures, weight=weight, count=count)
    if raw.is_empty():
        raise InputError(
            "The file has columns but no records. Check the file, or the filter or query behind it."
        )
    keys = {f"k{i}": name for i, name in enumerate(formula.columns)}
    raw = raw.rename({**keys, **{f"m{i}": name for i, name in enumerate(measures)}})
    lookups = {
        (column, levels): groups_of(micro, column, levels)
        for column, given in hierarchies.items()
        for source in sources(given)
        if (levels := level_columns(source))
    }
    if count and (raw["count"] < 0).any():
        raise ColumnError(
            f"Column '{count}' says how many units a record stands for, and some are negative. Sum a column with "
            "negative values as a measure."
        )
    notes = _missing_notes(micro, formula, measures, missing, count)
    return assembled(
        raw,
        formula,
        measures=measures,
        weight=weight,
        hierarchies=hierarchies,
        lookups=lookups,
        zeros=zeros,
        structural=structural,
        missing=missing,
        total=total,
        notes=notes,
        counted=count,
        contributing=Contributing(micro, contributor, weight),
    )


def assembled(
    raw: pl.DataFrame,
    formula: Formula,
    *,
    measures: tuple[str, ...],
    weight: str | None,
    hierarchies: Mapping[str, Any],
    lookups: Mapping[tuple[str, tuple[str, ...]], pl.DataFrame],
    zeros: str,
    structural: Any,
    missing: str,
    total: str | Mapping[str, str],
    notes: Sequence[str] = (),
    contributing: Contributing | None = None,
    counted: str | None = None,
) -> Table:
    """Put a table together from its counted inner cells."""
    if missing == "drop":
        raw = raw.drop_nulls(list(formula.columns))
    if raw.is_empty():
        raise InputError(
            "No record is left: every one misses some dimension, and missing='drop' leaves those out."
        )
    dimensions: dict[str, Dimension] = {}
    texts = {}
    for column in formula.columns:
        texts[column], listed = coded(raw[column])
        own = {levels: table for (name, levels), table in lookups.items() if name == column}
        dimensions[column] = built_dimension(
            column,
            listed,
            sources(hierarchies.get(column)),
            own,
            total=total if isinstance(total, str) else total.get(column, TOTAL),
            complete=zeros == "all",
        )
    inner = raw.with_columns(texts[column].alias(column) for column in formula.columns)
    sums = [name for name in ("count", "weighted", *measures) if name in inner.columns]
    # Texts that came from different values, 1 and 1.0 say, are one code.
    inner = inner.group_by(formula.columns).agg(pl.col(sums).sum())
    if zeros == "all":
        inner = _completed(inner, formula, dimensions, sums, structural)
    inner = _in_order(inner, formula, dimensions)
    leaves = {column: places_of(inner[column], dimensions[column].leaves) for column in formula.columns}
    neutral = inner.select(pl.col(name).alias(f"s{i}") for i, name in enumerate(sums))
    rolled = published_cells(formula, dimensions, leaves, neutral)
    value = measures[0] if measures else ("weighted" if weight else "count")
    table = Table(
        inner.select(*formula.columns, *sums),
        named_cells(rolled, formula, dimensions, sums),
        value,
        measures,
        formula,
        dimensions,
        tuple(notes),
        weight,
        contributing,
        counted=counted,
    )
    if contributing is not None and table.knows_contributors:
        table = table.with_cells(contributors=contributing.numbers(table))
        table = _reordered(table)
    return table


def named_cells(
    rolled: pl.DataFrame, formula: Formula, dimensions: Mapping[str, Dimension], sums: Sequence[str]
) -> pl.DataFrame:
    """Give the codes their names, and the cells their level and table."""
    columns = []
    level = np.zeros(rolled.height, dtype=np.int64)
    for i, column in enumerate(formula.columns):
        places = rolled[f"d{i}"]
        columns.append(pl.Series(column, dimensions[column].codes, dtype=pl.String).gather(places))
        level += dimensions[column].depth[places.to_numpy()]
    names = pl.Series("table", [term.name for term in formula.terms]).gather(rolled["term"])
    return pl.DataFrame(
        [
            *columns,
            *(rolled[f"s{i}"].alias(name) for i, name in enumerate(sums)),
            names,
            pl.Series("level", level),
            rolled["inner_cells"],
        ]
    )


def _reordered(table: Table) -> Table:
    """Put the number of contributors beside the sums."""
    last = ["contributors", "table", "level", "inner_cells"]
    first = [name for name in table.cells.columns if name not in last]
    return replace(table, cells=table.cells.select(*first, *last))


def _completed(
    inner: pl.DataFrame,
    formula: Formula,
    dimensions: Mapping[str, Dimension],
    sums: Sequence[str],
    structural: Any,
) -> pl.DataFrame:
    """Add the combinations that could occur and do not, with zeros; leave out those declared impossible."""
    many = possible_cells([len(dimensions[column].leaves) for column in formula.columns])
    refuse_too_many_cells(
        many,
        MOST_CELLS,
        what="zeros='all' would make",
        instead="Give columns that follow from another one as its hierarchy (hierarchies={'region': 'county'}) instead "
        "of crossing them, or use zeros='observed'.",
    )
    full = pl.DataFrame({formula.columns[0]: dimensions[formula.columns[0]].leaves})
    for column in formula.columns[1:]:
        full = full.join(pl.DataFrame({column: dimensions[column].leaves}), how="cross")
    if structural is not None:
        full = _possible(full, structural, formula)
        outside = inner.filter(pl.col("count") > 0).join(full, on=formula.columns, how="anti")
        if len(outside):
            raise ParameterError(
                f"{len(outside):,} combinations declared as impossible under structural do occur in the data."
            )
    joined = full.join(inner, on=formula.columns, how="left", maintain_order="left")
    return joined.with_columns(pl.col(list(sums)).fill_null(0))


def _possible(full: pl.DataFrame, structural: Any, formula: Formula) -> pl.DataFrame:
    import narwhals as nw

    from discreet.core.values import canonical_text

    frame = nw.from_native(structural, eager_only=True).to_polars()
    on = [column for column in frame.columns if column in formula.columns]
    if not on or len(on) < len(frame.columns):
        raise ColumnError(
            "structural must be a frame whose columns are dimensions of the table: "
            f"{', '.join(formula.columns)}."
        )
    texts = pl.DataFrame([canonical_text(frame[column]).alias(column) for column in on])
    return full.join(texts, on=on, how="anti")


def _in_order(inner: pl.DataFrame, formula: Formula, dimensions: Mapping[str, Dimension]) -> pl.DataFrame:
    places = [
        pl.Series(f"place {i}", places_of(inner[column], dimensions[column].leaves))
        for i, column in enumerate(formula.columns)
    ]
    names = [place.name for place in places]
    return inner.with_columns(places).sort(names).drop(names)


def check_choices(zeros: str, missing: str) -> None:
    """Refuse unknown ways to treat zeros and missing codes."""
    if zeros not in ("observed", "all"):
        raise ParameterError(
            "zeros must be 'observed' (combinations that occur) or 'all' (those that could)."
        )
    if missing not in ("category", "drop", "refuse"):
        raise ParameterError("missing must be 'category' (its own code), 'drop' or 'refuse'.")


def check_names(formula: Formula, measures: Sequence[str], hierarchies: Mapping[str, Any]) -> None:
    """Refuse columns whose names the cells need, and hierarchies of columns that are no dimension."""
    for column in (*formula.columns, *measures):
        if column in RESERVED:
            raise ColumnError(
                f"A column of the table cannot be called '{column}', which the cells use. Rename it."
            )
    if len(set(measures)) < len(measures):
        raise ParameterError("A measure is named twice. Name each once.")
    for column in measures:
        if column in formula.columns:
            raise ColumnError(
                f"Column '{column}' is both a dimension and a measure. Take it out of one of the two."
            )
    for column in hierarchies:
        if column not in formula.columns:
            raise ParameterError(
                f"There is a hierarchy for column '{column}', which is no dimension of the table. The dimensions are "
                f"{', '.join(formula.columns)}."
            )


def _missing_notes(
    data: Microdata, formula: Formula, measures: Sequence[str], missing: str, count: str | None
) -> list[str]:
    counted = engine.overview(data, (*formula.columns, *measures, *([count] if count else [])))
    gone = {column: counted.missing[column] for column in formula.columns if counted.missing[column]}
    if gone and missing == "refuse":
        listed = ", ".join(f"'{column}' ({many:,})" for column, many in gone.items())
        raise ColumnError(
            f"Codes are missing in {listed}. Use missing='category' to publish them as '{MISSING}', or missing='drop'."
        )
    done = f"counted under the code '{MISSING}'" if missing == "category" else "left out of the table"
    notes = [f"{many:,} records without a code in '{column}' were {done}." for column, many in gone.items()]
    if count and counted.missing[count]:
        notes.append(f"{counted.missing[count]:,} records without a number in '{count}' count as nobody.")
    return notes + [
        f"{counted.missing[column]:,} records without a value in '{column}' add nothing to its sums."
        for column in measures
        if counted.missing[column]
    ]
