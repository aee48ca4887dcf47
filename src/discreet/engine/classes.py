"""Equivalence classes: the records that share one combination of key values.

Missing key values are a value of their own (``category``), match anything (``wildcard``) or take their record
out of the count (``drop``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.engine.alignment import comparable, recoded
from discreet.engine.frames import Lazy, collect, remembered, scan
from discreet.engine.packing import PackedClasses, is_whole, packed_classes
from discreet.engine.roles import overview
from discreet.engine.wildcard import neighborhood_sizes
from discreet.errors import ColumnError, ParameterError
from discreet.microdata import Microdata

Missing = Literal["category", "wildcard", "drop"]
Recoding = Mapping[str, Mapping[Any, Any]]


def key_names(keys: Sequence[str]) -> dict[str, str]:
    """Give the keys their neutral names inside a query: ``k0``, ``k1``, …"""
    return {f"k{i}": key for i, key in enumerate(keys)}


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing key values."""
    if missing not in ("category", "wildcard", "drop"):
        raise ParameterError(
            "missing must be 'category' (its own value), 'wildcard' (matches anything) or 'drop'."
        )


def keyed_rows(
    data: Microdata, keys: Sequence[str], missing: Missing, extra: Mapping[str, str] | None = None
) -> Lazy:
    """Open a query on the keys (as ``k0``…) and extra columns, without the records that ``drop`` leaves out."""
    check_missing(missing)
    names = key_names(keys)
    rows = scan(data, {**names, **(extra or {})})
    if missing == "drop" and any(overview(data, keys).missing.values()):
        rows = rows.drop_nulls(subset=list(names))
    return rows


def class_table(data: Microdata, keys: Sequence[str], missing: Missing = "category") -> pl.DataFrame:
    """Count the records of every key combination: columns ``k0``…, ``records`` and ``class_size``.

    ``records`` have exactly that combination. ``class_size`` is the same number, except under ``wildcard``,
    where it counts every record that agrees wherever both are known.
    """
    return remembered(data, "class tables", (tuple(keys), missing), lambda: _class_table(data, keys, missing))


def _class_table(data: Microdata, keys: Sequence[str], missing: Missing) -> pl.DataFrame:
    names = list(key_names(keys))
    packed = packed_table(data, keys, missing)
    if packed is None:
        rows = keyed_rows(data, keys, missing)
        table = collect(rows.group_by(*names).agg(nw.len().cast(nw.Int64).alias("records")))
    else:
        table = packed.packing.decode(packed.numbers).with_columns(records=packed.records)
    wild = missing == "wildcard" and any(overview(data, keys).missing.values())
    sizes = neighborhood_sizes(table, names) if wild else table["records"]
    return table.with_columns(sizes.alias("class_size"))


def packed_table(data: Microdata, keys: Sequence[str], missing: Missing) -> PackedClasses | None:
    """Count every key combination as one packed number, where they fit; kept."""
    counted_as: Missing = "drop" if missing == "drop" else "category"
    names = list(key_names(keys))

    def pack() -> PackedClasses | None:
        rows, counts = countable(keyed_rows(data, keys, counted_as), names)
        return packed_classes(rows, names, counts=counts)

    return remembered(data, "packed classes", (tuple(keys), counted_as), pack)


def countable(rows: Lazy, names: Sequence[str]) -> tuple[pl.LazyFrame, str | None]:
    """Hand a query to Polars for packing: as it is where coding is cheap, else counted, with the column of counts.

    Whole numbers are coded on the fly. For anything else the engine counts the combinations first, so that only
    the distinct ones are looked up.
    """
    if rows.implementation.is_polars():
        native: pl.LazyFrame = rows.to_native()
        schema = native.collect_schema()
        if all(is_whole(schema[name]) for name in names):
            return native, None
    counted = collect(rows.group_by(*names).agg(nw.len().cast(nw.Int64).alias("counted")))
    return counted.lazy(), "counted"


def smallest_classes(data: Microdata, keys: Sequence[str], missing: Missing, most: int) -> pl.DataFrame:
    """Return the smallest classes only, as `class_table` has them; ties go by the key values, missing last.

    Engines hand over groups in any order, and a report must not change by itself.
    """
    packed = None if missing == "wildcard" else packed_table(data, keys, missing)
    if packed is None:
        order = ["class_size", *key_names(keys)]
        return class_table(data, keys, missing).sort(order, nulls_last=True).head(most)
    sizes = packed.records
    limit = np.partition(sizes, most - 1)[most - 1] if len(sizes) > most else sizes.max(initial=0)
    smaller = np.flatnonzero(sizes < limit)
    chosen = np.concatenate([smaller, np.flatnonzero(sizes == limit)[: most - len(smaller)]])
    chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
    table = packed.packing.decode(packed.numbers[chosen]).with_columns(records=sizes[chosen])
    return table.with_columns(class_size=pl.col("records"))


def size_spectrum(data: Microdata, keys: Sequence[str], missing: Missing = "category") -> pl.DataFrame:
    """Count the classes of every size: columns ``class_size``, ``classes``, ``records``, smallest first.

    This small table is all that k, uniqueness and the re-identification risks need. Under ``wildcard`` a
    "class" is a distinct key combination and its size that of its neighborhood.
    """
    return remembered(data, "spectra", (tuple(keys), missing), lambda: _spectrum(data, tuple(keys), missing))


