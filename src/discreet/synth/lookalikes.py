"""Which synthetic records look like one person of the original, and what is left of their households without them?"""

from __future__ import annotations

import time
from collections.abc import Sequence

import polars as pl

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.results import Step
from discreet.microdata import Microdata

_ROUNDS = 50


def without_lookalikes(
    data: Microdata, original: Microdata | None, keys: bool | Sequence[str]
) -> tuple[Microdata, Step]:
    """Drop the records that are alone with the keys of one person who is alone too; households are counted anew."""
    from discreet.risk import remove_replicated_uniques

    if original is None:
        raise ParameterError("remove_uniques compares with the original: give it as the second argument.")
    began = time.perf_counter()
    chosen = None if keys is True else ([keys] if isinstance(keys, str) else list(keys))  # type: ignore[arg-type]
    unit = original.roles.household
    if unit is None or unit not in data.schema:
        release = remove_replicated_uniques(original, data, chosen)
        return release.data, release.log[0]
    before = engine.overview(data, ()).rows
    counting = _counting(data, unit)
    for _ in range(_ROUNDS):
        release = remove_replicated_uniques(original, data, chosen)
        data, gone = release.data, release.log[0].removed_records
        if gone and counting:
            # A household that lost a member says so, and its other members may be alone with their keys now.
            homes = engine.collect(data, [unit])
            number = homes.select(pl.len().over(unit)).to_series()
            kinds = engine.collect(data, list(counting)).schema
            fresh = {name: number.cast(kinds[name]).rename(name) for name in counting}
            data = data.with_frame(engine.rebuilt(data, fresh))
        if not gone or not counting:
            break
    own = release.log[0]
    told = f"{_listed(counting)} of households that lost members were counted anew. " if counting else ""
    step = Step(
        own.treatment,
        {**own.parameters, "household": unit},
        removed_records=before - engine.overview(data, ()).rows,
        notes=(
            *own.notes,
            f"{told}Other columns that speak of a household as a whole are as they were.",
        ),
        seconds=time.perf_counter() - began,
    )
    return data, step


def _counting(data: Microdata, unit: str) -> list[str]:
    """Name the columns that hold the number of records of every household."""
    whole = [name for name, kind in data.schema.items() if kind.is_integer() and name != unit]
    table = engine.collect(data, [unit, *whole])
    number = table.select(pl.len().over(unit)).to_series().cast(pl.Int64)
    return [name for name in whole if (table[name].cast(pl.Int64) == number).all() and number.n_unique() > 1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
