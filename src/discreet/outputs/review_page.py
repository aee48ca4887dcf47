"""The page of a checker: plain HTML, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from discreet.outputs.package import Package
from discreet.outputs.result import FLAG_NAMES, FREE, MARKS
from discreet.outputs.statbarns import barns

_MOST_ROWS = 200
_MOST_PLACES = 20
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid #bbb;padding-top:1rem}
table{border-collapse:collapse;margin:.8rem 0}th,td{border:1px solid #ccc;padding:.2rem .6rem;text-align:right}
th:first-child,td:first-child{text-align:left}.scroll{overflow-x:auto}
.pass{background:#d5f0d9}.review{background:#fdf1c4}.fail,.hit{background:#f9d3d3}
.tag{padding:.1rem .6rem;border-radius:.3rem}small{color:#555}
form{background:#f4f4f4;padding:.8rem;margin-top:.8rem}label{display:block;margin:.3rem 0}
input[type=text],textarea{width:100%;box-sizing:border-box;font:inherit;padding:.3rem}
button{font:inherit;padding:.3rem 1rem;margin-right:.5rem}
button:focus,input:focus,textarea:focus{outline:3px solid #1a5fb4}
@media (prefers-color-scheme:dark){body{background:#1c1c1c;color:#eee}.pass{background:#1d4d26}
.review{background:#5a4b12}.fail,.hit{background:#5d2323}form{background:#2a2a2a}small{color:#bbb}
th,td{border-color:#555}a{color:#8ab4f8}}
"""


def page(
    package: Package,
    decided: Mapping[str, Mapping[str, Any]],
    *,
    form_token: str,
    nonce: str,
    checker: str,
    message: str = "",
) -> str:
    """Write the page."""
    about = package.about
    rows = "".join(
        f"<tr><td><a href='#{_anchor(i)}'>{_safe(o['name'])}</a></td><td>{_safe(o['kind'])}</td>"
        f"<td class='{_class(o['status'])}'>{MARKS[_class(o['status'])]} {_safe(o['status'])}</td>"
        f"<td>{_safe(decided.get(o['name'], {}).get('decision', 'open'))}</td></tr>"
        for i, o in enumerate(package.outputs)
    )
    facts = "".join(
        f"<li>{label}: {_safe(about.get(name) or 'not said')}</li>"
        for label, name in (
            ("Researcher", "researcher"),
            ("Project", "project"),
            ("Purpose", "purpose"),
            ("Made", "started"),
        )
    )
    parts = "".join(
        _output(package, output, i, decided.get(output["name"]), form_token, checker)
        for i, output in enumerate(package.outputs)
    )
    said = f"<p role='status' class='review tag'>{_safe(message)}</p>" if message else ""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><title>Outputs to check</title>"
        f"<style nonce='{nonce}'>{_STYLE}</style></head><body>"
        f"<h1>Outputs to check: {_safe(package.path.name)}</h1>{said}<ul>{facts}"
        f"<li>Policy: {_safe(package.policy.name)} (threshold {package.policy.threshold})</li>"
        f"<li>Checksum of the package: <small>{package.checksum}</small></li></ul>"
        "<div class='scroll'><table><thead><tr><th>Output</th><th>Statistic</th><th>Status</th><th>Decision</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>{parts}</body></html>"
    )


def _output(  # noqa: PLR0917
    package: Package,
    output: Mapping[str, Any],
    place: int,
    decision: Mapping[str, Any] | None,
    form_token: str,
    checker: str,
) -> str:
    findings = "".join(
        f"<li><span class='tag {_class(f['status'])}'>{MARKS[_class(f['status'])]} {_safe(f['status'])}</span> "
        f"{_safe(f['check'])}: {_safe(f['reason'])}{_places(f)}</li>"
        for f in output["findings"]
    )
    names = ", ".join(f"{b}. {barns()[b].name}" for b in output["barns"] if b in barns())
    questions = "".join(f"<li>{_safe(question)}</li>" for question in output.get("questions", ()))
    notes = "".join(
        f"<li>{_safe(note)}</li>" for note in (*output.get("notes", ()), *output.get("comments", ()))
    )
    asked = (
        f"<p><strong>The researcher asks for an exception:</strong> {_safe(output['exception'])}</p>"
        if output.get("exception")
        else ""
    )
    done = (
        f"<p><strong>Decision:</strong> {_safe(decision['decision'])} by {_safe(decision['checker'])}, "
        f"{_safe(decision['time'])}. {_safe(decision['note'])}</p>"
        if decision
        else ""
    )
    return (
        f"<section><h2 id='{_anchor(place)}'>{_safe(output['name'])} "
        f"<span class='tag {_class(output['status'])}'>{_safe(output['status'])}</span></h2>"
        f"<p>{_safe(output['kind'])} <small>{_safe(names)}</small></p>"
        f"<p><small>{_safe(output.get('command') or '')}</small></p>{_files(package, output)}"
        f"<ul>{findings}</ul>{'<p>Only a human can say:</p><ul>' + questions + '</ul>' if questions else ''}"
        f"{'<p>Notes</p><ul>' + notes + '</ul>' if notes else ''}{asked}{done}"
        f"<form method='post' action='decide'><input type='hidden' name='token' value='{form_token}'>"
        f"<input type='hidden' name='output' value='{_safe(output['name'])}'>"
        f"<label>Your name<input type='text' name='checker' required value='{_safe(checker)}'></label>"
        f"<label>{_asked_for(output)}<textarea name='note' rows='2'></textarea></label>"
        "<button name='decision' value='accept'>Accept</button><button name='decision' value='reject'>Reject</button>"
        "<button name='decision' value='ask'>Ask</button></form></section>"
    )


