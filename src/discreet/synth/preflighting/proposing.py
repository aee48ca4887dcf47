"""From findings to a synthesizer: what each accepted finding sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.synth.methods.method import Method
from discreet.synth.methods.observed_values import Collinear, Near
from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.restoring import DERIVED, left_out
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.visit_sequence import in_order


def proposed_synthesizer(
    accepted: Sequence[Finding], order: Sequence[str], options: Mapping[str, Any]
) -> Sequential:
    """Set the parameters of a sequential synthesis by the findings; ``options`` stand over them."""
    gone = left_out(accepted, with_derived=False)
    codes = {
        f.column: list(f.parameters["codes"])
        for f in accepted
        if f.kind == "coded-missing" and not f.parameters.get("text") and f.column not in gone
    }
    for finding in accepted:
        if finding.kind == "coded-missing" and finding.column in codes:
            codes[finding.column] = sorted({*codes[finding.column], *finding.parameters["codes"]})
    codes |= written_numbers(accepted, gone)
    methods: dict[str, str | Method] = {}
    for finding in accepted:
        if finding.kind == "look-up" and finding.parameters["of"] not in gone and finding.column not in gone:
            methods[finding.column] = Collinear(of=_root(finding, accepted))
        # An expression knows nothing of codes; a column with coded inputs is modelled like any other.
        elif finding.kind in ("sum", "product") and not any(
            name in gone or (name in codes and name != finding.column) for name in finding.columns
        ):
            text = finding.parameters["expression"]
            methods[finding.column] = Near(expression=text) if finding.parameters.get("near") else f"~{text}"
    rules: dict[str, list[dict[str, Any]]] = {}
    edges: dict[str, set[str]] = {}
    for finding in accepted:
        blocked = any(name in gone for name in finding.columns) or finding.column in methods
        if finding.kind == "given-value" and not blocked:
            rule = {"when": finding.parameters["when"]}
            if "value" in finding.parameters:
                rule["value"] = finding.parameters["value"]
            rules.setdefault(finding.column, []).append(rule)
            edges.setdefault(finding.column, set()).add(finding.columns[1])
        if finding.kind in DERIVED and finding.column in methods:
            edges.setdefault(finding.column, set()).update(finding.columns[1:])
    spikes = {
        f.column: [v for v in f.parameters["values"] if v not in codes.get(f.column, ())]
        for f in accepted
        if f.kind == "spikes" and f.column not in gone and f.column not in methods
    }
    units = [f.column for f in accepted if f.kind == "household"]
    few = [f.parameters["distinct"] for f in accepted if f.kind == "few-values" and f.column not in gone]
    constraints = [
        f.parameters["constraint"]
        for f in accepted
        if f.kind == "inequality" and not any(name in gone for name in f.columns)
    ]
    proposed: dict[str, Any] = {
        "visit_sequence": tuple(in_order([name for name in order if name not in (*gone, *units)], edges)),
        "method": methods or "cart",
        "special_codes": {name: own for name, own in codes.items() if name not in methods} or None,
        "semicontinuous": {name: own for name, own in spikes.items() if own} or None,
        "rules": rules or None,
        "few_values": max(few, default=1),
        "constraints": tuple(constraints),
        "leave_out": tuple(gone) or None,
        "together": units[0] if units else "auto",
    }
    return Sequential(**(proposed | dict(options)))


def written_numbers(accepted: Sequence[Finding], gone: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the codes of every text column that is to be taken for numbers and can be written back."""
    found: dict[str, list[Any]] = {}
    for finding in accepted:
        if finding.kind == "number-as-text" and finding.reversible and finding.column not in gone:
            found[finding.column] = list(finding.parameters.get("codes", ()))
    return found


def _root(finding: Finding, accepted: Sequence[Finding]) -> str:
    """Follow a chain of look-ups to its start: what follows from a column that is looked up follows from its source."""
    source = str(finding.parameters["of"])
    behind = {f.column: str(f.parameters["of"]) for f in accepted if f.kind == "look-up"}
    for _ in behind:
        source = behind.get(source, source)
    return source
