"""``discreet protect FILE``: apply a plan and write the release with its log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.budget import LedgerFile, opened_ledger, refuse_unpaid
from discreet.cli.printing import end_by, say, say_commands
from discreet.cli.register import Previous, RegisterFile, history_of, say_history
from discreet.cli.source import Source, takes_source
from discreet.cli.suggest import Effort, Importance, Keep, Workers, suggested
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.results import Release
    from discreet.microdata import Microdata
    from discreet.protect import Plan
    from discreet.workflow import ReleaseReport


@takes_source()
def protect(
    source: Source,
    plan: Annotated[str | None, typer.Option("--plan", help="A plan file (TOML).")] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--step", help='A step as in a plan file, on one line: {treatment = "band", …}; repeat.'
        ),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Look for a plan that meets the policy, and apply it.")
    ] = False,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Where the release is written.")] = None,
    parts: Annotated[
        Path | None,
        typer.Option(
            "--parts", help="Instead of --out: a new folder for Parquet parts, which can be resumed."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the parts of a run that was stopped; give its --seed."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change and write nothing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same bytes again; keep it secret.")
    ] = None,
    record_key: Annotated[
        list[str] | None,
        typer.Option("--record-key", help="Columns that tell the records apart, by which random steps draw."),
    ] = None,
    ledger: LedgerFile = None,
    register: RegisterFile = None,
    previous: Previous = None,
    log: Annotated[Path | None, typer.Option("--log", help="Write the public log (JSON).")] = None,
    internal_log: Annotated[
        Path | None,
        typer.Option("--internal-log", help="Write the log with seeds; it must stay in the house."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write the report: what was done, the risk before and after, the cost."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", "-p", help="Judge the release by a policy file (TOML) or a template's name."
        ),
    ] = None,
    accept: options.Accept = None,
    because: options.Because = None,
    by: options.By = None,
    effort: Effort = "normal",
    keep: Keep = None,
    importance: Importance = None,
    workers: Workers = 2,
    missing: options.MissingKeys = "category",
    show_values: options.ShowValues = False,
    write_as: options.WriteAs = None,
    guard_formulas: options.GuardFormulas = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    json: options.AsJson = False,
) -> None:
    """Protect a file by a plan, with a log of every change and a report to sign."""
    _check_plan(plan, step, policy, auto=auto)
    if out is None and parts is None and not dry_run:
        raise ParameterError("Say where the release goes with --out FILE, or use --dry-run.")
    _check_parts(
        parts,
        {"--out": out, "--write-as": write_as, "--guard-formulas": guard_formulas, "--overwrite": overwrite},
        resume=resume,
    )
    if ledger is not None and (dry_run or auto):
        raise ParameterError(
            "--ledger enters a release, and --auto makes many and --dry-run none. Leave one of them out."
        )
    writing = options.writing(write_as, out, guard=guard_formulas)
    options.check_report(html)
    options.check_targets(
        ("--out", None if dry_run else out, overwrite),
        ("--html", html, True),
        ("--log", log, overwrite),
        ("--internal-log", internal_log, overwrite),
    )
    data = source.read()
    if not auto:
        steps = _steps(plan, step)
    else:
        found = suggested(
            data,
            str(policy),
            effort=effort,
            keep=keep,
            importance=importance,
            workers=workers,
            progress=not json,
            seed=seed,
        )
        if not json:
            say(f"{found}\n")
        if not found.meets:
            end_by([False])
        steps, seed, data = found.plan, found.seed, data.with_roles(**found.roles.to_dict())
    paid = None if ledger is None else opened_ledger(ledger, source.file)
    history = history_of(source, data, register, previous)
    accepted = options.acceptances(accept, because, by)
    report = None
    if html or policy:
        report = _documented(
            data,
            steps,
            policy,
            missing,
            show_values=show_values,
            progress=not json,
            ledger=paid,
            record_key=options.columns(record_key),
            accept=accepted,
            register=history,
            seed=seed,
        )
        release, verdict = report.release, report.verdict
    else:
        from discreet.workflow.earlier_releases import with_history

        release = steps.apply(
            data,
            ledger=paid,
            record_key=options.columns(record_key),
            seed=seed,
            progress=not json,
        )
        verdict = with_history(None, history, release.data, accept=accepted)
    if not dry_run:
        refuse_unpaid(release.guarantee, ledger, source.file)
    written = None if dry_run else out
    if written is not None:
        _write_release(release, written, overwrite=overwrite, **writing)
    if parts is not None and not dry_run:
        _write_parts(release, parts, resume=resume, progress=not json)
    place = None if dry_run else out or str(parts)
    if report is None and place is not None:
        history.enter_made(release, place, verdict)
    if report is not None:
        report = report if place is None else report.of_file(place).entered(place)
        if html:
            report.to_html(html)
    for path, internal in ((log, False), (internal_log, True)):
        if path is not None:
            _write_json(release.to_dict(internal=internal), path, overwrite=overwrite, private=internal)
    if json:
        options.print_json(
            {**(report or release).to_dict(), **history.document(verdict)}, show_values=show_values
        )
    else:
        _show(release, place, report, html)
        if report is None:
            say_history(history, verdict)
    if verdict is not None:
        if not json:
            say_commands([verdict], source, ORIGINAL=source.file, RELEASE=out, POLICY=policy)
        end_by([verdict])


def _check_plan(plan: str | None, steps: list[str] | None, policy: str | None, *, auto: bool) -> None:
    """Refuse a command that has no plan, or two ways to get one, before any work is done."""
    if (plan is not None) + bool(steps) + auto > 1:
        raise ParameterError(
            "--plan, --step and --auto exclude each other: a plan file, steps, or a plan to look for."
        )
    if auto and policy is None:
        raise ParameterError("--auto looks for a plan that meets a policy. Name it with --policy.")
    if plan is None and not steps and not auto:
        raise ParameterError(
            "Say what is to be done with --plan FILE or --step '{treatment = …}', or let --auto --policy P look for a "
            "plan."
        )


def _check_parts(parts: Path | None, others: dict[str, Any], *, resume: bool) -> None:
    """Refuse what does not go with a folder of parts, and what goes only with one."""
    if parts is None:
        if resume:
            raise ParameterError("--resume is about parts: name their folder with --parts FOLDER.")
        return
    for option, given in others.items():
        if given:
            raise ParameterError(f"--parts writes the release as Parquet parts; leave out {option}.")


def _steps(plan: str | None, steps: list[str] | None) -> Plan:
    """Read the plan from its file or from the steps on the command line."""
    from discreet.core.files.untrusted import parsed_toml
    from discreet.protect import Plan

    if plan is not None:
        return Plan.load(plan)
    entries = []
    for number, text in enumerate(steps or (), 1):
        try:
            entries.append(parsed_toml(f"step = {text}")["step"])
        except ValueError as error:
            raise ParameterError(
                f"--step number {number} is no TOML table on one line, such as "
                '{treatment = "band", widths = {age = 10}}.'
            ) from error
    return Plan.from_dict({"step": entries})


def _documented(
    data: Microdata, plan: Plan, policy: str | None, missing: str, **settings: Any
) -> ReleaseReport:
    from discreet.workflow import document_plan

    return document_plan(data, plan, policy, missing=missing, **settings)  # type: ignore[arg-type]


def _write_release(release: Release, out: str, *, overwrite: bool, **writing: Any) -> None:
    from discreet.io import write

    write(release.data, out, overwrite=overwrite, **writing)


def _write_parts(release: Release, folder: Path, *, resume: bool, progress: bool) -> None:
    from discreet.io import write_parts

    write_parts(release.data, folder, resume=resume, progress=progress)


def _show(release: Release, out: str | None, report: ReleaseReport | None, html: Path | None) -> None:
    for number, step in enumerate(release.log, start=1):
        changed = ", ".join(f"{name} {count:,}" for name, count in step.changed_cells.items() if count)
        none = "counts are in the internal log only" if step.counts_withheld else "no cell changed"
        say(f"{number}. {step.treatment}: {f'changed cells: {changed}' if changed else none}")
        if step.removed_records:
            say(f"   removed records: {step.removed_records:,}")
        for note in step.notes:
            say(f"   {note}")
    if report is not None:
        say(report.line if report.verdict else report.cost.meaning)
        if report.not_judged:
            say(report.not_judged)
    if release.private or release.why_none:
        say(f"Guarantee: {release.guarantee_in_words}")
    if release.private:
        say(release.private.in_plain_words)
    say(f"Wrote {out}" if out else "The release was not written (dry run).")
    if html:
        say(f"Report: {html}")


def _write_json(document: dict[str, Any], path: Path, *, overwrite: bool, private: bool) -> None:
    from discreet.io.sidecar import save_text

    save_text(_text(document) + "\n", path, overwrite=overwrite, private=private)


def _text(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
