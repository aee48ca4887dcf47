"""Which records of one file equal, or belong to, a record of another, where neither can be held?

Equal records are counted by digests of 64 bits.

A record becomes one number where it is, and equal records become the same one. Files of Spark are counted on its
executors; of others the numbers come home, eight bytes a record, into files of which each is counted by itself, so that
memory does not grow with the data. Records themselves stay where they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers, Words
from discreet.core.randomness import KeyedDraws
from discreet.engine.by_record import check_record_key, made_in_memory, made_lazily
from discreet.engine.comparable import as_text, plain_text
from discreet.engine.frames import (
    Lazy,
    collect,
    collected_batches,
    has_row_order,
    is_lazy,
    passing_query,
    scan,
)
from discreet.engine.packing import lost_in
from discreet.engine.precision import Grid, on_grid
from discreet.engine.record_batches import ByRecord
from discreet.engine.resolved_roles import overview
from discreet.microdata import Microdata

_DIGEST = "discreet digest"
_PURPOSE = "Counting equal records"
_KEY = KeyedDraws.of(0, "record digest")
_ROWS = 250_000
_AT_ONCE = 2**22
"""Digests that are counted at once, about."""
_MOST_PARTS = 128


@dataclass(frozen=True)
class Matched:
    """What a file has in common with the original.

    Attributes
    ----------
    records
        How many records it has.
    equal
        How many of them equal an original record.
    onto_single
        How many equal an original record that is like no other.
    singles
        How many of these originals they equal.
    """

    records: int
    equal: int
    onto_single: int
    singles: int


@dataclass(frozen=True)
class EqualRecords:
    """The records of an original that are alone or two of a kind, and what other files have in common with it."""

    records: int
    singles: int
    pairs: int
    others: tuple[Matched, ...]


@dataclass(frozen=True)
class RecordDigests:
    """Gives every record of a batch its digest.

    Equal values count as equal whatever types two files gave them: numbers by their double, so that 3 is 3.0 and -0.0
    is 0.0; times by their microsecond, a date by its midnight; categories and truth values by their text. Missing (and
    NaN) equals missing and nothing else. Two records that differ have the same digest with a chance of 2**-64: among
    ten million originals and ten million released records there is an accidental match once in some 180,000 times.

    Parameters
    ----------
    kinds
        The compared columns, and how their values are held against each other.
    grids
        By column: what numbers are rounded to first.
    """

    kinds: Mapping[str, Literal["number", "time", "text"]]
    grids: Mapping[str, Grid]

    @classmethod
    def of(
        cls, original: Microdata, columns: Sequence[str], grids: Mapping[str, Grid] | None = None
    ) -> RecordDigests:
        """Compare columns by what they are in the original."""
        kinds: dict[str, Literal["number", "time", "text"]] = {}
        for name in columns:
            held = original.schema[name]
            kinds[name] = "number" if held.is_numeric() else "time" if held.is_temporal() else "text"
        return cls(kinds, dict(grids or {}))

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        """Give the digests of a batch."""
        digests = np.zeros(rows.height, dtype=np.uint64)
        for place, (name, kind) in enumerate(self.kinds.items()):
            values = rows[name]
            if kind == "number" and values.dtype.is_numeric():
                # Whoever had NaN has nothing; adding zero takes the sign from -0.0.
                values = on_grid(values.cast(pl.Float64).fill_nan(None), self.grids.get(name))
                own = (values.fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
            elif kind == "time" and values.dtype.is_temporal():
                own = _microseconds(values).fill_null(0).to_numpy().view(np.uint64)
            else:
                own = _KEY.of_texts(as_text(plain_text(values)).fill_null(""))
            known = _KEY.words(own, 2 * place)
            if values.null_count():
                gap = _KEY.words(np.zeros(1, dtype=np.uint64), 2 * place + 1)
                known = np.where(values.is_null().to_numpy(), gap, known)
            digests ^= known
        # Spark knows no unsigned numbers.
        return {_DIGEST: pl.Series(_DIGEST, digests.view(np.int64))}

    @property
    def work(self) -> ByRecord:
        """The digests as work on records."""
        return ByRecord(tuple(self.kinds), {_DIGEST: pl.Int64()}, self)


def equal_records(original: Microdata, others: Sequence[Microdata], digests: RecordDigests) -> EqualRecords:
    """Count the records of other files that equal one of the original, and the people who are found so.

    Parameters
    ----------
    original, others
        Files of any kind that have the columns; queries are not collected.
    digests
        When records are equal.

    Examples
    --------
    >>> real = Microdata(pl.LazyFrame({"age": [30, 30, 41, 52], "sex": ["f", "f", "m", None]}))
    >>> made = Microdata(pl.LazyFrame({"age": [30.0, 52.0, 52.0, 7.0], "sex": ["f", None, None, ""]}))
    >>> equal_records(real, [made], RecordDigests.of(real, ["age", "sex"]))
    EqualRecords(records=4, singles=2, pairs=1, others=(Matched(records=4, equal=3, onto_single=2, singles=1),))
    """
    files = [original, *others]
    if all(data.wrapped.implementation.is_pyspark() for data in files):
        return _counted_there([_as_query(data, digests) for data in files])
    return _counted_here(
        [_batches(data, digests) for data in files], sum(overview(d, ()).rows for d in files)
    )


def _microseconds(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Time:
        return values.to_physical() // 1000
    if isinstance(values.dtype, pl.Duration):
        return values.cast(pl.Duration("us")).to_physical()
    plain = values.dt.replace_time_zone(None) if isinstance(values.dtype, pl.Datetime) else values
    return plain.cast(pl.Datetime("us")).to_physical()


def _as_query(data: Microdata, digests: RecordDigests) -> Lazy:
    made = made_lazily(data, digests.work, drop=data.columns, purpose=_PURPOSE)
    query = passing_query(made) if data.wrapped.implementation.is_duckdb() else None
    lazy: Lazy = nw.from_native(made if query is None else query)
    return lazy


def _batches(data: Microdata, digests: RecordDigests) -> Iterator[Integers]:
    """Hand the digests of a file over, some at a time."""
    if not is_lazy(data):
        yield made_in_memory(data, digests.work)[1][_DIGEST].to_numpy()
        return
    for part in collected_batches(_as_query(data, digests), _ROWS):
        yield part[_DIGEST].to_numpy()


def _counted_there(sides: Sequence[Lazy]) -> EqualRecords:
    """Count where the data is: one row of counts comes home."""
    marks = [f"n{place}" for place in range(len(sides))]
    marked = [
        side.select(
            nw.col(_DIGEST).alias("d"),
            *(nw.lit(int(mark == place), nw.Int64).alias(name) for mark, name in enumerate(marks)),
        )
        for place, side in enumerate(sides)
    ]
    sizes = nw.concat(marked).group_by("d").agg(*(nw.col(name).sum() for name in marks))
    ours, nothing = nw.col("n0"), nw.lit(0, nw.Int64)
    asked = {"records": ours, "singles": _where(ours == 1, ours), "pairs": _where(ours == 2, ours)}
    for name in marks[1:]:
        held = nw.col(name)
        asked |= {
            f"{name} records": held,
            f"{name} equal": _where(ours > 0, held),
            f"{name} onto": _where(ours == 1, held),
            f"{name} singles": _where((ours == 1) & (held > nothing), ours),
        }
    counted = sizes.select(*(each.cast(nw.Int64).alias(name) for name, each in asked.items()))
    row = collect(counted.select(*(nw.col(name).sum() for name in asked))).row(0, named=True)
    found = {name: int(count or 0) for name, count in row.items()}
    others = (
        Matched(*(found[f"{name} {what}"] for what in ("records", "equal", "onto", "singles")))
        for name in marks[1:]
    )
    return EqualRecords(found["records"], found["singles"], found["pairs"] // 2, tuple(others))


def _where(condition: nw.Expr, count: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(count).otherwise(nw.lit(0, nw.Int64))


def _counted_here(sides: Sequence[Iterable[Integers]], rows: int) -> EqualRecords:
    """Count digests that come home: equal ones go into the same of several files, which are counted in turn."""
    parts = min(max(rows // _AT_ONCE, 1), _MOST_PARTS)
    total = np.zeros(3 + 4 * (len(sides) - 1), dtype=np.int64)
    with tempfile.TemporaryDirectory(prefix="discreet-digests-") as folder:
        places = [[Path(folder) / f"{side}-{part}" for part in range(parts)] for side in range(len(sides))]
        try:
            for place, side in zip(places, sides, strict=True):
                _written(place, side)
            for files in zip(*places, strict=True):
                ours, *theirs = (
                    np.unique(np.fromfile(file, dtype=np.int64), return_counts=True) for file in files
                )
                total += _tallied(ours, theirs)
        except OSError as error:
            what = "digests of records"
            raise lost_in(Path(folder), error, what, f"The {what}") from error
    records, singles, pairs, *others = (int(count) for count in total)
    return EqualRecords(
        records, singles, pairs, tuple(Matched(*others[at : at + 4]) for at in range(0, len(others), 4))
    )


def _written(places: Sequence[Path], digests: Iterable[Integers]) -> None:
    """Write the digests of one file into its parts."""
    parts = len(places)
    with ExitStack() as opened:
        files = [opened.enter_context(place.open("wb")) for place in places]
        for batch in digests:
            which = (batch.view(np.uint64) % np.uint64(parts)).astype(np.uint8)
            # Bytes are put in order by counting them, which costs next to nothing.
            ordered = batch[np.argsort(which, kind="stable")]
            ends = np.cumsum(np.bincount(which, minlength=parts))
            for file, own in zip(files, np.split(ordered, ends[:-1]), strict=True):
                file.write(own.tobytes())


def _tallied(ours: tuple[Integers, Integers], theirs: Sequence[tuple[Integers, Integers]]) -> Integers:
    """Count one part: the different digests of each file, with how many records have them."""
    known, many = ours
    found = [int(many.sum()), int((many == 1).sum()), int((many == 2).sum())]
    for different, times in theirs:
        at = np.searchsorted(known, different)
        there = at < len(known)
        there[there] = known[at[there]] == different[there]
        alone = many[at[there]] == 1
        hits = times[there]
        found += [int(times.sum()), int(hits.sum()), int(hits[alone].sum()), int(alone.sum())]
    return np.array(found, dtype=np.int64)


# Two files whose records belong together, side by side where they are: added up a batch at a time.


_ID, _OTHER, THERE = "id", "other id", "there"


def linked_rows(
    original: Microdata,
    released: Microdata,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    ids: str | None,
) -> Lazy | None:
    """Put the records of two queries side by side, as a query: one row an original record, and whether it was found.

    Parameters
    ----------
    original, released
        The queries, of the same engine. Without ``ids`` they have the same number of records, in the same order.
    ours, theirs
        The columns of each under the names they have in the answer.
    ids
        The column that links them; their place unless named, which only Polars keeps.

    Returns
    -------
    Lazy or None
        The columns, and ``there``: 1 for a record that the release still has, and null for others. None where the
        engine cannot link them.
    """
    kind = original.wrapped.implementation
    if kind != released.wrapped.implementation:
        return None
    if ids is None:
        if not (has_row_order(original) and has_row_order(released) and kind.is_polars()):
            return None
        sides = [
            scan(data, dict(names)).to_native() for data, names in ((original, ours), (released, theirs))
        ]
        together = pl.concat(sides, how="horizontal")
        linked: Lazy = nw.from_native(together.with_columns(pl.lit(1, dtype=pl.Int64).alias(THERE)))
        return linked
    if original.schema[ids] != released.schema[ids] or not _within_reach(original, released):
        return None
    for data in (original, released):
        check_record_key(data, [ids], purpose="linking two files")
    left = scan(original, {**ours, _ID: ids})
    right = scan(released, {**theirs, _OTHER: ids}).with_columns(nw.lit(1, nw.Int64).alias(THERE))
    return left.join(right, left_on=_ID, right_on=_OTHER, how="left").select(*ours, *theirs, THERE)


def _within_reach(original: Microdata, released: Microdata) -> bool:
    """Whether one query can read both: DuckDB joins what belongs to one connection."""
    if not original.wrapped.implementation.is_duckdb():
        return True
    ours, theirs = (getattr(data.frame, "_con", None) for data in (original, released))
    return ours is not None and ours is theirs


def added_up(rows: Lazy, work: Callable[[pl.DataFrame], Floats], size: int) -> Floats:
    """Add up what a function finds in every batch of a query, on the executors where that is Spark's."""
    if rows.implementation.is_pyspark():
        parts = rows.to_native().mapInArrow(_OnExecutors(work, size), "sums array<double>").collect()
        return np.sum([np.asarray(part[0]) for part in parts], axis=0) if parts else np.zeros(size)
    total = np.zeros(size)
    for part in collected_batches(rows, _ROWS):
        if part.height:
            total += work(part)
    return total


@dataclass(frozen=True)
class _OnExecutors:
    """The sums of a partition, as Spark asks for them."""

    work: Callable[[pl.DataFrame], Floats]
    size: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        total = np.zeros(self.size)
        for batch in batches:
            if batch.num_rows:
                total += self.work(pl.DataFrame(pl.from_arrow(batch)))
        yield pa.RecordBatch.from_pydict({"sums": [total.tolist()]})
