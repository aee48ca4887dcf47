"""The tables of the k-marginal score from queries: classes found by counting, and only cells brought home."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from discreet import engine
from discreet.engine.grouping import Cutting
from discreet.engine.shared_tables import shared_tables
from discreet.microdata import Microdata


def counted_differences(
    original: Microdata,
    released: Microdata,
    group: str,
    names: Sequence[str],
    classes: tuple[int, Mapping[str, float]],
) -> list[tuple[str, str, float]]:
    """Add up the differences of shares over the cells of every table of the group and two other columns.

    Parameters
    ----------
    original, released
        The files, at least one of them a query.
    group, names
        The column of the groups, and the others.
    classes
        How many classes numbers are cut into, and the codes that are a class of their own, by column.
    """
    bins, tops = classes
    columns = [group, *names]
    different = engine.distinct_counts(original, columns)
    breaks = {
        name: _breaks(original, name, bins, tops.get(name))
        for name in columns
        if different[name] > bins and all(data.schema[name].is_numeric() for data in (original, released))
    }
    special = {name: [top] for name, top in tops.items() if name in breaks}
    coded = [
        name
        for name in columns
        if name not in breaks and any(data.schema[name].is_numeric() for data in (original, released))
    ]
    cutting = Cutting(groups=bins, breaks=breaks, special=special)
    shared = shared_tables(original, released, columns, cutting, categorical=coded)
    sizes = [file.size[0] for file in (shared.original, shared.released)]
    tables = [(group, one, other) for one, other in combinations(names, 2)]
    found = []
    for (_, one, other), _, ours, theirs in shared.counted(tables):
        apart = np.abs(ours / sizes[0] - theirs / sizes[1]).sum() if sizes[1] else 2.0
        found.append((one, other, float(apart)))
    return found


def _breaks(data: Microdata, name: str, bins: int, top: float | None) -> list[float]:
    """Cut the numbers of the original into classes of about as many records."""
    without = [] if top is None else [top]
    known = engine.known_numbers([data], name, without=without)
    # The last place of every class, the places being shared out evenly.
    last = [-(-(own + 1) * (known + 1) // bins) - 1 for own in range(bins)]
    ranks = sorted({min(rank, known) for rank in last if rank >= 1})
    ends = np.unique(engine.values_at([data], name, ranks, without=without)) if ranks else np.zeros(0)
    # One class takes all numbers, also larger ones of the release.
    return [float(end) for end in ends[:-1]] or [sys.float_info.max]
