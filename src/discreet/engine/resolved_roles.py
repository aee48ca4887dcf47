"""Which columns a measure works on, and whether they can be worked on at all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, need_known
from discreet.core.wording import type_name
from discreet.engine.frames import WHOSE, Lazy, collect, has_row_order, is_lazy, remembered, sample_of, scan
from discreet.microdata import Microdata, require_microdata

MOST_CELLS = 10**8
"""Cells up to which a query is held, unless the user says how many records are."""


@dataclass(frozen=True)
class Overview:
    """How many records there are and how many values are missing, by column."""

    rows: int
    missing: dict[str, int]


def overview(data: Microdata, columns: Sequence[str]) -> Overview:
    """Count records and missing values in one pass; refuse a file without records."""
    require_microdata(data)
    if not data.columns:
        raise InputError("The data has no columns. Check the file, or the query behind it.")
    known: dict[str, int] = data.memory.setdefault("missing", {})
    wanted = [column for column in dict.fromkeys(columns) if column not in known]
    if wanted or "rows" not in data.memory:
        names = {f"c{i}": column for i, column in enumerate(wanted or data.columns[:1])}
        nothing_known = nw.all_horizontal(*(nw.col(name).is_null() for name in names), ignore_nulls=False)
        lazy = scan(data, names).select(
            nw.len().alias("records"),
            nothing_known.cast(nw.Int64).sum().alias("silent"),
            *(nw.col(name).is_null().cast(nw.Int64).sum() for name in names),
        )
        counted = collect(lazy).row(0, named=True)
        data.memory["rows"] = int(counted["records"])
        # Asked next about the same columns: who has none of them (`discreet.engine.units.all_suppressed`).
        silent = data.memory.setdefault("all suppressed", {})
        silent[frozenset(names.values())] = int(counted["silent"] or 0)
        known.update({column: int(counted[name] or 0) for name, column in names.items()})
    rows: int = data.memory["rows"]
    if rows == 0:
        raise InputError(
            "The file has columns but no records. Check the file, or the filter or query behind it."
        )
    return Overview(rows, {column: known[column] for column in columns})


def too_large(*files: Microdata, most: int = MOST_CELLS) -> bool:
    """Whether files are too large to hold: one is known by a sample, or all are queries and one has more cells."""
    if any(sample_of(data) is not None for data in files):
        return True
    return all(is_lazy(data) for data in files) and any(
        overview(data, ()).rows * len(data.columns) > most for data in files
    )


def resolve_keys(data: Microdata, keys: str | Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the keys to work on, the roles of the data unless named, checked against the data."""
    require_microdata(data)
    names = data.roles.keys if keys is None else ((keys,) if isinstance(keys, str) else tuple(keys))
    if not names:
        raise ParameterError(
            "No keys were named. Say which columns an intruder may know: keys=['age', 'sex', …] "
            "in Python, --keys age,sex on the command line, or a roles file."
        )
    _must_exist(data, names, "keys")
    if len(set(names)) < len(names):
        raise ColumnError("A column is named twice among the keys. Name each key once.")
    for name in names:
        if name in data.roles.identifiers:
            raise ColumnError(
                f"Column '{name}' is a direct identifier and cannot be a key: every record would be unique. "
                "Leave it out of the keys, and out of the release."
            )
    _must_have_values(data, names, "key", "Leave it out of the keys")
    return names


def float_keys(data: Microdata, keys: Sequence[str]) -> list[str]:
    """Name the keys that hold decimal numbers which seldom repeat, and warn: many records are unique on them."""
    found = seldom_repeated(data, keys)
    if found:
        warnings.warn(float_key_caveat(found), DiscreetWarning, stacklevel=4)
    return found


def seldom_repeated(data: Microdata, keys: Sequence[str]) -> list[str]:
    """Name the keys that hold decimal numbers, more than half as many different ones as records.

    Whole numbers in a float column do not count: pandas keeps integers with missing values that way. Nor do decimal
    numbers that groups of people share, the density of a region say.
    """
    return [key for key in keys if data.schema[key].is_float() and _seldom_repeats(data, key)]


