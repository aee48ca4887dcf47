"""Equivalence classes: the records that share one combination of key values.

Missing key values are a value of their own (``category``), match anything (``wildcard``) or take their record
out of the count (``drop``). A record of which no key is known is in no class. Where a role says whose the records
are, a class counts persons: their records with the same key values count once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.engine.comparable import comparable_keys, recoded
from discreet.engine.frames import Lazy, collect, collected_batches, in_declared_order, remembered, scan
from discreet.engine.packing import PackedClasses, in_order, is_whole, packed_by_engine, packed_classes
from discreet.engine.resolved_roles import (
    all_suppressed,
    by_unit,
    counted_unit,
    neutral_names,
    overview,
    some_key_known,
    unit_pairs,
)
from discreet.engine.wildcard import neighborhood_sizes, neighborhood_units
from discreet.microdata import Microdata

Missing = Literal["category", "wildcard", "drop"]
Recoding = Mapping[str, Mapping[Any, Any]]


key_names = neutral_names


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing key values."""
    if missing not in ("category", "wildcard", "drop"):
        raise ParameterError(
            "missing must be 'category' (its own value), 'wildcard' (matches anything) or 'drop'."
        )


def keyed_rows(
    data: Microdata,
    keys: Sequence[str],
    missing: Missing,
    extra: Mapping[str, str] | None = None,
    *,
    silent: bool = False,
) -> Lazy:
    """Open a query on the keys (as ``k0``…) and extra columns of the records that are in a class.

    Left out are those of which no key is known (kept where ``silent`` ones are asked for) and, under ``drop``, those
    with a missing key.
    """
    check_missing(missing)
    names = key_names(keys)
    rows = scan(data, {**names, **(extra or {})})
    if missing == "drop" and any(overview(data, keys).missing.values()):
        rows = rows.drop_nulls(subset=list(names))
    elif not silent and all_suppressed(data, keys):
        rows = rows.filter(some_key_known(names))
    return rows


def counted_rows(data: Microdata, keys: Sequence[str], missing: Missing) -> Lazy:
    """Open a query on the keys with a row for everybody who counts: every record, or every person once a class."""
    unit = counted_unit(data)
    if unit is None:
        return keyed_rows(data, keys, missing)
    return by_unit(keyed_rows(data, keys, missing, {"u": unit}), list(key_names(keys)))


def weighted_rows(
    data: Microdata,
    keys: Sequence[str],
    missing: Missing,
    weight: str,
    extra: Mapping[str, str] | None = None,
) -> Lazy:
    """Open a query on the keys, the weight ``w`` and extra columns with a row for everybody who counts.

    A person counts once for every combination of the keys and extra columns, with the mean weight of its records there.
    """
    unit, more = counted_unit(data), dict(extra or {})
    if unit is None:
        return keyed_rows(data, keys, missing, {**more, "w": weight})
    rows = keyed_rows(data, keys, missing, {**more, "w": weight, "u": unit})
    return rows.group_by(*key_names(keys), *more, "u").agg(nw.col("w").cast(nw.Float64).mean()).drop("u")


def left_out(data: Microdata, keys: Sequence[str], missing: Missing) -> int:
    """Count the records in no class: those without a known key and, under ``drop``, those with a missing one."""
    if missing != "drop" or not any(overview(data, keys).missing.values()):
        return all_suppressed(data, keys)

    def count() -> int:
        kept = collect(keyed_rows(data, keys, missing).select(nw.len().cast(nw.Int64))).item()
        return overview(data, keys).rows - int(kept)

    return remembered(data, "left out", frozenset(keys), count)


def class_table(data: Microdata, keys: Sequence[str], missing: Missing = "category") -> pl.DataFrame:
    """Count the records of every key combination: columns ``k0``…, ``records`` and ``class_size``.

    ``records`` have exactly that combination, those of one person counted once. ``class_size`` is the same number,
    except under ``wildcard``, where it counts every record that agrees wherever both are known. There ``company`` is
    what may be relied on: that neighborhood for a combination with gaps, but complete equals only for a complete one,
    because the gaps of others hide nobody.
    """
    return remembered(data, "class tables", (tuple(keys), missing), lambda: _class_table(data, keys, missing))


def _class_table(data: Microdata, keys: Sequence[str], missing: Missing) -> pl.DataFrame:
    names = list(key_names(keys))
    packed = packed_table(data, keys, missing)
    if packed is None:
        rows = counted_rows(data, keys, missing)
        table = collect(rows.group_by(*names).agg(nw.len().cast(nw.Int64).alias("records")))
    else:
        table = packed.packing.decode(packed.numbers).with_columns(records=packed.records)
    wild = missing == "wildcard" and any(overview(data, keys).missing.values())
    sizes = _neighborhoods(data, keys, table) if wild else table["records"]
    table = table.with_columns(sizes.alias("class_size"))
    if missing != "wildcard":
        return table
    complete = pl.all_horizontal(pl.col(names).is_not_null())
    return table.with_columns(company=pl.when(complete).then("records").otherwise("class_size"))


