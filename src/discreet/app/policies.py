"""The policy that a file is held against: a template, or a file of the house."""

from __future__ import annotations

from functools import cache
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.journey import Journey


@cache
def templates() -> dict[str, str]:
    """Return the policies that come with discreet: name and title."""
    from importlib.resources import files

    from discreet.policy import Policy

    found = {}
    for entry in sorted(files("discreet.policies").iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".toml"):
            name = entry.name.removesuffix(".toml")
            found[name] = Policy.load(name).name
    return found


def policy_choice(journey: Journey) -> None:
    """A field for the policy: one of the templates, or the path of a policy file."""
    known = dict(templates())
    if journey.policy not in known:
        known[journey.policy] = journey.policy

    def chosen(event: Any) -> None:
        _take(journey, str(event.value))

    with ui.element("div").classes("fields items-center"):
        widgets.choice(known, "Policy", journey.policy, on_change=chosen).mark("policy")
        own = widgets.field("Or a policy file (TOML)", placeholder="/data/our-policy.toml").mark(
            "policy-file"
        )
        widgets.plain("Use it", lambda: _take(journey, (own.value or "").strip() or journey.policy))


def _take(journey: Journey, policy: str) -> None:
    if policy != journey.policy:
        journey.policy = policy
        journey.suggestion, journey.comparison, journey.release = {}, {}, {}
        journey.log(f"Chose the policy {policy}.")
        journey.changed()
