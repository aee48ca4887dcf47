"""A column as the floats that trees are grown over, and drawn floats as a column again.

Nothing that is kept here is anybody's own: of texts only those remain that may be shown, and beginnings that whole
ranges of texts share.

Records are drawn from buckets, cluster by cluster, and joined to one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError
from discreet.core.randomness import generator
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.synth.column_forms import as_numbers, decimals_of, from_numbers
from discreet.synth.saved_models import stored
from discreet.synth.syndiffix.column_clusters import stitched

_LARGEST = 2.0**53
_UNIX = -5_364_662_400  # 1800-01-01 in seconds of Unix time
_DAY = 86_400


@stored("range-coding")
@dataclass(frozen=True, eq=False)
class Coding:
    """How one column is coded.

    Attributes
    ----------
    name, dtype
        Of the column.
    kind
        ``"number"``, ``"truth"``, ``"time"`` or ``"text"``.
    null
        The number that stands for a missing value.
    decimals
        Decimal places of numbers; None where there is no end to them.
    texts
        ``{code: text}`` of texts that may be shown.
    beginnings
        ``{(low, high): text}``: what all texts of a range begin with.
    nearest
        Values that drawn ones are brought to, for columns whose values may always be shown.
    """

    name: str
    dtype: pl.DataType
    kind: str
    null: float
    decimals: int | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    beginnings: Mapping[tuple[float, float], str] = field(default_factory=dict)
    nearest: Floats | None = None

    def decoded(self, drawn: Floats, low: Floats, high: Floats) -> pl.Series:
        """Turn drawn numbers, each from the range of its bucket, into the column."""
        missing = low >= self.null if self.null > 0 else high <= self.null
        if self.nearest is not None and len(self.nearest):
            drawn = _nearest(drawn, self.nearest)
        if self.kind == "text":
            return self._as_text(drawn, low, high, missing)
        if self.kind == "truth":
            return pl.Series(self.name, drawn >= 0.5).set(pl.Series(missing), None)
        if self.kind == "time":
            return self._as_time(drawn, missing)
        values = np.where(missing, 0.0, drawn)
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0
        return from_numbers(values, missing, self.dtype, self.name)

    def _as_time(self, drawn: Floats, missing: Any) -> pl.Series:
        seconds: Floats = np.round(np.where(missing, 0.0, drawn)).astype(np.float64)
        if self.dtype == pl.Date:
            days = np.floor((seconds + _UNIX) / _DAY).astype(np.float64)
            return from_numbers(days, missing, self.dtype, self.name)
        since = _UNIX if isinstance(self.dtype, pl.Datetime) else 0
        return from_numbers((seconds + since) * _ticks(self.dtype), missing, self.dtype, self.name)

    def _as_text(self, drawn: Floats, low: Floats, high: Floats, missing: Any) -> pl.Series:
        codes = np.floor(drawn).astype(np.int64)
        known = pl.DataFrame(
            {"code": list(self.texts), "text": list(self.texts.values())},
            schema={"code": pl.Int64, "text": pl.String},
        )
        begun = pl.DataFrame(
            {
                "low": [low for low, _ in self.beginnings],
                "high": [high for _, high in self.beginnings],
                "begin": list(self.beginnings.values()),
            },
            schema={"low": pl.Float64, "high": pl.Float64, "begin": pl.String},
        )
        found = (
            pl.DataFrame({"code": codes, "low": low, "high": high})
            .join(known, on="code", how="left", maintain_order="left")
            .join(begun, on=["low", "high"], how="left", maintain_order="left")
        )
        text = found.select(
            pl.coalesce("text", pl.concat_str(pl.col("begin").fill_null(""), pl.lit("*"), pl.col("code")))
        ).to_series()
        text = text.set(pl.Series(missing), None)
        if isinstance(self.dtype, pl.Enum):
            # A type of fixed levels has no room for a text that is none: what may not be shown is missing.
            text = text.set(~text.is_in(self.dtype.categories.to_list()), None)
        return text.cast(self.dtype).rename(self.name)


def coded(series: pl.Series) -> tuple[Coding, Floats, pl.Series | None]:
    """Code a column: how, its numbers, and for texts the sorted list of what occurs."""
    name, dtype = series.name, series.dtype
    if dtype == pl.Boolean:
        return _finished(Coding(name, dtype, "truth", 0.0, 0), series.cast(pl.Float64), None)
    if dtype.is_temporal():
        return _finished(Coding(name, dtype, "time", 0.0, 0), _seconds(series), None)
    if dtype.is_numeric():
        numbers = as_numbers(series)
        bad = int(numbers.is_infinite().sum()) + int((numbers.abs() > _LARGEST).sum()) * dtype.is_integer()
        if bad:
            raise ColumnError(
                f"Column '{name}' has {bad:,} values that are infinite or too large to be told apart (above 2^53). "
                "Make them missing, or leave the column out."
            )
        there = numbers.drop_nulls().to_numpy()
        places = 0 if dtype.is_integer() else decimals_of(there, single=dtype == pl.Float32)
        return _finished(Coding(name, dtype, "number", 0.0, places), numbers, None)
    if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        raise ColumnError(
            f"Column '{name}' is {type_name(dtype)}, which has no ranges. Make it a text or a number, or leave it out."
        )
    plain = series.rename("text").cast(pl.String)
    levels = plain.drop_nulls().unique().sort()
    places_of = pl.DataFrame({"text": levels, "code": np.arange(len(levels), dtype=np.float64)})
    codes = plain.to_frame().join(places_of, on="text", how="left", maintain_order="left")["code"]
    return _finished(Coding(name, dtype, "text", 0.0), codes, levels)


def _finished(coding: Coding, numbers: pl.Series, levels: pl.Series | None) -> tuple[Coding, Floats, Any]:
    there = numbers.drop_nulls()
    most = float(there.max()) if len(there) else 0.0  # type: ignore[arg-type]
    least = float(there.min()) if len(there) else 0.0  # type: ignore[arg-type]
    null = null_code(least, most)
    return replace(coding, null=null), numbers.fill_null(null).to_numpy().astype(np.float64), levels


def null_code(low: float, high: float) -> float:
    """Which number stands for a missing value: one outside the range of the others.

    Examples
    --------
    >>> null_code(1.2, 1.3), null_code(-4, -2.5), null_code(0, 0)
    (2.6, -8.0, 1.0)
    """
    return 2.0 * high if high > 0 else 2.0 * low if low < 0 else 1.0


def with_texts(
    coding: Coding, levels: pl.Series, shown: Sequence[int], ranges: set[tuple[float, float]]
) -> Coding:
    """Keep of the texts those that may be shown, and what the texts of each range that is drawn from begin with."""
    texts = {int(code): str(levels[int(code)]) for code in shown if 0 <= code < len(levels)}
    begun = {}
    for low, high in ranges:
        ends = levels[max(int(low), 0) : max(min(int(np.ceil(high)), len(levels)), 0)]
        if len(ends):
            begun[low, high] = _same_beginning(str(ends[0]), str(ends[-1]))
    return replace(coding, texts=texts, beginnings=begun)


def _same_beginning(one: str, other: str) -> str:
    same = [here == there for here, there in zip(one, other, strict=False)]
    return one[: same.index(False) if False in same else len(same)]


def _seconds(series: pl.Series) -> pl.Series:
    if series.dtype == pl.Date:
        return series.to_physical().cast(pl.Float64) * _DAY - _UNIX
    since = _UNIX if isinstance(series.dtype, pl.Datetime) else 0
    return series.to_physical().cast(pl.Float64) / _ticks(series.dtype) - since


def _ticks(dtype: pl.DataType) -> int:
    """How many units of a time make a second."""
    if isinstance(dtype, pl.Datetime | pl.Duration):
        return {"ms": 10**3, "us": 10**6, "ns": 10**9}[dtype.time_unit]
    return 10**9


def _nearest(drawn: Floats, values: Floats) -> Floats:
    at = np.clip(np.searchsorted(values, drawn), 1, max(len(values) - 1, 1))
    if len(values) == 1:
        return np.full_like(drawn, values[0])
    before, after = values[at - 1], values[at]
    return np.where(drawn - before <= after - drawn, before, after)


_MOST_RECORDS = 2**31


@stored("cluster-buckets")
@dataclass(frozen=True, eq=False)
class ClusterBuckets:
    """The buckets of one cluster.

    Attributes
    ----------
    columns
        Places of the columns, in the order of the dimensions.
    stitch
        Those of them that are there already when the cluster is joined, the least spread out first.
    low, high, count
        Ranges and number of records of each bucket.
    patch
        Whether the columns that are there already stay as they are.
    """

    columns: tuple[int, ...]
    stitch: tuple[int, ...]
    low: Floats
    high: Floats
    count: Integers
    patch: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.count), len(self.columns))
        whole = self.count.dtype == np.int64 and self.count.ndim == 1 and bool((self.count >= 0).all())
        ends = self.low.dtype == self.high.dtype == np.float64 and self.low.shape == self.high.shape == shape
        if not (whole and ends and np.isfinite(self.low).all() and bool((self.low <= self.high).all())):
            raise ValueError("ranges or counts that no bucket can have")
        if int(self.count.sum()) > _MOST_RECORDS or not set(self.stitch) <= set(self.columns):
            raise ValueError("more records, or other columns, than a table can have")

    def drawn(self, codings: Sequence[Coding], rng: np.random.Generator) -> Array:
        """Draw the records: for each and every column its value and the ends of its range."""
        low, high = np.repeat(self.low, self.count, axis=0), np.repeat(self.high, self.count, axis=0)
        made = np.empty((*low.shape, 3))
        made[:, :, 1], made[:, :, 2] = low, high
        for place, column in enumerate(self.columns):
            coding = codings[column]
            step = 1.0 if coding.kind in ("text", "truth") else None
            if coding.kind in ("number", "time") and coding.decimals is not None:
                step = 10.0**-coding.decimals
            made[:, place, 0] = _within(low[:, place], high[:, place], step, rng.random(len(low)))
        return made


def drawn_table(
    clusters: Sequence[ClusterBuckets],
    codings: Sequence[Coding],
    ranges: Sequence[tuple[float, float]],
    stream: Stream,
) -> tuple[list[int], Array]:
    """Draw every cluster and join it to those before it; returns which columns the table has, and the table."""
    here: list[int] = list(clusters[0].columns)
    table = clusters[0].drawn(codings, stream("cluster 0"))
    for place, cluster in enumerate(clusters[1:], start=1):
        right = cluster.drawn(codings, stream(f"cluster {place}"))
        own = [column for column in cluster.columns if column not in here]
        shared = [(here.index(column), cluster.columns.index(column)) for column in cluster.stitch]
        table = stitched(
            table,
            right,
            shared,
            [ranges[column] for column in cluster.stitch],
            [cluster.columns.index(column) for column in own],
            np.uint64(stream(f"stitch {place}").integers(2**63)),
            patch=cluster.patch,
        )
        here += own
    return here, table


def decoded_table(here: Sequence[int], table: Array, codings: Sequence[Coding]) -> pl.DataFrame:
    """Turn a table of numbers into columns, in the order of the file."""
    order = sorted(range(len(here)), key=lambda place: here[place])
    return pl.DataFrame(
        [
            codings[here[place]].decoded(table[:, place, 0], table[:, place, 1], table[:, place, 2])
            for place in order
        ]
    )


def sized(table: Array, n: int, rng: np.random.Generator) -> Array:
    """Shuffle a table, and cut or repeat it so that it has ``n`` records."""
    if not len(table):
        return table
    order = generator(rng).permutation(len(table))
    if n > len(table):
        order = np.concatenate([order, rng.integers(len(table), size=n - len(table))])
    return table[order[:n]]


def _within(low: Floats, high: Floats, step: float | None, share: Floats) -> Floats:
    """Draw evenly between two ends, the lower included; on the grid of the column where it has one."""
    even = low + (high - low) * share
    if step is None:
        return even
    first, last = np.ceil(np.round(low / step, 6)), np.ceil(np.round(high / step, 6)) - 1.0
    on_grid = (first + np.floor((last - first + 1.0) * share)) * step
    return np.where(high == low, low, np.where(last >= first, on_grid, np.round(even / step) * step))
