"""From classes back to records: which ones are chosen, when the classes only say how many, and what becomes of them.

Those with the lowest draws are chosen. A draw belongs to a record (its place, or its key), so that the choice is the
same on every engine and however the file is cut. What comes home is one draw for every number of records that is asked
for: the last one that is still chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers, Words
from discreet.core.errors import InputError
from discreet.core.randomness import KeyedDraws
from discreet.engine import ByRecord, ClassPlaces
from discreet.microdata import Microdata

_CLASS, _DRAW = "discreet class", "discreet draw"
_HIGHEST = 2**63 - 1
_SPREADS, _MORE = 8.0, 16.0
"""How far beyond its expected place, in standard deviations and in records, a draw is looked for first."""


@dataclass(frozen=True, eq=False)
class DrawnRecords:
    """The classes of a file, and a draw for each of its records.

    Attributes
    ----------
    table
        The combinations of values that occur, one row each.
    numbers, sizes
        The class of every combination, and the records of each class.
    draws
        What is drawn.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "m", "f", "f"]}))
    >>> sexes = pl.DataFrame({"sex": ["f", "m"]})
    >>> drawn = DrawnRecords(sexes, np.array([0, 1]), np.array([3, 1]), KeyedDraws.of(1, "example"))
    >>> last = drawn.last(people, pl.DataFrame({"class": [0], "rank": [2]}), (), purpose="example")
    >>> women = drawn.draw(np.array([0, 2, 3], dtype=np.uint64))
    >>> int((women <= last[0]).sum())
    2
    """

    table: pl.DataFrame
    numbers: Integers
    sizes: Integers
    draws: KeyedDraws

    def places(self, rows: pl.DataFrame) -> Integers:
        """Find the combinations of a batch of records in the table."""
        found = self._places.of(rows)
        if (found < 0).any():
            raise changed()
        return found

    @cached_property
    def _places(self) -> engine.ClassPlaces:
        return engine.ClassPlaces(self.table)

    def draw(self, records: Words) -> Integers:
        """Draw a whole number from 0 to 2**63 - 1 for each record."""
        return (self.draws.words(records) >> np.uint64(1)).view(np.int64)

    def last(
        self, data: Microdata, ranks: pl.DataFrame, record_key: Sequence[str], *, purpose: str
    ) -> Integers:
        """Find the draws that stand at given places among those of their class, counted from the lowest.

        Parameters
        ----------
        data
            The file; of a query nothing but the answer is collected.
        ranks
            Columns ``class`` and ``rank``: 1 asks for the lowest draw of the class.
        record_key
            The columns by which records are told apart; their place unless named.
        purpose
            The treatment, for messages.
        """
        if ranks.is_empty():
            return np.zeros(0, dtype=np.int64)
        engine.need_record_key(data, record_key, purpose)
        if not engine.is_lazy(data):
            read = list(dict.fromkeys([*self.table.columns, *record_key]))
            data = Microdata(engine.collect(data, read).lazy())
        highest = np.zeros(len(self.sizes), dtype=np.int64)
        np.maximum.at(highest, ranks["class"].to_numpy(), ranks["rank"].to_numpy())
        # Nearly all draws beyond the ones in question need not be sorted.
        reach = (highest + _SPREADS * np.sqrt(highest) + _MORE) / np.maximum(self.sizes, 1)
        near, all_of_them = (
            np.where(highest > 0, share * float(_HIGHEST), -1.0) for share in (np.minimum(reach, 1.0), 1.0)
        )
        sought = ranks.select(c=pl.col("class").cast(pl.Int64), r=pl.col("rank").cast(pl.Int64))
        for limits in (near, all_of_them):
            query = ByRecord(
                tuple(self.table.columns),
                {_CLASS: pl.Int64(), _DRAW: pl.Int64()},
                _Marking(self, limits),
                draws=True,
            )
            frame = engine.made_lazily(data, query, key=tuple(record_key), drop=data.columns, purpose=purpose)
            found = _at_ranks(data, Microdata(frame), sought)
            if found is not None:
                return found
        raise changed()


def changed() -> InputError:
    """Say that the file is not the one that was counted."""
    return InputError(
        "The file has other records than when its classes were counted: it was changed between two passes. Treat a "
        "copy that nobody writes to."
    )


def _at_ranks(data: Microdata, marked: Microdata, sought: pl.DataFrame) -> Integers | None:
    """Sort the draws that are near where the data is; None where some place is not among them."""
    rows = engine.scan(marked, {"c": _CLASS, "d": _DRAW}).filter(nw.col("c") >= 0)
    ranked = rows.with_columns(nw.col("d").rank("ordinal").over("c").cast(nw.Int64).alias("r"))
    once = sought.unique().with_columns(pl.lit(1, dtype=pl.Int64).alias("sought"))
    both = engine.beside_classes(data, ranked, once, ["c", "r"]).filter(~nw.col("sought").is_null())
    found = engine.collect(both.select("c", "r", "d"))
    if found.height != once.height:
        return None
    return sought.join(found, on=["c", "r"], how="left", maintain_order="left")["d"].to_numpy()


@dataclass(frozen=True, eq=False)
class _Marking:
    """Gives the records of a batch their class and draw; -1 for those whose draw is beyond the limit of the class."""

    drawn: DrawnRecords
    limits: Floats

    def __call__(self, rows: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        owner = self.drawn.numbers[self.drawn.places(rows)]
        draws = self.drawn.draw(records)
        near = draws.astype(np.float64) <= self.limits[owner]
        return {_CLASS: pl.Series(_CLASS, np.where(near, owner, -1)), _DRAW: pl.Series(_DRAW, draws)}


# From a table of classes back to records: every record takes the new values of its class, wherever the file is.


_ROW = "discreet row"


def by_class(classes: pl.DataFrame, columns: Mapping[str, pl.Series]) -> ByRecord:
    """Say what becomes of a record by its class: the keys as they are, and the new columns of every combination.

    A combination that stands there several times (with several sensitive values, say) has the same new values each
    time.

    Examples
    --------
    >>> classes = pl.DataFrame({"age": [31, 34, None]})
    >>> work = by_class(classes, {"age": pl.Series("age", ["30+", "30+", None])})
    >>> work.work(pl.DataFrame({"age": [34, None, 31]}), None)["age"].to_list()
    ['30+', None, '30+']
    """
    keys = tuple(classes.columns)
    table = classes.with_row_index(_ROW).unique(list(keys), keep="first", maintain_order=True)
    fresh = {name: column.gather(table[_ROW]) for name, column in columns.items()}
    return ByRecord(
        keys,
        {name: column.dtype for name, column in columns.items()},
        _LookedUp(ClassPlaces(table.select(keys)), fresh),
    )


@dataclass(frozen=True, eq=False)
class _LookedUp:
    """Looks the classes of a batch of records up."""

    places: ClassPlaces
    fresh: Mapping[str, pl.Series]

    def __call__(self, rows: pl.DataFrame, _: Words) -> dict[str, pl.Series]:
        found = self.places.of(rows)
        if (found < 0).any():
            raise InputError(
                "The file has key values that it did not have when its classes were counted: it was changed between "
                "two passes. Treat a copy that nobody writes to."
            )
        return {name: column.gather(found).alias(name) for name, column in self.fresh.items()}
