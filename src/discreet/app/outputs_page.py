"""The review desk: researchers' packages in a queue, verdicts, decisions and their register."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Held, Watch
from discreet.app.journey import Journey

_DECIDED = {
    "open": "none yet",
    "accept": "accepted",
    "reject": "rejected",
    "ask": "a question to the researcher",
}
_WORDS = {"pass": "passes every check", "review": "a human must look", "fail": "does not pass"}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page; the desk is one for all files."""
    bench = desk.review
    widgets.opening(
        "Outputs to check",
        "Tables, models and graphs that are to leave a safe setting. Decisions go to a register beside each package, "
        "in which no entry can be changed unnoticed.",
    )
    with ui.element("section").classes("sheet").props('aria-label="What is to be checked"'):
        with ui.element("div").classes("fields"):
            place = widgets.field(
                "Package, or folder of packages or files", desk.outputs.get("folder", "")
            ).mark("folder")
            policy = widgets.field(
                "Policy file (empty: the usual limits)", desk.outputs.get("policy", "")
            ).mark("policy")
            checker = widgets.field("Your name", desk.outputs.get("checker", "")).mark("checker")
        checker.on_value_change(lambda event: desk.outputs.update(checker=event.value or ""))
        reviewing = Watch(bench, watch.parts)
        reviewing.beside("check_outputs", "folder", "policy", "")

        def go() -> None:
            desk.outputs["folder"], desk.outputs["policy"] = place.value or "", policy.value or ""
            bench.folder = desk.outputs["folder"]
            check(desk, bench)

        place.on("keydown.enter", go)

        widgets.act("Check", go).mark("check")
    watch.part(
        lambda: _found(desk, bench),
        lambda: Held(desk.outputs.get("found")),
        lambda: bench.values_shown,
        reviewing.of_task("check_outputs"),
        reviewing.of_task("decide_output"),
    )


def check(desk: Desk, bench: Journey) -> None:
    """Look at the outputs in the background."""

    def then(found: dict[str, Any]) -> None:
        desk.outputs["found"] = found

    bench.start(
        "check_outputs",
        "Checking outputs",
        then,
        folder=desk.outputs.get("folder", ""),
        policy=desk.outputs.get("policy", ""),
    )


def decide(desk: Desk, bench: Journey, package: str, output: str, *, decision: str, note: str) -> None:
    """Enter a decision, and look again."""
    desk.outputs["deciding"] = f"{package} {output}"

    def then(found: dict[str, Any]) -> None:
        desk.outputs["said"] = found["said"]
        check(desk, bench)

    bench.start(
        "decide_output",
        "Entering the decision",
        then,
        package=package,
        output=output,
        decision=decision,
        checker=desk.outputs.get("checker", ""),
        note=note,
        policy=desk.outputs.get("policy", ""),
    )


def _found(desk: Desk, bench: Journey) -> None:
    if bench.running("check_outputs"):
        widgets.waiting("The outputs are being checked.")
        return
    found = desk.outputs.get("found")
    if not found:
        return
    if desk.outputs.get("said"):
        widgets.status(desk.outputs["said"])
    if found["packages"]:
        widgets.heading("The queue", 2)
        rows = []
        for package in found["packages"]:
            still = sum(one["decision"] == "open" for one in package["outputs"])
            rows.append(
                (package["name"], _WORDS[package["status"]], str(len(package["outputs"])), str(still))
            )
        widgets.table(
            "Packages", ("Package", "Status", "Outputs", "Open"), rows, numeric=(False, False, True, True)
        )
    if not bench.values_shown:
        widgets.words("What stands in the outputs is masked.", "muted small")
        widgets.plain("Show the outputs (this is noted)", lambda: bench.show_values(True, "Outputs")).mark(
            "show-values"
        )
    for package in found["packages"]:
        _package(desk, bench, package)
    if found["files"]:
        widgets.heading("Finished files", 2)
        widgets.words(
            "Files that no package came with: they are judged by what stands in them.", "muted small"
        )
        widgets.facts([("Register", found["register"])])
        for file in found["files"]:
            with ui.element("section").classes("choice") as section:
                section.props["aria-label"] = f"File {file['name']}"
                _output(file, "file", shown=bench.values_shown)
                _deciding(desk, bench, file["path"], file)
        _history("the finished files", found["history"])
    if bench.activity:
        with ui.expansion("What was done on this page"):
            widgets.listed([f"{one['time']}: {one['what']}" for one in bench.activity])


