"""What each class says about a sensitive column: counts of its values beside those of the whole file.

Where a role says whose the records are, persons are counted, each with one value a class: of several the one that most
persons of the class have (what an intruder would guess of all of them), among equals the one that is rarest in the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.engine.classes import Missing, countable, key_names, keyed_rows
from discreet.engine.comparable import positions
from discreet.engine.frames import Lazy, collect, in_memory, remembered
from discreet.engine.packing import PackedClasses, Packing, packed_by_engine, packed_classes
from discreet.engine.resolved_roles import all_suppressed, counted_unit
from discreet.microdata import Microdata

Breaks = tuple[float, ...]


@dataclass(frozen=True)
class ClassCounts:
    """Sparse counts of the values of a sensitive column, class by class.

    Attributes
    ----------
    key_values
        Gives the key values of each class when they are asked for; see ``classes``.
    values
        The distinct values of the file in order, missing last.
    starts
        Where the entries of class j begin; it has one more entry than there are classes.
    codes, counts
        For each entry the position of its value in ``values`` and how many records (persons, where a role names
        them) have it.
    outside
        How many records in no class (because none of their keys is known) have each value: they belong to the file
        with which classes are compared.
    several
        How many persons have more than one value in a class.
    """

    key_values: Callable[[], pl.DataFrame]
    values: pl.Series
    starts: Integers
    codes: Integers
    counts: Integers
    outside: Integers | None = None
    several: int = 0

    @property
    def classes(self) -> pl.DataFrame:
        """The key values of each class, ``k0``…; row j is class j."""
        return self.key_values()

    @property
    def sizes(self) -> Integers:
        """The number of records (or persons) of each class."""
        return np.add.reduceat(self.counts, self.starts[:-1])

    @property
    def owners(self) -> Integers:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def overall(self) -> Floats:
        """The share of each value in the whole file."""
        totals = np.bincount(self.codes, weights=self.counts, minlength=len(self.values))
        totals = totals if self.outside is None else totals + self.outside
        shares: Floats = totals / totals.sum()
        return shares


def attribute_profile(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing = "category", breaks: Breaks = ()
) -> pl.DataFrame:
    """Describe the target within every class, one row a class in the order of `class_counts`; kept for reuse.

    Columns: ``class_size``; ``distinct`` values; ``entropy`` in nats; ``top_share``, the share of the most
    frequent value; ``tv`` and ``kl``, the distances of the class from the whole file; ``max_lift`` and
    ``min_lift``, the largest and smallest ratio of a share in the class to its share in the file, over the
    values that occur in the class.
    """
    at = (tuple(keys), target, missing, breaks)
    counts = class_counts(data, keys, target, missing, breaks)
    return remembered(data, "profiles", at, lambda: _profile(counts))


def _profile(counts: ClassCounts) -> pl.DataFrame:
    begin = counts.starts[:-1]
    share = counts.counts / counts.sizes[counts.owners]
    base = counts.overall[counts.codes]
    lift = share / base
    return pl.DataFrame(
        {
            "class_size": counts.sizes,
            "distinct": np.diff(counts.starts),
            # Adding zero turns the minus zero of a class with one value into zero.
            "entropy": -np.add.reduceat(share * np.log(share), begin) + 0.0,
            "top_share": np.maximum.reduceat(share, begin),
            "tv": np.add.reduceat(np.maximum(share - base, 0.0), begin),
            "kl": np.maximum(np.add.reduceat(share * np.log(lift), begin), 0.0),
            "max_lift": np.maximum.reduceat(lift, begin),
            "min_lift": np.minimum.reduceat(lift, begin),
        }
    )


def class_counts(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing = "category", breaks: Breaks = ()
) -> ClassCounts:
    """Collect the sparse counts of the target by class; kept for reuse."""
    _needs_classes(missing)
    at = (tuple(keys), target, missing, breaks)

    def count() -> ClassCounts:
        found = _sparse(data, keys, target, missing, breaks)
        silent = missing != "drop" and all_suppressed(data, keys) > 0
        return _without_silent(found) if silent else found

    return remembered(data, "class counts", at, count)


def _without_silent(counts: ClassCounts) -> ClassCounts:
    """Take out the class of the records without a single known key; what they have stays part of the file."""
    unknown = counts.classes.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    gone = unknown[counts.owners]
    outside = np.bincount(counts.codes[gone], weights=counts.counts[gone], minlength=len(counts.values))
    lengths = np.diff(counts.starts)[~unknown]
    kept = pl.Series(~unknown)
    return replace(
        counts,
        key_values=lambda: counts.classes.filter(kept),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        codes=counts.codes[~gone],
        counts=counts.counts[~gone],
        outside=outside.astype(np.int64),
    )


def _sparse(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing, breaks: Breaks
) -> ClassCounts:
    names = list(key_names(keys))
    queried = _target_rows(data, keys, target, missing, breaks)
    several = 0
    if counted_unit(data) is None:
        in_place = None if queried.implementation.is_polars() else packed_by_engine(queried, [*names, "s"])
        if in_place is not None and len(in_place.numbers):
            if not breaks:
                # The classes themselves can be read off it, without another query.
                remembered(data, "packed pairs", (tuple(keys), missing), lambda: in_place)
            return _unpacked(in_place, names)
        rows, counts = countable(queried, [*names, "s"])
    else:
        table, several = _one_value_each(queried, names)
        rows, counts = table.lazy(), "counted"
    rows = rows.with_columns(s=_in_declared_order(rows, data.schema[target]))
    packed = packed_classes(rows, [*names, "s"], counts=counts)
    if packed is not None and len(packed.numbers):
        if counted_unit(data) is None and not breaks and not queried.implementation.is_polars():
            # A query of the classes alone would cost DuckDB or Spark another pass.
            remembered(data, "packed pairs", (tuple(keys), missing), lambda: packed)
        return replace(_unpacked(packed, names), several=several)
    many = pl.len() if counts is None else pl.col(counts).sum()
    pairs = rows.group_by(*names, "s").agg(count=many.cast(pl.Int64))
    grouped = in_memory(nw.from_native(pairs.group_by(names).agg("s", "count")))
    weights = grouped["count"].explode().to_numpy().astype(np.int64)
    flat = grouped["s"].explode()
    values = flat.unique().sort(nulls_last=True)
    owners = np.repeat(np.arange(grouped.height, dtype=np.int64), grouped["s"].list.len().to_numpy())
    owners, codes, tallied = _tallied(owners, positions(flat, values), len(values), weights)
    return ClassCounts(
        key_values=partial(grouped.select, names),
        values=values,
        starts=np.searchsorted(owners, np.arange(grouped.height + 1)).astype(np.int64),
        codes=codes,
        counts=tallied,
        several=several,
    )


def _one_value_each(rows: Lazy, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Count the persons ``u`` by class and value ``s``, each with one value; also who had several in a class.

    Only the persons with several values are brought into memory; the others are counted where the data is.
    """
    cell = [*names, "s"]
    held = rows.select(*cell, "u").unique()
    held = held.with_columns(nw.len().over(*names, "u").cast(nw.Int64).alias("many"))
    how_many = nw.len().cast(nw.Int64).alias("counted")
    single = collect(held.filter(nw.col("many") == 1).group_by(*cell).agg(how_many))
    mixed = collect(held.filter(nw.col("many") > 1).select(*cell, "u"))
    if mixed.is_empty():
        return single, 0
    whole = pl.concat([single, mixed.group_by(cell).agg(counted=pl.len().cast(pl.Int64))])
    in_class = whole.group_by(cell).agg(here=pl.col("counted").sum())
    in_file = whole.group_by("s").agg(everywhere=pl.col("counted").sum())
    choice = mixed.join(in_class, on=cell, how="left", nulls_equal=True)
    choice = choice.join(in_file, on="s", how="left", nulls_equal=True)
    order = pl.col("s").cast(pl.String) if isinstance(choice.schema["s"], pl.Categorical) else pl.col("s")
    chosen = (
        choice.sort(pl.col("here").neg(), "everywhere", order, nulls_last=True, maintain_order=True)
        .group_by([*names, "u"], maintain_order=True)
        .first()
    )
    counted = chosen.group_by(cell).agg(counted=pl.len().cast(pl.Int64))
    together = pl.concat([single, counted.select(single.columns)]).group_by(cell).agg(pl.col("counted").sum())
    return together, chosen.height


