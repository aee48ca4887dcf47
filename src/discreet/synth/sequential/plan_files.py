"""A synthesis plan read back from a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.synth.methods.method import Method, all_methods
from discreet.synth.sequential.plan import ColumnPlan, SynthesisPlan
from discreet.synth.sequential.rules import read_rules

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
