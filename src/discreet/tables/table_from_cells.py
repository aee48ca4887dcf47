"""Tables from an aggregated file: inner cells only, or all cells with their totals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, need_known
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.formula import Formula, Term, parsed
from discreet.hierarchy.enumerated import Enumerated
from discreet.tables.dimension import TOTAL
from discreet.tables.dimension_sources import level_columns, readable, sources
from discreet.tables.table import Table
from discreet.tables.table_from_records import assembled, check_choices, check_names

_TOLERANCE = 1e-9


def table_from_cells(
    frame: Any,
    dimensions: Sequence[str] | str,
    *,
    count: str | None,
    measure: str | Sequence[str] | None,
    largest: str | Sequence[str] | None,
    contributors: str | None,
    hierarchies: Mapping[str, Any],
    margins: bool,
    zeros: str,
    structural: Any,
    total: str | Mapping[str, str],
    tolerance: float | None,
) -> Table:
    """Build a table from an aggregated file; see `Table.from_cells`."""
    raw = _polars(frame)
    if raw.is_empty():
        raise InputError("The file has no rows. Check the file, or the filter or query behind it.")
    formula = _formula(dimensions, margins)
    measures = _names(measure)
    tops = _names(largest)
    check_names(formula, measures, hierarchies)
    check_choices(zeros, "refuse")
    if tops and not measures:
        raise ParameterError("largest names the largest contributions to a measure, and no measure is named.")
    numbers = [name for name in (count, contributors, *measures, *tops) if name]
    levels = [
        column
        for given in hierarchies.values()
        for source in sources(given)
        for column in level_columns(source)
    ]
    _check_columns(raw, [*formula.columns, *levels], numbers)
    if count is None and not measures:
        raise ParameterError("Name the column of counts (count=) or of sums (measure=) of the cells.")
    texts = raw.with_columns(
        canonical_text(raw[column]).alias(column) for column in (*formula.columns, *levels)
    )
    totals = {
        column: total if isinstance(total, str) else total.get(column, TOTAL) for column in formula.columns
    }
    given = _with_sums(texts, formula, count, measures)
    groups = _group_codes(given, formula, hierarchies, totals, closed=zeros == "all")
    is_inner = pl.Series(
        np.logical_and.reduce(
            [~given[column].is_in(list(groups[column])).to_numpy() for column in formula.columns]
        )
    )
    lookups = {
        (column, names): _groups(texts, column, names, totals[column])
        for column, source in hierarchies.items()
        for one in sources(source)
        if (names := level_columns(one))
    }
    inner = given.filter(is_inner)
    if inner.is_empty():
        raise InputError(
            "The file has no inner cells: every row is a total or a group of some dimension. Check the code of the "
            "totals (total=) and the hierarchies."
        )
    _refuse_repeated(given, formula)
    sums = ["count", *measures]
    table = assembled(
        inner.select(*formula.columns, *sums),
        formula,
        measures=measures,
        weight=None,
        hierarchies=hierarchies,
        lookups=lookups,
        zeros=zeros,
        structural=structural,
        missing="refuse",
        total=total,
        counted=count,
    )
    if is_inner.all():
        _warn_of_hidden_totals(given, formula, sums if count else list(measures), totals)
        return _with_extras(table, given, tops, contributors)
    # Without a column of counts a cell counts its inner cells, which the file does not say.
    stated = sums if count else list(measures)
    return _with_extras(_as_given(table, given, stated, tolerance), given, tops, contributors)


def _warn_of_hidden_totals(
    given: pl.DataFrame, formula: Formula, sums: Sequence[str], totals: Mapping[str, str]
) -> None:
    """A code that is as large as all others together is a total under another name."""
    for column in formula.columns:
        by_code = given.group_by(column).agg(pl.col(list(sums)).sum())
        if by_code.height < 3:
            continue
        whole = by_code.select(pl.col(list(sums)).sum())
        if by_code.filter(
            pl.all_horizontal(
                ((2 * pl.col(n) - whole[n][0]).abs() <= 1e-6 * max(1.0, abs(whole[n][0])))
                & (whole[n][0] != 0)
                for n in sums
            )
        ).height:
            warnings.warn(
                f"One code of column '{column}' is the sum of all others, and is taken for a code like any other. If "
                f"it is the total, name it with total= (the total is '{totals[column]}' now).",
                DiscreetWarning,
                stacklevel=4,
            )


def _as_given(table: Table, given: pl.DataFrame, sums: Sequence[str], tolerance: float | None) -> Table:
    """Keep the cells that the file publishes, with its own values, and say which do not add up."""
    on = list(table.dimensions)
    ours = table.cells.with_row_index("discreet place")
    theirs = given.select(*on, *(pl.col(name).alias(f"given {name}") for name in sums))
    both = ours.join(theirs, on=on, how="inner").sort("discreet place")
    unplaced = given.join(table.cells, on=on, how="anti")
    notes = list(table.notes)
    torn = np.zeros(both.height, dtype=bool)
    for name in sums:
        added, stated = both[name].to_numpy().astype(float), both[f"given {name}"].to_numpy().astype(float)
        allowed = tolerance if tolerance is not None else _TOLERANCE * np.maximum(np.abs(added), 1.0)
        torn |= np.abs(added - stated) > allowed
    if torn.any():
        notes.append(
            f"{int(torn.sum()):,} of {both.height:,} cells do not equal the sum of their inner cells; they keep the "
            "value of the file. See the column additive."
        )
        warnings.warn(
            f"{int(torn.sum()):,} of {both.height:,} cells of the file do not equal the sum of their inner cells. Check"
            " the hierarchies and the code of the totals, or raise tolerance if they were rounded.",
            DiscreetWarning,
            stacklevel=4,
        )
    if unplaced.height:
        raise InputError(
            f"{unplaced.height:,} cells of the file have no inner cells below them, so that nothing says what they are "
            "made of. Check the hierarchies and the code of the totals, or leave these cells out."
        )
    cells = both.with_columns(pl.col(f"given {name}").alias(name) for name in sums).select(
        *table.cells.columns, pl.Series("additive", ~torn)
    )
    return replace(table, cells=cells, notes=tuple(notes))


def _with_extras(table: Table, given: pl.DataFrame, tops: Sequence[str], contributors: str | None) -> Table:
    """Carry the largest contributions and the number of contributors of the file to the cells."""
    wanted = {f"largest_{i}": name for i, name in enumerate(tops, 1)}
    if contributors:
        wanted["contributors"] = contributors
    if not wanted:
        return table
    on = list(table.dimensions)
    known = given.select(*on, *(pl.col(name).alias(new) for new, name in wanted.items()))
    joined = table.cells.join(known, on=on, how="left", maintain_order="left")
    lacking = int(joined.select(pl.any_horizontal(pl.col(list(wanted)).is_null()).sum()).item())
    notes = table.notes
    if lacking:
        notes = (
            *notes,
            f"{lacking:,} cells have no {', '.join(wanted.values())} in the file, which has inner cells only; rules "
            "that need it see nothing there.",
        )
    return replace(table, cells=joined, notes=notes)


def _with_sums(
    texts: pl.DataFrame, formula: Formula, count: str | None, measures: Sequence[str]
) -> pl.DataFrame:
    counted = pl.col(count) if count else pl.lit(1)
    whole = texts.with_columns(counted.alias("discreet count"))["discreet count"]
    gone = [name for name in (count, *measures) if name and texts[name].null_count()]
    if gone:
        raise ColumnError(
            f"Column '{gone[0]}' is missing in {texts[gone[0]].null_count():,} cells. A suppressed file cannot be "
            "checked or protected again; give the full one."
        )
    if whole.dtype.is_float() and (whole == whole.round()).all():
        whole = whole.cast(pl.Int64)
    rest = texts.drop("count", strict=False) if "count" not in measures else texts
    return rest.with_columns(whole.alias("count"))


def _group_codes(
    texts: pl.DataFrame,
    formula: Formula,
    hierarchies: Mapping[str, Any],
    totals: Mapping[str, str],
    *,
    closed: bool,
) -> dict[str, set[str]]:
    """The codes of each dimension that stand for groups: the total and the inner nodes of its hierarchies."""
    found = {}
    for column in formula.columns:
        codes = {totals[column]}
        for source in sources(hierarchies.get(column)):
            held = texts[column].unique().drop_nulls().to_list()
            hierarchy = readable(column, source, held, closed=closed)
            if isinstance(hierarchy, Enumerated):
                leaves = set(hierarchy.columns[0])
                codes |= {label for level in hierarchy.columns[1:] for label in level} - leaves
        found[column] = codes
    return found


def _groups(texts: pl.DataFrame, column: str, levels: tuple[str, ...], total: str) -> pl.DataFrame:
    names = [texts[column].alias("leaf"), *(texts[level].alias(f"l{i}") for i, level in enumerate(levels, 1))]
    return pl.DataFrame(names).filter(pl.col("leaf") != total).unique().sort("leaf")


def _refuse_repeated(given: pl.DataFrame, formula: Formula) -> None:
    repeated = int(given.select(formula.columns).is_duplicated().sum())
    if repeated:
        raise InputError(
            f"{repeated:,} rows of the file name the same cell as another row. Name all dimensions, add the rows up, "
            "or use Table.from_microdata with count= for a file of counted records."
        )


def _formula(dimensions: Sequence[str] | str, margins: bool) -> Formula:
    if isinstance(dimensions, str):
        formula = parsed(dimensions)
    else:
        if not dimensions:
            raise ParameterError("dimensions must name at least one column.")
        formula = Formula((Term(tuple((column,) for column in dimensions)),))
    return formula if margins else formula.without_margins()


def _polars(frame: Any) -> pl.DataFrame:
    from discreet import engine
    from discreet.microdata import Microdata

    if isinstance(frame, Microdata):
        return engine.collect(frame)
    try:
        wrapped = nw.from_native(frame)
    except TypeError as error:
        raise InputError(f"frame must be a data frame, not {type(frame).__name__}.") from error
    if isinstance(wrapped, nw.LazyFrame):
        return engine.collect(Microdata(frame))
    polars: pl.DataFrame = wrapped.to_polars()
    return polars.with_columns(pl.selectors.float().fill_nan(None))


def _check_columns(frame: pl.DataFrame, texts: Sequence[str], numbers: Sequence[str]) -> None:
    need_known((*texts, *numbers), frame.columns)
    for column in numbers:
        if not frame.schema[column].is_numeric():
            raise ColumnError(
                f"Column '{column}' is not numeric (it is {type_name(frame.schema[column])}). Convert it first."
            )
    for column in texts:
        if frame[column].null_count():
            raise ColumnError(
                f"Column '{column}' is missing in {frame[column].null_count():,} cells. Write out the code of the "
                "totals and of unknown categories."
            )


def _names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns or ())
