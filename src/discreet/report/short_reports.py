"""The short pages: of a joint analysis, a privacy budget, a synthesis that was attacked, and of a checker."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet._version import __version__
from discreet.core.guarantees import NOT_COVERED
from discreet.core.wording import percent, shown
from discreet.outputs.check_results import barns
from discreet.outputs.output import FLAG_NAMES, FREE, MARKS
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.dp.ledger import Ledger
    from discreet.federated.leakage import Leakage
    from discreet.outputs.package import Package
    from discreet.workflow.synthesis_within_risk import SynthesisWithinRisk


def write_leakage_report(
    account: Leakage, path: str | Path, *, title: str, figures: Mapping[str, Any]
) -> Path:
    """Write the page and return its path; it holds no rows."""
    table = account.transcript.to_dict()
    page = rendered(
        "leakage.html",
        title=title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        protocol=account.protocol,
        figures=list(figures.items()),
        headline=account.headline,
        determined=[one.about for one in account.determined],
        learned=[
            {
                "party": one.party,
                "about": one.about,
                "sentence": one.sentence,
                "equations": "" if one.constraints is None else shown(one.constraints),
                "unknowns": "" if one.unknowns is None else shown(one.unknowns),
                "determined": "yes" if one.determined else ("no" if one.constraints is not None else ""),
            }
            for one in account.learned
        ],
        collusions=account.collusions,
        notes=account.notes,
        subsets=account.subsets,
        messages=shown(table["messages"]),
        bytes=shown(table["bytes"]),
        passed=[
            {**row, "messages": shown(row["messages"]), "bytes": shown(row["bytes"])}
            for row in table["by_message"]
        ],
    )
    return written_page(path, page)


def write_budget_report(ledger: Ledger, path: str | Path) -> Path:
    """Write the page of a ledger and return its path; it holds no data."""
    spending = ledger.spending()
    page = rendered(
        "budget.html",
        title=ledger.path.name if ledger.path else "a data source",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        meaning=ledger.meaning,
        spending=spending,
        closed=ledger.closed,
        not_covered=NOT_COVERED,
    )
    return written_page(path, page)


def write_risk_limit_report(found: SynthesisWithinRisk, path: str | Path) -> Path:
    """Write the page and return its path; it holds no rows and no values."""
    page = rendered(
        "risk_limit.html",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        limit=percent(found.limit),
        verdict=found.verdict,
        price=found.price,
        steps=found.steps,
        notes=found.gains.notes,
        attacks=[
            {
                "attack": row["attack"],
                "risk": percent(row["risk"]),
                "interval": f"{percent(row['risk_low'])} to {percent(row['risk_high'])}",
                "keeps": "yes" if row["risk_high"] <= found.limit else "no",
            }
            for row in found.gains.table.iter_rows(named=True)
        ],
        tries=[
            {
                **row,
                "risk": percent(row["risk"]),
                "risk_high": percent(row["risk_high"]),
                "distance": percent(row["distance"]),
                "by": "people whom no step was chosen by"
                if row["judged"]
                else "people by whom steps are chosen",
                "chosen": "this file" if row["chosen"] else "",
            }
            for row in found.frontier.iter_rows(named=True)
        ],
    )
    return written_page(path, page)


# The page of a checker. No script runs on it


_MOST_ROWS = 200
_MOST_PLACES = 20
_MOST_WORDS = 20_000
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
_WORDS = (".txt", ".md", ".json", ".log", ".py", ".r", ".do")
_TONES = {"pass": "pass", "fail": "fail"}
_FACTS = (("Researcher", "researcher"), ("Project", "project"), ("Purpose", "purpose"), ("Made", "started"))


def review_page(
    package: Package,
    decided: Mapping[str, Mapping[str, Any]],
    *,
    form_token: str,
    nonce: str,
    checker: str,
    message: str = "",
) -> str:
    """Write the page."""
    facts = [(label, package.about.get(name) or "not said") for label, name in _FACTS]
    facts.append(("Policy", f"{package.policy.name} (threshold {package.policy.threshold})"))
    return rendered(
        "review.html",
        title=package.path.name,
        facts=facts,
        checksum=package.checksum,
        outputs=[_output(package, output, decided.get(output["name"])) for output in package.outputs],
        form_token=form_token,
        nonce=nonce,
        checker=checker,
        message=message,
        version=__version__,
    )


def _output(
    package: Package, output: Mapping[str, Any], decision: Mapping[str, Any] | None
) -> dict[str, Any]:
    known = barns()
    return {
        **{name: output.get(name) or "" for name in ("name", "kind", "command", "exception")},
        **_judged(output["status"]),
        "barns": ", ".join(f"{barn}. {known[barn].name}" for barn in output["barns"] if barn in known),
        "findings": [
            {"check": f["check"], "reason": f["reason"], "places": _places(f), **_judged(f["status"])}
            for f in output["findings"]
        ],
        "questions": tuple(output.get("questions", ())),
        "notes": (*output.get("notes", ()), *output.get("comments", ())),
        "files": list(files_of(package, output)),
        "decision": decision,
    }


def _judged(status: Any) -> dict[str, Any]:
    """Say a status with its sign; what is not known is looked at."""
    return {
        "status": status,
        "mark": MARKS[status if status in MARKS else "review"],
        "tone": _TONES.get(status, "open"),
    }


def _places(finding: Mapping[str, Any]) -> str:
    """Say where in a file the cells of a finding stand."""
    cells = [
        f"{p['sheet']}!{p['cell']}" if p.get("sheet") else str(p["cell"]) for p in finding.get("places", ())
    ]
    more = f" and {len(cells) - _MOST_PLACES} more" if len(cells) > _MOST_PLACES else ""
    return ", ".join(cells[:_MOST_PLACES]) + more


def files_of(package: Package, output: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Lay out what an output consists of: tables with what their flags say of each cell, pictures, words."""
    flags = {f.get("title", ""): f["name"] for f in output["files"] if f.get("role") == "flags"}
    for file in output["files"]:
        name = file["name"]
        if file.get("role") == "flags" or name not in package.files:
            continue
        title = file.get("title", "")
        yield file_shown(name, package.files[name], title, package.files.get(flags.get(title, "")))


