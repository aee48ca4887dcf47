"""From what a user asks for, and what the data are like, to the plan of a synthesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.column_forms import Form, NumberForm, check_named, columns_named
from discreet.synth.methods import observed_values
from discreet.synth.methods.glm_methods import Binomial
from discreet.synth.methods.joint_methods import SurvivalTree
from discreet.synth.methods.method import JointMethod, Method
from discreet.synth.methods.observed_values import Constant, Keep, Near, Passive, Stratum
from discreet.synth.sequential import method_choice, plan_checks, synthesis_plan
from discreet.synth.sequential.fitting_records import design_effect, some_are_small, weight_notes, weight_use
from discreet.synth.smoothing import SMOOTHINGS

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


# A constant says nothing, a one-to-one copy nothing new, and a nested column is too fine to predict others.
_NO_PREDICTOR = (Constant, Stratum, observed_values.Nested, observed_values.Collinear)


def plan_synthesis(
    options: Sequential,
    data: Microdata,
    frame: pl.DataFrame,
    *,
    known: Mapping[str, pl.Series] | None = None,
) -> tuple[synthesis_plan.SynthesisPlan, dict[str, Form]]:
    """Check what was asked for against the data and decide everything before anything is fitted.

    ``known`` are all values that a column may have where ``frame`` has only some of them.
    """
    rules = synthesis_plan.read_rules(options.rules)
    method_choice.check_options(options)
    left_out = left_out_of(options, data)
    columns = tuple(name for name in data.columns if name not in left_out)
    plan_checks.check_names(options, rules, columns, left_out)
    plan_checks.check_columns(columns, left_out)
    if frame.height < 2:
        raise ParameterError(f"A synthesis needs at least two records; the file has {frame.height}.")
    forms = method_choice.column_forms(options, data, columns_named(frame, columns), rules, known or {})
    strata = _strata(options, data, columns)
    events = _events(options, frame)
    plan_checks.check_constraints(options, frame, columns)
    order = _visit_sequence(options, data, frame, forms=forms, columns=columns, events=tuple(events))
    for event in events:
        plan_checks.check_event(frame[event])
    methods = {
        name: _method(options, name, forms[name], frame[name]) for name in columns if name not in events
    }
    methods |= {name: Stratum() for name in strata}
    methods |= _constants(frame, methods)
    methods |= method_choice.collinear_pairs(options, frame, forms, methods, order)
    plan_checks.check_joint(methods, order)
    plan_checks.check_epsilon(options, methods, data, frame, strata=strata, weights=weight_use(options, data))
    allowed = predictor_sets(options, columns)
    steps = _passive_needs(
        _steps(
            options,
            order,
            methods,
            allowed=allowed,
            rules=rules,
            events=events,
            forms=forms,
            strata_predict=some_are_small(options, frame, strata, columns),
        ),
        frame.schema,
    )
    plan_checks.check_rules(rules, steps, frame)
    plan = synthesis_plan.SynthesisPlan(
        columns=columns,
        steps=tuple(steps),
        rows=frame.height,
        left_out=left_out,
        warnings=(
            *plan_checks.step_notes(steps, frame, forms, rules),
            *plan_checks.unit_notes(options, data, frame, columns),
            *plan_checks.rule_breaks(rules, frame),
            *plan_checks.constraint_breaks(options, frame),
            *weight_notes(options, data, frame, strata),
        ),
        settings={
            "proper": options.proper,
            "strata": list(strata),
            "weights": weight_use(options, data),
            **design_effect(options, data, frame),
        },
    )
    return plan, forms


def left_out_of(options: Sequential, data: Microdata) -> dict[str, str]:
    """Name the columns that the synthetic file will not have, and why."""
    named = set(options.method) if isinstance(options.method, Mapping) else set()
    asked = method_choice.names_in(options.leave_out, "leave_out")
    check_named({"leave_out": asked}, data.columns)
    reasons = dict.fromkeys(asked, "as asked for")
    for name in data.roles.identifiers:
        if name not in named:
            reasons.setdefault(name, "an identifier")
    if options.together == "no":
        for role in ("household", "person"):
            name = getattr(data.roles, role)
            if name and name not in named:
                reasons.setdefault(name, f"a {role}, whose records are drawn one by one")
    if data.roles.weight and weight_use(options, data) != "synthesize":
        reasons.setdefault(
            data.roles.weight, "the weight, which synthetic records of a population do not need"
        )
    return {name: reasons[name] for name in data.columns if name in reasons}


def _strata(options: Sequential, data: Microdata, columns: Sequence[str]) -> tuple[str, ...]:
    strata = method_choice.names_in(options.strata, "strata")
    for name in strata:
        check_named({"strata": (name,)}, columns)
        if isinstance(options.method, Mapping) and name in options.method:
            raise ParameterError(
                f"Column '{name}' is a stratum, whose value is known before a record is drawn. Take it out of "
                "method or out of strata."
            )
    return strata


def _visit_sequence(
    options: Sequential,
    data: Microdata,
    frame: pl.DataFrame,
    *,
    forms: Mapping[str, Form],
    columns: Sequence[str],
    events: Sequence[str],
) -> list[str]:
    asked = options.visit_sequence
    visited = [name for name in columns if name not in events]
    if asked is None or asked == "file":
        return _weight_last(visited, data)
    if isinstance(asked, str):
        from discreet.synth.sequential.visit_sequence import choose_order, in_order

        chosen = choose_order(data, by=asked, columns=visited, forms=forms, frame=frame).order
        needs = synthesis_plan.needed_before(options, frame.schema, events)
        return in_order(_weight_last(list(chosen), data), needs)
    named = list(asked)
    for name in named:
        check_named({"visit_sequence": (name,)}, columns)
        if name in events:
            raise ParameterError(
                f"'{name}' is the event of a survival time and is drawn together with it. Take it out of "
                "visit_sequence."
            )
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise ColumnError(f"Column '{twice[0]}' stands twice in visit_sequence. Name it once.")
    given = method_choice.names_in(options.strata, "strata")
    absent = [name for name in visited if name not in (*named, *given) and not _is_kept(options, name)]
    if absent:
        raise ColumnError(
            f"visit_sequence does not say when column '{absent[0]}' comes. Add it, or name it under leave_out, or "
            f"keep it as it is with method={{'{absent[0]}': 'keep'}}."
        )
    return [name for name in visited if name not in named] + named


def _weight_last(order: list[str], data: Microdata) -> list[str]:
    """Put a weight that is synthesized at the end, where all other columns predict it."""
    weight = data.roles.weight
    return [*(name for name in order if name != weight), weight] if weight in order and weight else order


def _is_kept(options: Sequential, name: str) -> bool:
    kept = ("", "keep", Keep(), Keep().to_dict())
    return isinstance(options.method, Mapping) and options.method.get(name) in kept


def _method(options: Sequential, name: str, form: Form, series: pl.Series) -> Method:
    if options.denominators and name in options.denominators:
        _check_one_method(options, name, Binomial, "denominators")
        return Binomial(of=options.denominators[name])
    if options.events and name in options.events:
        _check_one_method(options, name, SurvivalTree, "events")
        return method_choice.named_method(options, SurvivalTree.name)
    return method_choice.method_of(options, name, form, series)


def _check_one_method(options: Sequential, name: str, kind: type[Method], setting: str) -> None:
    """Refuse another method for a column whose method its role already says."""
    asked = options.method.get(name, kind.name) if isinstance(options.method, Mapping) else kind.name
    if asked not in (kind.name, *kind.also):
        raise ParameterError(
            f"Column '{name}' is named under {setting}, which models it by '{kind.name}', and under method. Take it "
            "out of one of them."
        )


def _constants(frame: pl.DataFrame, methods: Mapping[str, Method]) -> dict[str, Method]:
    return {
        name: Constant()
        for name, method in methods.items()
        if not isinstance(method, Keep | Passive | Stratum | SurvivalTree)
        and getattr(method, "epsilon", None) is None
        and frame[name].n_unique() == 1
    }


def predictor_sets(options: Sequential, columns: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Read the predictor matrix: a square of zeros and ones in data order, or the predictors of some columns."""
    given = options.predictor_matrix
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = {
            name: method_choice.names_in(predictors, f"predictor_matrix of '{name}'")
            for name, predictors in given.items()
        }
        for name, predictors in given.items():
            check_named({"predictor_matrix": (name, *predictors)}, columns)
            if name in predictors:
                raise ParameterError(f"predictor_matrix lets column '{name}' predict itself. Take it out.")
        return given
    try:
        matrix = np.asarray(given)
    except ValueError as error:
        raise ParameterError("predictor_matrix has rows of different length; it must be a square.") from error
    if matrix.shape != (len(columns), len(columns)):
        raise ParameterError(
            f"predictor_matrix has the shape {matrix.shape}; there are {len(columns)} columns to synthesize, so it "
            f"must be {len(columns)} by {len(columns)}, in the order of the data."
        )
    if not np.isin(matrix, (0, 1)).all():
        raise ParameterError("predictor_matrix holds 0 and 1 only.")
    if np.diag(matrix).any():
        name = columns[int(np.flatnonzero(np.diag(matrix))[0])]
        raise ParameterError(f"predictor_matrix lets column '{name}' predict itself. Set its diagonal to 0.")
    return {name: tuple(np.array(columns)[matrix[row] == 1]) for row, name in enumerate(columns)}


