"""A table to publish: dimensions, hierarchies, rules; which cells are left out, and whether that holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Watch, opened, refusals
from discreet.app.journey import Journey
from discreet.app.levels_form import LevelsForm

_RULES = {
    "threshold": "fewer than n units",
    "p-percent": "p percent: others could estimate the largest too well",
    "dominance": "dominance (n, k): n units make up more than k percent",
}
_NUMBERS = {"threshold": (3, None), "p-percent": (10, None), "dominance": (1, 85)}
_MARKS = {"primary": "hidden-cell primary", "secondary": "hidden-cell", "hidden": "hidden-cell"}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "A table to publish",
        "Choose what stands in the rows and columns. Sensitive cells are left out, and as many others as it takes that "
        "nobody can compute them; then the table is attacked.",
    ):
        return
    _form(desk, journey, watch)
    watch.part(lambda: _found(journey), lambda: id(journey.table), watch.of_task("protect_table"))


def protect(journey: Journey, asked: dict[str, Any], *, out: str = "", overwrite: bool = False) -> None:
    """Build, suppress and audit in the background."""
    journey.tabulated = asked

    def then(found: dict[str, Any]) -> None:
        journey.table = found
        journey.log(f"Protected the table {asked['table']}: {found['summary']}")

    journey.work(
        "protect_table",
        "Protecting the table",
        then,
        table=asked["table"],
        measure=asked["measure"],
        hierarchies=asked["hierarchies"],
        rule=asked["kind"],
        numbers=asked["numbers"],
        out=out,
        overwrite=overwrite,
        show_values=journey.values_shown,
    )


def _form(desk: Desk, journey: Journey, watch: Watch) -> None:
    names = [row["column"] for row in journey.columns]
    summed = [
        row["column"] for row in journey.columns if row["dtype"].startswith(("Int", "UInt", "Float", "Dec"))
    ]
    before = journey.tabulated
    with ui.element("section").classes("sheet").props('aria-label="The table"'):
        with ui.element("div").classes("fields"):
            kept = [name for name in before.get("chosen", ()) if name in names]
            rows = widgets.choice(names, "Rows and columns", kept, multiple=True)
            rows.props("use-chips").mark("dimensions")
            formula = widgets.field(
                "Or tables that belong together",
                before.get("formula", ""),
                placeholder="region*age + region*sex",
            ).mark("formula")
            measure = widgets.choice(
                {"": "count the records", **{name: name for name in summed}},
                "Sum of",
                before["measure"] if before.get("measure") in summed else "",
            )
            measure.mark("measure")
        watch.beside("protect_table", "table")
        levels = LevelsForm(desk, journey, names, dict(before.get("hierarchies") or {}))
        levels.draw(rows, formula)
        watch.beside("protect_table", "hierarchies")
        with ui.element("div").classes("fields"):
            kind = widgets.choice(_RULES, "A cell is sensitive with", before.get("kind", "threshold")).mark(
                "rule"
            )
            numbers = [*before.get("numbers", ()), None, None] if before else [3, None]
            first = widgets.number("n or p", numbers[0]).mark("first")
            second = widgets.number("k (dominance only)", numbers[1]).mark("second")
        kind.on_value_change(
            lambda event: (
                first.set_value(_NUMBERS[event.value][0]),
                second.set_value(_NUMBERS[event.value][1]),
            )
        )
        watch.beside("protect_table", "rule")
        stem = Path(journey.name).name.split(".")[0]
        proposed = str(Path(journey.default_folder()).parent / f"{stem}-table.csv")
        out = widgets.field("File to write", proposed).classes("wide").mark("out")
        again = ui.checkbox("Replace files that are there", value=False)
        watch.beside("protect_table", "out")

        def asked() -> dict[str, Any]:
            written = (formula.value or "").strip()
            given = [number.value for number in (first, second) if number.value is not None]
            return {
                "table": written or "*".join(_quoted(name) for name in rows.value or ()),
                "chosen": list(rows.value or ()),
                "formula": written,
                "measure": measure.value or "",
                "hierarchies": levels.given(),
                "kind": kind.value,
                "numbers": given,
                "rule": f"{kind.value}={','.join(f'{number:g}' for number in given)}",
            }

        with ui.row():
            widgets.act("Protect the table", lambda: protect(journey, asked())).mark("protect")
            widgets.plain(
                "Protect and write it",
                lambda: protect(journey, asked(), out=out.value or "", overwrite=bool(again.value)),
            ).mark("write")


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _found(journey: Journey) -> None:
    refusals(journey, "protect_table", "", "file", "roles")
    if journey.running("protect_table"):
        widgets.waiting("The table is being protected and attacked.")
        return
    found = journey.table
    if not found:
        return
    safe = found["safe"]
    widgets.verdict(
        {
            "state": "pass" if safe else "fail",
            "mark": "✓" if safe else "✗",
            "heading": "The audit found nothing" if safe else "The audit found a disclosure",
            "sentence": found["summary"],
            "reasons": found["audit"],
        }
    )
    for place in found["written"]:
        widgets.status(f"Wrote {place}.")
    widgets.listed(found["notes"])
    widgets.words(
        f"{found['primary']:,} of {found['cells']:,} cells are sensitive (× p) and {found['secondary']:,} more are "
        "left out to protect them (× s).",
        "muted",
    )
    if not journey.values_shown:
        widgets.words("● is a cell that is published. Codes and numbers are masked.", "muted small")
        widgets.plain("Show values (this is noted)", lambda: _show(journey)).mark("show-values")
    for sheet in found["sheets"]:
        marks = {
            (i, j + 1): _MARKS.get(cell["state"], "")
            for i, row in enumerate(sheet["rows"])
            for j, cell in enumerate(row["cells"])
        }
        widgets.table(
            f"The pattern of {sheet['name']}: {sheet['down'] or 'rows'} down, {sheet['across']} across",
            [sheet["down"] or "rows", *sheet["columns"]],
            [[row["name"], *(cell["text"] for cell in row["cells"])] for row in sheet["rows"]],
            numeric=[False, *([True] * len(sheet["columns"]))],
            marks=marks,
        )
        if sheet["left_out"] or sheet["columns_left_out"]:
            widgets.words("Only the first rows and columns are shown; the file has all.", "muted small")


def _show(journey: Journey) -> None:
    journey.show_values(True, "Tables")
    protect(journey, journey.tabulated)
