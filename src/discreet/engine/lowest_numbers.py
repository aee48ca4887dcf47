"""Which records come first in each class? Those with the lowest numbers, kept while a query streams past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from discreet.core.arrays import Integers
from discreet.engine.frames import Lazy, collect, collected_batches, scan
from discreet.engine.spooling import in_one_pass
from discreet.microdata import Microdata

_ROWS = 250_000


def lowest_numbers(frame: Any, names: Mapping[str, str], most: Integers) -> Integers | None:
    """Give the lowest numbers of the records of each class, class by class; None where a class has too few records.

    Parameters
    ----------
    frame
        A query.
    names
        Its columns ``class`` (from 0 on), ``most`` (how many numbers of the class are kept: what is not above 0 is
        passed over) and ``number``.
    most
        How many numbers are kept, by class.
    """
    query = in_one_pass(frame)
    rows = scan(Microdata(frame if query is None else query), dict(names)).filter(nw.col("most") > 0)
    found = _ranked(rows) if rows.implementation.is_pyspark() else _streamed(rows, most)
    return found if found is not None and len(found) == int(most.sum()) else None


def _ranked(rows: Lazy) -> Integers:
    """Let the executors find them."""
    rank = nw.col("number").rank("ordinal").over("class")
    first = rows.with_columns(rank.alias("rank")).filter(nw.col("rank") <= nw.col("most"))
    return collect(first.select("class", "number")).sort("class", "number")["number"].to_numpy()


def _streamed(rows: Lazy, most: Integers) -> Integers | None:
    from discreet.engine.place_kernels import keep_lowest

    start = np.cumsum(most) - most
    held, filled = np.zeros(int(most.sum()), dtype=np.int64), np.zeros(len(most), dtype=np.int64)
    for part in collected_batches(rows.select("class", "number"), _ROWS):
        keep_lowest(part["class"].to_numpy(), part["number"].to_numpy(), start, most, held, filled)
    if (filled < most).any():
        return None
    return held[np.lexsort((held, np.repeat(np.arange(len(most)), most)))]
