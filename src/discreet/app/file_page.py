"""Which file? Drop it, point to it, or try the census file; see how it was read, and correct that by a click."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk, kept_copy
from discreet.app.frame import Held, Watch
from discreet.app.journey import Journey
from discreet.core.errors import DiscreetError

_SEPARATORS = {"": "as found", ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_DECIMALS = {"": "as found", ".": "point", ",": "comma"}
_ENCODINGS = {
    "": "as found",
    "utf-8": "UTF-8",
    "latin-1": "Latin-1",
    "cp1252": "Windows-1252",
    "utf-16": "UTF-16",
}
_FORMATS = {
    "csv": "separated text (CSV)",
    "spss": "SPSS",
    "stata": "Stata",
    "sas": "SAS",
    "excel": "Excel",
    "parquet": "Parquet",
    "arrow": "Arrow",
}
_SOME_DAY = datetime(
    2025, 12, 31, 14, 30, tzinfo=UTC
)  # shows how dates are written without a date of the file
_DATES = {
    "": "as found",
    "dmy": "day first",
    "mdy": "month first",
    "ymd": "year first",
    "text": "leave as text",
}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not journey.place:
        _first_screen(desk, journey)
        return
    widgets.opening(
        journey.name, "How the file was read. Correct it here; nothing is changed in the file itself."
    )
    if not journey.is_read and journey.running("open_file") is None and not journey.refusals.get("open_file"):
        read(journey)
    watch.part(lambda: _reading(desk, journey), lambda: Held(journey.found), watch.of_task("open_file"))


def read(journey: Journey) -> None:
    """Read the file of a journey in the background; roles that were set before are kept."""

    def then(found: dict[str, Any]) -> None:
        before = journey.checksum
        journey.found, journey.rows, journey.columns = found, found["rows"], found["columns"]
        journey.checksum = found["checksum"]
        names = {row["column"] for row in journey.columns}
        kept = {column: role for column, role in journey.roles.items() if column in names}
        if not kept:
            proposed = found["saved_roles"] or found["proposal"]
            kept = {
                column: role
                for role, held in proposed.items()
                for column in ([held] if isinstance(held, str) else held)
                if column in names
            }
        elif len(kept) < len(journey.roles):
            gone = sorted(set(journey.roles) - set(kept))
            journey.note = f"No longer in the file: {', '.join(gone)}. Their roles were left out."
        if before and found["checksum"] and before != found["checksum"]:
            journey.note = (
                "The file is not the one it was when this journey was saved: its content has changed."
            )
        journey.roles = kept
        journey.assessment, journey.effects, journey.live = {}, [], {}
        journey.comparison, journey.release = {}, {}
        journey.log(f"Read '{journey.name}': {journey.rows:,} records, {len(journey.columns)} columns.")

    journey.start("open_file", f"Reading {journey.name}", then, source=journey.source)


def _first_screen(desk: Desk, journey: Journey) -> None:
    widgets.opening(
        "Which file is to be released?",
        "discreet finds out who could be found in it, protects them, says what that costs, and writes the papers to "
        "sign. The file stays on this machine.",
    )
    if journey.name:
        widgets.said(
            f"The project is open; its data are not. It was made from '{journey.name}', which was dropped here and is "
            "gone with that page. Drop it again or point to it: roles and steps are kept."
        )
    with ui.element("div").classes("columns2"):
        with ui.element("section").classes("sheet").props('aria-label="Drop a file"'):
            widgets.heading("Drop a file here", 2)
            widgets.words(
                "CSV, Parquet, Excel, SPSS, Stata or SAS, or a project file (.discreet). A copy is kept in a private "
                "folder until this page ends.",
                "small",
            )
            _upload(desk, journey)
        with ui.element("section").classes("sheet").props('aria-label="Open a file"'):
            widgets.heading("Or point to it", 2)
            widgets.words("Any size: the file is read where it lies.", "small")
            _pointing(desk, journey)
    with ui.element("section").classes("sheet").props('aria-label="Try it"'):
        widgets.heading("Nothing at hand?", 2)
        widgets.words(
            "Try it on a census file that comes with discreet: 48,842 adults, their age, sex, work and income. It has "
            "been public for decades."
        )
        widgets.act("Try the census file", lambda: _try(desk)).mark("example")
    if desk.journeys:
        with ui.element("section").classes("sheet").props('aria-label="Open journeys"'):
            widgets.heading("Open on this page", 2)
            for one in desk.journeys.values():
                widgets.link(one.name, f"/{one.number}/file")


def _upload(desk: Desk, waiting: Journey) -> None:
    async def taken(event: Any) -> None:
        try:
            place = await kept_copy(desk, event.file)
            journey = desk.begin(str(place), kind="upload", name=place.name, waiting=_named(waiting))
        except DiscreetError as error:
            widgets.refusal(str(error))
        else:
            ui.navigate.to(f"/{journey.number}/file")

    widgets.drop(
        "Choose a file, or drop it here",
        taken,
        largest=desk.door.largest_upload,
        too_large=f"The file is larger than this page takes ({desk.door.largest_upload // 1024**2:,} MB). Point to it "
        "instead: a file on this machine has no limit.",
    ).mark("upload")


def _pointing(desk: Desk, waiting: Journey) -> None:
    place = widgets.field("File or database address", placeholder="/data/survey.sav").mark("place")
    query = widgets.field("Table or query (for a database)").mark("query")
    said = ui.element("div")

    def go() -> None:
        said.clear()
        try:
            journey = desk.begin(place.value or "", query=query.value or "", waiting=_named(waiting))
        except DiscreetError as error:
            with said:
                widgets.refusal(str(error))
            return
        ui.navigate.to(f"/{journey.number}/file")

    place.on("keydown.enter", go)
    widgets.act("Open", go).mark("open")


def _named(journey: Journey) -> Journey | None:
    return journey if journey.name else None


def _try(desk: Desk) -> None:
    from discreet.datasets import adult_path

    path = Path(adult_path())
    journey = desk.begin(str(path), kind="example", name=path.name)
    ui.navigate.to(f"/{journey.number}/file")


def _reading(desk: Desk, journey: Journey) -> None:
    widgets.refusal(journey.refused("open_file", "file") or journey.refused("open_file"))
    if journey.running("open_file"):
        widgets.waiting("The file is being read and every column looked at.")
        return
    if journey.found:
        _facts(journey)
    options = journey.found.get("options") or (
        ["separator", "decimal", "encoding", "missing", "dates"]
        if journey.name.endswith((".csv", ".tsv", ".txt", ".gz"))
        else []
    )
    if options:
        _corrections(journey, options)
    with ui.row():
        if journey.found:
            widgets.act("Next: the columns", lambda: ui.navigate.to(f"/{journey.number}/columns")).mark(
                "next"
            )
        widgets.plain("Read it again", lambda: read(journey)).mark("again")
        widgets.plain("Another file", lambda: ui.navigate.to("/0/file"))
        widgets.plain("Take it off this page", lambda: _take_off(desk, journey))


def _take_off(desk: Desk, journey: Journey) -> None:
    desk.remove(journey)
    ui.navigate.to("/0/file")


def _facts(journey: Journey) -> None:
    reading = journey.found["reading"]
    rows = [("Records", f"{journey.rows:,}"), ("Columns", f"{len(journey.columns):,}")]
    for name, label, words in (
        ("separator", "Separator", _SEPARATORS),
        ("decimal", "Decimal mark", _DECIMALS),
        ("encoding", "Encoding", _ENCODINGS),
    ):
        if reading.get(name):
            rows.append((label, words.get(str(reading[name]), str(reading[name]))))
    if reading.get("dates"):
        told = [f"{column} as {_SOME_DAY.strftime(form)}" for column, form in reading["dates"].items()]
        rows.append(("Dates, written", ", ".join(told[:12]) + (" and others" if len(told) > 12 else "")))
    if reading.get("missing"):
        tokens = [f"“{token}”" if token else "empty" for token in list(reading["missing"])[:12]]
        rows.append(("Read as missing", ", ".join(tokens)))
    if reading.get("format"):
        rows.append(("Format", _FORMATS.get(str(reading["format"]), str(reading["format"]))))
    if journey.found["labels"]:
        rows.append(("Labels", f"{len(journey.found['labels'])} columns have a label"))
    if journey.checksum:
        rows.append(("Checksum (SHA-256)", str(journey.checksum)))
    widgets.facts(rows)
    doubtful = reading.get("ambiguous_dates") or ()
    if doubtful:
        widgets.said(
            f"Dates in {', '.join(doubtful)} can be read day first or month first. Choose below which it is."
        )


def _corrections(journey: Journey, options: list[str]) -> None:
    with ui.expansion("Read it another way", value=bool(journey.refusals.get("open_file"))).mark(
        "another-way"
    ):
        fields: dict[str, Any] = {}
        with ui.element("div").classes("fields"):
            for name, label, words in (
                ("separator", "Separator", _SEPARATORS),
                ("decimal", "Decimal mark", _DECIMALS),
                ("encoding", "Encoding", _ENCODINGS),
                ("dates", "Dates", _DATES),
            ):
                if name in options:
                    fields[name] = widgets.choice(words, label, journey.reading.get(name) or "").mark(name)
            if "sheet" in options:
                fields["sheet"] = widgets.field("Sheet", str(journey.reading.get("sheet") or ""))
            if "missing" in options:
                told = ", ".join(journey.reading.get("missing") or ())
                fields["missing"] = widgets.field("Codes for missing, with commas", told).mark("missing")

        def correct() -> None:
            said = {name: field.value for name, field in fields.items() if field.value}
            if "missing" in said:
                said["missing"] = [token.strip() for token in said["missing"].split(",") if token.strip()]
            journey.reading = said
            read(journey)

        widgets.plain("Read it so", correct).mark("read-so")
