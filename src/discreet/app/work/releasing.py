"""What did it cost, what could attackers still do, and what goes out? Papers, files and copies of a release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench, history_of, note_source
from discreet.app.work.measuring import excerpt_view
from discreet.app.work.protecting import key_of, plan_of
from discreet.core.cards import all_cards
from discreet.core.errors import ParameterError
from discreet.core.files.atomic import check_target, make_folder, replacing_folder
from discreet.core.files.inputs import check_not_read
from discreet.core.value_gate import gated, without_literals
from discreet.io import write, write_together
from discreet.policy import Policy
from discreet.register import History
from discreet.report import release_view
from discreet.report.comparison_report import releases_of
from discreet.report.plots import chart_svg
from discreet.synth import preflight, save_plan
from discreet.workflow import ReleaseReport, compare, document_plan
from discreet.workflow.comparison_results import Comparison

_MARK = "made-by-discreet.txt"
_MARK_TEXT = (
    "This folder was written whole by the page of discreet, and is replaced whole when it is written again.\n"
)


def asked_at_once() -> list[str]:
    """Name the measures that most people ask for."""
    return [card.name for card in all_cards(asked="compare") if card.compare and card.compare.at_once]


def compare_release(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    policy: str,
    seed: int,
    thorough: bool = False,
    show_values: bool = False,
) -> dict[str, Any]:
    """Judge the release, and hold it against its original: by the measures most people ask for, or by all."""
    report = _documented(bench, source, roles, steps, policy=policy, seed=seed, show_values=show_values)
    original = bench.with_roles(source, roles)
    found = compare(
        original,
        report.release.data,
        measures=None if thorough else asked_at_once(),
        progress=True,
        show_values=show_values,
        register=History(),
    )
    named = identifiers_left(report, roles)
    return {
        **report_view(report),
        "identifiers": named,
        "compared": comparison_view(found),
        "thorough": thorough,
        "show_values": show_values,
    }


def write_release(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    policy: str,
    seed: int,
    folder: str,
    name: str,
    overwrite: bool,
    guard_formulas: bool,
    signed: Mapping[str, str],
    texts: Mapping[str, str],
) -> dict[str, Any]:
    """Write the release with its report, plan, log and script into one folder, whole or not at all."""
    place = Path(folder).expanduser()
    with caused_by("folder"):
        if not folder.strip() or not place.is_absolute():
            raise ParameterError("Name the folder in full, from the root of this machine.")
        note_source(source)
        check_not_read(place, replaced=True)
        make_folder(place.parent)
        if place.exists() and any(place.iterdir()) and not (place / _MARK).is_file():
            raise ParameterError(
                f"The folder '{place.name}' holds something else. Name a new one: it is replaced whole."
            )
    report = _documented(bench, source, roles, steps, policy=policy, seed=seed)
    meets = report.verdict.meets if report.verdict else None
    check_signed(
        signed,
        clears=meets,
        otherwise="The release does not meet the policy, or not all of it was judged.",
    )
    goes_out = signed.get("decision") != "no"
    named = identifiers_left(report, roles)
    if goes_out and named:
        with caused_by("steps"):
            raise ParameterError(
                f"The release still holds what names people: {', '.join(named)}. Add the step drop-identifiers, or "
                "replace them by pseudonyms, before it goes out."
            )
    report = report.signed(**signed) if signed.get("name") else report
    with caused_by("folder"), replacing_folder(place, overwrite=overwrite, private=True) as unfinished:
        guarded = {"guard_formulas": True} if guard_formulas else {}
        # What is not to be released is not put into a folder that is handed on: the papers alone say why.
        if goes_out:
            with caused_by("name"):
                write(report.release.data, unfinished / name, **guarded)
        report.of_file(unfinished / name).to_html(unfinished / "release.html")
        if steps:
            plan_of(steps).save(unfinished / "plan.toml")
        log = report.release.to_dict()
        (unfinished / "log.json").write_text(
            json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
        )
        for file, text in texts.items():
            (unfinished / file).write_text(text, encoding="utf-8")
        (unfinished / _MARK).write_text(_MARK_TEXT, encoding="utf-8")
    report = report.entered(place / name) if goes_out else report
    written = [path for path in sorted(place.iterdir()) if path.name != _MARK]
    return {
        **report_view(report),
        "folder": str(place),
        "files": [{"name": path.name, "bytes": path.stat().st_size} for path in written],
        "signed": dict(signed),
    }


def identifiers_left(report: ReleaseReport, roles: Mapping[str, Any]) -> list[str]:
    """Name the direct identifiers that the release holds as the original had them."""
    return [
        name
        for name in roles.get("identifiers") or ()
        if name in report.release.data.schema
        and not any(step.changed_cells.get(name) for step in report.release.log)
    ]


def report_view(report: ReleaseReport) -> dict[str, Any]:
    """Lay out the papers of a release: verdict, risk before and after, what it cost."""
    before, after = release_view.answers_of(report)
    return {
        "answer": asdict(after),
        "before": None if before is None else asdict(before),
        "line": report.line,
        "cost": report.cost.meaning,
        "cards": [
            {"number": number, "label": label, "sentence": sentence}
            for number, label, sentence in release_view.cost_cards(report.cost)
        ],
        "risks": [asdict(row) for row in release_view.risk_rows(report)],
        "losses": excerpt_view(release_view.column_losses(report.cost)),
        "steps": [
            {"name": step.name, "purpose": step.purpose, "done": step.done, "notes": list(step.notes)}
            for step in release_view.steps_of(report)
        ],
        "guarantee": report.release.guarantee_in_words,
        "not_judged": report.not_judged,
        "caveats": list(report.caveats),
        "rows": report.about.get("rows_released"),
    }


def comparison_view(found: Comparison) -> dict[str, Any]:
    """Lay out a comparison: what went wrong first, the figures to remember, findings by chapter."""
    (view, *_) = releases_of(found)
    return {
        "cards": [asdict(card) for card in view.cards],
        "worst": list(view.worst),
        "clear": view.clear,
        "alignment": list(view.alignment),
        "chapters": [
            {
                "question": section.question,
                "introduction": section.introduction,
                "findings": [
                    {"title": one.title, "value": one.value, "unit": one.unit, "meaning": one.meaning,
                     "caveats": list(one.caveats)}
                    for one in section.findings
                ],
                "pictures": [
                    {"title": chart.title, "svg": chart_svg(chart, name=f"{section.anchor}-{number}")}
                    for number, chart in enumerate(
                        [chart for one in section.findings if one.leading for chart in one.charts][:1]
                    )
                ],
            }
            for section in view.sections
        ],
        "skipped": [list(pair) for pair in view.skipped],
    }  # fmt: skip


def _documented(
    bench: Bench,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    *,
    policy: str,
    seed: int,
    show_values: bool = False,
) -> ReleaseReport:
    """Apply the plan and judge it, once for the same plan."""
    data = bench.with_roles(source, roles)
    history = history_of(data)
    key = f"{key_of(roles, steps, seed)} {policy} {show_values} {history.line}"
    held = bench.made.get("report")
    if held is not None and held[0] == key:
        kept: ReleaseReport = held[1]
        return kept
    with caused_by("policy"):
        rules = Policy.load(policy)
    with caused_by("steps"):
        report = document_plan(
            data,
            plan_of(steps),
            rules,
            seed=seed,
            progress=True,
            show_values=show_values,
            register=history,
        )
    bench.made["report"] = (key, report)
    return report


# Decisions
_DECISIONS = ("release", "conditions", "no")


def check_signed(signed: Mapping[str, str], *, clears: bool | None, otherwise: str) -> None:
    """Refuse a decision without a name, conditions that are not stated, and a release against what was found.

    ``clears`` says whether nothing stands against a release; ``otherwise`` is the sentence for when something does.
    """
    with caused_by("signed"):
        decision = signed.get("decision", "")
        if not decision and not signed.get("name"):
            return
        if decision not in _DECISIONS:
            raise ParameterError("Choose a decision: release, release with conditions, or do not release.")
        if not signed.get("name", "").strip():
            raise ParameterError("A decision needs the name of whoever decides.")
        stated = signed.get("remarks", "").strip()
        if decision == "conditions" and not stated:
            raise ParameterError("State the conditions under remarks.")
        if decision == "release" and clears is not True and not stated:
            raise ParameterError(f"{otherwise} Say under remarks why it goes out.")


# Synthetic copies


_MOST_COPIES = 100


def look_before(bench: Bench, *, source: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the file before it is synthesized; what is found is named, the values behind it are not."""
    found = preflight(bench.with_roles(source, roles))
    bench.made["preflight"] = (dict(roles), found)
    told = gated(found.to_dict())
    return {
        "findings": [
            {
                "name": finding.name,
                "kind": finding.kind,
                "columns": list(finding.columns),
                "confidence": finding.confidence,
                "action": without_literals(finding.action),
                "accepted": finding.is_accepted(found.accept),
            }
            for finding in found.findings
        ],
        "order": list(found.order),
        "expected": told.get("expected", {}),
        "rows": found.rows,
    }


