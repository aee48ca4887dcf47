"""Which measures an assessment asks for, and what each needs before it can answer."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet import engine
from discreet.core.cards import Card, OfFile, all_cards
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.parameters import check, function_hints
from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.workflow.lacking import POPULATION, POPULATION_SIZE, Lack

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
    def ask(self) -> Callable[..., Measure]:
        """The measure itself."""
        return self.card.function

    def gap(self, case: Case) -> str | None:
        """Say what is missing for this question, or None when it can be asked."""
        if self.needs.sensitive and not case.data.roles.sensitive:
            return "no sensitive column was named"
        if self.needs.population and case.population is None:
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
        if self.needs.population and case.population is None:
            return POPULATION
        if self.needs.population_size and case.population_size is None:
            return POPULATION_SIZE
        return None

    def check_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Refuse a parameter of a policy that the measure does not have."""
        known = python_inspect.signature(self.ask).parameters
        for name in parameters:
            if name not in known:
                options = [option for option in known if option not in _FILES]
                raise ParameterError(
                    f"The policy sets a parameter of {self.name} that it does not have. "
                    f"{unknown_name(name, options, what='parameter')}"
                )
            where = f"The policy, under [parameters.{self.name}]"
            check(parameters[name], function_hints(self.ask).get(name, Any), name, where=where)

    def answer(self, case: Case, parameters: Mapping[str, Any]) -> Measure:
        """Ask the question with the parameters of the policy."""
        self.check_parameters(parameters)
        known = python_inspect.signature(self.ask).parameters
        offered = {
            "missing": case.missing,
            "population": case.population,
            "population_size": case.population_size,
            "seed": case.seed,
            "progress": False,
        }
        given = {name: value for name, value in offered.items() if name in known and value is not None}
        if "population" in given:
            given.pop("population_size", None)
        return self.ask(case.data, **{**given, **self.needs.settings, **parameters})


_FILES = ("data", "original", "released", "population")


def by_name() -> dict[str, Question]:
    """Return what an assessment asks, in the order in which it is asked and shown."""
    asked = [Question(card, card.assess) for card in all_cards(asked="assess") if card.assess is not None]
    return {question.name: question for question in sorted(asked, key=lambda one: one.needs.order)}
