"""The cells of a table, counted where the data is: one pass for the records, one for the contributors.

Nothing but the cells comes out: how many records and distinct people there are in each, and of a variable its sums,
its extremes and its largest contributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import InputError, need_known, refuse_too_many_cells
from discreet.engine import collect, declared_levels, scan
from discreet.microdata import Microdata
from discreet.outputs.checks.total_checks import CellSums, has_few_values
from discreet.outputs.question import Question, is_category, let_in, recoded
from discreet.outputs.register import CUSTOM, Registered

_MOST_CELLS = 2_000_000
_ROW_STATISTICS = ("known", "total", "mean", "deviation", "minimum", "maximum", "weight", "weighted")


@dataclass(frozen=True)
class FewValues:
    """A variable with few values: how many of them, and how many people of each cell are off its lowest and highest."""

    distinct: int
    above: Integers
    below: Integers


@dataclass(frozen=True)
class Cells:
    """A table of cells: every array has one axis a dimension, without margins."""

    by: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    records: Integers
    people: Integers
    values: Mapping[str, Floats] = field(default_factory=dict)
    sums: CellSums | None = None
    few_values: FewValues | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each dimension has; one where there is no dimension."""
        return self.records.shape

    def mask(self, declared: Sequence[Mapping[str, Any]]) -> Flags:
        """Flag the cells that some descriptions fit: ``[{"sex": "m", "pregnant": "yes"}]``.

        A value may be a list of values; a dimension that is not named stands for all its levels.
        """
        flags = np.zeros(self.shape, dtype=bool)
        for description in declared:
            need_known(description, self.by, what="dimension of the table")
            fits = np.ones(self.shape, dtype=bool)
            for axis, name in enumerate(self.by):
                if name not in description:
                    continue
                wanted = description[name]
                wanted = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
                along = np.array([level in wanted for level in self.levels[axis]])
                fits &= along.reshape([-1 if a == axis else 1 for a in range(len(self.by))])
            flags |= fits
        return flags


def count_cells(data: Microdata, question: Question) -> Cells:
    """Count records and distinct people by cell.

    Examples
    --------
    >>> data = Microdata(pl.DataFrame({"sex": ["f", "f", "m"], "who": [1, 1, 2]}))
    >>> cells = count_cells(data, Question(("sex",), subject="who"))
    >>> cells.levels, cells.records.tolist(), cells.people.tolist()
    ((('f', 'm'),), [2, 1], [1, 1])
    """
    question.check(data)
    rows, keys = _rows(data, question)
    counts = [nw.len().cast(nw.Int64).alias("records")]
    if question.subject is not None:
        counts.append(nw.col("p").n_unique().cast(nw.Int64).alias("people"))
    if question.weight is not None:
        counts.append(nw.col("w").cast(nw.Float64).sum().alias("weighted"))
    table = collect(rows.group_by(*keys).agg(*counts))
    if question.subject is None:
        table = table.with_columns(people=pl.col("records"))
    levels = _levels(data, question, table)
    place = _places(table, levels, keys)
    values = {"weighted": _laid(table["weighted"], place, 0.0)} if question.weight is not None else {}
    return Cells(question.by, levels, _laid(table["records"], place), _laid(table["people"], place), values)


def sum_cells(
    data: Microdata, question: Question, *, largest: int = 2, public_weights: bool = False
) -> Cells:
    """Add up a variable by cell: records and people with a value, sums, spread, extremes, largest contributions.

    ``people`` counts those with a value; ``records`` those without one too.

    Examples
    --------
    >>> data = Microdata(pl.DataFrame({"sex": ["f", "f", "m", "m"], "pay": [1.0, 5.0, None, 3.0]}))
    >>> cells = sum_cells(data, Question(("sex",), value="pay"))
    >>> cells.people.tolist(), cells.values["total"].tolist(), cells.sums.top.tolist()
    ([2, 1], [6.0, 3.0], [[5.0, 1.0], [3.0, 0.0]])
    """
    question.check(data)
    rows, keys = _rows(data, question)
    base = collect(rows.group_by(*keys).agg(*_row_sums(question)))
    levels = _levels(data, question, base)
    place = _places(base, levels, keys)
    values = {name: _laid(base[name], place, np.nan) for name in _ROW_STATISTICS if name in base.columns}
    owned = collect(_contributors(rows, keys, question, largest, public_weights))
    at = _places(owned, levels, keys)
    people = _laid(owned["people"], at)
    tops = np.stack([_laid(column, at, 0.0) for column in _largest(owned, largest)], axis=-1)
    sums = CellSums(
        people,
        _laid(owned["size"], at, 0.0),
        np.nan_to_num(tops),
        _laid(owned["negative"], at),
        _laid(owned["givers"], at),
    )
    few = _few_values(rows, keys, question, base, levels)
    return Cells(question.by, levels, _laid(base["records"], place), people, values, sums, few)


