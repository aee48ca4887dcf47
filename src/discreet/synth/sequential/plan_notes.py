"""What the plan of a synthesis tells its user: broken rules, and columns that are no models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from discreet.expressions import parse
from discreet.synth.forms import Form, NumberForm
from discreet.synth.methods.given import Constant, Keep, Passive
from discreet.synth.sequential.plan import ColumnPlan
from discreet.synth.sequential.rules import Rule, covered, parsed

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


def rule_breaks(rules: Mapping[str, tuple[Rule, ...]], frame: pl.DataFrame) -> list[str]:
    """Count the records of the data that break a rule."""
    found = []
    for name, own in rules.items():
        hit = covered(own, parsed(own, name, frame.schema), frame)
        if (hit >= 0).all():
            found.append(
                f"The rules of column '{name}' cover every record of the data. A synthetic record that they do not "
                "cover gets a value that one of these has; narrow the rules if that is not meant."
            )
        for number, rule in enumerate(own):
            value = rule.typed(name, frame[name].dtype)
            column = pl.DataFrame({"column": frame[name]}).select(
                pl.col("column").ne_missing(pl.lit(value).first())
            )
            breaks = int((column.to_series().to_numpy() & (hit == number)).sum())
            if breaks:
                found.append(
                    f"{breaks:,} records of the data break the rule '{rule.when}' of column '{name}'. Synthetic "
                    "records will keep it; check whether the rule or the data are right."
                )
    return found


def constraint_breaks(options: Sequential, frame: pl.DataFrame) -> list[str]:
    """Count the records of the data that break a constraint."""
    found = []
    for text in options.constraints:
        breaks = int((~frame.select(parse(text, frame.schema).value.fill_null(True)).to_series()).sum())
        if breaks:
            found.append(
                f"{breaks:,} records of the data break the constraint '{text}'. Synthetic records will keep it; check "
                "whether the constraint or the data are right."
            )
    return found


def step_notes(
    steps: Sequence[ColumnPlan],
    frame: pl.DataFrame,
    forms: Mapping[str, Form],
    rules: Mapping[str, tuple[Rule, ...]],
) -> list[str]:
    """Say which columns are not modelled, and whether there are enough records."""
    found = []
    columns = sum(not isinstance(step.method, Keep) for step in steps)
    if frame.height < 100 + 10 * columns:
        found.append(
            f"{frame.height:,} records are few for {columns} columns; at least {100 + 10 * columns:,} are advised. "
            "Synthesize fewer columns or name fewer predictors."
        )
    constant = [step.name for step in steps if isinstance(step.method, Constant)]
    if constant:
        found.append(f"Constant in the data, so constant in the synthetic file: {', '.join(constant)}.")
    for step in steps:
        if isinstance(step.method, Passive):
            found += _passive_breaks(step.name, step.method, frame, forms[step.name])
        if step.method.name == "collinear":
            of = getattr(step.method, "of", "")
            found.append(f"'{step.name}' is a one-to-one function of '{of}' and is looked up from it.")
    return found


def _passive_breaks(name: str, method: Passive, frame: pl.DataFrame, form: Form) -> list[str]:
    expression = parse(method.expression, frame.schema)
    computed = frame.select(expression.value.alias("c"))["c"]
    given = frame[name]
    if isinstance(form, NumberForm) and computed.dtype.is_numeric():
        computed = computed.cast(pl.Float64)
        computed = computed if form.decimals is None else computed.round(form.decimals)
        unit = 0.0 if form.decimals is None else 10.0**-form.decimals
        given_number = given.cast(pl.Float64)
        # A value printed with seven digits is right to seven digits, however many decimals it shows.
        slack = (given_number.abs() * 1e-6).fill_null(0.0).clip(unit * 0.5000001)
        differ = ((given_number - computed).abs() > slack).fill_null(False)
    else:
        differ = (given.cast(pl.String) != computed.cast(pl.String)).fill_null(False)
    differ = differ | (given.is_null() != computed.is_null())
    count = int(differ.sum())
    if not count:
        return []
    return [
        f"'{name}' is not '{method.expression}' in {count:,} records of the data; in the synthetic file it always is. "
        "Check the expression."
    ]
