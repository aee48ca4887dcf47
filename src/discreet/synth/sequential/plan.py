"""The plan of a synthesis: which column when, how, and from which others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.values import jsonable
from discreet.synth.methods.method import Method
from discreet.synth.sequential.rules import Rule


@dataclass(frozen=True)
class ColumnPlan:
    """What is done with one column.

    Attributes
    ----------
    name
        Of the column.
    method
        How it is modelled.
    predictors
        The columns it is modelled from, in the order in which they are visited.
    rules
        Conditions under which its value is given.
    smoothing
        How drawn numbers are blurred, if at all.
    with_columns
        Columns that are drawn together with this one (the event of a survival time, the rest of a joint table).
    """

    name: str
    method: Method
    predictors: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    smoothing: str | None = None
    with_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SynthesisPlan:
    """Order, methods and predictors of a synthesis, as they are used.

    Attributes
    ----------
    columns
        The columns of the synthetic file, in the order of the data.
    steps
        What is done with each, in the order in which it is done.
    rows
        Number of records of the data.
    left_out
        Columns that the synthetic file will not have, and why.
    warnings
        What the user should look at, and can do about.
    settings
        What else was decided: weights, strata, proper.
    """

    columns: tuple[str, ...]
    steps: tuple[ColumnPlan, ...]
    rows: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The columns in the order in which they are synthesized."""
        return tuple(name for step in self.steps for name in (step.name, *step.with_columns))

    @property
    def methods(self) -> dict[str, str]:
        """The method of every column, in the order of the data."""
        found = {}
        for step in self.steps:
            for name in (step.name, *step.with_columns):
                found[name] = step.method.name
        return {name: found[name] for name in self.columns}

    @property
    def predictors(self) -> dict[str, tuple[str, ...]]:
        """The predictors of every column, in the order of the data."""
        found = {name: step.predictors for step in self.steps for name in (step.name, *step.with_columns)}
        return {name: found[name] for name in self.columns}

    @property
    def predictor_matrix(self) -> Integers:
        """1 where the column of the matrix predicts its row; rows and columns in the order of the data."""
        place = {name: number for number, name in enumerate(self.columns)}
        matrix = np.zeros((len(place), len(place)), dtype=np.int64)
        for name, predictors in self.predictors.items():
            matrix[place[name], [place[other] for other in predictors]] = 1
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """Return the plan, ready for JSON."""
        return {
            "rows": self.rows,
            "order": list(self.order),
            "steps": [
                {
                    "column": step.name,
                    **step.method.to_dict(),
                    "predictors": list(step.predictors),
                    **({"rules": [rule.to_dict() for rule in step.rules]} if step.rules else {}),
                    **({"smoothing": step.smoothing} if step.smoothing else {}),
                    **({"with": list(step.with_columns)} if step.with_columns else {}),
                }
                for step in self.steps
            ],
            "left_out": dict(self.left_out),
            "warnings": list(self.warnings),
            "settings": jsonable(dict(self.settings)),
        }

    def __str__(self) -> str:
        width = max((len(name) for name in (*self.order, *self.left_out)), default=0)
        lines = [f"Synthesis of {len(self.columns)} columns, {self.rows:,} records"]
        for number, step in enumerate(self.steps, start=1):
            joint = f" (with {', '.join(step.with_columns)})" if step.with_columns else ""
            given = _listed(step.predictors)
            ruled = f", {len(step.rules)} rule{'s' * (len(step.rules) != 1)}" if step.rules else ""
            lines.append(f"{number:3}. {step.name:<{width}}  {step.method.name}{joint}{given}{ruled}")
        lines += [f"     {name:<{width}}  left out: {reason}" for name, reason in self.left_out.items()]
        lines += [f"Note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__


def _listed(predictors: tuple[str, ...], most: int = 6) -> str:
    if not predictors:
        return ""
    more = f" and {len(predictors) - most} more" if len(predictors) > most else ""
    return f" from {', '.join(predictors[:most])}{more}"