def _seldom_repeats(data: Microdata, column: str) -> bool:
    known = ~nw.col("x").is_null()
    query = scan(data, {"x": column}).select(
        broken=(nw.col("x") % 1 != 0).cast(nw.Int64).sum(),
        known=known.cast(nw.Int64).sum(),
        different=nw.col("x").n_unique(),
    )

    def asked() -> bool:
        broken, filled, different = collect(query).row(0)
        return bool(broken) and 2 * different > filled

    return remembered(data, "seldom repeats", column, asked)


def float_key_caveat(keys: Sequence[str]) -> str:
    """Word the warning for keys that hold decimal numbers."""
    names = ", ".join(f"'{key}'" for key in keys)
    return (
        f"The key {names} holds decimal numbers that seldom repeat; many records are unique on such a key. "
        "Round or band it if an intruder would not know it that exactly."
    )


def resolve_sensitive(
    data: Microdata, sensitive: str | Sequence[str] | None, keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the sensitive columns to work on, the roles of the data unless named."""
    chosen = data.roles.sensitive if sensitive is None else sensitive
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    if not names:
        raise ParameterError(
            "No sensitive column was named. Say which columns must not be learned: sensitive=['income', …] "
            "in Python, --sensitive income on the command line, or a roles file."
        )
    _must_exist(data, names, "sensitive")
    for name in names:
        if name in keys:
            raise ColumnError(
                f"Column '{name}' is both a key and sensitive here. A key is what an intruder knows already; "
                "take it out of one of the two."
            )
    _must_have_values(data, names, "sensitive column", "Name another column")
    return names


def resolve_weight(data: Microdata, weight: str | None = None, *, required: bool = False) -> str | None:
    """Return the weight column, checked: numeric, present in every record, above zero."""
    name = weight or data.roles.weight
    if name is None:
        if required:
            raise ParameterError(
                "This measure needs survey weights and no weight column was named. "
                "Name it with weight='column' (--weight on the command line)."
            )
        return None
    _must_exist(data, [name], "weight")
    if not data.schema[name].is_numeric():
        raise ColumnError(
            f"The weight column '{name}' is not numeric (it is {type_name(data.schema[name])}). Convert it first."
        )
    checked = data.memory.setdefault("weights checked", set())
    if name not in checked:
        weight_of = nw.col("w").cast(nw.Float64)
        faults = {
            "with a weight of zero or below": weight_of <= 0,
            "with an infinite weight": weight_of == math.inf,
            "without a weight": nw.col("w").is_null(),
        }
        counts = [
            fault.cast(nw.Int64).sum().alias(f"fault{place}") for place, fault in enumerate(faults.values())
        ]
        row = collect(scan(data, {"w": name}).select(*counts)).row(0)
        found = [
            f"{count:,} {'record' if count == 1 else 'records'} {words}"
            for words, count in zip(faults, row, strict=True)
            if count
        ]
        if found:
            raise ColumnError(
                f"The weight column '{name}' has {' and '.join(found)}. Every record needs a finite weight above "
                "zero: drop those records or mend the weights."
            )
        checked.add(name)
    return name


def added_by(
    rows: Lazy | pl.LazyFrame, by: Sequence[str], data: Microdata | None = None, **figures: tuple[str, str]
) -> pl.DataFrame:
    """Collect a table of groups with figures, each a column and ``sum``, ``min``, ``max`` or ``len``.

    Threads add numbers in an order of their own, which shows in the last digits. So Polars hands the numbers over group
    by group, they are added from the smallest on, and the groups are put in order. Other engines, and those that count
    ``data`` past memory, add for themselves.
    """
    query = nw.from_native(rows) if isinstance(rows, pl.LazyFrame) else rows
    native = query.to_native()
    small = data is None or not is_lazy(data) or overview(data, ()).rows <= MOST_CELLS // 10
    sums = [name for name, (_, how) in figures.items() if how == "sum"]
    if not (sums and small and isinstance(native, pl.LazyFrame)):
        asked = [
            nw.len().cast(nw.Int64).alias(name)
            if how == "len"
            else getattr(nw.col(column).cast(nw.Float64), how)().alias(name)
            for name, (column, how) in figures.items()
        ]
        return collect(query.group_by(*by).agg(*asked))
    told = {
        name: pl.len().cast(pl.Int64) if how == "len" else pl.col(column).cast(pl.Float64)
        for name, (column, how) in figures.items()
    }
    told |= {name: getattr(told[name], how)() for name, (_, how) in figures.items() if how in ("min", "max")}
    table = collect(nw.from_native(native.group_by(by).agg(**told)))
    return table.with_columns(pl.col(sums).list.sort().list.sum()).sort(by, nulls_last=True)


def total(data: Microdata, column: str) -> float:
    """Sum a numeric column over all records."""
    rows = scan(data, {"w": column}).with_columns(nw.lit(0).alias("all"))
    return float(added_by(rows, ["all"], data, total=("w", "sum"))["total"].sum() or 0.0)


def _must_have_values(data: Microdata, names: Sequence[str], what: str, way_out: str) -> None:
    counted = overview(data, names)
    for name in names:
        if counted.missing[name] == counted.rows:
            raise ColumnError(
                f"The {what} '{name}' has no values at all: every record is missing. {way_out}, or check how the file "
                "was read."
            )


def _must_exist(data: Microdata, names: Sequence[str], role: str) -> None:
    require_microdata(data)
    need_known(names, data.columns, after=f" It was named under '{role}'.")


# Whose records are they? What company is counted in, and which records tell nothing.
#
# A file may hold several records of one person (visits, spells, jobs). Somebody who looks for a person is not misled by
# the person's other records, so that records of one person with the same key values count once. A record without a
# single known key says nothing about whom it belongs to and is in no class.


UNIT_ROLES = ("person", "contributor")


def counted_role(data: Microdata) -> str | None:
    """Name the role that says who a record belongs to: ``person``, else ``contributor``, else none."""
    known = next((role for role in UNIT_ROLES if getattr(data.roles, role)), None)
    return known or (data.whose[0] if data.whose else None)


def counted_unit(data: Microdata) -> str | None:
    """Name the column of the persons (or contributors) in whom company is counted; None where it is records.

    `WHOSE` is the column that was left out of the file and is kept aside.
    """
    role = counted_role(data)
    return (getattr(data.roles, role) or WHOSE) if role else None


def unit_in_words(data: Microdata) -> str:
    """Name the column of the persons for people, also where it is no longer in the file."""
    unit = counted_unit(data)
    return f"{counted_role(data)} (left out of the file)" if unit == WHOSE else str(unit)


def after_treatment(data: Microdata, treated: Microdata, keep: Any, order: Any) -> Microdata:
    """Remember whose the records of a treated file are, where the treatment left out the column that says so."""
    role, unit = counted_role(data), counted_unit(data)
    if role is None or any(getattr(treated.roles, name) for name in UNIT_ROLES):
        return treated
    if head_count(data) == overview(data, ()).rows:
        return treated.missing_nobody()
    if not has_row_order(data):
        return treated
    numbers = unit_numbers(collect(data, [str(unit)]).to_series())
    numbers = numbers if keep is None else numbers.filter(keep)
    return treated.remembering(role, numbers if order is None else numbers.gather(order))


def neutral_names(keys: Sequence[str]) -> dict[str, str]:
    """Give the keys their neutral names inside a query: ``k0``, ``k1``, …"""
    return {f"k{i}": key for i, key in enumerate(keys)}


def all_suppressed(data: Microdata, keys: Sequence[str]) -> int:
    """Count the records of which no key is known; they are in no class."""
    if not keys or not all(overview(data, keys).missing.values()):
        return 0
    names = neutral_names(keys)

    def count() -> int:
        return int(collect(scan(data, names).filter(~some_key_known(names)).select(nw.len())).item())

    return remembered(data, "all suppressed", frozenset(keys), count)


def some_key_known(names: Mapping[str, str] | Sequence[str]) -> nw.Expr:
    """Whether at least one of the key columns of a query has a value."""
    return nw.any_horizontal(*(~nw.col(name).is_null() for name in names), ignore_nulls=False)


def by_unit(rows: Lazy, columns: Sequence[str]) -> Lazy:
    """Keep one row for each combination of the columns and the unit ``u``, which then goes.

    Records that name no unit count as one, the cautious reading: nobody knows that they are several.
    """
    return rows.select(*columns, "u").unique().select(*columns)


def head_count(data: Microdata) -> int:
    """Count the people of a file: its records, or whom the records belong to; those of nobody count as one."""
    unit = counted_unit(data)
    if unit is None:
        return overview(data, ()).rows
    many = scan(data, {"u": unit}).select("u").unique().select(nw.len().cast(nw.Int64))
    return remembered(data, "head count", unit, lambda: int(collect(many).item()))


def people_of_weights(data: Microdata, weight: str) -> float:
    """Add up the weights to the people they stand for; a person's records count once, with their mean weight."""
    unit = counted_unit(data)
    if unit is None:
        return total(data, weight)
    rows = scan(data, {"u": unit, "w": weight})
    mean = rows.group_by("u").agg(nw.col("w").cast(nw.Float64).mean())
    return float(collect(mean.select(nw.col("w").sum())).item() or 0.0)


def units_without_name(data: Microdata) -> int:
    """Count the records that do not say whose they are."""
    unit = counted_unit(data)
    return overview(data, [unit]).missing[unit] if unit else 0


def unit_pairs(data: Microdata, keys: Sequence[str], rows: Lazy) -> pl.DataFrame:
    """Collect who has which combination of keys: ``k0``… and ``u``, the number of the unit."""
    table = collect(rows.select(*neutral_names(keys), "u").unique())
    return table.with_columns(u=unit_numbers(table["u"]))


def unit_numbers(units: pl.Series) -> pl.Series:
    """Number the units from 0; all missing ones are one."""
    plain = units.cast(pl.String) if isinstance(units.dtype, pl.Categorical | pl.Enum) else units
    ranks = plain.rank("dense").cast(pl.Int64)
    return ranks.fill_null(0).alias(units.name)


def unit_column(data: Microdata) -> Any:
    """Give the number of the unit of every record, for files in memory; None where every record is one of its own."""
    unit = counted_unit(data)
    if unit is None:
        return None
    units = collect(data, [unit]).to_series()
    return None if units.n_unique() == len(units) else unit_numbers(units).to_numpy()


def groups_together(data: Microdata) -> Any:
    """Give a number to every record, the same to those of one household, or else of one person or other unit.

    Whoever draws or divides people keeps these together: they are no strangers to each other.
    """
    unit = data.roles.household or counted_unit(data)
    if unit is None or unit not in data.schema:
        return np.arange(collect(data, data.columns[:1]).height)
    return unit_numbers(collect(data, [unit]).to_series()).to_numpy()


def repeated_identifiers(data: Microdata) -> dict[str, int]:
    """Name the identifiers that occur in several records, with the number of records beyond the first of each.

    Where nothing says whose the records are, such a column suggests that some belong to one person.
    """
    names = [name for name in data.roles.identifiers if name in data.schema]
    if not names or counted_role(data) is not None:
        return {}
    columns = {f"i{place}": name for place, name in enumerate(names)}

    def count() -> dict[str, int]:
        parts = [nw.col(column).count().alias(f"{column}_known") for column in columns]
        parts += [nw.col(column).n_unique().alias(f"{column}_distinct") for column in columns]
        found = collect(scan(data, columns).select(*parts)).row(0, named=True)
        rows = overview(data, ()).rows
        distinct = {c: found[f"{c}_distinct"] - (found[f"{c}_known"] < rows) for c in columns}
        return {
            name: int(found[f"{c}_known"] - distinct[c])
            for c, name in columns.items()
            if found[f"{c}_known"] > distinct[c]
        }

    return remembered(data, "repeated identifiers", tuple(names), count)


def single_households(data: Microdata, keys: Sequence[str]) -> tuple[int, int]:
    """Count the classes of several records that all belong to one household, and their records."""
    household = data.roles.household
    if not household or household in keys:
        return 0, 0
    names = list(neutral_names(keys))

    def count() -> tuple[int, int]:
        rows = scan(data, {**neutral_names(keys), "h": household}).filter(some_key_known(names))
        counted = rows.group_by(*names, "h").agg(nw.len().cast(nw.Int64).alias("records"))
        alone = nw.col("h").is_null().cast(nw.Int64).max().alias("unknown")
        classes = counted.group_by(*names).agg(
            nw.len().cast(nw.Int64).alias("households"), nw.col("records").sum().alias("records"), alone
        )
        found = classes.filter(
            (nw.col("households") == 1) & (nw.col("unknown") == 0) & (nw.col("records") > 1)
        )
        table = collect(
            found.select(nw.len().cast(nw.Int64).alias("classes"), nw.col("records").sum().alias("records"))
        )
        classes_found, records = table.row(0)
        return int(classes_found), int(records or 0)

    return remembered(data, "single households", tuple(keys), count)
