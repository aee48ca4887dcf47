"""Who decides, when, and how? The block of a report that is signed, filled in on the page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

from nicegui import ui

from discreet.app import widgets

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
