"""How many records has each cell of a table, and what do they add up to, under a privacy budget?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.declared_types import check_readable, in_type, type_of_values
from discreet.core.errors import ParameterError, need_known, refuse_too_many_cells
from discreet.core.parameters import checked, distinct
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.dp.costs import Spend
from discreet.dp.ledger import Ledger
from discreet.dp.queries import Ask
from discreet.dp.sensitivity import Bounded, Range, bounded_cells
from discreet.engine import like
from discreet.microdata import Microdata

Levels = Sequence[Any]
_MOST_CELLS = 10_000_000


@checked
def table(
    data: Microdata,
    by: str | Sequence[str],
    *,
    epsilon: float,
    levels: Mapping[str, Levels] | None = None,
    column: str | None = None,
    lower: float | None = None,
    upper: float | None = None,
    delta: float = 0.0,
    max_records: int = 1,
    max_groups: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How many records, and which total and mean of a column, has each cell of a table, about?

    Parameters
    ----------
    data, epsilon, ledger, purpose, seed
        As in `count`.
    by
        The columns that make the cells.
    levels
        The public levels of each column: every cell of their cross is published, also where it is empty, in the type of
        the levels, and records with another value are left out. Without levels cells are published, as texts, only
        where the noisy count passes a threshold that nobody's record alone could pass, except with chance ``delta``.
    column, lower, upper
        A column to add up, with its public bounds; half of the budget then goes to the counts.
    delta
        The chance of failure that cells without public levels cost.
    max_records, max_groups
        With a role ``person``: how many records of a person count in a cell, and in how many cells a person counts.

    Returns
    -------
    Measure
        ``detail["table"]`` has a row a cell: ``count`` and, with a column, ``total`` and ``mean``; ``value`` is the
        number of cells.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f"] * 600 + ["m"] * 400}))
    >>> found = table(people, "sex", levels={"sex": ["f", "m", "x"]}, epsilon=1.0, seed=1)
    >>> found.detail["table"].height
    3
    """
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise ParameterError("by must name at least one column.")
    ask = Ask(data, Spend(epsilon, delta, ledger, purpose or f"table by {', '.join(columns)}"), seed)
    number = _bounds(column, lower, upper)
    cells = None if levels is None else _cross(data, columns, levels)
    if (cells is None) != (delta > 0):
        raise ParameterError(
            "Cells without public levels need a delta above 0, and those with levels none: give levels or delta."
        )
    found = bounded_cells(
        data, columns, number, max_records=max_records, max_groups=max_groups, words=ask.words("held")
    )
    parts = 1 if number is None else 2
    moved = found.records * found.groups
    cells = _as_texts(found) if cells is None else _filled(found, cells)
    steps = [moved] if number is None else [moved, number.most * moved]
    limit = _threshold(found, epsilon / parts, delta) if delta > 0 else None
    ask.enter("table", float(moved), parts, moved=steps)
    counts = ask.noise(cells["count"].to_numpy(), moved, parts, "count")
    shown_cells = cells.with_columns(pl.Series("count", counts.value))
    if number is not None:
        sums = ask.noise(cells["sum"].to_numpy(), number.most * moved, parts, "sum")
        shown_cells = _with_number(shown_cells, sums.value, number)
    if limit is not None:
        shown_cells = shown_cells.filter(pl.col("count") >= limit)
    shown_cells = shown_cells.with_columns(pl.col("count").clip(lower_bound=0))
    names = {f"k{i}": name for i, name in enumerate(columns)}
    out = shown_cells.select(
        *names, *(name for name in ("count", "total", "mean") if name in shown_cells.columns)
    )
    out = out.rename(names).sort(columns, nulls_last=True)
    margin = counts.margin()
    answer = ask.answer(
        "private_table",
        out.height,
        margin,
        f"{out.height:,} cells; each count is right to about ± {shown(round(margin, 1))}.",
    )
    return replace(answer, detail={"table": like(data, out)})


