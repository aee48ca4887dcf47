"""A form for one step of a plan: the usual treatments by fields, every other one as a line of a plan file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk, kept_copy
from discreet.app.journey import Journey
from discreet.core.errors import InputError

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


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)


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
FIRST = "local-suppression"
DROP = "drop-identifiers"
TAKES_NAMES = (DROP, "pseudonymize")
"""Steps after which nothing names people any more."""


def step_form(journey: Journey, add: Callable[[dict[str, Any]], None]) -> None:
    """Draw the form; ``add`` is given the step."""
    titles = {name: form.title for name, form in FORMS.items() if _is_known(name)} | {
        BY_HAND: "Any other (as in a plan file)"
    }
    with ui.element("section").classes("sheet").props('aria-label="Add a step"'):
        which = widgets.choice(titles, "Treatment", FIRST).mark("treatment")
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


# Which levels do the rows and columns of a table have? Coarser columns of the file, or a file of levels.


_LARGEST = 20 * 1024**2


class LevelsForm:
    """One block of fields for every dimension that was chosen."""

    def __init__(self, desk: Desk, journey: Journey, names: list[str], before: dict[str, Any]) -> None:
        self._desk = desk
        self._journey = journey
        self._names = names
        self._held = before
        self._fields: dict[str, tuple[Any, Any]] = {}

    def draw(self, chosen: Any, formula: Any) -> None:
        """Draw the blocks here, and again when other dimensions are chosen."""
        with ui.expansion("Hierarchies of rows and columns", value=bool(self._held)).mark("hierarchies"):
            holder = ui.element("div").classes("part")

        def again() -> None:
            self._held |= self.given()
            holder.clear()
            with holder:
                self._blocks(named_in(list(chosen.value or ()), formula.value or "", self._names))

        chosen.on_value_change(again)
        formula.on("blur", again)
        again()

    def given(self) -> dict[str, list[str] | str]:
        """Return the coarser columns, or the path of a file, by dimension."""
        told: dict[str, list[str] | str] = {}
        for name, (coarse, file) in self._fields.items():
            held = (file.value or "").strip() or list(coarse.value or ())
            if held:
                told[name] = held
        return told

    def _blocks(self, dimensions: list[str]) -> None:
        self._fields = {}
        if not dimensions:
            widgets.words("Choose rows and columns first.", "muted small")
            return
        widgets.words(
            "Where codes have levels above them: the coarser columns of this file, finest first, or a file of levels "
            "(.hrc of tau-ARGUS, a CSV with the columns child and parent, or a CSV with one column a level).",
            "small",
        )
        for name in dimensions:
            self._block(name)

    def _block(self, name: str) -> None:
        before = self._held.get(name)
        with ui.element("div").classes("choice") as block:
            block.props["aria-label"] = f"Levels of {name}"
            block.props('role="group"')
            widgets.words(f"Levels of {name}", "label")
            with ui.element("div").classes("fields wide"):
                others = [other for other in self._names if other != name]
                held = (
                    [other for other in before if other in others] if isinstance(before, list | tuple) else []
                )
                coarse = widgets.choice(others, f"Coarser columns of {name}", held, multiple=True)
                coarse.props("use-chips").mark(f"coarse {name}")
                told = before if isinstance(before, str) else ""
                file = widgets.field(f"Or a file of levels of {name}", told).mark(f"levels {name}")
            self._fields[name] = (coarse, file)

            async def taken(event: Any) -> None:
                try:
                    file.value = str(await kept_copy(self._desk, event.file))
                except InputError as error:
                    widgets.refusal(str(error))
                else:
                    widgets.status("Taken.")

            widgets.drop(
                "Choose or drop a file of levels",
                taken,
                largest=_LARGEST,
                too_large="A file of levels has at most 20 MB.",
                accept=".csv,.hrc,.txt",
            ).mark(f"drop {name}")


def named_in(chosen: list[str], formula: str, names: list[str]) -> list[str]:
    """Return the dimensions that were chosen, or that a formula names.

    Examples
    --------
    >>> named_in([], "region*age + `my town`", ["age", "region", "my town", "pay"])
    ['age', 'region', 'my town']
    >>> named_in(["pay"], "", ["age", "pay"])
    ['pay']
    """
    if not formula.strip():
        return chosen
    told = {quoted or plain for quoted, plain in re.findall(r"`([^`]+)`|([^\s*+`]+)", formula)}
    return [name for name in names if name in told]


# The policy that a file is held against: a template, or a file of the house.


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


# Who decides, when, and how? The block of a report that is signed, filled in on the page.


DECISIONS = {
    "": "not decided yet",
    "release": "Release",
    "conditions": "Release with conditions",
    "no": "Do not release",
}


def sign_off(signed: dict[str, str], beside: Callable[[], None]) -> None:
    """Draw the block; what is filled in is kept in ``signed``, also for whoever leaves the page before it is written.

    ``beside`` draws what was refused about it.
    """
    signed.setdefault("date", date.today().isoformat())
    with ui.element("section").classes("sheet").props('aria-label="Sign-off"'):
        widgets.heading("Sign-off", 2)
        widgets.words(
            "What is filled in here stands in the report. A person decides; leave it empty to sign by hand."
        )
        with ui.element("div").classes("fields"):
            fields = {
                "name": widgets.field("Name", signed.get("name", "")),
                "role": widgets.field("Role", signed.get("role", "")),
                "date": widgets.field("Date", signed["date"]),
                "decision": widgets.choice(DECISIONS, "Decision", signed.get("decision", "")),
                "remarks": ui.textarea("Remarks and conditions", value=signed.get("remarks", ""))
                .props("outlined stack-label autogrow")
                .classes("wide"),
            }
        for name, field in fields.items():
            field.mark(f"sign-{name}").on_value_change(partial(_note, signed, name))
        beside()


def _note(signed: dict[str, str], name: str, event: Any) -> None:
    signed[name] = event.value or ""


def is_begun(signed: dict[str, str]) -> bool:
    """Whether anybody has begun to decide; a date alone is no decision."""
    return bool(signed.get("decision") or signed.get("name", "").strip())
