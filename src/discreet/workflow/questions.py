"""Which measures an assessment asks for, and what each needs before it can answer."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet import risk
from discreet.engine import Missing
from discreet.errors import ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.results import Measure


@dataclass(frozen=True)
class Case:
    """What one scenario has to offer to a measure."""

    data: Microdata
    population: Microdata | None
    missing: Missing


@dataclass(frozen=True)
class Question:
    """One measure of an assessment and what it needs."""

    name: str
    sensitive: bool = False
    population: bool = False
    takes_population: bool = False
    partition: bool = True

    @property
    def ask(self) -> Callable[..., Measure]:
        """The measure itself."""
        measure: Callable[..., Measure] = getattr(risk, self.name)
        return measure

    def gap(self, case: Case) -> str | None:
        """Say what is missing for this question, or None when it can be asked."""
        if self.sensitive and not case.data.roles.sensitive:
            return "no sensitive column was named"
        if self.population and case.population is None:
            return "no population file was given"
        if self.partition and case.missing == "wildcard":
            return "missing values as wildcards give no classes, which this measure needs"
        return None

    def answer(self, case: Case, parameters: Mapping[str, Any]) -> Measure:
        """Ask the question with the parameters of the policy."""
        known = python_inspect.signature(self.ask).parameters
        for name in parameters:
            if name not in known:
                options = [option for option in known if option not in ("data", "population")]
                raise ParameterError(
                    f"The policy sets a parameter of {self.name} that it does not have. "
                    f"{unknown_name(name, options, what='parameter')}"
                )
        given = {"missing": case.missing, **parameters}
        if self.population:
            return self.ask(case.data, case.population, **given)
        if self.takes_population and case.population is not None:
            given["population"] = case.population
        return self.ask(case.data, **given)


QUESTIONS = (
    Question("k_anonymity", partition=False),
    Question("uniqueness", takes_population=True),
    Question("reidentification", takes_population=True, partition=False),
    Question("key_contributions"),
    Question("l_diversity", sensitive=True),
    Question("t_closeness", sensitive=True),
    Question("alpha_k", sensitive=True),
    Question("beta_likeness", sensitive=True),
    Question("delta_disclosure", sensitive=True),
    Question("k_map", population=True),
    Question("delta_presence", population=True),
)