@checked
def histogram(
    data: Microdata,
    column: str,
    *,
    epsilon: float,
    levels: Levels,
    max_records: int = 1,
    max_groups: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How many records have each of these levels, about?

    Parameters
    ----------
    data, epsilon, max_records, max_groups, ledger, purpose, seed
        As in `table`.
    column
        The column.
    levels
        Its public levels; records with another value are left out.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f"] * 600 + ["m"] * 400}))
    >>> histogram(people, "sex", levels=["f", "m"], epsilon=1.0, seed=1).value
    2
    """
    return table(
        data,
        column,
        levels={column: levels},
        epsilon=epsilon,
        max_records=max_records,
        max_groups=max_groups,
        ledger=ledger,
        purpose=purpose,
        seed=seed,
    )


def _bounds(column: str | None, lower: float | None, upper: float | None) -> Range | None:
    if column is None:
        if lower is not None or upper is not None:
            raise ParameterError("lower and upper are the bounds of column, which is not given.")
        return None
    if lower is None or upper is None:
        raise ParameterError(
            f"Column '{column}' needs lower and upper: public bounds that are not read off the data."
        )
    return Range(column, lower, upper)


def _cross(data: Microdata, columns: Sequence[str], levels: Mapping[str, Levels]) -> pl.DataFrame:
    """Every combination of public levels, in the types of the data."""
    need_known(columns, data.columns)
    need_known(levels, columns, what="column of the table")
    lists = []
    for name in columns:
        if name not in levels:
            raise ParameterError(
                f"levels must name the public levels of column '{name}', or be left out entirely."
            )
        own = distinct(levels[name], f"levels of column '{name}'")
        if not own:
            raise ParameterError(f"levels of column '{name}' must not be empty.")
        lists.append(own)
    size = math.prod(len(own) for own in lists)
    refuse_too_many_cells(size, _MOST_CELLS, what="The table would have", instead="Use fewer levels.")
    rows = list(itertools.product(*lists))
    for name, own in zip(columns, lists, strict=True):
        if data.schema[name].is_numeric():
            check_readable(own, type_of_values(own, name), name)
    types = {
        f"k{i}": type_of_values(own, name) for i, (name, own) in enumerate(zip(columns, lists, strict=True))
    }
    return pl.DataFrame(rows, schema=types, orient="row", strict=False)


def _filled(found: Bounded, cells: pl.DataFrame) -> pl.DataFrame:
    """The public cells with what was found in them, in the types of the levels; a cell without records has 0."""
    told = _in_types(found.cells, dict(cells.schema))
    joined = cells.join(told, on=cells.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(
        pl.col(name).fill_null(0) for name in ("count", "sum") if name in joined.columns
    )


def _as_texts(found: Bounded) -> pl.DataFrame:
    """The cells that occur, as texts: one record can turn a column of numbers into one of texts, but not back."""
    keys = [name for name in found.cells.columns if name not in ("count", "sum")]
    return _in_types(found.cells, dict.fromkeys(keys, pl.String()))


def _in_types(cells: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Bring cells to the types of their levels, those that are one then together; what no level can be goes out."""
    typed = cells.with_columns(in_type(cells[key], own).alias(key) for key, own in types.items())
    kept = typed.filter(*(cells[key].is_null() | typed[key].is_not_null() for key in types))
    return kept.group_by(list(types), maintain_order=True).agg(
        pl.col(name).sum() for name in ("count", "sum") if name in cells.columns
    )


def _with_number(cells: pl.DataFrame, sums: Integers, number: Range) -> pl.DataFrame:
    counts = cells["count"].to_numpy().astype(np.float64)
    steps = sums.astype(np.float64) * number.step
    means = np.clip(number.middle + steps / np.maximum(counts, 1.0), number.lower, number.upper)
    return cells.with_columns(
        pl.Series("total", steps + counts * number.middle),
        pl.Series("mean", np.where(counts >= 1, means, np.nan)).fill_nan(None),
    )


def _threshold(found: Bounded, epsilon: float, delta: float) -> int:
    """The smallest noisy count that a cell of one unit alone passes with chance delta at most, over all its cells."""
    rate = epsilon / (found.records * found.groups)
    # The tail of discrete Laplace noise from t on is exp(-rate t) / (1 + exp(-rate)).
    reach = (math.log(found.groups) - math.log(delta) - math.log1p(math.exp(-rate))) / rate
    return found.records + max(math.ceil(reach * (1 + 1e-9)), 1)
