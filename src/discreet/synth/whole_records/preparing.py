"""How a file becomes variables that are modelled together, and how drawn variables become a file again.

A category is one variable of codes. A number is one variable of values; where it has missing values, special codes or
values at which it piles up (0 for most amounts), a variable of states stands beside it. A column that a constraint
defines (``total == a + b``) is not modelled: it is computed from the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, unknown_name
from discreet.microdata import Microdata
from discreet.synth.forms import Form, NumberForm, as_numbers, is_numeric, restored_form
from discreet.synth.intake import take_in
from discreet.synth.record_rules import (
    RecordRule,
    broken_records,
    derived_columns,
    read_rules,
    recomputed,
    repaired,
)
from discreet.synth.synthesizer import empty_like
from discreet.synth.variables import Variable

_PILE = 0.2  # the share of records with one value from which a column of numbers is taken for semicontinuous


@dataclass(frozen=True, eq=False)
class Blueprint:
    """The columns that are modelled, in order, and the rules that records keep.

    Attributes
    ----------
    forms
        How each modelled column becomes variables.
    constraints
        The rules, as they were written.
    schema
        Names and types of all columns of a drawn file, in the order of the original.
    """

    forms: Mapping[str, Form]
    constraints: tuple[str, ...]
    schema: Mapping[str, pl.DataType]

    @property
    def rules(self) -> tuple[RecordRule, ...]:
        """The constraints, read."""
        return read_rules(self.constraints, self.schema)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of variables of each modelled column: one, or two where it has states."""
        return tuple(
            2 if isinstance(form, NumberForm) and form.n_states > 1 else 1 for form in self.forms.values()
        )

    def variables(self, frame: pl.DataFrame) -> list[Variable]:
        """Return the variables of all modelled columns, one after the other."""
        return [variable for name, form in self.forms.items() for variable in form.split(frame[name])]

    def joined(self, parts: Sequence[Array]) -> pl.DataFrame:
        """Turn drawn variables into records; what a rule defines is computed, broken inequalities are mended."""
        columns, at = [], 0
        for form, width in zip(self.forms.values(), self.widths, strict=True):
            columns.append(form.joined(_within(form, parts[at : at + width])))
            at += width
        frame = pl.DataFrame(columns)
        rules = self.rules
        if rules:
            missing = [
                pl.Series(name, [None], dtype=kind).new_from_index(0, frame.height)
                for name, kind in self.schema.items()
                if name not in frame.columns
            ]
            frame = recomputed(frame.with_columns(missing), rules)
            frame = recomputed(repaired(frame, rules), rules)
        return pl.DataFrame({name: frame[name] for name in self.schema})

    def broken(self, frame: pl.DataFrame) -> pl.Series:
        """Say of each drawn record whether it still breaks a rule."""
        return broken_records(frame, self.rules)

    def state(self) -> dict[str, Any]:
        """Return the blueprint for a model file."""
        return {
            "forms": {name: form.state() for name, form in self.forms.items()},
            "constraints": list(self.constraints),
            "schema": {name: pl.Series(name, [], dtype=kind) for name, kind in self.schema.items()},
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Blueprint:
        """Make the blueprint again."""
        return cls(
            {name: restored_form(form) for name, form in state["forms"].items()},
            tuple(state["constraints"]),
            {name: empty.dtype for name, empty in state["schema"].items()},
        )


@dataclass(frozen=True, eq=False)
class Prepared:
    """A file as a generator of whole records takes it."""

    blueprint: Blueprint
    variables: Sequence[Variable]
    weights: Floats | None
    like: Microdata
    rows: int
    left_out: Mapping[str, str]


def prepare(plan: Any, data: Microdata) -> Prepared:
    """Read a file for a generator with the parameters all of them have.

    Examples
    --------
    >>> from discreet.synth import AdversarialForest
    >>> people = pl.DataFrame({"pay": [0.0] * 6 + [900.0, 1000.0, 1100.0, 1200.0], "sex": ["f", "m"] * 5})
    >>> [variable.name for variable in prepare(AdversarialForest(), Microdata(people)).variables]
    ['pay: state', 'pay', 'sex']
    """
    computed = _computed(plan.constraints, data)
    piled = dict(plan.semicontinuous or {})
    codes = {name: _listed(own) for name, own in (plan.special_codes or {}).items()}
    intake = take_in(
        data,
        leave_out=plan.leave_out,
        weights=plan.weights,
        special_codes=plan.special_codes,
        few_values=plan.few_values,
        apart=computed,
    )
    for name in piled:
        if name not in intake.forms:
            raise ColumnError(f"{unknown_name(name, intake.forms)} It was named under semicontinuous.")
    forms: dict[str, Form] = {}
    for name, form in intake.forms.items():
        series = intake.frame[name]
        if isinstance(form, NumberForm) and is_numeric(series.dtype):
            fixed = [*codes.get(name, ()), *_listed(piled[name] if name in piled else piles(series))]
            if any(not isinstance(value, Real) or isinstance(value, bool) for value in fixed):
                raise ColumnError(f"Column '{name}' holds numbers: name numbers for it under semicontinuous.")
            forms[name] = NumberForm.of(series, fixed=[float(value) for value in fixed]) if fixed else form
        else:
            forms[name] = form
    kept = [name for name in data.columns if name in forms or name in computed]
    frame = intake.frame.select(kept)
    blueprint = Blueprint(forms, tuple(plan.constraints), dict(frame.schema))
    return Prepared(
        blueprint,
        blueprint.variables(intake.frame),
        intake.weights,
        empty_like(data, frame),
        intake.rows,
        intake.left_out,
    )


def piles(series: pl.Series) -> list[float]:
    """Name the values that a fifth of the records or more have, in a column of numbers.

    Examples
    --------
    >>> piles(pl.Series([0, 0, 0, 5, 7, 8, 9, 11]))
    [0.0]
    """
    numbers = as_numbers(series).drop_nulls()
    if len(numbers) < 5:
        return []
    values, counts = np.unique(numbers.to_numpy(), return_counts=True)
    return [float(value) for value in values[counts >= _PILE * len(numbers)]]


def _computed(constraints: Sequence[str], data: Microdata) -> list[str]:
    """Name the columns that rules define, of those that the file has."""
    if not constraints:
        return []
    from discreet import engine

    rules = read_rules(constraints, engine.collect(data).schema)
    return [name for name in derived_columns(rules) if name in data.schema]


def _within(form: Form, parts: Sequence[Array]) -> Sequence[Array]:
    """Keep drawn numbers within the range of the observed ones."""
    if not isinstance(form, NumberForm):
        return parts
    return [*parts[:-1], np.clip(np.asarray(parts[-1], dtype=np.float64), form.low, form.high)]


def _listed(value: Any) -> list[Any]:
    return [value] if np.isscalar(value) else list(value)
