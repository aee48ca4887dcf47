"""The review desk: packages of researchers' outputs, their verdicts, and what was decided about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.app.refusals import caused_by
from discreet.app.work.bench import Bench
from discreet.errors import DiscreetError, InputError
from discreet.outputs import Package, append_decision, check_many, verify_register
from discreet.outputs.decisions import latest, read_decisions
from discreet.outputs.findings import worst
from discreet.outputs.reviewing import register_of
from discreet.report.review_page import file_shown, files_of

_MOST_FILES = 500
_LARGEST_SHOWN = 20_000_000
_MOST_COLUMNS = 40
_ENDINGS = (".csv", ".xlsx", ".html", ".htm", ".tex", ".txt", ".json")


def check_outputs(bench: Bench, *, folder: str, policy: str = "") -> dict[str, Any]:
    """Look at a package, a folder of packages, or a folder of finished files, and judge what is in it."""
    with caused_by("folder"):
        place = Path(folder).expanduser()
        if not folder.strip() or not place.exists():
            raise InputError(
                "There is no such file or folder. Name it in full, from the root of this machine."
            )
    rules = policy.strip() or None
    places = [place] if is_package(place) or place.is_file() else sorted(place.iterdir())[:_MOST_FILES]
    packages = [one for one in places if is_package(one)]
    finished = [one for one in places if one not in packages and one.suffix.lower() in _ENDINGS]
    with caused_by("policy" if rules else "folder"):
        queue = [_package(one, rules) for one in packages]
        found = check_many(finished, rules) if finished else {}
    if not queue and not found:
        with caused_by("folder"):
            raise InputError(
                "Nothing to check lies there: no package, and no table, text or graph in a known format."
            )
    return {
        "folder": str(place),
        "packages": queue,
        "files": [
            {
                "name": path.name,
                "status": result.status,
                "findings": [
                    {"status": one.status, "check": one.check, "reason": one.reason}
                    for one in result.findings
                ],
                "questions": list(result.questions) if result.status != "pass" else [],
                "mitigations": list(result.mitigations) if result.status == "fail" else [],
                "files": [_laid_out(file_shown(path.name, path.read_bytes()))]
                if path.stat().st_size <= _LARGEST_SHOWN
                else [],
            }
            for path, result in found.items()
        ],
        "status": worst([*(one["status"] for one in queue), *(result.status for result in found.values())]),
    }


def decide_output(
    bench: Bench, *, package: str, output: str, decision: str, checker: str, note: str
) -> dict[str, Any]:
    """Enter a decision into the register beside the package."""
    with caused_by("decision"):
        found = Package.load(package)
        entry = append_decision(
            register_of(package),
            output=str(found[output]["name"]),
            decision=decision,
            checker=checker,
            note=note,
            about={"status": found[output]["status"], "package": found.checksum},
        )
    return {"said": f"{entry['output']}: {entry['decision']}. Last hash of the register: {entry['hash']}"}


def _laid_out(file: dict[str, Any]) -> dict[str, Any]:
    """Make plain documents of the cells of a table: the text, and what a check says about it."""
    table = file.get("table")
    if table is None:
        return (
            file
            if file["kind"] != "table"
            else {**file, "name": file["title"] or "a table", "kind": "other", "bytes": 0}
        )
    return {
        **file,
        "table": {
            "headings": list(table["headings"][:_MOST_COLUMNS]),
            "rows": [
                [{"text": text, "flag": meaning or ""} for text, _, meaning in row[:_MOST_COLUMNS]]
                for row in table["rows"]
            ],
            "more": table["more"],
        },
    }


def is_package(path: Path) -> bool:
    """Whether a folder or file is a package that a session wrote, or a result folder of ACRO."""
    if path.is_dir():
        return (path / "manifest.json").is_file() or (path / "results.json").is_file()
    return path.suffix.lower() == ".zip"


def _package(path: Path, policy: str | None) -> dict[str, Any]:
    try:
        found = Package.load(path, policy)
    except DiscreetError as error:
        if policy is not None:
            raise
        return {"path": str(path), "name": path.name, "status": "fail", "refused": str(error), "outputs": []}
    register = register_of(path)
    try:
        entries = verify_register(register)
        chain = f"The register holds {entries} decision{'' if entries == 1 else 's'}, and its chain is whole."
        decided = latest(register)
        history = read_decisions(register)
    except DiscreetError as error:
        chain, decided, history = str(error), {}, []
    return {
        "path": str(path),
        "name": path.name,
        "status": found.status,
        "about": {
            name: str(value) for name, value in found.about.items() if isinstance(value, str) and value
        },
        "checksum": found.checksum,
        "policy": found.policy.name,
        "register": chain,
        "history": [
            {name: str(entry.get(name, "")) for name in ("time", "output", "decision", "checker", "note")}
            for entry in history[-20:]
        ],
        "outputs": [
            {
                "name": str(output["name"]),
                "kind": str(output["kind"]),
                "status": str(output["status"]),
                "findings": [
                    {"status": str(one["status"]), "check": str(one["check"]), "reason": str(one["reason"])}
                    for one in output["findings"]
                ],
                "questions": [str(question) for question in output.get("questions", ())],
                "exception": str(output.get("exception") or ""),
                "decision": str(decided.get(output["name"], {}).get("decision", "open")),
                "files": [_laid_out(file) for file in files_of(found, output)],
            }
            for output in found.outputs
        ],
    }
