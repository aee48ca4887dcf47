"""From a table of classes back to records: every record takes the new values of its class, wherever the file is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from discreet.arrays import Words
from discreet.engine import ByRecord
from discreet.errors import InputError

_THERE = "discreet class"


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
    names = {name: f"new {place}" for place, name in enumerate(columns)}
    fresh = [column.alias(names[name]) for name, column in columns.items()]
    table = pl.DataFrame([*classes, *fresh]).unique(list(keys), maintain_order=True)
    table = table.with_columns(pl.lit(True).alias(_THERE))
    return ByRecord(
        keys, {name: column.dtype for name, column in columns.items()}, _Joined(table, keys, names)
    )


@dataclass(frozen=True, eq=False)
class _Joined:
    """Looks the classes of a batch of records up."""

    table: pl.DataFrame
    keys: tuple[str, ...]
    names: Mapping[str, str]

    def __call__(self, rows: pl.DataFrame, _: Words) -> dict[str, pl.Series]:
        known = rows.select(pl.col(key).cast(self.table.schema[key]) for key in self.keys)
        found = known.join(
            self.table, on=list(self.keys), how="left", nulls_equal=True, maintain_order="left"
        )
        if found[_THERE].null_count():
            raise InputError(
                "The file has key values that it did not have when its classes were counted: it was changed between "
                "two passes. Treat a copy that nobody writes to."
            )
        return {name: found[fresh].alias(name) for name, fresh in self.names.items()}
