"""Which columns must be there before another can be drawn: those its rules, its formula or its method speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.expressions import parse
from discreet.synth.sequential.rules import parsed, read_rules

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


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