def _few_values(
    rows: nw.LazyFrame[Any],
    keys: list[str],
    question: Question,
    base: pl.DataFrame,
    levels: tuple[tuple[Any, ...], ...],
) -> FewValues | None:
    """Find whether the variable takes few values among the records meant, and who is off its ends."""
    x = nw.col("x")
    known = rows.filter(~x.is_null())
    distinct = int(collect(known.select(x.n_unique().cast(nw.Int64).alias("n")))["n"][0])
    lowest, highest = base["minimum"].min(), base["maximum"].max()
    if lowest is None or not has_few_values(distinct, int(base["known"].sum())):
        return None

    above, below = (
        _people_in(known.filter(test), keys, question, levels) for test in (x > lowest, x < highest)
    )
    return FewValues(distinct, above, below)


def _people_in(
    rows: nw.LazyFrame[Any], keys: list[str], question: Question, levels: tuple[tuple[Any, ...], ...]
) -> Integers:
    number = nw.len() if question.subject is None else nw.col("p").n_unique()
    table = collect(rows.group_by(*keys).agg(number.cast(nw.Int64).alias("n")))
    laid: Integers = _laid(table["n"], _places(table, levels, keys))
    return laid


def shared_extreme(data: Microdata, question: Question, which: str, cells: Cells) -> Integers:
    """Count the people who share the minimum or maximum of their cell."""
    rows, keys = _rows(data, question)
    rows = rows.filter(~nw.col("x").is_null())
    extreme = nw.col("x").min() if which == "minimum" else nw.col("x").max()
    held = rows.filter(nw.col("x") == extreme.over(*keys))
    return _people_in(held, keys, question, cells.levels)


def records_of(data: Microdata, question: Question) -> pl.DataFrame:
    """Bring the records meant into memory: dimensions ``d0``…, ``x``, ``p``, ``w``; for what needs them in order."""
    question.check(data)
    rows, _ = _rows(data, question)
    return collect(rows)


def population(data: Microdata, columns: Sequence[str]) -> dict[str, Any]:
    """Describe a file so that another can be told from it: how many records, and a digest of some columns.

    Two files with as many records and the same digests hold, for the purpose of differencing, the same people.
    """
    known: dict[str, str] = data.memory.setdefault("output digests", {})
    wanted = [name for name in dict.fromkeys(columns) if name not in known]
    if wanted or "output rows" not in data.memory:
        named = {f"c{i}": name for i, name in enumerate(wanted or data.columns[:1])}
        sums = [nw.len().alias("rows")]
        for short, name in named.items():
            sums += [
                _digest(data.schema[name], short).alias(short),
                (~nw.col(short).is_null()).cast(nw.Int64).sum().alias(f"{short} n"),
            ]
        row = collect(scan(data, named).select(*sums)).row(0, named=True)
        data.memory["output rows"] = int(row["rows"])
        known.update({name: f"{row[s + ' n']}:{float(row[s] or 0):.9g}" for s, name in named.items()})
    used = {name: known[name] for name in dict.fromkeys(columns)}
    return {"rows": data.memory["output rows"], "columns": used, "schema": sorted(data.columns)}


def _digest(dtype: Any, name: str) -> nw.Expr:
    column = nw.col(name)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return column.cast(nw.Float64).sum()
    return column.cast(nw.String).str.len_chars().cast(nw.Int64).sum()


