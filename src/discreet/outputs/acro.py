"""Result folders of ACRO, in and out.

ACRO (AI-SDC) writes ``results.json`` with one entry an output, the tables as CSV, ``config.json`` with the thresholds
and a folder of checksums; SACRO-Viewer reads it. Its entries are read into a `Package`, and a session can be written so
that the viewer of ACRO opens it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, InputError
from discreet.outputs.findings import Finding, Status
from discreet.outputs.package import Package, package_contents, write_folder
from discreet.outputs.settings import OutputPolicy

if TYPE_CHECKING:
    from discreet.outputs.recording import Recorder
    from discreet.outputs.result import Output

VERSION = "1.0.0"
_OURS = {
    "low count": "threshold",
    "numerator": "threshold",
    "denominator": "threshold",
    "complement": "threshold",
    "dominance": "nk-rule",
    "p%": "p-ratio",
    "negative contributions": "negative",
    "missing values": "missing",
    "no spread": "all-values-are-same",
    "one value": "all-values-are-same",
}
_THEIRS = {
    "threshold": ("low count", "a"),
    "nk-rule": ("dominance", "d"),
    "p-ratio": ("p%", "d"),
    "negative": ("negative contributions", "d"),
    "missing": ("missing values", "d"),
    "all-values-are-same": ("no spread", "i"),
}
_NAMES = ("negative", "missing", "threshold", "p-ratio", "nk-rule", "all-values-are-same")
_MODELS = ("ols", "logit", "probit", "poisson", "regression")


def read_acro(path: str | Path) -> Package:
    """Read a result folder of ACRO.

    Checksums are verified where the folder has them. Statuses are those of ACRO; nothing is checked anew.
    """
    source = Path(path)
    files = package_contents(source)
    if "results.json" not in files:
        raise InputError(f"'{source.name}' is no result folder of ACRO: it has no results.json.")
    for name, content in files.items():
        noted = files.get(f"checksums/{name}.txt")
        if (
            noted is not None
            and noted.decode("utf-8", "replace").strip() != hashlib.sha256(content).hexdigest()
        ):
            raise InputError(f"The file '{name}' of '{source.name}' was changed after ACRO wrote it.")
    try:
        document = json.loads(files["results.json"])
        outputs = tuple(_read_entry(name, entry, files) for name, entry in document["results"].items())
        version = str(document.get("version", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"The results.json of '{source.name}' is not as ACRO writes it.") from error
    policy = OutputPolicy()
    if "config.json" in files:
        try:
            policy = OutputPolicy.from_dict(json.loads(files["config.json"]))
        except (ValueError, DiscreetError):
            policy = OutputPolicy(name="ACRO configuration that could not be read")
    about = {
        "format": "ACRO results",
        "version": version,
        "researcher": "",
        "project": source.name,
        "purpose": "",
    }
    return Package(source, about, policy, outputs, files)


def write_acro(session: Recorder, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a session as a result folder of ACRO, which SACRO-Viewer opens.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from discreet.outputs import Session
    >>> with Session(data=pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 9})) as s:
    ...     _ = s.crosstab("sex")
    >>> folder = write_acro(s, Path(tempfile.mkdtemp()) / "results")
    >>> read_acro(folder)["output_1"]["status"]
    'fail'
    """
    files: dict[str, bytes] = {}
    results: dict[str, Any] = {}
    for output in session:
        entry, made = _write_entry(output, session.policy)
        results[output.name] = entry
        files.update(made)
    files["results.json"] = _json({"version": VERSION, "results": results})
    files["config.json"] = _json(session.policy.to_acro())
    sums = {
        f"checksums/{name}.txt": hashlib.sha256(content).hexdigest().encode()
        for name, content in files.items()
    }
    target = Path(path)
    write_folder({**files, **sums}, target, overwrite=overwrite)
    return target


def _write_entry(output: Output, policy: OutputPolicy) -> tuple[dict[str, Any], dict[str, bytes]]:
    files: dict[str, bytes] = {}
    cells: dict[str, list[list[int]]] = {name: [] for name in _NAMES}
    for finding in output.findings:
        if finding.status != "pass" and finding.check in _OURS:
            cells[_OURS[finding.check]] += [list(cell) for cell in finding.cells]
    hit = {name: len(places) for name, places in cells.items()}
    suppressed = output.draft.mitigation in ("suppress", "secondary-suppress")
    sdc = {"summary": {"suppressed": suppressed, **hit}, "cells": cells}
    for place, table in enumerate(output.tables.values()):
        files[f"{output.name}_{place}.csv"] = table.write_csv().encode("utf-8")
    for path in output.draft.files:
        if policy.blocks(path) is None:
            files[path.name] = path.read_bytes()
    kind = "custom" if output.kind == "custom" else "regression" if output.kind in _MODELS else "table"
    outcome = output.flags
    entry = {
        "uid": output.name,
        "status": output.status,
        "type": kind,
        "properties": {"method": output.kind},
        "files": [{"name": name, "sdc": sdc if kind == "table" else {}} for name in files],
        "outcome": {
            column: {
                str(i): "ok" if flag in ("F", None) else str(flag)
                for i, flag in enumerate(outcome[column].to_list())
            }
            for column in outcome.columns
        },
        "command": output.command,
        "summary": "; ".join((output.status, *output.reasons)),
        "timestamp": output.created,
        "comments": list(output.comments),
        "exception": output.exception,
    }
    return entry, files


def _read_entry(name: str, entry: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    known: dict[str, Status] = {"pass": "pass", "review": "review", "fail": "fail"}
    status: Status = known.get(str(entry["status"]), "review")
    findings = []
    listed = []
    for file in entry["files"]:
        listed.append(
            {"name": file["name"], "title": file["name"], "role": "table" if file.get("sdc") else "custom"}
        )
        if file["name"] not in files:
            raise KeyError(file["name"])
        cells = (file.get("sdc") or {}).get("cells", {})
        for rule, places in cells.items():
            if places and rule in _THEIRS:
                check, barn = _THEIRS[rule]
                reason = f"{len(places)} cells hit by the rule '{rule}' of ACRO."
                findings.append(
                    Finding(
                        check,
                        barn,
                        "fail" if status == "fail" else "review",
                        reason,
                        tuple(map(tuple, places)),
                    )
                )
    if not findings:
        findings.append(Finding("ACRO", "a", status, str(entry.get("summary") or status)))
    return {
        "name": name,
        "kind": str(entry.get("properties", {}).get("method") or entry.get("type", "")),
        "command": str(entry.get("command", "")),
        "created": str(entry.get("timestamp", "")),
        "variables": [],
        "notes": [str(entry.get("summary", ""))],
        "mitigation": None,
        "comments": [str(comment) for comment in entry.get("comments") or []],
        "exception": str(entry.get("exception") or ""),
        "status": status,
        "barns": sorted({finding.barn for finding in findings}),
        "findings": [finding.to_dict() for finding in findings],
        "mitigations": [],
        "questions": [],
        "files": listed,
    }


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=4, ensure_ascii=False) + "\n").encode("utf-8")
