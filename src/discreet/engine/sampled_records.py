"""A random sample of the records of a file, drawn where the data is: with equal chances, or in proportion to a column.

The draw belongs to the record (its place, or its key), so that the same seed gives the same sample on every engine, and
two files whose records stand in the same order, or share a key, give the records that belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers, Words
from discreet.core.randomness import KeyedDraws
from discreet.engine.by_record import made_lazily
from discreet.engine.class_places import ClassPlaces
from discreet.engine.frames import collect, is_lazy, scan
from discreet.engine.rebuild import whole_frame
from discreet.engine.record_batches import ByRecord, record_numbers
from discreet.microdata import Microdata

_CHOSEN = "discreet chosen"
_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of a file, in order.

    Attributes
    ----------
    table
        The combinations of values, one row each.
    records, expected, mass
        How many records each has, how many of them a sample is expected to have, and what its records weigh.
    raised
        How many times as high the chances of its records are.
    """

    table: pl.DataFrame
    records: Integers
    expected: Floats
    mass: Floats
    raised: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that make the strata."""
        return tuple(self.table.columns)

    def places(self, rows: pl.DataFrame) -> Integers:
        """Say which stratum each record is in."""
        return self._lookup.of(rows)

    @cached_property
    def _lookup(self) -> ClassPlaces:
        return ClassPlaces(self.table)

    @classmethod
    def of(
        cls,
        data: Microdata,
        columns: Sequence[str],
        chance: float,
        *,
        by: str | None,
        weight: str | None,
        least: float,
    ) -> Strata:
        """Count the strata of a file, and raise the chances of those of which a sample would have too few records.

        Parameters
        ----------
        data, columns
            The file, and what makes its strata.
        chance, by
            As `record_sample` takes them.
        weight
            The column that is added up, one for each record unless named.
        least
            How many records of every stratum a sample is to have, about; all of them where it has fewer.
        """
        names = {f"s{place}": column for place, column in enumerate(columns)}
        more = {name: column for name, column in (("b", by), ("w", weight)) if column is not None}
        rows = scan(data, {**names, **more})
        drawn = nw.lit(chance) if by is None else nw.col("b").cast(nw.Float64) * chance
        rows = rows.with_columns(
            nw.when(drawn < 1.0).then(drawn).otherwise(1.0).alias("drawn"),
            (nw.lit(1.0) if weight is None else nw.col("w").cast(nw.Float64)).alias("mass"),
        )
        sums = (nw.len().cast(nw.Int64).alias("records"), nw.col("drawn").sum(), nw.col("mass").sum())
        found = collect(rows.group_by(*names).agg(*sums)).sort(*names, nulls_last=True)
        expected = found["drawn"].to_numpy()
        # Engines add up in different orders, which shows in the last digits; rounded, they draw the same records.
        raised = np.maximum(1.0, least / np.maximum(expected, 1e-300))
        raised = np.array([float(f"{times:.9g}") for times in raised])
        table = found.select(pl.col(at).alias(name) for at, name in names.items())
        return cls(table, found["records"].to_numpy(), expected, found["mass"].to_numpy(), raised)


def record_sample(
    data: Microdata,
    share: float,
    draws: KeyedDraws,
    *,
    key: Sequence[str] = (),
    together: str | None = None,
    by: str | None = None,
    within: Strata | None = None,
    purpose: str,
) -> pl.DataFrame:
    """Bring a random share of the records home.

    Parameters
    ----------
    data
        The file; a query is not collected beyond the sample.
    share
        The chance of every record; with ``by``, the chance for each unit of that column.
    draws
        What is drawn.
    key
        Columns that tell the records apart, where their place does not.
    together
        A column whose records are drawn all or none.
    by
        A column of numbers of at least 0 that chances are in proportion to; those above 1 are certain.
    within
        Strata of which some have chances so many times as high.
    purpose
        What the sample is for, in messages.

    Examples
    --------
    >>> data = Microdata(pl.LazyFrame({"age": range(1000)}))
    >>> 60 < record_sample(data, 0.1, KeyedDraws.of(1, "example"), purpose="an example").height < 140
    True
    """
    first = together or (key[0] if key else data.columns[0])
    more = (*(() if by is None else (by,)), *(() if within is None else within.columns))
    reads = tuple(dict.fromkeys((first, *more)))
    chosen = _Chosen(draws, share, together, by, within)
    work = ByRecord(reads, {_CHOSEN: pl.Boolean()}, chosen, draws=together is None)
    source = data if is_lazy(data) else data.with_frame(whole_frame(data).lazy())
    marked = made_lazily(source, work, key=() if together else tuple(key), purpose=purpose)
    kept = nw.from_native(marked).filter(nw.col(_CHOSEN)).drop(_CHOSEN)
    return whole_frame(Microdata(kept.to_native()))


@dataclass(frozen=True)
class _Chosen:
    """Marks the records of a batch that are in the sample."""

    draws: KeyedDraws
    share: float
    together: str | None
    by: str | None = None
    within: Strata | None = None

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        own = numbers if self.together is None else record_numbers(rows, [self.together])
        units: Floats | float = 1.0
        if self.by is not None:
            units = rows[self.by].cast(pl.Float64).fill_null(0.0).to_numpy()
        if self.within is not None:
            units = units * self.within.raised[self.within.places(rows)]
        return {_CHOSEN: pl.Series(_CHOSEN, self.draws.uniforms(own) < self.share * units)}


def chance_by_unit(data: Microdata, column: str, rows: int) -> float:
    """Find the chance for each unit of a column with which about so many records are drawn.

    A record of many units would have a chance above 1: it is certain, and leaves its place to the others.

    Examples
    --------
    >>> round(chance_by_unit(Microdata(pl.LazyFrame({"w": [1.0, 1.0, 1.0, 97.0]})), "w", 2), 3)
    0.333
    """
    x = nw.col("x").cast(nw.Float64)
    weights = scan(data, {"x": column}).select(x).filter(nw.col("x") > 0)
    chance, all_of = 0.0, 0
    for _ in range(_ROUNDS):
        free = weights.filter(nw.col("x") < 1 / chance) if chance else weights
        asked = free.select(mass=nw.col("x").sum(), many=nw.len().cast(nw.Int64), most=nw.col("x").max())
        mass, many, most = collect(asked).row(0)
        all_of = all_of or int(many)
        left = rows - (all_of - many)
        if not many or left <= 0:
            break
        # Engines add up in different orders, which shows in the last digits; rounded, they draw the same records.
        chance = float(f"{left / mass:.12g}")
        if chance * most <= 1:
            break
    return chance
