"""What each intruder is assumed to know about one file, ready for the measures to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.policy import MAIN
from discreet.workflow.questions import Case


def intruder_cases(
    data: Microdata,
    scenarios: Mapping[str, Sequence[str]] | None = None,
    *,
    population: Microdata | None = None,
    population_size: int | None = None,
    missing: Missing = "category",
    seed: Seed = None,
) -> dict[str, Case]:
    """Make one case of each intruder: the keys of the data are the main scenario, then those that were named."""
    intruders = _intruders(data, scenarios)
    size, unknown = _population_size(data, population_size)
    return {
        name: Case(_for_scenario(data, keys), population, size, missing, 0 if seed is None else seed, unknown)
        for name, keys in intruders.items()
    }


def _intruders(data: Microdata, scenarios: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    if scenarios is not None and not isinstance(scenarios, Mapping):
        raise ParameterError(
            f"scenarios is a mapping of names to keys, such as {{'neighbor': ['age', 'sex']}}, not a "
            f"{type(scenarios).__name__}."
        )
    named = {
        name: (keys,) if isinstance(keys, str) else tuple(keys) for name, keys in (scenarios or {}).items()
    }
    for name, keys in named.items():
        if not keys:
            raise ParameterError(f"The scenario '{name}' names no keys. Say what that intruder knows.")
    if MAIN in named and data.roles.keys:
        raise ParameterError(
            f"'{MAIN}' is the name of the scenario with the keys of the data; choose another."
        )
    if data.roles.keys or not named:
        return {MAIN: engine.resolve_keys(data), **named}
    return named


def _population_size(data: Microdata, given: Any) -> tuple[int | None, str]:
    """Estimate the size of the population by the sum of the survey weights unless given; else say why not."""
    weight = engine.resolve_weight(data)
    if given is not None:
        is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
        if not is_number or given != given // 1:
            raise ParameterError("population_size must be a whole number of people.")
        return int(given), ""
    if weight is None:
        return None, "neither the size of the population nor survey weights are known"
    size = round(engine.people_of_weights(data, weight))
    if size <= engine.head_count(data):
        return None, (
            f"the weights in '{weight}' add up to {size:,} people, no more than the file has, so they do not tell "
            "the size of the population; name it with population_size (--population-size)"
        )
    return size, ""


def _for_scenario(data: Microdata, keys: tuple[str, ...]) -> Microdata:
    """Give the file the keys of a scenario; what an intruder knows already is no longer sensitive to them."""
    engine.resolve_keys(data, keys)
    sensitive = tuple(column for column in data.roles.sensitive if column not in keys)
    if sensitive:
        engine.resolve_sensitive(data, sensitive, keys)
    seen = data.with_roles(keys=keys, sensitive=sensitive)
    seen.memory.update(
        {shelf: held for shelf, held in data.memory.items() if shelf in ("rows", "missing", "columns")}
    )
    return seen