def _steps(
    options: Sequential,
    order: Sequence[str],
    methods: Mapping[str, Method],
    *,
    allowed: Mapping[str, tuple[str, ...]] | None,
    rules: Mapping[str, tuple[synthesis_plan.Rule, ...]],
    events: Mapping[str, str],
    forms: Mapping[str, Form],
    strata_predict: bool,
) -> list[synthesis_plan.ColumnPlan]:
    silent = tuple(kind for kind in _NO_PREDICTOR if not (strata_predict and kind is Stratum))
    first = [name for name in order if isinstance(methods[name], Keep | Stratum)]
    joint = [name for name in order if methods[name].name in ("catall", "ipf")]
    if joint and any(isinstance(methods[name], Keep) for name in first):
        raise ParameterError("A joint table (catall, ipf) cannot be drawn for records that are partly kept.")
    rest = [name for name in order if name not in first and name not in joint]
    steps = [synthesis_plan.ColumnPlan(name, methods[name]) for name in first]
    if joint:
        steps.append(synthesis_plan.ColumnPlan(joint[0], methods[joint[0]], with_columns=tuple(joint[1:])))
    usable = [name for name in (*first, *joint) if not isinstance(methods[name], silent)]
    if not joint and not rest:
        raise ParameterError(
            "Every column is kept as it is or a stratum, so there is nothing to synthesize. Name a method for one."
        )
    for name in rest:
        method = methods[name]
        with_columns = tuple(event for event, time in events.items() if time == name)
        predictors = _predictors_of(name, method, usable, allowed, order=order)
        if method.needs_predictors and not predictors and not isinstance(method, JointMethod | Near):
            method = observed_values.drawn_alone(method)
        if not method.needs_predictors:
            predictors = ()
        steps.append(
            synthesis_plan.ColumnPlan(
                name,
                method,
                predictors,
                rules.get(name, ()),
                _smoothing(options, name, method, forms[name]),
                with_columns,
            )
        )
        if not isinstance(method, silent):
            usable += [name, *with_columns]
    return steps