def file_shown(name: str, content: bytes, title: str = "", marks: bytes | None = None) -> dict[str, Any]:
    """Lay out one file by what its name says it is; ``marks`` is a table of flags beside a table."""
    ending = "." + name.rsplit(".", 1)[-1].lower()
    shown: dict[str, Any] = {"name": name, "kind": "other", "bytes": len(content)}
    if ending == ".csv":
        return {"kind": "table", "title": title, "table": _table(content, marks)}
    if ending in _PICTURES:
        picture = base64.b64encode(content).decode("ascii")
        return shown | {"kind": "picture", "source": f"data:{_PICTURES[ending]};base64,{picture}"}
    if ending in _WORDS:
        return shown | {"kind": "words", "words": content.decode("utf-8", "replace")[:_MOST_WORDS]}
    return shown


def _table(content: bytes, marks: bytes | None) -> dict[str, Any] | None:
    """Read a table and what its flags say of each cell."""
    table, flags = _texts(content), _texts(marks) if marks else None
    if table is None:
        return None
    shown = table.head(_MOST_ROWS)
    columns = []
    for name in table.columns:
        told = flags[name].to_list() if flags is not None and name in flags.columns else []
        told = (told + [None] * shown.height)[: shown.height]
        meanings = [None if flag == FREE else FLAG_NAMES.get(str(flag)) for flag in told]
        columns.append(list(zip(shown[name].fill_null("").to_list(), told, meanings, strict=True)))
    return {
        "headings": table.columns,
        "rows": list(zip(*columns, strict=True)),
        "more": table.height - shown.height,
    }


def _texts(content: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_csv(io.BytesIO(content), infer_schema=False)
    except pl.exceptions.PolarsError:
        return None
