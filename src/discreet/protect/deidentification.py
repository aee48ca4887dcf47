"""What links records to people outside the file: identifiers left out or replaced, dates shifted, records reordered."""

from __future__ import annotations

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Words
from discreet.core.constraints import Between, ColumnName, ColumnNames, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.core.randomness import KeyedDraws
from discreet.core.secret_keys import DEFAULT_VARIABLE, secret_key
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment, existing, group_column, grouped_numbers

_LIKELIEST_COLLISION = 0.01
"""The largest chance that two values of a file share a pseudonym, where the file is too large to look."""

_NOTHING = (
    "Nothing was left out: no column has the role of an identifier, and none was named. If the file has names or "
    "numbers of people, say so with identifiers=[…] (--identifiers)."
)


@method(aim="identifiers", work="row-wise")
@dataclass(frozen=True)
class DropIdentifiers(Treatment):
    """Leave the direct identifiers out of the file.

    It protects against reading off who somebody is: names, numbers and addresses leave the file.

    Parameters
    ----------
    columns
        The columns to leave out; those with the role ``identifiers`` unless named. Where there is none, the step does
        nothing and says so.

    What it costs
    -------------
    Records can no longer be linked with other files or followed up.

    When not to use it
    ------------------
    Do not stop here: people are found by combinations of keys too. Where records must stay linkable, use
    `Pseudonymize`.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"name": ["A"], "age": [30]}), identifiers="name")
    >>> DropIdentifiers().apply(people).data.columns
    ('age',)
    """

    columns: ColumnNames | None = None

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Drop the columns."""
        wanted = _identifiers(self.columns, data)
        if not wanted:
            return Change(notes=(_NOTHING,))
        names = existing(data, wanted, treatment=self.name)
        said = (
            "Left out 1 identifying column"
            if len(names) == 1
            else f"Left out {len(names)} identifying columns"
        )
        return Change(drop=names, notes=(f"{said}: {', '.join(map(repr, names))}.",))


@method(aim="identifiers", work="row-wise")
@dataclass(frozen=True)
class Pseudonymize(Treatment):
    """Replace identifiers with keyed pseudonyms: the same value gives the same pseudonym, in every file.

    It protects against reading off who somebody is, while records of one person can still be linked.

    The pseudonym is an HMAC-SHA256 of the value under a secret key. Whoever has the key can recompute it, whoever
    has not can neither invert nor guess it. Without the key in the plan the plan file can be shared.

    Also known as: keyed hash; HMAC.

    Parameters
    ----------
    columns
        The columns to replace; those with the role ``identifiers`` unless named.
    key_variable
        Environment variable that holds the key.
    key_file
        File that holds the key; goes before the environment.
    domain
        Name mixed into the pseudonym: the same person gets different pseudonyms in different domains, the same one
        in files that share it.
    length
        Number of hexadecimal digits.

    What it costs
    -------------
    Nothing of the content; whoever has the key can recognize everybody.

    When not to use it
    ------------------
    Do not call the result anonymous: linked records say more together than each alone, and the keys are
    untouched. Where nobody needs to link, use `DropIdentifiers`.

    Examples
    --------
    >>> import os
    >>> os.environ["DISCREET_KEY"] = "a secret of at least sixteen bytes"
    >>> people = Microdata(pl.DataFrame({"id": ["a", "b", "a", None]}), identifiers="id")
    >>> made = Pseudonymize().apply(people).data.frame["id"].to_list()
    >>> made[0] == made[2] != made[1], made[3], len(made[0])
    (True, None, 16)
    """

    columns: ColumnNames | None = None
    key_variable: Annotated[str, Public()] = DEFAULT_VARIABLE
    key_file: Annotated[str, Public()] | None = None
    domain: Annotated[str, Public()] = ""
    length: Annotated[int, Between(8, 64)] = 16

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Replace the values by their pseudonyms."""
        wanted = _identifiers(self.columns, data)
        if not wanted:
            return Change(notes=(_NOTHING.replace("left out", "replaced"),))
        names = existing(data, wanted, treatment=self.name)
        key = secret_key(self.name, variable=self.key_variable, file=self.key_file)
        return Change(
            by_record=ByRecord(names, dict.fromkeys(names, pl.String()), partial(self._batch, key)),
            notes=(
                "Identifiers were replaced by keyed pseudonyms. Records of one person can still be linked with "
                "one another, and the key holder can recognize them: this is not anonymization.",
                *(self._about_collisions(data, names) if engine.is_lazy(data) else ()),
            ),
        )

    def _about_collisions(self, data: Microdata, names: Sequence[str]) -> list[str]:
        """Refuse pseudonyms that are too short for so many values, which no batch sees together."""
        notes = []
        for name, many in engine.distinct_counts(data, names).items():
            chance = -math.expm1(-many * (many - 1) / 2 / 16.0**self.length)
            if chance > _LIKELIEST_COLLISION:
                raise ParameterError(
                    f"length={self.length} is too short for the {many:,} different values of '{name}': with a chance "
                    f"of {chance:.2g} two share a pseudonym. Raise the length."
                )
            notes.append(
                f"That two values of '{name}' share a pseudonym has a chance of {chance:.1g}; it was not looked up."
            )
        return notes

    def _batch(self, key: bytes, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        return {column.name: self._pseudonyms(column, key) for column in table}

    def _pseudonyms(self, values: pl.Series, key: bytes) -> pl.Series:
        """Compute the pseudonym of each distinct value once."""
        texts = values.cast(pl.String)
        distinct = texts.unique().drop_nulls()
        prefix = f"{self.domain}\x00".encode()
        made = [hmac.digest(key, prefix + text.encode(), "sha256").hex()[: self.length] for text in distinct]
        if len(set(made)) < len(made):
            raise ParameterError(
                f"length={self.length} is too short for {len(made):,} different values: two share a pseudonym."
            )
        return texts.replace_strict(distinct, pl.Series(made, dtype=pl.String), default=None)


def _identifiers(columns: Sequence[str] | None, data: Microdata) -> Sequence[str]:
    return data.roles.identifiers if columns is None else columns


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
