"""A table to publish: dimensions, hierarchies, rules; which cells are left out, and whether that holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.forms import LevelsForm, is_begun, sign_off
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import Journey

_RULES = {
    "threshold": "it has too few units (threshold)",
    "p-percent": "others could estimate the largest unit too well (p percent)",
    "dominance": "few units make up most of it (dominance)",
}
_NUMBERS = {  # the words and the usual value of what each rule asks for
    "threshold": (("Fewer than so many units", 3),),
    "p-percent": (("Estimated to within so many percent", 10),),
    "dominance": (("So many of the largest units", 1), ("make up more than so many percent", 85)),
}
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
    watch.part(lambda: _found(journey), lambda: Held(journey.table), watch.of_task("protect_table"))
    watch.part(lambda: _writing(journey, watch), lambda: bool(journey.table), lambda: repr(journey.tabulated))
    watch.part(lambda: _written(journey), lambda: Held(journey.table))


def protect(
    journey: Journey, asked: dict[str, Any], *, out: str | None = None, overwrite: bool = False
) -> None:
    """Build, suppress and audit in the background, and write it where ``out`` says so."""
    signed = journey.table_signed
    if asked != journey.tabulated:
        signed.pop("decision", None)  # it was about another table
    journey.tabulated = asked

    def then(found: dict[str, Any]) -> None:
        journey.table = found
        journey.log(f"Protected the table {asked['table']}: {found['summary']}")
        if found["written"]:
            journey.log(f"Wrote {' and '.join(found['written'])}.")

    journey.work(
        "protect_table",
        "Protecting the table" if out is None else "Protecting and writing the table",
        then,
        table=asked["table"],
        measure=asked["measure"],
        hierarchies=asked["hierarchies"],
        rule=asked["kind"],
        numbers=asked["numbers"],
        out=out,
        overwrite=overwrite,
        signed=dict(signed) if out is not None and is_begun(signed) else {},
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
                "Or several tables that belong together, as a formula",
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
        kind = widgets.choice(_RULES, "A cell is sensitive if", before.get("kind", "threshold")).mark("rule")
        numbers = ui.element("div").classes("fields")
        held: list[Any] = []

        def ask(given: list[Any]) -> None:
            held.clear()
            numbers.clear()
            with numbers:
                for place, (label, usual) in enumerate(_NUMBERS[kind.value]):
                    value = given[place] if place < len(given) else usual
                    held.append(widgets.number(label, value).mark(("first", "second")[place]))

        kind.on_value_change(lambda _: ask([]))
        ask(list(before.get("numbers", ())))
        watch.beside("protect_table", "rule")

        def asked() -> dict[str, Any]:
            written = (formula.value or "").strip()
            given = [number.value for number in held if number.value is not None]
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

        widgets.act("Protect the table", lambda: protect(journey, asked())).mark("protect")


def _writing(journey: Journey, watch: Watch) -> None:
    """Where the table goes that was protected last, and who decides about it."""
    if not journey.table:
        return
    with ui.element("section").classes("sheet").props('aria-label="Where it goes"'):
        widgets.heading("Where it goes", 2)
        stem = Path(journey.name).name.split(".")[0]
        proposed = str(Path(journey.default_folder()).parent / f"{stem}-table.csv")
        out = widgets.field("File to write; the report to sign is written beside it", proposed)
        out.classes("wide").mark("out")
        again = ui.checkbox("Replace files that are there", value=False).mark("overwrite")
        watch.beside("protect_table", "out")
    sign_off(journey.table_signed, lambda: watch.beside("protect_table", "signed"))
    widgets.act(
        "Write the table",
        lambda: protect(journey, journey.tabulated, out=out.value or "", overwrite=bool(again.value)),
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


def _written(journey: Journey) -> None:
    for place in journey.table.get("written", ()):
        widgets.status(f"Wrote {place}.")
    if journey.table.get("signed", {}).get("decision") == "no":
        widgets.said("The decision is not to release, so only the report was written.")


def _show(journey: Journey) -> None:
    journey.show_values(True, "Tables")
    protect(journey, journey.tabulated)