def _neighborhoods(data: Microdata, keys: Sequence[str], table: pl.DataFrame) -> pl.Series:
    names, unit = list(key_names(keys)), counted_unit(data)
    if unit is None:
        return neighborhood_sizes(table, names)
    pairs = unit_pairs(data, keys, keyed_rows(data, keys, "wildcard", {"u": unit}))
    if pairs["u"].n_unique() == pairs.height:
        return neighborhood_sizes(table, names)
    return neighborhood_units(table, pairs, names)


def packed_table(data: Microdata, keys: Sequence[str], missing: Missing) -> PackedClasses | None:
    """Count every key combination as one packed number, where they fit; kept."""
    counted_as: Missing = "drop" if missing == "drop" else "category"
    names = list(key_names(keys))

    def pack() -> PackedClasses | None:
        finer = data.memory.get("packed pairs", {}).get((tuple(keys), counted_as))
        if finer is not None:
            return finer.without_last()  # type: ignore[no-any-return]
        counted = counted_rows(data, keys, counted_as)
        packed = None if counted.implementation.is_polars() else packed_by_engine(counted, names)
        if packed is not None:
            return packed
        rows, counts = countable(counted, names)
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
        order = ["company" if missing == "wildcard" else "class_size", *key_names(keys)]
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
    "class" is a distinct key combination and its size the ``company`` of `class_table`.
    """
    return remembered(data, "spectra", (tuple(keys), missing), lambda: _spectrum(data, tuple(keys), missing))


def _spectrum(data: Microdata, keys: tuple[str, ...], missing: Missing) -> pl.DataFrame:
    any_missing = any(overview(data, keys).missing.values())
    if missing == "wildcard" and not any_missing:
        missing = "category"
    by_size = {"classes": pl.len().cast(pl.Int64), "records": pl.col("records").sum().cast(pl.Int64)}
    if missing == "wildcard":
        table = class_table(data, keys, missing)
        by_company = table.lazy().group_by(class_size="company").agg(**by_size)
        return by_company.sort("class_size").collect()
    at_hand = data.wrapped.implementation.is_polars() or (keys, missing) in data.memory.get(
        "packed pairs", {}
    )
    if at_hand and not _finer_held(data, keys, missing):
        packed_table(data, keys, missing)
    finer = _finer_sizes(data, keys, missing)
    if finer is not None and len(finer):
        return _tally_of(finer)
    rows = counted_rows(data, keys, missing)
    sizes_in_place = rows.group_by(*key_names(keys)).agg(nw.len().cast(nw.Int64).alias("class_size"))
    spectrum = collect(sizes_in_place.group_by("class_size").agg(nw.len().cast(nw.Int64).alias("classes")))
    if spectrum.is_empty():
        raise ParameterError(
            "No record is left: every one misses some key, and missing='drop' leaves those out (those without any "
            "key are always left out). Use missing='category' or 'wildcard', or drop the key with the most missing "
            "values."
        )
    return spectrum.sort("class_size").with_columns(records=pl.col("class_size") * pl.col("classes"))


def _tally_of(sizes: pl.Series) -> pl.DataFrame:
    """Count the classes of every size."""
    found, many = (
        _counted_sizes(sizes.to_numpy())
        if int(sizes.max()) <= 4 * len(sizes) + 2**16  # type: ignore[arg-type]
        else np.unique(sizes.to_numpy(), return_counts=True)
    )
    spectrum = pl.DataFrame({"class_size": found, "classes": many}, schema_overrides={"classes": pl.Int64})
    return spectrum.with_columns(records=pl.col("class_size") * pl.col("classes"))


def _counted_sizes(sizes: Integers) -> tuple[Integers, Integers]:
    counted = np.bincount(sizes)
    found = np.flatnonzero(counted)
    return found, counted[found]


def _finer_held(data: Microdata, keys: tuple[str, ...], missing: Missing) -> bool:
    held = [*data.memory.get("packed classes", {}), *data.memory.get("class tables", {})]
    return any(
        was == missing == "category" and _rolls_up(data, keys, there) and set(keys) <= set(there)
        for there, was in held
    )


def _rolls_up(data: Microdata, keys: Sequence[str], finer: Sequence[str]) -> bool:
    """Whether finer classes add up to these: records do, but a person may be in several finer classes."""
    return counted_unit(data) is None or set(keys) == set(finer)


def _finer_sizes(data: Microdata, keys: tuple[str, ...], missing: Missing) -> pl.Series | None:
    """Count from classes already made on more keys, which is cheaper than counting the records."""
    for (held_keys, held_missing), packed in data.memory.get("packed classes", {}).items():
        same = set(keys) == set(held_keys) or (missing == "category" and _rolls_up(data, keys, held_keys))
        if packed is not None and held_missing == missing and same and set(keys) <= set(held_keys):
            return pl.Series(packed.sizes([f"k{held_keys.index(key)}" for key in keys]))
    for (held_keys, held_missing), table in data.memory.get("class tables", {}).items():
        rolls_up = set(keys) <= set(held_keys) and _rolls_up(data, keys, held_keys)
        if held_missing == missing == "category" and rolls_up:
            chosen = table.select(*(f"k{held_keys.index(key)}" for key in keys), "records")
            chosen = chosen.filter(pl.any_horizontal(pl.col(chosen.columns[:-1]).is_not_null()))
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


def distinct_values(data: Microdata, column: str) -> pl.Series:
    """Collect the distinct values of a column, in order; missing is none of them."""
    table = collect(scan(data, {"v": column}).unique())
    values = in_declared_order(table["v"], data.schema[column])
    # The name comes last: to Polars it may be a pattern.
    return values.alias("v").drop_nulls().unique().sort().alias(column)


MOST_CLASSES = 20_000_000
"""Combinations of key values that class-wise work holds in this process, as a table with their counts."""
_ROWS_AT_A_TIME = 250_000


def combinations(data: Microdata, columns: Sequence[str]) -> pl.DataFrame:
    """Count the records of every combination of values that occurs: the columns, and ``records``, in order.

    All records are counted, whomever they belong to; missing is a value like any other.
    """
    table, records = counted_combinations(data, columns)
    return table.with_columns(pl.Series("records", records))


def counted_combinations(data: Microdata, columns: Sequence[str]) -> tuple[pl.DataFrame, Integers]:
    """Give the combinations of values that occur, in order, and how many records have each.

    This is all that class-wise work brings home; many of them are kept in a file that is mapped into memory. More than
    `MOST_CLASSES` are refused, after no more than that many were read.
    """
    names = key_names(columns)
    counted = scan(data, names).group_by(*names).agg(nw.len().cast(nw.Int64).alias("records"))
    asked = counted.head(MOST_CLASSES + 1) if isinstance(data.wrapped, nw.LazyFrame) else counted

    def batches() -> Iterator[pl.DataFrame]:
        for table in collected_batches(asked, _ROWS_AT_A_TIME):
            yield table.with_columns(
                in_declared_order(table[at], data.schema[name]).alias(at) for at, name in names.items()
            )

    ordered = in_order(
        batches(), list(names), MOST_CLASSES if isinstance(data.wrapped, nw.LazyFrame) else sys.maxsize
    )
    if ordered is None:
        raise ParameterError(
            f"{', '.join(map(repr, columns))} have more than {MOST_CLASSES:,} different combinations, and work by "
            "classes holds all of them. Coarsen the columns first (Band, Round, Recode, Generalize), or name fewer."
        )
    records = ordered["records"].to_numpy()
    return ordered.select(pl.col(at).alias(name) for at, name in names.items()), records


def crowded(data: Microdata, columns: Sequence[str], more_than: int) -> int:
    """Count the records of combinations of known values that more than so many records share."""
    names = key_names(columns)
    rows = scan(data, names)
    for name in names:
        rows = rows.filter(~nw.col(name).is_null())
    sizes = rows.group_by(*names).agg(nw.len().cast(nw.Int64).alias("records"))
    many = sizes.filter(nw.col("records") > more_than).select(nw.col("records").sum())
    return int(collect(many).item() or 0)


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
    unit = counted_unit(population) if recoding else None
    if unit is not None:
        # Recoding may join classes of one person, who still counts once.
        theirs = unit_pairs(population, keys, keyed_rows(population, keys, missing, {"u": unit}))
    for name, key in key_names(keys).items():
        theirs = recoded(theirs, name, key, (recoding or {}).get(key))
        ours, theirs = comparable_keys(ours, theirs, name, key, ("file", "population"))
    if unit is not None:
        theirs = theirs.select(*names, "u").unique().with_columns(records=pl.lit(1, dtype=pl.Int64))
    theirs = theirs.group_by(names).agg(population=pl.col("records").sum())
    # In order, because means over classes show in their last digits in which order they were taken.
    both = ours.select(*names, "records").join(theirs, on=names, how="full", nulls_equal=True, coalesce=True)
    return both.with_columns(pl.col("records", "population").fill_null(0)).sort(names, nulls_last=True)
