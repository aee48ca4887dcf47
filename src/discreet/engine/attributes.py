"""What each class says about a sensitive column: counts of its values beside those of the whole file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.engine.classes import Missing, key_names, keyed_rows, size_spectrum
from discreet.engine.frames import Lazy, collect, remembered
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
    classes
        The key values of each class, ``k0``…; row j is class j.
    values
        The distinct values of the file in order, missing last.
    starts
        Where the entries of class j begin; it has one more entry than there are classes.
    codes, counts
        For each entry the position of its value in ``values`` and how many records have it.
    """

    classes: pl.DataFrame
    values: pl.Series
    starts: Ints
    codes: Ints
    counts: Ints

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
    """Describe the target within every class, one row a class, without the key values; kept for reuse.

    Columns: ``class_size``; ``distinct`` values; ``entropy`` in nats; ``top_share``, the share of the most
    frequent value; ``tv`` and ``kl``, the distances of the class from the whole file; ``max_lift`` and
    ``min_lift``, the largest and smallest ratio of a share in the class to its share in the file, over the
    values that occur in the class.
    """
    at = (tuple(keys), target, missing, breaks)
    query = profile_query(data, keys, target, missing, breaks)
    return remembered(data, "profiles", at, lambda: collect(query.select(*PROFILE)))


PROFILE = ("class_size", "distinct", "entropy", "top_share", "tv", "kl", "max_lift", "min_lift")


def profile_query(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing = "category", breaks: Breaks = ()
) -> Lazy:
    """Build the query behind `attribute_profile`, with the key columns ``k0``… beside it."""
    _needs_classes(missing)
    names = list(key_names(keys))
    share, base = nw.col("share"), nw.col("base")
    lift = share / base
    return (
        _cross(data, keys, target, missing, breaks)
        .with_columns(
            nw.col("count").sum().over(*names).cast(nw.Float64).alias("within"),
            nw.col("count").sum().over("s").cast(nw.Float64).alias("everywhere"),
            nw.col("count").cast(nw.Float64).alias("share"),
        )
        .with_columns(
            (nw.col("share") / nw.col("within")).alias("share"),
            (nw.col("everywhere") / nw.lit(float(_records(data, keys, missing)))).alias("base"),
        )
        .with_columns(
            (share * share.log()).alias("information"),
            (share * lift.log()).alias("divergence"),
            nw.when(share > base).then(share - base).otherwise(nw.lit(0.0)).alias("excess"),
            lift.alias("lift"),
        )
        .group_by(*names)
        .agg(
            nw.col("count").sum().cast(nw.Int64).alias("class_size"),
            nw.len().cast(nw.Int64).alias("distinct"),
            nw.col("information").sum().alias("information"),
            nw.col("share").max().alias("top_share"),
            nw.col("excess").sum().alias("tv"),
            nw.col("divergence").sum().alias("kl"),
            nw.col("lift").max().alias("max_lift"),
            nw.col("lift").min().alias("min_lift"),
        )
        .with_columns((nw.lit(0.0) - nw.col("information")).alias("entropy"))
    )


def class_counts(
    data: Microdata, keys: Sequence[str], target: str, missing: Missing = "category", breaks: Breaks = ()
) -> ClassCounts:
    """Collect the sparse counts of the target by class; kept for reuse.

    For what needs the order of the values or all counts of a class at once.
    """
    _needs_classes(missing)
    at = (tuple(keys), target, missing, breaks)
    query = _cross(data, keys, target, missing, breaks)
    return remembered(data, "class counts", at, lambda: _sparse(collect(query), list(key_names(keys))))


def _sparse(cross: pl.DataFrame, names: list[str]) -> ClassCounts:
    values = cross["s"].unique().sort(nulls_last=True)
    codes = pl.DataFrame({"s": values}).with_row_index("code")
    grouped = (
        cross.lazy()
        .join(codes.lazy(), on="s", how="left", nulls_equal=True)
        .group_by(names)
        .agg(pl.col("code").sort(), pl.col("count").sort_by("code"))
        .collect()
    )
    lengths = grouped["code"].list.len().to_numpy()
    return ClassCounts(
        classes=grouped.select(names),
        values=values,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        codes=grouped["code"].explode().to_numpy().astype(np.int64),
        counts=grouped["count"].explode().to_numpy().astype(np.int64),
    )


def value_shares(data: Microdata, target: str) -> pl.DataFrame:
    """Count the values of one column: columns ``s``, ``count``, ``share``; missing is a value."""
    counted = collect(_cross(data, (), target, "category", ()))
    return counted.with_columns(share=pl.col("count") / pl.col("count").sum()).sort("s", nulls_last=True)


def equal_breaks(data: Microdata, target: str, bins: int) -> Breaks:
    """Place the inner breaks of so many bins of equal width over the range of a numeric column."""
    lowest, highest = collect(
        keyed_rows(data, (), "category", {"s": target}).select(
            nw.col("s").min().cast(nw.Float64).alias("low"), nw.col("s").max().cast(nw.Float64).alias("high")
        )
    ).row(0)
    return tuple(float(x) for x in np.linspace(lowest, highest, bins + 1)[1:-1])


def _cross(data: Microdata, keys: Sequence[str], target: str, missing: Missing, breaks: Breaks) -> Lazy:
    rows = keyed_rows(data, keys, missing, {"s": target})
    if breaks:
        above = nw.sum_horizontal(*((nw.col("s") >= nw.lit(x)).cast(nw.Int64) for x in breaks))
        rows = rows.with_columns(nw.when(~nw.col("s").is_null()).then(above).alias("s"))
    return rows.group_by(*key_names(keys), "s").agg(nw.len().cast(nw.Int64).alias("count"))


def _records(data: Microdata, keys: Sequence[str], missing: Missing) -> int:
    return int(size_spectrum(data, keys, missing)["records"].sum())


def _needs_classes(missing: Missing) -> None:
    if missing == "wildcard":
        raise ParameterError(
            "missing='wildcard' gives every record a neighborhood of its own, and this measure needs classes that "
            "do not overlap. Use missing='category' or 'drop'."
        )