def _places(finding: Mapping[str, Any]) -> str:
    """Say where in a file the cells of a finding stand."""
    cells = [
        f"{p['sheet']}!{p['cell']}" if p.get("sheet") else str(p["cell"]) for p in finding.get("places", ())
    ]
    more = f" and {len(cells) - _MOST_PLACES} more" if len(cells) > _MOST_PLACES else ""
    return f" <small>at {_safe(', '.join(cells[:_MOST_PLACES]))}{more}</small>" if cells else ""


def _asked_for(output: Mapping[str, Any]) -> str:
    """Say when a reason is needed: always, except to accept what passes every check."""
    if output["status"] == "pass":
        return "Reason or question (not needed to accept it)"
    return f"Reason or question (needed to accept it, too: its status is {_safe(output['status'])})"


def _files(package: Package, output: Mapping[str, Any]) -> str:
    flags = {f.get("title", ""): f["name"] for f in output["files"] if f.get("role") == "flags"}
    parts = []
    for file in output["files"]:
        name = file["name"]
        if file.get("role") == "flags" or name not in package.files:
            continue
        ending = "." + name.rsplit(".", 1)[-1].lower()
        if ending == ".csv":
            marks = package.files.get(flags.get(file.get("title", ""), ""))
            parts.append(_table(package.files[name], marks, file.get("title", "")))
        elif ending in _PICTURES:
            data = base64.b64encode(package.files[name]).decode("ascii")
            parts.append(f"<p><img alt='{_safe(name)}' src='data:{_PICTURES[ending]};base64,{data}'></p>")
        elif ending in (".txt", ".md", ".json", ".log", ".py", ".r", ".do"):
            words = package.files[name].decode("utf-8", "replace")[:20_000]
            parts.append(f"<details><summary>{_safe(name)}</summary><pre>{_safe(words)}</pre></details>")
        else:
            parts.append(f"<p>{_safe(name)} ({len(package.files[name]):,} bytes) cannot be shown here.</p>")
    return "".join(parts)


def _table(content: bytes, marks: bytes | None, title: str) -> str:
    table = _texts(content)
    flags = _texts(marks) if marks else None
    if table is None:
        return f"<p>{_safe(title)} cannot be shown as a table.</p>"
    head = "".join(f"<th scope='col'>{_safe(name)}</th>" for name in table.columns)
    body = []
    for i, row in enumerate(table.head(_MOST_ROWS).iter_rows()):
        cells = []
        for name, value in zip(table.columns, row, strict=True):
            flag = (
                flags[name][i] if flags is not None and name in flags.columns and i < flags.height else None
            )
            meaning = FLAG_NAMES.get(str(flag)) if flag != FREE else None
            note = f" class='hit' title='{_safe(meaning)}'" if meaning else ""
            sign = f" <small>{flag}</small>" if meaning else ""
            cells.append(f"<td{note}>{_safe('' if value is None else value)}{sign}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>{table.height - _MOST_ROWS:,} more rows.</p>" if table.height > _MOST_ROWS else ""
    return (
        f"<div class='scroll'><table><caption>{_safe(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _texts(content: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_csv(io.BytesIO(content), infer_schema=False)
    except pl.exceptions.PolarsError:
        return None


def _anchor(place: int) -> str:
    return f"output-{place + 1}"


def _class(status: Any) -> Any:
    return status if status in MARKS else "review"


def _safe(value: Any) -> str:
    return html.escape(str(value), quote=True)