def _spectrum(data: Microdata, keys: tuple[str, ...], missing: Missing) -> pl.DataFrame:
    any_missing = any(overview(data, keys).missing.values())
    if missing == "wildcard" and not any_missing:
        missing = "category"
    by_size = {"classes": pl.len().cast(pl.Int64), "records": pl.col("records").sum().cast(pl.Int64)}
    if missing == "wildcard":
        table = class_table(data, keys, missing)
        return table.lazy().group_by("class_size").agg(**by_size).sort("class_size").collect()
    if data.wrapped.implementation.is_polars() and not _finer_held(data, keys, missing):
        packed_table(data, keys, missing)
    finer = _finer_sizes(data, keys, missing)
    if finer is not None and len(finer):
        sizes = pl.LazyFrame({"class_size": finer, "records": finer})
        return sizes.group_by("class_size").agg(**by_size).sort("class_size").collect()
    rows = keyed_rows(data, keys, missing)
    sizes_in_place = rows.group_by(*key_names(keys)).agg(nw.len().cast(nw.Int64).alias("class_size"))
    spectrum = collect(sizes_in_place.group_by("class_size").agg(nw.len().cast(nw.Int64).alias("classes")))
    if spectrum.is_empty():
        raise ParameterError(
            "No record is left: every one misses some key, and missing='drop' leaves those out. "
            "Use missing='category' or 'wildcard', or drop the key with the most missing values."
        )
    return spectrum.sort("class_size").with_columns(records=pl.col("class_size") * pl.col("classes"))


def _finer_held(data: Microdata, keys: tuple[str, ...], missing: Missing) -> bool:
    held = [*data.memory.get("packed classes", {}), *data.memory.get("class tables", {})]
    return any(was == missing == "category" and set(keys) <= set(there) for there, was in held)


def _finer_sizes(data: Microdata, keys: tuple[str, ...], missing: Missing) -> pl.Series | None:
    """Count from classes already made on more keys, which is cheaper than counting the records."""
    for (held_keys, held_missing), packed in data.memory.get("packed classes", {}).items():
        same = set(keys) == set(held_keys) or missing == "category"
        if packed is not None and held_missing == missing and same and set(keys) <= set(held_keys):
            return pl.Series(packed.sizes([f"k{held_keys.index(key)}" for key in keys]))
    for (held_keys, held_missing), table in data.memory.get("class tables", {}).items():
        if held_missing == missing == "category" and set(keys) <= set(held_keys):
            chosen = table.select(*(f"k{held_keys.index(key)}" for key in keys), "records")
            grouped = chosen.lazy().group_by(chosen.columns[:-1]).agg(pl.col("records").sum())
            sizes: pl.Series = grouped.collect()["records"]
            return sizes
    return None


def cross_counts(
    data: Microdata,
    keys: Sequence[str],
    target: str,
    missing: Missing = "category",
    *,
    weight: str | None = None,
) -> Lazy:
    """Count keys by target value, lazily: columns ``k0``…, ``s``, ``count`` and, with a weight, ``weighted``."""
    extra = {"s": target} | ({"w": weight} if weight else {})
    sums = [nw.len().cast(nw.Int64).alias("count")]
    if weight:
        sums.append(nw.col("w").cast(nw.Float64).sum().alias("weighted"))
    return keyed_rows(data, keys, missing, extra).group_by(*key_names(keys), "s").agg(*sums)


def distinct_counts(data: Microdata, columns: Sequence[str]) -> dict[str, int]:
    """Count the distinct values of each column in one pass; missing counts as a value."""
    names = {f"c{i}": column for i, column in enumerate(columns)}
    row = collect(scan(data, names).select(*(nw.col(name).n_unique() for name in names))).row(0, named=True)
    return {column: int(row[name]) for name, column in names.items()}


def matched_classes(
    data: Microdata,
    population: Microdata,
    keys: Sequence[str],
    missing: Missing = "category",
    *,
    recoding: Recoding | None = None,
) -> pl.DataFrame:
    """Set the classes of a file beside those of a population: columns ``k0``…, ``records``, ``population``.

    Every class of either file has a row; a count is 0 where the class does not occur. ``recoding`` maps
    population values to the codes of the file, by key, where the two are coded differently.
    """
    if missing == "wildcard":
        raise ParameterError(
            "Two files cannot be matched class by class with missing='wildcard', which has no classes. "
            "Use missing='category' or 'drop'."
        )
    for key in keys:
        if key not in population.schema:
            raise ColumnError(
                f"The population file has no column '{key}', which is a key. Rename or drop it."
            )
    names = list(key_names(keys))
    ours, theirs = class_table(data, keys, missing), class_table(population, keys, missing)
    for name, key in key_names(keys).items():
        theirs = recoded(theirs, name, (recoding or {}).get(key))
        ours, theirs = comparable(ours, theirs, name, key, ("file", "population"))
    theirs = theirs.group_by(names).agg(population=pl.col("records").sum())
    both = ours.select(*names, "records").join(theirs, on=names, how="full", nulls_equal=True, coalesce=True)
    return both.with_columns(pl.col("records", "population").fill_null(0))