def make_copies(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    accepted: Sequence[str],
    declined: Sequence[str],
    order: Sequence[str],
    rules: str,
    copies: int,
    rows: int | None,
    out: str,
    overwrite: bool,
    seed: int,
) -> dict[str, Any]:
    """Fit a synthesizer by what was accepted, draw copies, hold them against the original, and write them."""
    data = bench.with_roles(source, roles)
    targets: list[Path] = []
    if out.strip():
        with caused_by("out"):
            targets = _targets(Path(out).expanduser(), copies)
            plan = targets[0].with_name(targets[0].name.split(".")[0] + "-plan.toml")
            for target in (*targets, plan):  # all or none, and known before any work is done
                check_target(target, overwrite=overwrite)
    held = bench.made.get("preflight")
    found = held[1] if held is not None and held[0] == dict(roles) else preflight(data)
    with caused_by("copies"):
        if not 1 <= copies <= _MOST_COPIES:
            raise ParameterError(f"The number of copies lies between 1 and {_MOST_COPIES}.")
    with caused_by("findings"):
        decided = found.decided(accept=list(accepted), reject=list(declined))
    changes: dict[str, Any] = {}
    if order:
        changes["visit_sequence"] = list(order)
    if rules.strip():
        changes["rules"] = _rules(rules)
    with caused_by("rules" if rules.strip() else "order"):
        chosen = decided.synthesizer(**changes)
        fitted = chosen.fit(data, seed=seed, progress=True)
    drawn = fitted.sample(rows, copies=copies, seed=seed + 1, progress=True)
    files = drawn if isinstance(drawn, list) else [drawn]
    history = history_of(data, synthetic=True)
    found_out = compare(data, files, measures=asked_at_once(), progress=True, register=History())
    written: list[str] = []
    if targets:
        with caused_by("out"):
            write_together(files, targets, overwrite=overwrite)
            save_plan(chosen, plan, overwrite=overwrite)
            written = [str(target) for target in (*targets, plan)]
            for file, target in zip(files, targets, strict=True):
                history.enter("synthetic", file, target)
    compared = {**comparison_view(found_out), "before": history.line}
    return {"compared": compared, "written": written, "copies": copies, "rows": files[0].size_in_words}


def _rules(text: str) -> dict[str, Any]:
    from discreet.core.files.untrusted import parsed_toml

    with caused_by("rules"):
        try:
            return dict(parsed_toml(text))
        except ValueError as error:
            raise ParameterError(
                'The rules are lines of TOML, such as: rent = [{when = "age < 18", value = 0}]'
            ) from error


def _targets(place: Path, copies: int) -> list[Path]:
    if not place.is_absolute() or not place.name:
        raise ParameterError("Name the file in full, from the root of this machine.")
    if copies == 1:
        return [place]
    stem, suffix = place.name.split(".")[0], "".join(place.suffixes)
    return [place.with_name(f"{stem}-{number}{suffix}") for number in range(1, copies + 1)]
