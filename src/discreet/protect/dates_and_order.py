"""Time and order: shift dates, and let the order of the records say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Words
from discreet.core.constraints import Between, ColumnName, ColumnNames
from discreet.core.errors import ColumnError
from discreet.core.method_cards import method
from discreet.core.randomness import KeyedDraws
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment, existing, group_column, grouped_numbers

_CALENDAR = 3_652_059  # days from the year 1 to the year 9999


@method(aim="coarser values", work="row-wise")
@dataclass(frozen=True)
class ShiftDates(Treatment):
    """Move all dates of a person (or household) by the same random number of days.

    It protects against recognizing somebody by the exact day of an event, such as an admission or a birth.

    Durations and the order of events of one person stay exact; the calendar is blurred.

    Parameters
    ----------
    columns
        Date or datetime columns; all of them unless named.
    max_days
        Shifts are whole days drawn evenly from -max_days…max_days, zero left out.
    by
        Column whose equal values move together; the role ``person``, else ``household``, unless named. Without
        any, every record moves on its own.

    What it costs
    -------------
    The calendar: seasons and weekdays blur, events of different people lose their order. Durations within a
    person stay exact.

    When not to use it
    ------------------
    Do not use it where durations themselves give somebody away (the longest stay), or where a fixed date is
    visible in the data, such as a holiday or the start of a trial, by which the shift can be read off.

    Examples
    --------
    >>> from datetime import date
    >>> visits = pl.DataFrame({"who": [1, 1], "day": [date(2024, 1, 1), date(2024, 1, 31)]})
    >>> moved = ShiftDates(max_days=30, by="who").apply(Microdata(visits), seed=1).data.frame["day"]
    >>> (moved[1] - moved[0]).days, moved[0] != date(2024, 1, 1)
    (30, True)
    """

    columns: ColumnNames | None = None
    max_days: Annotated[int, Between(1, _CALENDAR)] = 30
    by: ColumnName | None = None

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Shift the dates."""
        dates = [name for name, kind in data.schema.items() if str(kind).startswith("Date")]
        names = existing(data, dates if self.columns is None else self.columns, treatment=self.name)
        for name in names:
            if name not in dates:
                raise ColumnError(
                    f"shift-dates is for dates, and column '{name}' is {type_name(data.schema[name])}."
                )
        by = group_column(data, self.by, ("person", "household"), treatment=self.name)
        reads = tuple(dict.fromkeys([*names, *([by] if by else [])]))
        makes = engine.types_in_polars(data, names)
        draws = stream.keyed("days")
        alone = by is None or bool(engine.overview(data, [by]).missing[by])
        return Change(
            by_record=ByRecord(reads, makes, partial(self._batch, names, by, draws), draws=alone),
            notes=(
                f"Dates of each {'record' if by is None else 'group of records'} moved by up to {self.max_days} days.",
            ),
        )

    def _batch(
        self, names: Sequence[str], by: str | None, draws: KeyedDraws, table: pl.DataFrame, records: Words
    ) -> dict[str, pl.Series]:
        drawn = draws.integers(grouped_numbers(table, by, records), 2 * self.max_days) - self.max_days
        days = pl.Series(np.where(drawn >= 0, drawn + 1, drawn))
        moved = table.select(pl.col(name) + pl.duration(days=pl.lit(days)) for name in names)
        return {name: moved[name].cast(table[name].dtype) for name in names}


@method(aim="identifiers", work="whole-file")
@dataclass(frozen=True)
class ReorderRecords(Treatment):
    """Put the records into a random order, so that their position says nothing.

    It protects against recognizing somebody by the position of their record, for example in a file sorted by
    date of arrival or by name.

    Parameters
    ----------
    by
        Column whose equal values stay next to each other (a household); the role ``household`` unless named.

    What it costs
    -------------
    Nothing but the order.

    When not to use it
    ------------------
    Do not use it alone: it changes nobody's values. Do not use it where the order is data (a series), and
    keep a link to the original inside the house if records must be traced.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [1, 2, 3, 4]}))
    >>> sorted(ReorderRecords().apply(people, seed=1).data.frame["age"].to_list())
    [1, 2, 3, 4]
    """

    by: ColumnName | None = None

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Draw the new order."""
        rng = stream("order")
        by = group_column(data, self.by, ("household",), treatment=self.name)
        rows = engine.overview(data, ()).rows
        if by is None:
            return Change(order=rng.permutation(rows))
        groups = _codes(engine.collect(data, [by])[by])
        place = rng.permutation(int(groups.max()) + 1)
        return Change(order=np.lexsort((rng.random(rows), place[groups])).astype(np.int64))


def _codes(values: pl.Series) -> np.ndarray:
    """Number the distinct values in order of appearance; every missing value is a group of its own."""
    table = pl.DataFrame({"value": values})
    distinct = table.unique(maintain_order=True).drop_nulls().with_row_index("code")
    codes = table.join(distinct, on="value", how="left", maintain_order="left")["code"].cast(pl.Int64)
    alone = np.flatnonzero(codes.is_null().to_numpy())
    numbers = codes.fill_null(0).to_numpy().copy()
    numbers[alone] = distinct.height + np.arange(len(alone))
    return numbers