def _predictors_of(
    name: str,
    method: Method,
    usable: Sequence[str],
    allowed: Mapping[str, tuple[str, ...]] | None,
    *,
    order: Sequence[str],
) -> tuple[str, ...]:
    partner = getattr(method, "within", getattr(method, "of", None))
    if partner == "" and partner not in order:
        raise ParameterError(
            f"Column '{name}' is to be nested, but not said in what. Write the coarser column: 'nested.other'."
        )
    if partner is not None and partner not in order:
        raise ColumnError(f"{unknown_name(partner, order)} It was named for column '{name}'.")
    # Trials may be the same number in all records; they are no predictor then, but still what is counted out of.
    there = order[: order.index(name)] if isinstance(method, Binomial) else usable
    if partner is not None and partner not in there:
        raise ParameterError(
            f"Column '{name}' is drawn by '{method.name}' from '{partner}', which must come before it in "
            "visit_sequence and be able to predict: not be constant, nested or looked up itself."
        )
    if method.name in ("nested", "collinear"):
        return (str(partner),)
    chosen = tuple(
        other for other in usable if allowed is None or name not in allowed or other in allowed[name]
    )
    return chosen if partner is None else (str(partner), *(other for other in chosen if other != partner))


def _smoothing(options: Sequential, name: str, method: Method, form: Form) -> str | None:
    asked = options.smoothing.get(name) if isinstance(options.smoothing, Mapping) else options.smoothing
    if asked is None:
        return None
    if asked not in SMOOTHINGS:
        raise ParameterError(unknown_name(str(asked), SMOOTHINGS, what="smoothing"))
    by_name = isinstance(options.smoothing, Mapping)
    if not isinstance(form, NumberForm) or not method.gives_observed_values:
        if by_name:
            raise ParameterError(
                f"Column '{name}' cannot be smoothed: only numbers that are drawn from donors are "
                f"(it is modelled by '{method.name}')."
            )
        return None
    return str(asked)


def _events(options: Sequential, frame: pl.DataFrame) -> dict[str, str]:
    """Return the time that each event column belongs to."""
    events: dict[str, str] = {}
    for time, event in (options.events or {}).items():
        if not event:
            continue
        if event in events or event in (options.events or {}):
            raise ParameterError(
                f"Column '{event}' stands twice under events. Every time has an event of its own."
            )
        named = {**(options.rules or {}), **(options.method if isinstance(options.method, Mapping) else {})}
        if event in named:
            raise ParameterError(
                f"'{event}' is the event of a survival time and is drawn together with it. Take it out of method and "
                "rules."
            )
        events[event] = time
    return events


def _passive_needs(
    steps: Sequence[synthesis_plan.ColumnPlan], schema: Mapping[str, Any]
) -> list[synthesis_plan.ColumnPlan]:
    """Put the columns that an expression speaks of as predictors of a passive column, and check their order."""
    place = {name: at for at, step in enumerate(steps) for name in (step.name, *step.with_columns)}
    done = []
    for at, step in enumerate(steps):
        if not isinstance(step.method, Passive | Near):
            done.append(step)
            continue
        needs = parse(step.method.expression, schema).columns
        late = [name for name in needs if place.get(name, len(steps)) >= at]
        if late:
            raise ParameterError(
                f"Column '{step.name}' is computed from '{late[0]}', which must come earlier in visit_sequence."
            )
        done.append(replace(step, predictors=needs) if isinstance(step.method, Passive) else step)
    return done
