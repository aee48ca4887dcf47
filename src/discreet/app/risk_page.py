"""How risky is the file? The verdict first, then what was found, for every intruder that is thought of."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.columns_page import live_figures, set_role
from discreet.app.desk import Desk
from discreet.app.forms import policy_choice
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import Journey


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "How risky is the file as it is?",
        "The file is held against a policy: limits that people have set. Every figure comes with what it means and "
        "when not to trust it.",
    ):
        return
    with ui.element("section").classes("sheet").props('aria-label="What it is held against"'):
        policy_choice(journey)
        watch.beside("assess_file", "policy")
        _keys(journey)
        watch.part(lambda: _scenarios(journey), lambda: repr(journey.scenarios), watch.of_task("assess_file"))
        widgets.act("Assess", lambda: assess(journey)).mark("assess")
    watch.part(
        lambda: _found(journey),
        lambda: Held(journey.assessment),
        lambda: Held(journey.live),
        watch.of_task("assess_file"),
        watch.of_task("live_figures"),
    )
    if (
        not journey.assessment
        and not journey.running("assess_file")
        and not journey.refusals.get("assess_file")
    ):
        assess(journey)


def assess(journey: Journey) -> None:
    """Assess the file in the background."""

    def then(found: dict[str, Any]) -> None:
        journey.assessment = found
        journey.log(f"Assessed the file: {found['line']}")

    journey.work(
        "assess_file",
        "Assessing the risk",
        then,
        policy=journey.policy,
        scenarios=journey.scenarios,
        show_values=journey.values_shown,
    )


def _keys(journey: Journey) -> None:
    names = [row["column"] for row in journey.columns]

    def changed(event: Any) -> None:
        wanted = list(event.value or ())
        dropped = [column for column in journey.holding("keys") if column not in wanted]
        if dropped:
            set_role(journey, dropped, "")
        if set(wanted) != set(journey.holding("keys")):
            set_role(journey, wanted, "keys")

    widgets.choice(
        names,
        "What the main intruder knows (keys)",
        journey.holding("keys"),
        multiple=True,
        on_change=changed,
    ).props("use-chips").classes("wide").mark("keys")


def _scenarios(journey: Journey) -> None:
    widgets.refusal(journey.refused("assess_file", "scenarios"))
    for name, keys in journey.scenarios.items():
        with ui.row().classes("items-center"):
            widgets.words(f"{name}: knows {', '.join(keys)}")
            widgets.plain(f"Remove {name}", lambda name=name: _drop(journey, name)).classes("low")
    with ui.expansion("Another intruder").mark("another"):
        with ui.element("div").classes("fields"):
            name = widgets.field("Who", placeholder="neighbor").mark("who")
            knows = widgets.choice(
                [row["column"] for row in journey.columns], "What they know", [], multiple=True
            )
            knows.props("use-chips").mark("knows")
        said = ui.element("div")

        def add() -> None:
            said.clear()
            if not (name.value or "").strip() or not knows.value:
                with said:
                    widgets.refusal("Say who it is and at least one column that they know.")
                return
            journey.scenarios = {**journey.scenarios, name.value.strip(): list(knows.value)}
            journey.changed()

        widgets.plain("Add", add).mark("add-scenario")


def _drop(journey: Journey, name: str) -> None:
    journey.scenarios = {one: keys for one, keys in journey.scenarios.items() if one != name}
    journey.changed()


def _found(journey: Journey) -> None:
    refusals(journey, "assess_file", "roles", "", "file")
    if journey.running("assess_file"):
        widgets.waiting("The risk is being measured. You can go on working on other pages.")
        return
    found = journey.assessment
    if not found:
        widgets.words("Not assessed with these settings yet. What the keys alone say:", "muted")
        live_figures(journey)
        return
    widgets.verdict(found["answer"])
    widgets.act("Next: protect it", lambda: ui.navigate.to(f"/{journey.number}/protect")).mark("next")
    widgets.heading("Key numbers", 2)
    widgets.cards(found["numbers"])
    widgets.rules(found["answer"])
    if found["not_judged"]:
        widgets.said(found["not_judged"])
    if any(row["state"] == "open" for row in found["answer"]["rows"]):
        widgets.words(
            "Rules that hold a release against its original are judged on the page Compare.", "muted"
        )
    if found["advice"]:
        widgets.heading("What to do next", 2)
        widgets.listed(found["advice"], ordered=True)
        if found["steps"]:
            widgets.plain("Put these steps into the plan", lambda: _take(journey, found["steps"])).mark(
                "advised"
            )
    for scenario in found["scenarios"]:
        _scenario(journey, scenario, several=len(found["scenarios"]) > 1)


def _scenario(journey: Journey, scenario: dict[str, Any], *, several: bool) -> None:
    widgets.heading(f"What was found: {scenario['name']}" if several else "What was found", 2)
    widgets.words(f"The intruder knows {', '.join(scenario['keys'])}.", "muted")
    widgets.heading("Who is exposed", 3)
    riskiest = scenario["riskiest"]
    if isinstance(riskiest, str):
        widgets.words(riskiest)
    elif riskiest:
        widgets.table(
            "The riskiest groups", riskiest["headings"], riskiest["rows"], numeric=riskiest["numeric"]
        )
    if not journey.values_shown:
        widgets.words("Which values these groups have is masked.", "muted small")
        widgets.plain("Show values (this is noted)", lambda: _show(journey)).mark("show-values")
    for chapter in scenario["chapters"]:
        widgets.chapter(chapter, 3)
        caveats = [f"{one['title']}: {caveat}" for one in chapter["findings"] for caveat in one["caveats"]]
        if caveats:
            with ui.expansion("When not to trust it"):
                widgets.listed(caveats)
    if scenario["skipped"]:
        with ui.expansion("What was left out, and why"):
            widgets.listed([f"{name}: {reason}" for name, reason in scenario["skipped"]])


def _take(journey: Journey, steps: list[dict[str, Any]]) -> None:
    from discreet.app.protect_page import take

    take(journey, steps, "Took over the steps that the assessment advises.")
    ui.navigate.to(f"/{journey.number}/protect")


def _show(journey: Journey) -> None:
    journey.show_values(True, "Risk")
    assess(journey)
