"""The privacy budget of the file: what was spent, what is left, what that promises in plain words."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Held, Watch, refusals
from discreet.app.journey import Journey

_UNITS = {
    "record": "a record",
    "person": "a person",
    "household": "a household",
    "contributor": "a contributor",
}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    widgets.opening(
        "The privacy budget of this file",
        "Every release with a proved guarantee spends some of it. The ledger lies beside the file.",
    )
    watch.part(
        lambda: _found(journey),
        lambda: Held(journey.budget),
        watch.of_task("show_budget"),
        watch.of_task("open_budget"),
    )
    if journey.kind in ("file", "example") and not journey.running("show_budget"):
        journey.start(
            "show_budget",
            "Reading the ledger",
            lambda found: _keep(journey, found),
            lane="quick",
            source=journey.source,
        )


def _keep(journey: Journey, found: dict[str, Any]) -> None:
    journey.budget = found


def _found(journey: Journey) -> None:
    if journey.kind not in ("file", "example"):
        widgets.said(
            "A ledger lies beside a file. This one is an upload or a database: point to the file instead."
        )
        return
    for task in ("show_budget", "open_budget"):
        refusals(journey, task, "", "file", "ledger")
    if journey.running("show_budget") or journey.running("open_budget"):
        widgets.waiting("The ledger is being read.")
        return
    found = journey.budget
    if not found:
        return
    if not found["there"]:
        _opening(journey)
        return
    widgets.cards(
        [
            {
                "number": f"{found['epsilon']:g}",
                "label": "budget (epsilon)",
                "sentence": "Of all releases together.",
            },
            {
                "number": f"{found['spent']:.4g}",
                "label": "spent",
                "sentence": "By the releases entered so far.",
            },
            {"number": f"{found['left']:.4g}", "label": "left", "sentence": "For further releases."},
        ]
    )
    widgets.words(found["meaning"])
    if found["unproved"]:
        widgets.said(f"{found['unproved']} entries are not proved.")
    if found["closed"]:
        widgets.said("The ledger is closed: nothing more may be published from this source.")
    if found["records"]:
        names = list(found["records"][0])
        widgets.table(
            "Releases",
            [name.capitalize() for name in names],
            [[row[name] for name in names] for row in found["records"]],
        )


def _opening(journey: Journey) -> None:
    widgets.words(
        "There is no ledger beside this file. Set a budget once, before the first release with a guarantee."
    )
    with ui.element("section").classes("sheet").props('aria-label="Set a budget"'):
        with ui.element("div").classes("fields"):
            epsilon = widgets.number("Epsilon of all releases", 1.0, min=0).mark("epsilon")
            delta = widgets.number("Delta (0: none)", 0.0, min=0).mark("delta")
            unit = widgets.choice(_UNITS, "Whose privacy", "record").mark("unit")
        widgets.refusal(journey.refused("open_budget", "epsilon"))

        def go() -> None:
            journey.log("Set a privacy budget.")
            journey.start(
                "open_budget",
                "Making the ledger",
                lambda found: _keep(journey, found),
                lane="quick",
                source=journey.source,
                epsilon=epsilon.value,
                delta=delta.value or 0.0,
                unit=unit.value,
            )

        widgets.act("Set the budget", go).mark("set-budget")
