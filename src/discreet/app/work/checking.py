"""The review desk: packages of researchers' outputs, their verdicts, and what was decided about them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench
from discreet.core.errors import DiscreetError, InputError
from discreet.outputs import Package, append_decision, check_many, verify_register
from discreet.outputs.check_results import worst
from discreet.outputs.reviewing import latest, read_decisions, register_of
from discreet.report.short_reports import file_shown, files_of

_MOST_FILES = 500
_LARGEST_SHOWN = 20_000_000
_MOST_COLUMNS = 40
_FINISHED = "finished-files"  # decisions on files without a package stand in one register of their folder
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
    about = _register(_register_of_files(finished[0])) if finished else _Register("", {}, [])
    return {
        "folder": str(place),
        "packages": queue,
        "register": about.chain,
        "history": about.history,
        "files": [
            {
                "name": path.name,
                "path": str(path),
                "status": result.status,
                "decision": _decision_on(path, about.decided),
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
    bench: Bench, *, package: str, output: str, decision: str, checker: str, note: str, policy: str = ""
) -> dict[str, Any]:
    """Enter a decision into the register beside the package, or into that of the folder of a finished file."""
    place = Path(package)
    with caused_by("decision"):
        if is_package(place):
            found = Package.load(package)
            register, named = register_of(package), str(found[output]["name"])
            about = {"status": found[output]["status"], "package": found.checksum}
        else:
            # What passed a moment ago is judged again: the file may be another one by now.
            (result,) = check_many([place], policy.strip() or None).values()
            register, named = _register_of_files(place), place.name
            about = {"status": result.status, "package": _checksum(place)}
        entry = append_decision(
            register, output=named, decision=decision, checker=checker, note=note, about=about
        )
    return {
        "said": f"Entered: {entry['decision']} {entry['output']}. The register ends with {entry['hash']} now; noted "
        "elsewhere, that proves later that nothing was taken out."
    }


def _register_of_files(file: Path) -> Path:
    return register_of(file.absolute().with_name(_FINISHED))


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _decision_on(path: Path, decided: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what was decided about a file as it is now; a file that has changed since is open again."""
    held = decided.get(path.name, {})
    return str(held["decision"]) if held and held.get("package") == _checksum(path) else "open"


@dataclass(frozen=True)
class _Register:
    """What a register says: whether its chain is whole, the latest decision on each output, and the last ones."""

    chain: str
    decided: Mapping[str, Mapping[str, Any]]
    history: list[dict[str, str]]


def _register(place: Path) -> _Register:
    try:
        entries = verify_register(place)
        decided, history = latest(place), read_decisions(place)
    except DiscreetError as error:
        return _Register(str(error), {}, [])
    chain = f"The register holds {entries} decision{'' if entries == 1 else 's'}, and its chain is whole."
    told = ("time", "output", "decision", "checker", "note")
    return _Register(
        chain, decided, [{name: str(entry.get(name, "")) for name in told} for entry in history[-20:]]
    )


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
    register = _register(register_of(path))
    return {
        "path": str(path),
        "name": path.name,
        "status": found.status,
        "about": {
            name: str(value) for name, value in found.about.items() if isinstance(value, str) and value
        },
        "checksum": found.checksum,
        "policy": found.policy.name,
        "register": register.chain,
        "history": register.history,
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
                "decision": str(register.decided.get(output["name"], {}).get("decision", "open")),
                "files": [_laid_out(file) for file in files_of(found, output)],
            }
            for output in found.outputs
        ],
    }
