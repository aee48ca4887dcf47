"""A form for one step of a plan: the usual treatments by fields, every other one as a line of a plan file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.journey import Journey

BY_HAND = "by hand"


@dataclass(frozen=True)
class Form:
    """Which fields a treatment has on the page: one column or several, and numbers by name with their words."""

    title: str
    columns: str = ""  # "many", "one" or nothing
    numbers: tuple[tuple[str, str, float | None], ...] = ()
    by_column: str = ""  # the number belongs to the column, under this parameter

    def step(self, treatment: str, columns: list[str], numbers: dict[str, float | None]) -> dict[str, Any]:
        """Write the step as it stands in a plan file."""
        told: dict[str, Any] = {"treatment": treatment}
        given = {name: _whole(value) for name, value in numbers.items() if value is not None}
        if self.by_column:
            for name, value in given.items():
                told[name] = dict.fromkeys(columns, value)
            return told
        if self.columns:
            told["columns"] = columns
        return {**told, **given}


FORMS: dict[str, Form] = {
    "drop-identifiers": Form("Drop identifiers"),
    "band": Form("Bands of numbers", "many", (("widths", "Width of a band", 10),), "widths"),
    "top-bottom-code": Form(
        "Top and bottom coding",
        "many",
        (("top", "Highest value that stays", None), ("bottom", "Lowest value that stays", None)),
        "top",
    ),
    "round": Form("Rounding", "many", (("base", "Round to multiples of", 100),), "base"),
    "local-suppression": Form("Local suppression", "", (("k", "Smallest group (k)", 3),)),
    "microaggregate": Form("Microaggregation", "many", (("k", "People in a group", 3),)),
    "pram": Form("Exchange categories at random (PRAM)", "many"),
    "add-noise": Form("Add noise", "many", (("level", "Noise, as a share of the spread", 0.1),)),
    "rank-swap": Form("Rank swapping", "many", (("p", "How far, in percent of the records", 5),)),
    "shuffle": Form("Shuffling", "many"),
    "reorder-records": Form("Mix the order of the records"),
}


def step_form(journey: Journey, add: Callable[[dict[str, Any]], None]) -> None:
    """Draw the form; ``add`` is given the step."""
    titles = {name: form.title for name, form in FORMS.items() if _is_known(name)} | {
        BY_HAND: "Any other (as in a plan file)"
    }
    with ui.element("section").classes("sheet").props('aria-label="Add a step"'):
        which = widgets.choice(titles, "Treatment", "local-suppression").mark("treatment")
        fields = ui.element("div").classes("part")
        said = ui.element("div")
        held: dict[str, Any] = {}

        def draw() -> None:
            fields.clear()
            said.clear()
            held.clear()
            with fields:
                _fields(journey, str(which.value), held)

        def go() -> None:
            said.clear()
            sentence, step = _read(str(which.value), held)
            if sentence:
                with said:
                    widgets.refusal(sentence)
                return
            add(step)

        which.on_value_change(draw)
        draw()
        widgets.act("Add the step", go).mark("add-step")


def _fields(journey: Journey, treatment: str, held: dict[str, Any]) -> None:
    if treatment == BY_HAND:
        widgets.words(
            "Write the step as in a plan file, on one line. “discreet methods” and the manual list all treatments.",
            "small",
        )
        held["toml"] = (
            widgets.field("Step", '{treatment = "band", widths = {age = 10}}').classes("wide").mark("toml")
        )
        return
    form = FORMS[treatment]
    widgets.words(summary_of(treatment), "small")
    with ui.element("div").classes("fields"):
        if form.columns:
            names = [row["column"] for row in journey.columns]
            held["columns"] = (
                widgets.choice(names, "Columns", [], multiple=True).props("use-chips").mark("step-columns")
            )
        for name, label, value in form.numbers:
            held[name] = widgets.number(label, value).mark(f"step-{name}")


def _read(treatment: str, held: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what is missing, and the step."""
    if treatment == BY_HAND:
        text = (held["toml"].value or "").strip()
        return ("" if text else "Write the step first."), {"toml": text}
    form = FORMS[treatment]
    columns = list(held["columns"].value or ()) if "columns" in held else []
    if form.columns and not columns:
        return "Choose at least one column for this step.", {}
    numbers = {name: held[name].value for name, _, _ in form.numbers}
    if form.by_column and all(value is None for value in numbers.values()):
        return f"Give a number: {form.numbers[0][1].lower()}.", {}
    return "", form.step(treatment, columns, numbers)


def summary_of(treatment: str) -> str:
    """Return what a treatment does, in the first sentence of its own description."""
    from discreet.protect import Treatment

    return (inspect.getdoc(Treatment.known[treatment]) or "").partition("\n")[0]


def _is_known(treatment: str) -> bool:
    from discreet.protect import Treatment

    return treatment in Treatment.known


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)
