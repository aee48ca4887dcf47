"""What the plan of a synthesis tells its user: broken rules, and columns that are no models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from discreet.core.value_gate import without_literals
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.column_forms import CategoryForm, Form, as_numbers
from discreet.synth.methods.observed_values import Constant, Keep, Passive
from discreet.synth.sequential.plan import ColumnPlan
from discreet.synth.sequential.rules import Rule, covered, parsed
from discreet.synth.smoothing import own_values
from discreet.synth.written_values import as_computed, as_read, way_of_writing

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential

_MANY_LEVELS = 50
_FEW_CODES = 6


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
                    f"{breaks:,} records of the data break the rule '{without_literals(rule.when)}' of column "
                    f"'{name}'. Synthetic records will keep it; check whether the rule or the data are right."
                )
    return found


def constraint_breaks(options: Sequential, frame: pl.DataFrame) -> list[str]:
    """Count the records of the data that break a constraint."""
    found = []
    for text in options.constraints:
        breaks = int((~frame.select(parse(text, frame.schema).value.fill_null(True)).to_series()).sum())
        if breaks:
            found.append(
                f"{breaks:,} records of the data break the constraint '{without_literals(text)}'. Synthetic records "
                "will keep it; check whether the constraint or the data are right."
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
    numbered = [step.name for step in steps if is_numbered(frame[step.name])]
    if numbered:
        found.append(
            f"Another whole number in every record, as identifiers have: {', '.join(numbered)}. Synthetic records "
            "would carry numbers of real ones; declare such columns as identifiers (identifiers=) to leave them out."
        )
    own = [
        step.name for step in steps if _is_of_one_record(step, frame[step.name]) and step.name not in numbered
    ]
    if own:
        found.append(
            f"Nearly every record has a number of its own, and donors pass it on as it is: {', '.join(own)}. Blur it "
            "with smoothing='adaptive', for all or by column, before the file goes out."
        )
    for step in steps:
        found += _numbers_in_texts(forms[step.name])
        if isinstance(step.method, Passive):
            found += _passive_breaks(step.name, step.method, frame, forms[step.name])
        if step.method.name == "collinear":
            of = getattr(step.method, "of", "")
            found.append(f"'{step.name}' is a one-to-one function of '{of}' and is looked up from it.")
    return found


def _is_of_one_record(step: ColumnPlan, series: pl.Series) -> bool:
    """Whether a column of donors holds numbers that tell whose they are."""
    if step.smoothing or not step.method.gives_observed_values or not series.dtype.is_numeric():
        return False
    return own_values(as_numbers(series).drop_nulls().to_numpy())


def _numbers_in_texts(form: Form) -> list[str]:
    """Say which categories are columns of numbers that one or two codes have turned into texts."""
    if not isinstance(form, CategoryForm) or form.dtype != pl.String or len(form.levels) <= _MANY_LEVELS:
        return []
    others = as_read(form.levels).null_count()
    if others > _FEW_CODES or way_of_writing(form.levels.filter(as_read(form.levels).is_not_null())) is None:
        return []
    codes = f"the {others:,} that are none" if others else "none: []"
    return [
        f"'{form.name}' is text, but {len(form.levels) - others:,} of its {len(form.levels):,} values are numbers. If "
        f"they are amounts and no mere labels, name its codes ({codes}) under special_codes: as a category it loses "
        "their order."
    ]


def unit_notes(
    options: Sequential, data: Microdata, frame: pl.DataFrame, columns: Sequence[str]
) -> list[str]:
    """Say that records which belong together in the data no longer do, where they are drawn one by one."""
    from discreet.synth.record_units import candidates, units_seen

    methods = options.method if isinstance(options.method, Mapping) else {}
    declared = [name for name in (data.roles.household, data.roles.person) if name is not None]
    modelled = [
        name for name in declared if name in columns and methods.get(name) not in ("keep", "", Keep())
    ]
    found = [
        f"Records are synthesized one by one: those that share '{name}' in the synthetic file have nothing else to do "
        "with each other. Take it out of method to draw them together, or leave it out."
        for name in modelled
    ]
    if declared or any(methods.get(name) in ("keep", "") for name in methods):
        return found
    free = [name for name in candidates(options, data) if name in columns]
    return [
        f"'{unit.column}' looks as if it said which records belong together: those that share it stand in a row and "
        f"are the same in {len(unit.same) + len(unit.counted_by)} other columns. They are drawn one by one, which "
        f"scrambles them; set together='{unit.column}' (or household=) to draw them as a whole, or leave it out."
        for unit in units_seen(frame, free)[:1]
    ]


def is_numbered(series: pl.Series) -> bool:
    """Whether a column numbers the records: whole, never twice, and in order or without large gaps.

    Examples
    --------
    >>> is_numbered(pl.Series(range(1, 101))), is_numbered(pl.Series([30, 40] * 50))
    (True, False)
    """
    known = series.rename("number").drop_nulls()
    if not series.dtype.is_integer() or len(known) < _MANY_LEVELS or known.n_unique() < len(known):
        return False
    reach = int(known.max()) - int(known.min())  # type: ignore[arg-type]
    return reach < 10 * len(known) or known.is_sorted() or known.is_sorted(descending=True)


def _passive_breaks(name: str, method: Passive, frame: pl.DataFrame, form: Form) -> list[str]:
    expression = parse(method.expression, frame.schema)
    computed = frame.select(expression.value.alias("c"))["c"]
    given = frame[name]
    if computed.dtype.is_numeric() and given.dtype.is_numeric():
        computed = as_computed(computed, pl.Float64(), form.decimals)
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