def _unpacked(packed: PackedClasses, names: Sequence[str]) -> ClassCounts:
    """Read class counts off the packed cells, which are sorted by class and then by value."""
    coding = packed.packing.codings["s"]
    classes = packed.numbers // coding.size
    codes = packed.numbers - classes * coding.size
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    # Codes of numbers span their range: a few incomes must not fill an array as long as the largest of them.
    if coding.size <= len(codes):
        there = np.zeros(coding.size, dtype=np.bool_)
        there[codes] = True
        present = np.flatnonzero(there)
        place = (np.cumsum(there) - 1)[codes]
    else:
        present, place = np.unique(codes, return_inverse=True)
    keys = Packing({name: packed.packing.codings[name] for name in names})
    return ClassCounts(
        key_values=partial(keys.decode, classes[starts]),
        values=coding.decode(present),
        starts=np.append(starts, len(codes)).astype(np.int64),
        codes=place.astype(np.int64),
        counts=packed.records,
    )


def _in_declared_order(rows: pl.LazyFrame, dtype: nw.dtypes.DType) -> pl.Expr:
    """Give ordered categories their order back, which pandas and DuckDB lose on the way through Arrow."""
    held = rows.collect_schema()["s"]
    if isinstance(dtype, nw.Enum) and held in (pl.Categorical, pl.String):
        return pl.col("s").cast(pl.String).cast(pl.Enum(dtype.categories))
    return pl.col("s")