def _package(desk: Desk, bench: Journey, package: dict[str, Any]) -> None:
    widgets.heading(package["name"], 2)
    if package.get("refused"):
        widgets.refusal(package["refused"])
        return
    named = {"researcher": "Researcher", "project": "Project", "purpose": "Purpose", "started": "Made"}
    told = [(label, package["about"][name]) for name, label in named.items() if package["about"].get(name)]
    widgets.facts(
        [
            *told,
            ("Policy", package["policy"]),
            ("Checksum", package["checksum"]),
            ("Register", package["register"]),
        ]
    )
    for output in package["outputs"]:
        with ui.element("section").classes("choice") as section:
            section.props["aria-label"] = f"{package['name']}: {output['name']}"
            _output(output, package["name"], shown=bench.values_shown)
            _deciding(desk, bench, package["path"], output)
    _history(package["name"], package["history"])


def _deciding(desk: Desk, bench: Journey, place: str, output: dict[str, Any]) -> None:
    """What was decided about an output, and the buttons to decide."""
    name = output["name"]
    widgets.words(f"Decision: {_DECIDED.get(output['decision'], output['decision'])}")
    if desk.outputs.get("deciding") == f"{place} {name}":
        widgets.refusal(bench.refused("decide_output", "decision") or bench.refused("decide_output"))
    note = widgets.field(f"Reason or question about {name}").classes("wide")
    with ui.row():
        for decision, words in (("accept", "Accept"), ("reject", "Reject"), ("ask", "Ask about")):
            widgets.plain(
                f"{words} {name}",
                lambda decision=decision: decide(
                    desk, bench, place, name, decision=decision, note=note.value or ""
                ),
            ).mark(f"{decision} {name}")


def _history(what: str, entries: list[dict[str, str]]) -> None:
    if entries:
        with ui.expansion(f"The register of {what}"):
            widgets.table(
                f"Decisions on {what}",
                ("Time", "Output", "Decision", "Checker", "Note"),
                [list(entry.values()) for entry in entries],
            )


def _output(output: dict[str, Any], where: str, *, shown: bool) -> None:
    with ui.element("div").classes("row items-center"):
        widgets.heading(output["name"], 3)
        widgets.words(_WORDS.get(output["status"], output["status"]), f"tag {output['status']}", tag="span")
    widgets.listed(
        [f"{one['check']}: {one['reason']}" for one in output["findings"] if one["status"] != "pass"]
    )
    for file in output.get("files", ()) if shown else ():
        _file(f"{where}, {output['name']}", file)
    if output.get("exception"):
        widgets.said(f"The researcher asks for an exception: {output['exception']}")
    if output["questions"]:
        widgets.words("Only a human can say:")
        widgets.listed(output["questions"])
    if output.get("mitigations"):
        widgets.words(f"Could help: {', '.join(output['mitigations'])}.")


def _file(output: str, file: dict[str, Any]) -> None:
    """A table as it would leave, with the cells marked that a check found; or the words of a text."""
    if file["kind"] == "words":
        widgets.words(file["words"], tag="pre").props('tabindex="0"').props["aria-label"] = file["name"]
    elif file["kind"] == "table" and file["table"]:
        table = file["table"]
        widgets.table(
            f"{output}: {file['title']}" if file["title"] else output,
            table["headings"],
            [[cell["text"] for cell in row] for row in table["rows"]],
            marks={
                (i, j): "primary hidden-cell"
                for i, row in enumerate(table["rows"])
                for j, cell in enumerate(row)
                if cell["flag"]
            },
        )
        flags = list(dict.fromkeys(cell["flag"] for row in table["rows"] for cell in row if cell["flag"]))
        if flags:
            widgets.words(f"Marked cells: {', '.join(flags)}.", "small")
        if table["more"]:
            widgets.words(f"{table['more']:,} more rows are in the package.", "muted small")
    elif file["kind"] == "picture":
        picture = ui.element("img").classes("picture")
        picture.props["src"], picture.props["alt"] = file["source"], f"Picture of {output}"
    else:
        widgets.words(f"{file['name']}: {file['bytes']:,} bytes, to be looked at by hand.", "small")
