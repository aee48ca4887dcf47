"""Which columns a measure works on, and whether they can be worked on at all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.core.wording import type_name
from discreet.engine.frames import collect, remembered, scan
from discreet.microdata import Microdata, require_microdata


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
    counted = overview(data, names)
    for name in names:
        if counted.missing[name] == counted.rows:
            raise ColumnError(
                f"The key '{name}' has no values at all: every record is missing. "
                "Leave it out of the keys, or check how the file was read."
            )
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
    if sensitive is None:
        names = data.roles.sensitive
    else:
        names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
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
    counted = overview(data, names)
    for name in names:
        if counted.missing[name] == counted.rows:
            raise ColumnError(
                f"The sensitive column '{name}' has no values at all: every record is missing. "
                "Name another column, or check how the file was read."
            )
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


def total(data: Microdata, column: str) -> float:
    """Sum a numeric column over all records."""
    summed = collect(scan(data, {"w": column}).select(nw.col("w").cast(nw.Float64).sum()))
    return float(summed.item() or 0.0)


def _must_exist(data: Microdata, names: Sequence[str], role: str) -> None:
    require_microdata(data)
    for name in names:
        if name not in data.schema:
            raise ColumnError(f"{unknown_name(name, data.columns)} It was named under '{role}'.")