def _tallied(
    owners: Integers, codes: Integers, width: int, weights: Integers
) -> tuple[Integers, Integers, Integers]:
    """Bring the entries of each class into the order of the values, each value once, with its count."""
    cell = owners * width + codes
    order = np.argsort(cell, kind="stable")
    cell, weights = cell[order], weights[order]
    fresh = np.flatnonzero(np.diff(cell, prepend=-1))
    counts = np.add.reduceat(weights, fresh)
    cell = cell[fresh]
    return cell // width, cell % width, counts.astype(np.int64)


def value_shares(data: Microdata, target: str) -> pl.DataFrame:
    """Count the values of one column: columns ``s``, ``count``, ``share``; missing is a value."""
    counted = collect(
        keyed_rows(data, (), "category", {"s": target})
        .group_by("s")
        .agg(nw.len().cast(nw.Int64).alias("count"))
    )
    return counted.with_columns(share=pl.col("count") / pl.col("count").sum()).sort("s", nulls_last=True)


def equal_breaks(data: Microdata, target: str, groups: int) -> Breaks:
    """Place the inner breaks of so many groups of equal width over the range of a numeric column."""
    lowest, highest = collect(
        keyed_rows(data, (), "category", {"s": target}).select(
            nw.col("s").min().cast(nw.Float64).alias("low"), nw.col("s").max().cast(nw.Float64).alias("high")
        )
    ).row(0)
    return tuple(float(x) for x in np.linspace(lowest, highest, groups + 1)[1:-1])


def _target_rows(data: Microdata, keys: Sequence[str], target: str, missing: Missing, breaks: Breaks) -> Lazy:
    unit = counted_unit(data)
    extra = {"s": target} | ({"u": unit} if unit else {})
    rows = keyed_rows(data, keys, missing, extra, silent=True)
    if breaks:
        above = nw.sum_horizontal(*((nw.col("s") >= nw.lit(x)).cast(nw.Int64) for x in breaks))
        rows = rows.with_columns(nw.when(~nw.col("s").is_null()).then(above).alias("s"))
    return rows


def _needs_classes(missing: Missing) -> None:
    if missing == "wildcard":
        raise ParameterError(
            "missing='wildcard' gives every record a neighborhood of its own, and this measure needs classes that "
            "do not overlap. Use missing='category' or 'drop'."
        )
