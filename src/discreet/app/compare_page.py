"""What did the protection cost, and what could attackers still do?"""

from __future__ import annotations

from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Held, Watch, refusals
from discreet.app.journey import Journey


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    widgets.opening(
        "What did it cost, and what is left of the risk?",
        "The release is judged by the whole policy and held against its original, column by column and attack by "
        "attack.",
    )
    if not journey.is_read or not journey.steps:
        widgets.said("There is no plan yet that could be compared.")
        widgets.act("To the plan", lambda: ui.navigate.to(f"/{journey.number}/protect"))
        return
    watch.part(lambda: _found(journey), lambda: Held(journey.comparison), watch.of_task("compare_release"))
    if (
        not journey.comparison
        and not journey.running("compare_release")
        and not journey.refusals.get("compare_release")
    ):
        compare(journey)


def compare(journey: Journey, *, thorough: bool = False) -> None:
    """Judge and compare in the background."""

    def then(found: dict[str, Any]) -> None:
        journey.comparison = found
        journey.log(f"Judged the release: {found['line']}")

    journey.work(
        "compare_release",
        "Judging the release and comparing it with the original",
        then,
        steps=journey.steps,
        policy=journey.policy,
        seed=journey.seed,
        thorough=thorough,
        show_values=journey.values_shown,
    )


def _found(journey: Journey) -> None:
    refusals(journey, "compare_release", "", "file", "roles", "policy", "steps")
    if journey.running("compare_release"):
        widgets.waiting("The release is being judged and compared. You can go on working on other pages.")
        return
    found = journey.comparison
    if not found:
        widgets.act("Compare", lambda: compare(journey)).mark("compare")
        return
    widgets.verdict(found["answer"])
    if found["identifiers"]:
        widgets.refusal(
            f"The release still holds what names people: {', '.join(found['identifiers'])}. No rule of a policy looks "
            "at that. Add the step drop-identifiers on the page Protect."
        )
    # What should be done next stands first and stands out: a plan that does not pass wants to be changed.
    meets = found["answer"]["state"] == "pass" and not found["identifiers"]
    ways = [
        ("Next: release it", lambda: ui.navigate.to(f"/{journey.number}/release"), "next"),
        ("Change the plan", lambda: ui.navigate.to(f"/{journey.number}/protect"), "change"),
    ]
    with ui.row():
        for draw, (words, go, mark) in zip(
            (widgets.act, widgets.plain), ways if meets else reversed(ways), strict=True
        ):
            draw(words, go).mark(mark)
    widgets.rules(found["answer"])
    widgets.heading("The risk, before and after", 2)
    risk_table(found["risks"])
    widgets.heading("What it cost", 2)
    widgets.words(found["cost"])
    widgets.cards(found["cards"])
    losses = found["losses"]
    if losses and losses["rows"]:
        widgets.table("What each column lost", losses["headings"], losses["rows"], numeric=losses["numeric"])
    compared = found["compared"]
    widgets.heading("What went wrong first", 2)
    widgets.listed(compared["worst"])
    if compared["clear"]:
        widgets.words(compared["clear"])
    widgets.cards(compared["cards"])
    for chapter in compared["chapters"]:
        widgets.chapter(chapter, 2)
    widgets.listed([*found["caveats"], found["not_judged"]] if found["not_judged"] else found["caveats"])
    if not found["thorough"]:
        widgets.words(
            "These are the measures most people ask for. The verdict above is by the whole policy.", "muted"
        )
        widgets.plain("Compare by all measures", lambda: compare(journey, thorough=True)).mark("thorough")
    if compared["skipped"]:
        with ui.expansion("What was left out, and why"):
            widgets.listed([f"{name}: {reason}" for name, reason in compared["skipped"]])


def risk_table(rows: list[dict[str, Any]]) -> None:
    """The risk before and after, one measure a row."""
    if not rows:
        return
    names = [name for name in rows[0] if name not in ("state", "mark", "tone")]
    widgets.table(
        "Figures of the original and of the release",
        ["Figure" if name == "label" else name.capitalize() for name in names],
        [[str(row[name]) for name in names] for row in rows],
    )
