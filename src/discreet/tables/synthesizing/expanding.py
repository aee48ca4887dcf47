"""Counts of a table made whole again: scaled to a total, and written out as records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.parameters import checked

if TYPE_CHECKING:
    from discreet.tables.table import Table


def scaled_to(counts: Integers, total: int) -> Integers:
    """Scale counts to a total and keep them whole: the largest remainders are rounded up.

    Examples
    --------
    >>> scaled_to(np.array([1, 2, 3]), 4).tolist()
    [1, 1, 2]
    """
    now = int(counts.sum())
    if not now:
        return counts
    exact = counts * (total / now)
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return np.asarray(whole, dtype=np.int64)


@checked
def expanded(table: Table, counts: Any = None) -> pl.DataFrame:
    """Write a table of counts as records, one a unit: the dimension columns of its inner cells, repeated.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["b", "a", "b"]}), "place")
    >>> expanded(table)["place"].to_list()
    ['a', 'b', 'b']
    """
    table.need_crossing("Writing out records")
    many = table.inner["count"].to_numpy() if counts is None else np.asarray(counts)
    return table.inner.select(table.dimensions)[np.repeat(np.arange(table.inner.height), many)]
