"""The plan of a synthesis: which column when, how, from which others, and by which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.value_gate import keep_in_documents
from discreet.core.values import jsonable
from discreet.expressions import Expression, parse
from discreet.synth.methods.method import Method, all_methods
from discreet.synth.saved_models import stored_as
from discreet.synth.written_values import typed, written

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


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
            given = _from_predictors(step.predictors)
            ruled = f", {len(step.rules)} rule{'s' * (len(step.rules) != 1)}" if step.rules else ""
            lines.append(f"{number:3}. {step.name:<{width}}  {step.method.name}{joint}{given}{ruled}")
        lines += [f"     {name:<{width}}  left out: {reason}" for name, reason in self.left_out.items()]
        lines += [f"Note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__


def _from_predictors(predictors: tuple[str, ...], most: int = 6) -> str:
    if not predictors:
        return ""
    more = f" and {len(predictors) - most} more" if len(predictors) > most else ""
    return f" from {', '.join(predictors[:most])}{more}"


class PlannedStep(TypedDict, total=False):
    """What a plan tells of how one column is made, beside the numbers of its method."""

    column: ColumnName
    method: Annotated[str, Public()]
    predictors: ColumnNames
    rules: Annotated[Sequence[Mapping[str, Any]], HoldsValues(in_expressions=True)]
    smoothing: Annotated[str, Public()]
    of: Annotated[str, Public()]
    within: Annotated[str, Public()]
    expression: Annotated[str, Public()]
    margins: Annotated[Sequence[Sequence[str]], Public()]
    covariance: Annotated[str, Public()]
    ties: Annotated[str, Public()]


PlannedStep.__annotations__["with"] = ColumnNames  # a word of Python
keep_in_documents("steps", PlannedStep)


# Rules of a file: where a condition holds, a column has a given value.
#
# Records of the data that a rule covers are left out of the fit; synthetic records that it covers get its value.


@dataclass(frozen=True)
class Rule:
    """Where ``when`` holds, the column is ``value`` (None: missing)."""

    when: str
    value: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a plan file has it; without ``value`` it means missing."""
        return (
            {"when": self.when} if self.value is None else {"when": self.when, "value": written(self.value)}
        )

    def typed(self, column: str, dtype: pl.DataType) -> pl.Series:
        """Return the value in the type of the column, as a column of one record."""
        return typed(self.value, dtype, column, "rules")


def read_rules(given: Mapping[str, Any] | None) -> dict[str, tuple[Rule, ...]]:
    """Read rules as a user writes them: ``{column: [(condition, value), …]}``, or tables of a plan file.

    Examples
    --------
    >>> read_rules({"marital": [("age < 16", "single")]})
    {'marital': (Rule(when='age < 16', value='single'),)}
    """
    return {column: tuple(_rule(column, entry) for entry in _as_entries(entries))
            for column, entries in (given or {}).items()}  # fmt: skip


def covered(rules: Sequence[Rule], expressions: Sequence[Expression], frame: pl.DataFrame) -> Integers:
    """Say for every record which rule covers it, counted from 0; -1 where none does, the first where several do."""
    found = np.full(frame.height, -1, dtype=np.int64)
    for number in reversed(range(len(rules))):
        holds = frame.select(expressions[number].condition.alias("holds"))["holds"].to_numpy()
        found[holds] = number
    return found


def parsed(rules: Sequence[Rule], column: str, schema: Mapping[str, Any]) -> tuple[Expression, ...]:
    """Read the conditions of a column's rules against the columns there are."""
    found = []
    for rule in rules:
        try:
            expression = parse(rule.when, schema)
        except DiscreetError as error:
            raise type(error)(f"In the rule of column '{column}': {error}") from error
        if not expression.columns:
            raise ParameterError(
                f"The rule '{rule.when}' of column '{column}' speaks of no column, so it holds always or never."
            )
        if column in expression.columns:
            raise ParameterError(
                f"The rule '{rule.when}' of column '{column}' speaks of the column itself. A rule gives its value from "
                "other columns; special values of the column belong to special_codes or semicontinuous."
            )
        found.append(expression)
    return tuple(found)


def _as_entries(entries: Any) -> Sequence[Any]:
    if isinstance(entries, Mapping | Rule) or (
        isinstance(entries, tuple) and len(entries) == 2 and isinstance(entries[0], str)
    ):
        return [entries]
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise ParameterError("rules takes, for each column, a list of (condition, value).")
    return entries


def _rule(column: str, entry: Any) -> Rule:
    if isinstance(entry, Rule):
        return entry
    if isinstance(entry, Mapping) and set(entry) <= {"when", "value"} and "when" in entry:
        return Rule(str(entry["when"]), entry.get("value"))
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2:
        return Rule(str(entry[0]), entry[1])
    raise ParameterError(
        f"A rule of column '{column}' must be (condition, value), or in a plan file "
        '{ when = "age < 16", value = "single" }.'
    )


# Which columns must be there before another can be drawn: those its rules, its formula or its method speak of.


def needed_before(
    options: Sequential, schema: Mapping[str, Any], events: Sequence[str]
) -> dict[str, set[str]]:
    """Say which columns must be there before a column: those its rules, its formula or its method speak of."""
    needs = {
        name: {other for expression in parsed(own, name, schema) for other in expression.columns}
        for name, own in read_rules(options.rules).items()
    }
    asked = options.method if isinstance(options.method, Mapping) else {}
    for name, method in asked.items():
        own = needs.setdefault(name, set())
        if isinstance(method, str):
            formula = method[1:] if method.startswith("~") else None
            partner = method.removeprefix("nested.") if method.startswith("nested.") else None
        else:
            given = method if isinstance(method, Mapping) else method.to_dict()
            formula, partner = given.get("expression"), given.get("of") or given.get("within")
        own |= {partner} if partner else set()
        own |= set(parse(formula, schema).columns) if formula and formula.strip() else set()
    for name, other in (options.denominators or {}).items():
        needs.setdefault(name, set()).add(other)
    # What is drawn together with a time is there when the time is.
    times = {event: time for time, event in (options.events or {}).items() if event in events}
    return {name: {times.get(other, other) for other in own} for name, own in needs.items()}


_NOT_OPTIONS = ("column", "method", "predictors", "rules", "smoothing", "with")


def plan_of(document: Mapping[str, Any], columns: Sequence[str]) -> SynthesisPlan:
    """Make the plan from what `SynthesisPlan.to_dict` gave."""
    all_methods()
    steps = []
    for entry in document["steps"]:
        options = {name: value for name, value in entry.items() if name not in _NOT_OPTIONS}
        name = entry["column"]
        steps.append(
            ColumnPlan(
                name,
                Method.named(entry["method"], options),
                tuple(entry["predictors"]),
                read_rules({name: entry["rules"]})[name] if entry.get("rules") else (),
                entry.get("smoothing"),
                tuple(entry.get("with", ())),
            )
        )
    order = {name for step in steps for name in (step.name, *step.with_columns)}
    return SynthesisPlan(
        columns=tuple(name for name in columns if name in order),
        steps=tuple(steps),
        rows=document["rows"],
        left_out=document["left_out"],
        warnings=tuple(document["warnings"]),
        settings=document["settings"],
    )


# In a model file a plan and its rules are what they are in a plan file.
stored_as("rule", Rule, dict[str, Any], Rule.to_dict, lambda own: Rule(own["when"], own.get("value")))
stored_as(
    "plan",
    SynthesisPlan,
    dict[str, Any],
    lambda plan: {**plan.to_dict(), "columns": list(plan.columns)},
    lambda own: plan_of(own, own["columns"]),
)
