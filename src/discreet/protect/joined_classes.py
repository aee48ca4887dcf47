"""From a table of classes back to records: every record takes the new values of its class, wherever the file is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from discreet.core.arrays import Words
from discreet.core.errors import InputError
from discreet.engine import ByRecord, ClassPlaces

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