def _rows(data: Microdata, question: Question) -> tuple[nw.LazyFrame[Any], list[str]]:
    """Open the query: dimensions as ``d0``…, the variable ``x``, the person ``p``, the weight ``w``."""
    names = {f"d{i}": name for i, name in enumerate(question.by)}
    filters = {f"f{i}": name for i, name in enumerate(question.where)}
    extra = {"x": question.value, "p": question.subject, "w": question.weight}
    needed = {f"k{i}": name for i, name in enumerate(question.known)}
    asked = {short: name for short, name in extra.items() if name is not None}
    used = {**names, **filters, **needed, **asked}
    rows = scan(data, used or {"any": data.columns[0]})
    if needed:
        rows = rows.filter(*(~nw.col(short).is_null() for short in needed))
    for short, name in filters.items():
        rows = rows.filter(let_in(short, question.where[name]))
    categories = [short for short, name in names.items() if is_category(data.schema[name])]
    if categories:
        rows = rows.with_columns(nw.col(*categories).cast(nw.String))
    for short, name in names.items():
        if question.recode.get(name):
            rows = rows.with_columns(recoded(short, question.recode[name]))
    if not question.keep_missing and names:
        rows = rows.filter(*(~nw.col(short).is_null() for short in names))
    if question.value is not None:
        number = nw.col("x").cast(nw.Float64)
        if question.cap is not None:
            fits = nw.when(number <= question.cap).then(number)
            above = nw.when(number > question.cap).then(nw.lit(float(question.cap))).otherwise(number)
            number = fits if question.drops_above else above
        rows = rows.with_columns(number.alias("x"))
    keys = list(names) or ["d"]
    rows = rows if names else rows.with_columns(nw.lit(0).alias("d"))
    return rows.select(*keys, *asked), keys


def _row_sums(question: Question) -> list[nw.Expr]:
    x = nw.col("x")
    found = [
        nw.len().cast(nw.Int64).alias("records"),
        x.count().cast(nw.Int64).alias("known"),
        x.sum().alias("total"),
        x.mean().alias("mean"),
        x.std(ddof=1).alias("deviation"),
        x.min().alias("minimum"),
        x.max().alias("maximum"),
    ]
    if question.weight is not None:
        weight = nw.when(~x.is_null()).then(nw.col("w").cast(nw.Float64))
        found += [weight.sum().alias("weight"), (weight * x).sum().alias("weighted")]
    return found


def _contributors(
    rows: nw.LazyFrame[Any], keys: list[str], question: Question, largest: int, public_weights: bool
) -> nw.LazyFrame[Any]:
    """Rank what each person contributes to a cell and keep the largest few."""
    rows = rows.filter(~nw.col("x").is_null())
    weight = nw.col("w").cast(nw.Float64) if question.weight is not None else nw.lit(1.0)
    own = public_weights and question.weight is not None
    rows = rows.with_columns(
        (nw.col("x") * weight).alias("c"), nw.col("x").alias("o") if own else nw.lit(0.0).alias("o")
    )
    if question.subject is not None:
        rows = rows.group_by(*keys, "p").agg(nw.col("c").sum(), nw.col("o").sum())
    sought = "o" if own else "c"
    rows = rows.with_columns(nw.col(sought).abs().alias("s"), nw.col("c").abs().alias("a"))
    # The distinct largest sizes, one below the other, and how many share each: windows of maxima are several times
    # faster than ranking everybody.
    shared: list[nw.Expr] = []
    below = nw.col("s")
    for i in range(largest - 1):
        rows = rows.with_columns(below.max().over(*keys).alias(f"m{i}"))
        shared += [
            nw.col(f"m{i}").max().alias(f"size{i}"),
            (nw.col("s") == nw.col(f"m{i}")).cast(nw.Int64).sum().cast(nw.Int64).alias(f"times{i}"),
        ]
        below = nw.when(nw.col("s") < nw.col(f"m{i}")).then(nw.col("s"))
    return rows.group_by(*keys).agg(
        nw.len().cast(nw.Int64).alias("people"),
        nw.col("a").sum().alias("size"),
        (nw.col("c") < 0).cast(nw.Int64).sum().cast(nw.Int64).alias("negative"),
        (nw.col("a") > 0).cast(nw.Int64).sum().cast(nw.Int64).alias("givers"),
        *shared,
        below.max().alias(f"size{largest - 1}"),
    )


def _largest(owned: pl.DataFrame, largest: int) -> list[pl.Series]:
    """Write out the largest contributions: a size that several share counts as often as it is shared."""
    sizes = np.column_stack([owned[f"size{i}"].fill_null(0.0).to_numpy() for i in range(largest)])
    times = np.column_stack([owned[f"times{i}"].fill_null(0).to_numpy() for i in range(largest - 1)])
    through = np.cumsum(times, axis=1)
    at = [(through <= place).sum(axis=1) for place in range(largest)]
    return [pl.Series(np.take_along_axis(sizes, rank[:, None], axis=1)[:, 0]) for rank in at]


