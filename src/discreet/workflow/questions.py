"""Which measures an assessment asks for, and what each needs before it can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.cards import Card, OfFile, all_cards
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.core.requests import FileRole, Request, check_settings
from discreet.core.results import Measure
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.policy import MAIN

_MANY_CLASSES = 200_000


@dataclass(frozen=True)
class Case:
    """What one scenario has to offer to a measure."""

    data: Microdata
    population: Microdata | None
    population_size: int | None
    missing: Missing
    seed: Seed = None
    size_unknown: str = "neither the size of the population nor survey weights are known"


@dataclass(frozen=True)
class Question:
    """One measure of an assessment, and what its card says it needs."""

    card: Card
    needs: OfFile

    @property
    def name(self) -> str:
        """The name of the measure."""
        return self.card.name

    @property
    def of_population(self) -> bool:
        """Whether it cannot be asked without a file of the population."""
        return self.card.takes.files.get("population") in self.card.takes.needed

    def gap(self, case: Case, _: Mapping[str, Any] | None = None) -> str | None:
        """Say what is missing for this question, or None when it can be asked."""
        if self.needs.sensitive and not case.data.roles.sensitive:
            return "no sensitive column was named"
        if self.of_population and case.population is None:
            return "no population file was given"
        if self.needs.partition and case.missing == "wildcard":
            return "missing values as wildcards give no classes, which this measure needs"
        if self.needs.weight and case.data.roles.weight is None:
            return "no survey weight was named"
        if self.needs.population_size and case.population_size is None:
            return case.size_unknown
        for role in self.needs.roles:
            if not getattr(case.data.roles, role):
                return f"no column has the role '{role}'"
        if self.needs.slow:
            classes = int(
                engine.size_spectrum(case.data, case.data.roles.keys, case.missing)["classes"].sum()
            )
            if classes > _MANY_CLASSES:
                return f"it takes long on {classes:,} key combinations; run 'discreet risk {self.name}' by itself"
        return None

    def input_lacking(self, case: Case) -> Lack | None:
        """Name the input that only whoever asks can give, and has not; what the file itself lacks is a gap."""
        if self.of_population and case.population is None:
            return POPULATION
        if self.needs.population_size and case.population_size is None:
            return POPULATION_SIZE
        return None

    def check_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Refuse a parameter of a policy that the measure does not have."""
        check_settings(self.card.function, parameters, f"The policy, under [parameters.{self.name}]")

    def answer(self, case: Case, parameters: Mapping[str, Any]) -> Measure:
        """Ask the question with the parameters of the policy."""
        files: dict[FileRole, Any] = {"original": case.data, "population": case.population}
        defaults = {
            "missing": case.missing,
            "population_size": case.population_size,
            "seed": case.seed,
            "progress": False,
            **self.needs.settings,
        }
        return self.card.ask(Request(files, defaults, parameters))


def by_name() -> dict[str, Question]:
    """Return what an assessment asks, in the order in which it is asked and shown."""
    asked = [Question(card, card.assess) for card in all_cards(asked="assess") if card.assess is not None]
    return {question.name: question for question in sorted(asked, key=lambda one: one.needs.order)}


# What each intruder is assumed to know about one file, ready for the measures to be asked.


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


# What may not be there to judge a rule by, and the way out; each is known by its name, not by its words.


@dataclass(frozen=True)
class Lack:
    """What is lacking, and where the rule can be judged."""

    needs: str
    way_out: str
    command: str = ""


ORIGINAL = Lack(
    "the original",
    "hold it against the original: compare(original, released, policy=…), discreet compare",
    "discreet compare ORIGINAL RELEASE --policy POLICY",
)
POPULATION = Lack(
    "a population file",
    "assess it with population=…, --population",
    "discreet assess FILE --policy POLICY --population POPULATION",
)
POPULATION_SIZE = Lack(
    "the size of the population",
    "assess it with population_size=…, --population-size",
    "discreet assess FILE --policy POLICY --population-size NUMBER",
)
MODEL = Lack(
    "a model that users would fit",
    "name one in compare with models=…, --model, or in the policy under formula",
    "discreet compare ORIGINAL RELEASE --policy POLICY --model 'Y ~ X1 + X2'",
)
TARGET = Lack("a target to predict", "name it in the policy under [parameters], target")
HOLDOUT = Lack(
    "people who were not used to make the release",
    "give them to compare with holdout=…, --holdout",
    "discreet compare ORIGINAL RELEASE --policy POLICY --holdout OTHER_PEOPLE",
)
HOLDOUT_OR_MODEL = replace(
    HOLDOUT,
    way_out=f"{HOLDOUT.way_out}; where the file is made, discreet synthesize --policy judges it by cross-fitting",
)
IN_MEMORY = Lack(
    "the records in memory",
    "the files are too large to hold, and in a sample hardly anybody meets the records that give them away: judge it "
    "where there is memory for all of them (rows=…, --rows)",
)
LABELS = Lack(
    "to know which values its labels stand for",
    "the files do not show it: judge it where the plan is applied, discreet protect --policy, or keep the order of the "
    "records",
)
WHOSE = Lack(
    "to know which records belong to one person",
    "several may, and the file no longer says which: judge it where the plan is applied, discreet protect --policy, or "
    "keep that column under pseudonyms",
)
