"""What a synthesis refuses before anything is fitted, each with the way out, and what its plan tells the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.value_gate import without_literals
from discreet.dp.sensitivity import refuse_several_records
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.column_forms import CategoryForm, Form, as_numbers
from discreet.synth.methods.method import JointMethod, Method
from discreet.synth.methods.observed_values import Constant, Keep, Near, Passive, Stratum
from discreet.synth.sequential.synthesis_plan import ColumnPlan, Rule, covered, parsed
from discreet.synth.smoothing import own_values
from discreet.synth.written_values import as_computed, as_read, way_of_writing

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


def check_columns(columns: Sequence[str], left_out: Mapping[str, str] | None = None) -> None:
    """Refuse a file with fewer than two columns: there is nothing to model one column by."""
    if len(columns) >= 2:
        return
    there = "no column" if not columns else f"only the column '{columns[0]}'"
    way_out = (
        f"{len(left_out)} are left out ({', '.join(left_out)}): leave out fewer."
        if left_out
        else "Add columns that have to do with it."
    )
    raise ParameterError(f"A synthesis needs at least two columns; there is {there}. {way_out}")


def check_names(
    options: Sequential,
    rules: Mapping[str, Any],
    columns: Sequence[str],
    left_out: Mapping[str, str],
) -> None:
    """Refuse settings of columns that are not there or are left out."""
    settings: dict[str, Any] = {
        "rules": rules,
        "special_codes": options.special_codes,
        "semicontinuous": options.semicontinuous,
        "number_groups": options.number_groups,
        "events": options.events,
        "denominators": options.denominators,
        "method": options.method if isinstance(options.method, Mapping) else {},
        "smoothing": options.smoothing if isinstance(options.smoothing, Mapping) else {},
    }
    for setting, given in settings.items():
        partners = [other for other in (given or {}).values() if isinstance(other, str) and other]
        also = partners if setting in ("events", "denominators") else []
        for name in (*(given or {}), *also):
            if name in left_out:
                raise ColumnError(
                    f"Column '{name}' is left out ({left_out[name]}) but named under {setting}."
                )
            if name not in columns:
                raise ColumnError(f"{unknown_name(name, columns)} It was named under {setting}.")


def check_joint(methods: Mapping[str, Method], order: Sequence[str]) -> None:
    """A joint table is drawn before everything else, so its columns must come first."""
    free = [name for name in order if not isinstance(methods[name], Keep | Stratum | Constant)]
    joint = [
        isinstance(methods[name], JointMethod) and methods[name].name in ("catall", "ipf") for name in free
    ]
    if any(joint) and not all(joint[: sum(joint)]):
        late = free[max(place for place, is_joint in enumerate(joint) if is_joint)]
        raise ParameterError(
            f"The columns of a joint table (catall, ipf) come first; '{late}' comes after a column that is modelled "
            "otherwise. Put it first in visit_sequence."
        )
    tables = [methods[name] for name, is_joint in zip(free, joint, strict=True) if is_joint]
    if any(method != tables[0] for method in tables):
        raise ParameterError(
            "The columns of a joint table share one method with one set of options. Name catall for all of them, or "
            "ipf."
        )


def check_event(event: pl.Series) -> None:
    """Refuse a column that does not say of every record whether it had the event, or says that none had."""
    told = event.dtype == pl.Boolean or event.dtype.is_numeric()
    happened = event.rename("event").cast(pl.Float64) if told else event
    if not told or event.null_count() or not happened.is_in([0.0, 1.0]).all():
        raise ColumnError(
            f"The event column '{event.name}' must hold 0 and 1, or false and true, and no missing values."
        )
    if not (happened == 1.0).any():
        raise ColumnError(
            f"The event column '{event.name}' has no events. Name no event column if nothing is censored."
        )


def check_epsilon(
    options: Sequential,
    methods: Mapping[str, Method],
    data: Microdata,
    frame: pl.DataFrame,
    *,
    strata: Sequence[str],
    weights: str,
) -> None:
    """Refuse a privacy parameter that what is done would not honor."""
    private = [name for name, method in methods.items() if getattr(method, "epsilon", None) is not None]
    if not private:
        return
    refuse_several_records(data)
    others = [name for name, method in methods.items() if method != methods[private[0]]]
    # The noise is that of counts; the weight of one record may be as large as all others together.
    weighted = weights in ("use", "regenerate")
    if others or strata or options.proper or weighted:
        what = (
            f"column '{others[0]}' is modelled without noise"
            if others
            else "the weights of records are used (set weights='ignore')"
            if weighted
            else "strata or proper use the data apart from it"
        )
        raise ParameterError(
            f"epsilon cannot be honored: {what}. Differential privacy holds only where every column is in the noisy "
            "table and nothing else is learned from the data. Leave the other columns out, or leave epsilon out."
        )
    for name in private:
        if not isinstance(frame[name].dtype, pl.Enum | pl.Boolean):
            raise ColumnError(
                f"epsilon cannot be honored: the levels of column '{name}' would be read off the data. Declare them: "
                "cast the column to an Enum (a pandas ordered category) with all the levels it may have."
            )


def check_rules(
    rules: Mapping[str, tuple[Rule, ...]], steps: Sequence[ColumnPlan], frame: pl.DataFrame
) -> None:
    """Refuse rules of columns that leave no room for them, and rules that need a later column."""
    place = {name: at for at, step in enumerate(steps) for name in (step.name, *step.with_columns)}
    for name, own in rules.items():
        step = steps[place[name]]
        if isinstance(step.method, Keep | Passive | Near | Stratum | JointMethod) or name != step.name:
            raise ParameterError(
                f"Column '{name}' has rules, but '{step.method.name}' leaves no room for them."
            )
        for expression in parsed(own, name, frame.schema):
            late = [other for other in expression.columns if place.get(other, len(steps)) >= place[name]]
            if late:
                raise ParameterError(
                    f"The rule '{expression.text}' of column '{name}' needs column '{late[0]}', which must come "
                    "earlier in visit_sequence."
                )


def check_constraints(options: Sequential, frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse constraints that are no conditions on columns of the synthetic file."""
    for text in options.constraints:
        expression = parse(text, {name: frame.schema[name] for name in columns})
        if not expression.columns or expression.kind not in ("condition", "any"):
            raise ParameterError(
                f"The constraint '{text}' must be a condition on columns, e.g. 'age >= 16'. Compare something."
            )


# What the plan of a synthesis tells its user: broken rules, and columns that are no models.
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
    from discreet.synth.sequential.whole_units import candidates, units_seen

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
