"""Rules of a file: where a condition holds, a column has a given value.

Records of the data that a rule covers are left out of the fit; synthetic records that it covers get its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import DiscreetError, ParameterError
from discreet.expressions import Expression, parse
from discreet.synth.written_values import typed, written


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
    return {column: tuple(_rule(column, entry) for entry in _listed(entries))
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


def _listed(entries: Any) -> Sequence[Any]:
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