def _levels(data: Microdata, question: Question, table: pl.DataFrame) -> tuple[tuple[Any, ...], ...]:
    """List the levels of every dimension: declared ones and those that occur, missing last."""
    found = []
    for i, name in enumerate(question.by):
        seen = table[f"d{i}"].unique()
        plain = seen.drop_nulls().sort().to_list()
        declared = list(question.levels.get(name, ()))
        if not declared and not question.recode.get(name):
            declared = declared_levels(data, name)
        levels = [*declared, *(level for level in plain if level not in declared)]
        found.append(tuple(levels + ([None] if seen.null_count() else [])))
        if not found[-1]:
            raise InputError(
                f"No record fits: the file has no records, none with a '{name}', or the condition (where=) lets none "
                "in."
            )
    size = prod(len(levels) for levels in found)
    refuse_too_many_cells(
        size, _MOST_CELLS, what="The table has", instead="Take fewer or coarser dimensions."
    )
    return tuple(found)


def _places(table: pl.DataFrame, levels: tuple[tuple[Any, ...], ...], keys: list[str]) -> tuple[Any, ...]:
    """Find the position of every row of an aggregated table."""
    if keys == ["d"]:
        return ((np.zeros(table.height, dtype=np.int64),), (1,))
    at = []
    for key, known in zip(keys, levels, strict=True):
        index = pl.DataFrame(
            {key: pl.Series(known, dtype=table.schema[key], strict=False), "at": range(len(known))}
        )
        joined = table.select(key).join(index, on=key, how="left", nulls_equal=True, maintain_order="left")
        at.append(joined["at"].to_numpy())
    return tuple(at), tuple(len(known) for known in levels)


def _laid(column: pl.Series, place: tuple[Any, ...], empty: float | int = 0) -> Any:
    """Lay a column of an aggregated table out in the shape of the table."""
    at, shape = place
    is_float = isinstance(empty, float)
    table = np.full(shape, empty, dtype=np.float64 if is_float else np.int64)
    numbers = column.cast(pl.Float64) if is_float else column.fill_null(0).cast(pl.Int64)
    table[at] = numbers.to_numpy()
    return table


def places_of(rows: pl.DataFrame, levels: tuple[tuple[Any, ...], ...], keys: list[str]) -> list[Integers]:
    """Find for every record the place of its level in each dimension."""
    return [at.astype(np.int64) for at in _places(rows, levels, keys)[0]] if keys else []


# What a statistic enters into the register, so that every later one can be held against it.


def entered(
    statistic: str,
    data: Microdata,
    question: Question,
    *,
    additive: bool = False,
    hidden: Sequence[int] = (),
) -> Registered:
    """Enter a statistic by group: whose records it is about, and how many people each group has.

    Parameters
    ----------
    additive
        Whether what it publishes can be subtracted: counts, totals, means.
    hidden
        The groups, in order of their levels, that are not shown.

    Examples
    --------
    >>> import polars as pl
    >>> data = Microdata(pl.DataFrame({"sex": ["f", "f", "m"], "pay": [1.0, None, 3.0]}))
    >>> entered("median", data, Question(("sex",), value="pay")).counts.tolist()
    [1.0, 1.0]
    """
    needed = (*question.known, *([question.value] if question.value is not None else []))
    found = count_cells(data, replace(question, value=None, weight=None, known=tuple(dict.fromkeys(needed))))
    counts = found.people.astype(np.float64)
    if hidden:
        counts.reshape(-1)[list(hidden)] = np.nan
    counts = counts if question.by else counts.reshape(())
    adds_up = additive and question.subject is None
    entry = registered(statistic, data, question, found.levels, counts, adds_up=adds_up, additive=additive)
    return replace(entry, question=replace(question, weight=None))


def registered(
    kind: str,
    data: Microdata,
    question: Question,
    levels: tuple[tuple[Any, ...], ...],
    counts: Floats,
    **about: Any,
) -> Registered:
    """Enter a statistic whose people were counted already; ``about`` are further fields of the entry."""
    return Registered(
        kind,
        population(data, (*question.columns(), *question.known)),
        question.where,
        question.by,
        levels,
        counts,
        **{"statistic": kind, "variables": question.measured(), "question": question, "data": data, **about},
    )


def entered_people(people: Sequence[float]) -> tuple[Registered, ...]:
    """Enter how many people stand behind a file that was made elsewhere, for each of its models.

    Examples
    --------
    >>> [entry.people for entry in entered_people([1000.0, 400.0])]
    [1000.0, 400.0]
    """
    return tuple(
        Registered(CUSTOM, {}, {}, (), (), np.array(float(n)), additive=False, statistic=CUSTOM)
        for n in dict.fromkeys(people)
    )
