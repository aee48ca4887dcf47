"""What a synthesis refuses before anything is fitted, each with the way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.dp.contributions import refuse_several_records
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.methods.method import JointMethod, Method
from discreet.synth.methods.observed_values import Constant, Keep, Near, Passive, Stratum
from discreet.synth.sequential.plan import ColumnPlan
from discreet.synth.sequential.rules import Rule, parsed

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
