"""Result folders of ACRO, in and out.

ACRO (AI-SDC) writes ``results.json`` with one entry an output, the tables as CSV, ``config.json`` with the thresholds
and a folder of checksums; SACRO-Viewer reads it. Its entries are read into a `Package`, and a session can be written so
that the viewer of ACRO opens it.

What ACRO says of an output is information, not a verdict: every file is judged anew by the rules for finished files,
and where its figures do not suffice, a human looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.untrusted import parsed_json
from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.finished_files import UNSAID_OF_MODELS, figures_of, judged, nearly_the_same
from discreet.outputs.finished_grids import read_grids, text_of
from discreet.outputs.finished_statistics import facts_of
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.package import Package, as_csv, package_contents, with_findings, write_folder

if TYPE_CHECKING:
    from discreet.outputs.output import Output
    from discreet.outputs.session_questions import Recorder

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
_MORE_IS_STRICTER = ("threshold", "dof_threshold", "survival_threshold", "p_ratio", "zeros_are_disclosive")
_MODELS = ("ols", "logit", "probit", "poisson", "regression")


def read_acro(path: str | Path, policy: OutputPolicy | str | Path | None = None) -> Package:
    """Read a result folder of ACRO and judge its outputs anew.

    Checksums are verified where the folder has them. A "pass" of ACRO clears nothing: tables of counts are judged by
    their counts, models by their degrees of freedom, and what cannot be judged from its figures is for a human. A
    "fail" of ACRO stays one. Files that ``results.json`` does not list are outputs, too.

    Parameters
    ----------
    path
        The folder, or a zip of it.
    policy
        The thresholds; those of the folder unless given. Where these are weaker than the defaults, a human looks.
    """
    source = Path(path)
    files = package_contents(source)
    if "results.json" not in files:
        raise InputError(f"'{source.name}' is no result folder of ACRO: it has no results.json.")
    for name, content in files.items():
        noted = files.get(f"checksums/{name}.txt")
        written = hashlib.sha256(content).hexdigest()
        if noted is not None and noted.decode("utf-8", "replace").strip() != written:
            raise InputError(f"The file '{name}' of '{source.name}' was changed after ACRO wrote it.")
    rules, doubts = _thresholds(files, policy)
    try:
        document = parsed_json(files["results.json"])
        listed = [
            _read_entry(name, entry, files, rules, doubts) for name, entry in document["results"].items()
        ]
        version = str(document.get("version", ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"The results.json of '{source.name}' is not as ACRO writes it.") from error
    outputs = [*_compared(listed, files, rules), *_unlisted(listed, files, rules)]
    about = {
        "format": "ACRO results",
        "version": version,
        "researcher": "",
        "project": source.name,
        "purpose": "",
    }
    return Package(source, about, rules, tuple(outputs), files)


def _thresholds(
    files: Mapping[str, bytes], policy: OutputPolicy | str | Path | None
) -> tuple[OutputPolicy, list[Finding]]:
    """Choose the thresholds; doubt those of the folder where they are weaker than the defaults."""
    if policy is not None:
        return OutputPolicy.load(policy), []
    if "config.json" not in files:
        return OutputPolicy(), []
    try:
        found = OutputPolicy.from_dict(parsed_json(files["config.json"]))
    except (ValueError, DiscreetError):
        return OutputPolicy(name="ACRO configuration that could not be read"), []
    usual = OutputPolicy()
    weaker = [name for name in _MORE_IS_STRICTER if getattr(found, name) < getattr(usual, name)]
    weaker += ["nk_k"] if found.nk_k > usual.nk_k else []
    if not weaker:
        return found, []
    reason = (
        f"The thresholds come with the folder and are weaker than usual ({', '.join(weaker)}). A human looks whether "
        "the data owner set them, or gives a policy."
    )
    return found, [Finding("thresholds", "a", "review", reason)]


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
    cells: dict[str, list[list[int]]] = {name: [] for name in _NAMES}
    for finding in output.findings:
        if finding.status != "pass" and finding.check in _OURS:
            cells[_OURS[finding.check]] += [list(cell) for cell in finding.cells]
    hit = {name: len(places) for name, places in cells.items()}
    suppressed = output.draft.mitigation in ("suppress", "secondary-suppress")
    sdc = {"summary": {"suppressed": suppressed, **hit}, "cells": cells}
    files = {f"{output.name}_{place}.csv": as_csv(own) for place, own in enumerate(output.tables.values())}
    files |= {path.name: path.read_bytes() for path in output.draft.files if policy.blocks(path) is None}
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


def _read_entry(
    name: str,
    entry: Mapping[str, Any],
    files: Mapping[str, bytes],
    policy: OutputPolicy,
    doubts: list[Finding],
) -> dict[str, Any]:
    """Judge the files of an entry; what ACRO says of them stands beside it, and counts where it is worse."""
    status = str(entry["status"])
    method = str(entry.get("properties", {}).get("method") or entry.get("type", ""))
    command = str(entry.get("command", ""))
    findings: list[Finding] = list(doubts)
    listed = []
    for file in entry["files"]:
        listed.append(
            {"name": file["name"], "title": file["name"], "role": "table" if file.get("sdc") else "custom"}
        )
        findings += _theirs((file.get("sdc") or {}).get("cells", {}), status)
        findings += _judged(file["name"], files[file["name"]], method, command, policy)
    summary = str(entry.get("summary") or status)
    said: Status = "fail" if status == "fail" else "review" if status != "pass" else "pass"
    findings.append(Finding("ACRO", "a", said, f"ACRO says: {summary}"))
    if not listed:
        findings.append(Finding("figures", "a", "review", "There are no figures to judge. A human looks."))
    return _entry(
        name,
        findings,
        listed,
        kind=method,
        command=command,
        created=str(entry.get("timestamp", "")),
        notes=[str(entry.get("summary", ""))],
        comments=[str(comment) for comment in entry.get("comments") or []],
        exception=str(entry.get("exception") or ""),
    )


def _entry(name: str, findings: list[Finding], files: list[dict[str, Any]], **known: Any) -> dict[str, Any]:
    """Write an output as a package holds it; what is not known of it is left empty."""
    empty: dict[str, Any] = {
        "kind": "custom",
        "command": "",
        "created": "",
        "variables": [],
        "notes": [],
        "mitigation": None,
    }
    about = {"name": name, **empty, "comments": [], "exception": "", **known}
    return {**about, **CheckResult(findings).to_dict(), "files": files}


def _theirs(cells: Mapping[str, Any], status: str) -> list[Finding]:
    """Read the cells that the rules of ACRO hit."""
    found = []
    for rule, places in cells.items():
        if places and rule in _THEIRS:
            check, barn = _THEIRS[rule]
            reason = f"{len(places)} cells hit by the rule '{rule}' of ACRO."
            hit = tuple(map(tuple, places))
            found.append(Finding(check, barn, "fail" if status == "fail" else "review", reason, hit))
    return found


def _judged(name: str, content: bytes, method: str, command: str, policy: OutputPolicy) -> list[Finding]:
    """Judge one file by its figures; what they do not tell is for a human."""
    blocked = policy.blocks(name)
    if blocked:
        return [Finding("file kind", "a", "fail", f"Not to be released: {blocked}.")]
    if not name.lower().endswith((".csv", ".json", ".txt", ".html")):
        return [
            Finding("file kind", "a", "review", f"'{name}' cannot be read by the checker; a human looks.")
        ]
    try:
        grids = read_grids(Path(name), content)
    except DiscreetError as error:
        return [Finding("file", "a", "review", f"{error} A human looks.")]
    # A table of counts is a cross table without a variable that is aggregated.
    is_table = method in ("crosstab", "cross table", "histogram")
    counts = is_table and not any(word in command for word in ("aggfunc", "values", "normalize"))
    facts = facts_of(text_of(grids), is_json=False)
    found = [*facts.findings(policy), *judged(grids, policy, are_counts=counts, named_only=facts.is_model)]
    if facts.is_model:
        found.append(UNSAID_OF_MODELS)
    elif not counts:
        reason = (
            "The figures do not say how many people stand behind them, or who dominates them: what ACRO saw cannot be "
            "seen here. A human looks."
        )
        found.append(Finding("figures", "d", "review", reason))
    return found or [Finding("figures", "a", "review", "There are no figures to judge. A human looks.")]


def _compared(
    outputs: list[dict[str, Any]], files: Mapping[str, bytes], policy: OutputPolicy
) -> list[Mapping[str, Any]]:
    """Hold every output against the ones before it: counts and observations that differ by few people."""
    known: list[tuple[str, Any]] = []
    made = []
    for output in outputs:
        figures = figures_of({f["name"]: files[f["name"]] for f in output["files"]})
        close = (nearly_the_same(name, figures, earlier, policy) for name, earlier in known)
        more = [finding for finding in close if finding is not None]
        known.append((output["name"], figures))
        made.append(with_findings(output, more))
    return made


def _unlisted(
    outputs: list[dict[str, Any]], files: Mapping[str, bytes], policy: OutputPolicy
) -> list[dict[str, Any]]:
    """Judge the files that no output lists: they would go out with the folder."""
    used = {file["name"] for output in outputs for file in output["files"]} | {"results.json", "config.json"}
    extra = [name for name in files if name not in used and not name.startswith("checksums/")]
    if not extra:
        return []
    findings = [finding for name in extra for finding in _judged(name, files[name], "", "", policy)]
    reason = f"{len(extra)} files lie in the folder that no output lists. A human looks what they are."
    findings.append(Finding("not listed", "a", "review", reason))
    listed = [{"name": name, "title": name, "role": "custom"} for name in extra]
    return [_entry("files that are not listed", findings, listed)]


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=4, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
