"""What each class says about a sensitive column: counts of its values beside those of the whole file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.engine.classes import Missing, countable, key_names, keyed_rows
from discreet.engine.frames import Lazy, collect, in_memory, remembered
from discreet.engine.packing import PackedClasses, Packing, packed_classes
from discreet.errors import ParameterError
from discreet.microdata import Microdata

Breaks = tuple[float, ...]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
        For each entry the position of its value in ``values`` and how many records have it.
    """

    key_values: Callable[[], pl.DataFrame]
    values: pl.Series
    starts: Ints
    codes: Ints
    counts: Ints

    @property
    def classes(self) -> pl.DataFrame:
        """The key values of each class, ``k0``…; row j is class j."""
        return self.key_values()

    @property
    def sizes(self) -> Ints:
        """The number of records of each class."""
        return np.add.reduceat(self.counts, self.starts[:-1])

    @property
    def owners(self) -> Ints:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def overall(self) -> Floats:
        """The share of each value in the whole file."""
        totals = np.bincount(self.codes, weights=self.counts, minlength=len(self.values))
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
    return remembered(data, "class counts", at, lambda: _sparse(data, keys, target, missing, breaks))


def _sparse(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing, breaks: Breaks
) -> ClassCounts:
    names = list(key_names(keys))
    rows, counts = countable(_target_rows(data, keys, target, missing, breaks), [*names, "s"])
    rows = rows.with_columns(s=_in_declared_order(rows, data.schema[target]))
    packed = packed_classes(rows, [*names, "s"], counts=counts)
    if packed is not None and len(packed.numbers):
        return _unpacked(packed, names)
    many = pl.len() if counts is None else pl.col(counts).sum()
    pairs = rows.group_by(*names, "s").agg(count=many.cast(pl.Int64))
    grouped = in_memory(nw.from_native(pairs.group_by(names).agg("s", "count")))
    weights = grouped["count"].explode().to_numpy().astype(np.int64)
    flat = grouped["s"].explode()
    values = flat.unique().sort(nulls_last=True)
    owners = np.repeat(np.arange(grouped.height, dtype=np.int64), grouped["s"].list.len().to_numpy())
    owners, codes, tallied = _tallied(owners, _codes(flat, values), len(values), weights)
    return ClassCounts(
        key_values=partial(grouped.select, names),
        values=values,
        starts=np.searchsorted(owners, np.arange(grouped.height + 1)).astype(np.int64),
        codes=codes,
        counts=tallied,
    )


def _unpacked(packed: PackedClasses, names: Sequence[str]) -> ClassCounts:
    """Read class counts off the packed cells, which are sorted by class and then by value."""
    coding = packed.packing.codings["s"]
    classes, codes = packed.numbers // coding.size, packed.numbers % coding.size
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    present = np.flatnonzero(np.bincount(codes, minlength=1))
    place = np.zeros(present[-1] + 1, dtype=np.int64)
    place[present] = np.arange(len(present))
    keys = Packing({name: packed.packing.codings[name] for name in names})
    return ClassCounts(
        key_values=partial(keys.decode, classes[starts]),
        values=coding.decode(present),
        starts=np.append(starts, len(codes)).astype(np.int64),
        codes=place[codes],
        counts=packed.records,
    )


def _in_declared_order(rows: pl.LazyFrame, dtype: nw.dtypes.DType) -> pl.Expr:
    """Give ordered categories their order back, which pandas and DuckDB lose on the way through Arrow."""
    held = rows.collect_schema()["s"]
    if isinstance(dtype, nw.Enum) and held in (pl.Categorical, pl.String):
        return pl.col("s").cast(pl.String).cast(pl.Enum(dtype.categories))
    return pl.col("s")


def _codes(flat: pl.Series, values: pl.Series) -> Ints:
    """Number the values by their place in the order, missing last."""
    places = pl.DataFrame({"s": values}).with_row_index("code")
    joined = pl.DataFrame({"s": flat}).join(
        places, on="s", how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["code"].to_numpy().astype(np.int64)


def _tallied(owners: Ints, codes: Ints, width: int, weights: Ints) -> tuple[Ints, Ints, Ints]:
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


def equal_breaks(data: Microdata, target: str, bins: int) -> Breaks:
    """Place the inner breaks of so many bins of equal width over the range of a numeric column."""
    lowest, highest = collect(
        keyed_rows(data, (), "category", {"s": target}).select(
            nw.col("s").min().cast(nw.Float64).alias("low"), nw.col("s").max().cast(nw.Float64).alias("high")
        )
    ).row(0)
    return tuple(float(x) for x in np.linspace(lowest, highest, bins + 1)[1:-1])


def _target_rows(data: Microdata, keys: Sequence[str], target: str, missing: Missing, breaks: Breaks) -> Lazy:
    rows = keyed_rows(data, keys, missing, {"s": target})
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
