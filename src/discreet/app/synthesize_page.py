"""A synthetic version: what would spoil it, accepted or declined; order, rules, copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import Journey


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "A synthetic version",
        "Records of nobody that analyses can be tried on. First the file is looked at: codes, totals, rules and "
        "outliers that a synthesis would spoil. Accept what is to be taken care of.",
    ):
        return
    watch.part(lambda: _looked(journey, watch), lambda: Held(journey.look), watch.of_task("look_before"))
    watch.part(lambda: _made(journey), lambda: Held(journey.copies), watch.of_task("make_copies"))


def look(journey: Journey) -> None:
    """Look at the file before its synthesis, in the background."""

    def then(found: dict[str, Any]) -> None:
        journey.look = found
        journey.log(f"Looked at the file before a synthesis: {len(found['findings'])} findings.")

    journey.work("look_before", "Looking at the file", then)


def make(journey: Journey, **asked: Any) -> None:
    """Fit, draw and compare in the background."""

    def then(found: dict[str, Any]) -> None:
        journey.copies = found
        journey.log(f"Made {found['copies']} synthetic copies.")

    journey.work("make_copies", "Making synthetic copies", then, seed=journey.seed, **asked)


def _looked(journey: Journey, watch: Watch) -> None:
    refusals(journey, "look_before", "", "file", "roles")
    if journey.running("look_before"):
        widgets.waiting("The file is being looked at.")
        return
    if not journey.look:
        widgets.act("Look at the file", lambda: look(journey)).mark("look")
        return
    _form(journey, watch)


def _form(journey: Journey, watch: Watch) -> None:
    found = journey.look
    marks: dict[str, Any] = {}
    widgets.heading("What was found", 2)
    if not found["findings"]:
        widgets.words("Nothing was found that a synthesis would spoil.")
    for finding in found["findings"]:
        with ui.element("div").classes("choice"):
            marks[finding["name"]] = ui.checkbox(
                f"{finding['kind'].replace('-', ' ')}: {', '.join(finding['columns'])}",
                value=finding["accepted"],
            ).mark(finding["name"])
            widgets.words(f"{finding['action']} (confidence {finding['confidence']})", "small")
    watch.beside("make_copies", "findings")
    widgets.heading("How it is made", 2)
    with ui.element("section").classes("sheet").props('aria-label="How it is made"'):
        order = widgets.choice(
            [row["column"] for row in journey.columns],
            "Order, first to last (empty: as proposed)",
            [],
            multiple=True,
        ).props("use-chips")
        order.mark("order")
        widgets.words(f"Proposed: {', '.join(found['order'][:30])}", "muted small")
        watch.beside("make_copies", "order")
        rules = ui.textarea(
            "Rules that always hold, as in a plan file", placeholder='rent = [{when = "age < 18", value = 0}]'
        )
        rules.props("outlined stack-label autogrow").mark("rules")
        watch.beside("make_copies", "rules")
        with ui.element("div").classes("fields"):
            copies = widgets.number("Copies", 1, min=1, max=100, precision=0).mark("copies")
            rows = widgets.number("Records (empty: as many as now)", None, min=1, precision=0).mark("rows")
        watch.beside("make_copies", "copies")
        stem = Path(journey.name).name.split(".")[0]
        proposed = Path(journey.default_folder()).parent / f"{stem}-synthetic.csv"
        out = widgets.field("File to write (empty: only try it)", str(proposed)).classes("wide").mark("out")
        again = ui.checkbox("Replace files that are there", value=False)
        watch.beside("make_copies", "out")

    def go() -> None:
        make(
            journey,
            accepted=[name for name, mark in marks.items() if mark.value],
            declined=[name for name, mark in marks.items() if not mark.value],
            order=list(order.value or ()),
            rules=rules.value or "",
            copies=int(copies.value or 0),
            rows=int(rows.value) if rows.value else None,
            out=out.value or "",
            overwrite=bool(again.value),
        )

    widgets.act("Make the copies", go).mark("make")


def _made(journey: Journey) -> None:
    refusals(journey, "make_copies", "", "file", "roles")
    if journey.running("make_copies"):
        widgets.waiting("A model is fitted, copies are drawn and held against the original.")
        return
    found = journey.copies
    if not found:
        return
    widgets.heading("The copies", 2)
    for place in found["written"]:
        widgets.status(f"Wrote {place}.")
    compared = found["compared"]
    widgets.words(compared["before"])
    widgets.cards(compared["cards"])
    widgets.heading("What went wrong first", 3)
    widgets.listed(compared["worst"])
    if compared["clear"]:
        widgets.words(compared["clear"])
    for chapter in compared["chapters"]:
        widgets.chapter(chapter, 3)
    widgets.said(
        "Synthetic is not safe by name: the figures above say what an intruder could learn about people of the "
        "original."
    )
