"""What goes out? The file with report, plan, log and script, and the block to sign, filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.forms import DECISIONS, is_begun, sign_off
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import Journey
from discreet.app.same_in_code import script_text

_ENDINGS = (".csv", ".parquet", ".xlsx", ".sav", ".dta", ".arrow")
_WHAT = {  # in the order in which they are read; the released data stand before all
    "release.html": "the report, to read and to sign",
    "log.json": "what was done, without seeds; may travel with the data",
    "plan.toml": "the plan, to apply again; keep it as the data where it says so",
    "script.py": "the same in Python",
    "activity.txt": "what was done on this page; stays in the house",
}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "What goes out?",
        "The release is made once more, judged, and written with its papers into one folder: whole, or not at all.",
    ):
        return
    # Once it is written the verdict on what was written stands below; two would be one too many.
    watch.part(lambda: _before(journey), lambda: bool(journey.release))
    _writing(journey, watch)
    watch.part(lambda: _written(journey), lambda: Held(journey.release), watch.of_task("write_release"))


def _before(journey: Journey) -> None:
    def to_plan(words: str) -> None:
        widgets.plain(words, lambda: ui.navigate.to(f"/{journey.number}/protect")).mark("to-plan")

    if not journey.steps:
        widgets.said(
            "There is no plan: the file would go out as it is. It is judged by the whole policy before it is written."
        )
        to_plan("To the plan")
    elif journey.release:
        return
    elif journey.comparison:
        widgets.verdict(journey.comparison["answer"])
        widgets.rules(journey.comparison["answer"])
        if journey.comparison["answer"]["state"] != "pass":
            to_plan("Change the plan")
    else:
        widgets.said("This plan was not compared with the original yet; it is judged before it is written.")


def _writing(journey: Journey, watch: Watch) -> None:
    with ui.element("section").classes("sheet").props('aria-label="Where it goes"'):
        widgets.heading("Where it goes", 2)
        folder = widgets.field("Folder on this machine", journey.folder or journey.default_folder()).classes(
            "wide"
        )
        folder.mark("folder")
        watch.beside("write_release", "folder")
        with ui.element("div").classes("fields items-center"):
            ending = widgets.choice(_endings(journey), "Format", journey.ending or _endings(journey)[0]).mark(
                "ending"
            )
            guard = ui.checkbox("Keep spreadsheets from running texts as formulas", value=False)
            guard.mark("formulas")
            again = ui.checkbox("Replace the release that is in this folder", value=False).mark("overwrite")
        watch.beside("write_release", "name")
    sign_off(journey.signed, lambda: watch.beside("write_release", "signed"))

    def go() -> None:
        journey.folder, journey.ending = folder.value or "", ending.value
        write(journey, overwrite=bool(again.value), guard_formulas=bool(guard.value))

    widgets.act("Write the release", go).mark("write")


def write(journey: Journey, *, overwrite: bool = False, guard_formulas: bool = False) -> None:
    """Write the release in the background."""
    stem = Path(journey.name or "file").name.split(".")[0]

    def then(found: dict[str, Any]) -> None:
        journey.release = found
        journey.log(f"Wrote the release to '{found['folder']}'. {found['line']}")

    activity = "".join(f"{one['time']}  {one['what']}\n" for one in journey.activity)
    journey.work(
        "write_release",
        "Making, judging and writing the release",
        then,
        steps=journey.steps,
        policy=journey.policy,
        seed=journey.seed,
        folder=journey.folder or journey.default_folder(),
        name=f"{stem}-release{journey.ending or '.csv'}",
        overwrite=overwrite,
        guard_formulas=guard_formulas,
        signed=dict(journey.signed) if is_begun(journey.signed) else {},
        texts={"script.py": script_text(journey), "activity.txt": activity},
    )


def _endings(journey: Journey) -> list[str]:
    own = "".join(Path(journey.name).suffixes[-1:]).lower()
    return [*([own] if own in _ENDINGS else []), *(one for one in _ENDINGS if one != own)]


def _written(journey: Journey) -> None:
    refusals(journey, "write_release", "", "file", "roles", "policy", "steps")
    if journey.running("write_release"):
        widgets.waiting("The release is being made, judged and written.")
        return
    found = journey.release
    if not found:
        return
    widgets.heading("Written", 2)
    widgets.verdict(found["answer"], "Verdict on what was written")
    widgets.rules(found["answer"])
    widgets.status(f"Everything is in {found['folder']}.")
    if found["signed"].get("decision"):
        told = DECISIONS[found["signed"]["decision"]].lower()
        widgets.words(f"Signed off by {found['signed']['name']}: {told}.")
    if found["signed"].get("decision") == "no":
        widgets.said("The decision is not to release, so the folder holds the papers and no data.")
    with ui.element("div").classes("scroll"), ui.element("ul").classes("plain"):
        for file in sorted(found["files"], key=_place_of):
            with ui.element("li"):
                words = _WHAT.get(file["name"], "the released data")
                widgets.words(f"{file['name']} ({file['bytes']:,} bytes): {words}.")
                widgets.plain(
                    f"Download {file['name']}",
                    lambda file=file: ui.download.file(Path(found["folder"]) / file["name"], file["name"]),
                ).classes("low")
    if found["not_judged"]:
        widgets.words(found["not_judged"])
    widgets.words(f"Formal guarantee (differential privacy): {found['guarantee']}", "muted")


def _place_of(file: dict[str, Any]) -> int:
    order = list(_WHAT)
    return order.index(file["name"]) if file["name"] in order else -1
