"""Which levels do the rows and columns of a table have? Coarser columns of the file, or a file of levels."""

from __future__ import annotations

import re
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.journey import Journey
from discreet.app.uploading import kept_copy
from discreet.core.errors import InputError

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
