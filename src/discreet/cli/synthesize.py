"""``discreet synthesize FILE``: fit a model to a file and write synthetic copies of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.budget import LedgerFile, opened_ledger, refuse_unpaid
from discreet.cli.printing import end_by, say, say_commands
from discreet.cli.register import RegisterFile, history_of, say_history
from discreet.cli.source import Source, takes_source
from discreet.cli.synthesized_files import (
    judged_synthesis,
    limited,
    plan_of_tables,
    refuse_others,
    release_tables,
    summary_of,
    synthesize_linked,
    verdicts_of,
    why_not_attacked,
    write_page,
)
from discreet.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from discreet.microdata import Microdata
    from discreet.synth import Fitted, Synthesizer
    from discreet.workflow.synthesis_for_policy import SynthesisForPolicy

_FEW_LOOKALIKES = 2.0  # percent, as in the template synthetic-file


@takes_source(optional=True)
def synthesize(
    source: Source,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Where the synthetic file goes; copies are numbered.")
    ] = None,
    parts: Annotated[
        Path | None,
        typer.Option("--parts", help="Instead of --out: a folder for Parquet parts, larger than memory."),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", help="Processes that draw parts; the bytes do not depend on it.")
    ] = 1,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the parts of a run that was stopped; give its --seed."),
    ] = False,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            help="Gigabytes for learning: of a larger file a random sample is taken, by weight where it has one.",
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A plan file (TOML) with the synthesizer and its options.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="Linked tables: a schema file (TOML) that names them; leave out FILE."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="The method of all columns, e.g. cart, parametric, or another synthesizer, e.g. mst, syndiffix; "
            "multi-table for many tables at once.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="The privacy budget of a private synthesizer.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="The failure that the guarantee may have, e.g. 1e-6.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Another option of the synthesizer as in a plan file: name=value, e.g. proper=true; repeat.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help="A policy file or template, e.g. synthetic-file: take the steps it asks for, and judge.",
        ),
    ] = None,
    risk_limit: Annotated[
        float | None,
        typer.Option(
            "--risk-limit",
            help="Set people aside, attack what is drawn, and close what lets attackers through until they gain no "
            "more than this, e.g. 0.05. With --policy 0.05 unless given; 0 attacks nothing.",
        ),
    ] = None,
    accept: options.Accept = None,
    because: options.Because = None,
    by: options.By = None,
    copies: Annotated[int, typer.Option("--copies", "-m", help="Number of synthetic files.")] = 1,
    rows: Annotated[
        int | None, typer.Option("--rows", "-n", help="Number of records; as many as the original has.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same bytes again; keep it secret.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Save the fitted model; it holds real values and stays in the house."),
    ] = None,
    from_model: Annotated[
        Path | None, typer.Option("--from-model", help="Draw from a saved model; FILE is not read.")
    ] = None,
    save_plan: Annotated[
        Path | None, typer.Option("--save-plan", help="Write the options as a plan file.")
    ] = None,
    ledger: LedgerFile = None,
    register: RegisterFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show order, methods and predictors, and write nothing.")
    ] = False,
    write_as: options.WriteAs = None,
    guard_formulas: options.GuardFormulas = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page of what attackers gained, of every step and of its price."),
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Make synthetic copies of a file, column by column."""
    from discreet.synth import load

    if not source.file and schema is None and from_model is None and plan is None:
        raise ParameterError("Name the file to learn from: discreet synthesize FILE --out SYNTHETIC.")
    if schema is not None or method == "multi-table":
        others: dict[str, Any] = {"--plan": plan, "--epsilon": epsilon, "--delta": delta, "--policy": policy}
        others |= {"--risk-limit": risk_limit, "--html": html}
        others |= {"--model": model, "--from-model": from_model, "--save-plan": save_plan, "--ledger": ledger}
        others |= {"--dry-run": dry_run, "--write-as": write_as, "--copies": copies - 1, "--rows": rows}
        taken = options.settings(setting)
        if schema is None:
            refuse_others(others, "--method multi-table")
            release_tables(source, out, taken, seed=seed, overwrite=overwrite, json=json)
        else:
            refuse_others({**others, "--plan": None, "--method": method, "FILE": source.file}, "--schema")
            synthesize_linked(
                schema, out, {**plan_of_tables(plan), **taken}, seed=seed, overwrite=overwrite, json=json
            )
        return
    _check_parts(
        parts,
        workers,
        {
            "--out": out,
            "--policy": policy,
            "--risk-limit": risk_limit,
            "--write-as": write_as,
            "--copies": copies - 1,
            "--register": register,
        },
        resume=resume,
    )
    if memory is not None:
        _check_memory(
            memory,
            {"--from-model": from_model, "--policy": policy, "--risk-limit": risk_limit, "--ledger": ledger},
        )
    if out is None and parts is None and not (dry_run or model or save_plan):
        raise ParameterError("Say where the synthetic file goes with --out FILE, or use --dry-run.")
    for option, value in (("--copies", copies), ("--rows", rows)):
        if value is not None and value < 1:
            raise ParameterError(f"{option} must be at least 1.")
    writing = options.writing(write_as, out, guard=guard_formulas)
    targets = _targets(out, copies)
    options.check_targets(
        *(("--out", target, overwrite) for target in targets),
        ("--model", model, overwrite),
        ("--save-plan", save_plan, overwrite),
        ("--html", html, overwrite),
    )
    if from_model is not None:
        _check_model_alone(
            {
                "--plan": plan,
                "--method": method,
                "--epsilon": epsilon,
                "--delta": delta,
                "--set": setting,
                "--save-plan": save_plan,
                "--policy": policy,
                "--risk-limit": risk_limit,
                "--html": html,
                "--ledger": ledger,
            }
        )
    if ledger is not None and (policy is not None or risk_limit):
        raise ParameterError(
            "--policy and --risk-limit fit several models, and each would spend; leave out --ledger or these."
        )
    if policy is not None and out is None and not dry_run:
        raise ParameterError("--policy judges the synthetic file: say where it goes with --out FILE.")
    began = time.perf_counter()
    judged: SynthesisForPolicy | None = None
    limit_named = False
    data: Microdata | None = None
    budget = {"epsilon": epsilon, "delta": delta}
    chosen = None if from_model else _synthesizer(plan, method, budget, options.settings(setting))
    if from_model is not None:
        fitted: Fitted = load(from_model)
        if dry_run:
            _show_plan(fitted.plan if hasattr(fitted, "plan") else None, json=json)
            return
    else:
        assert chosen is not None
        if model is not None and getattr(chosen, "proper", False):
            raise ParameterError(
                "A proper synthesis is fitted anew for every copy, so there is no model to save. Leave --model out and "
                "keep its options with --save-plan, or synthesize without proper."
            )
        data = source.read() if chosen.needs_data else None
        if dry_run:
            _show_plan(chosen.plan(data) if hasattr(chosen, "plan") else None, json=json)
            if save_plan is not None:
                _save(chosen, save_plan, overwrite=overwrite)
            return
        limit_named = bool(risk_limit) or (
            risk_limit is None and getattr(chosen, "risk_limit", None) is not None
        )
        chosen = limited(chosen, data, risk_limit, judged=policy is not None, page=html is not None)
        if policy is None and getattr(chosen, "risk_limit", None) is None:
            fitted = _fitted(chosen, data, seed, ledger, source.file, memory=memory, progress=not json)
        else:
            judged = judged_synthesis(
                data,
                policy,
                chosen,
                n=rows,
                copies=copies,
                accept=options.acceptances(accept, because, by),
                seed=seed,
                progress=not json,
            )
            fitted = judged.fitted
        refuse_unpaid(fitted.guarantee, ledger, source.file)
    seconds_fit = time.perf_counter() - began
    began = time.perf_counter()
    if judged is not None:
        files = list(judged.files) if targets else []
    elif parts is not None:
        files = [fitted.sample(rows, to=parts, workers=workers, resume=resume, progress=not json, seed=seed)]
    else:
        files = _drawn(fitted, rows, copies, seed, progress=not json) if targets else []
    seconds_draw = time.perf_counter() - began
    _refuse_empty(files if parts is None and judged is None else [])
    history = history_of(source, data, register, synthetic=True)
    # Only now, when nothing can be refused any more.
    if chosen is not None and save_plan is not None:
        _save(chosen, save_plan, overwrite=overwrite)
    if model is not None:
        fitted.save(model)
    if parts is None:
        _write(files, targets, overwrite=overwrite, **writing)
    written = targets if parts is None else [str(parts)]
    for place, file in enumerate(files if parts is None else ()):
        verdict = judged.verdicts[place] if judged is not None and place < len(judged.verdicts) else None
        history.enter("synthetic", file, targets[place], verdict)
    summary = _summary(fitted, files, written, model, seconds_fit, seconds_draw)
    if judged is not None:
        assert chosen is not None
        not_attacked = (
            None if judged.crossed else why_not_attacked(chosen, risk_limit, judged=policy is not None)
        )
        summary |= summary_of(judged, not_attacked)
        write_page(judged, html)
    if json:
        options.print_json({**summary, **history.document()})
    else:
        # Beside a guarantee nothing is said that was counted in the original.
        compared = data is not None and judged is None and fitted.guarantee is None
        _show(summary, lookalikes_said(data, files) if data is not None and compared else None)
        say_history(history)
        for line in [] if judged is None else [*judged.lines, *([not_attacked] if not_attacked else [])]:
            say(line)
        if judged is not None:
            say_commands(judged.verdicts, source, ORIGINAL=source.file, RELEASE=out, POLICY=policy)
    if judged is not None:
        end_by(verdicts_of(judged, asked=limit_named))


def lookalikes_said(data: Microdata, files: list[Microdata]) -> str | None:
    """Say how many people are alone with their keys in the synthetic file too, and what to do about it."""
    from discreet.risk import replicated_uniques

    keys = [name for name in data.roles.keys if files and name in files[0].columns]
    if not keys:
        return None
    share = max(float(replicated_uniques(data, file, keys=keys).figures["repU"] or 0) for file in files)
    if share <= _FEW_LOOKALIKES:
        return None
    return (
        f"{share:.1f} % of the people are alone with their keys here as in the original (repU). "
        "--policy synthetic-file draws other records for those that are alone and blurs what else is somebody's own."
    )


def _synthesizer(
    plan: Path | None, method: str | None, budget: dict[str, float | None], settings: dict[str, Any]
) -> Synthesizer:
    from discreet.synth import Synthesizer, load_plan
    from discreet.synth.methods.method import all_methods
    from discreet.synth.synthesizer import USUAL

    budget = {name: value for name, value in budget.items() if value is not None}
    if plan is not None:
        if method is not None or settings or budget:
            raise ParameterError(
                "A plan file says everything; leave out --method, --epsilon, --delta and --set."
            )
        return load_plan(plan)
    settings |= budget
    name = str(settings.pop("synthesizer", USUAL))
    if method is not None:
        if name == USUAL and method not in all_methods() and method in Synthesizer.known:
            return Synthesizer.named(method, settings)
        settings["method"] = method
    return Synthesizer.named(name, settings)


def _drawn(
    fitted: Fitted, rows: int | None, copies: int, seed: int | None, *, progress: bool
) -> list[Microdata]:
    drawn = fitted.sample(rows, copies=copies, seed=seed, progress=progress)
    return drawn if isinstance(drawn, list) else [drawn]


def _targets(out: str | None, copies: int) -> list[str]:
    """Number the files of several copies: ``people.csv`` becomes ``people-1.csv``, ``people-2.csv``…"""
    from discreet.io.naming import bare_name, format_of, is_address

    if out is None:
        return []
    if not is_address(out):
        format_of(Path(out))  # a format that nobody knows is refused before a model is fitted
    if copies == 1:
        return [out]
    if is_address(out):
        raise ParameterError("Several copies need a file name under --out, not a database address.")
    place = Path(out)
    stem = bare_name(place)
    suffix = place.name[len(stem) :]
    return [str(place.with_name(f"{stem}-{number}{suffix}")) for number in range(1, copies + 1)]


def _fitted(
    chosen: Synthesizer,
    data: Microdata | None,
    seed: int | None,
    ledger: Path | None,
    file: str,
    *,
    memory: float | None,
    progress: bool,
) -> Fitted:
    if memory is not None and data is not None:
        from discreet.synth import fit_on_sample

        return fit_on_sample(chosen, data, memory=memory, progress=progress, seed=seed)
    if ledger is None:
        return chosen.fit(data, seed=seed, progress=progress)  # type: ignore[arg-type]
    import inspect

    if "ledger" not in inspect.signature(chosen.fit).parameters or data is None:
        raise ParameterError(
            "--ledger takes models with a guarantee that enter their price, as --method mst or --method aim."
        )
    return chosen.fit(  # type: ignore[call-arg]
        data, seed=seed, progress=progress, ledger=opened_ledger(ledger, file)
    )


def _save(chosen: Synthesizer, path: Path, *, overwrite: bool) -> None:
    from discreet.synth import save_plan as save

    save(chosen, path, overwrite=overwrite)


def _write(files: list[Microdata], targets: list[str], *, overwrite: bool, **writing: Any) -> None:
    from discreet.io import write, write_together

    if len(files) == 1:
        write(files[0], targets[0], overwrite=overwrite, **writing)  # a database, perhaps
    elif files:
        write_together(files, targets, overwrite=overwrite, **writing)


def _check_model_alone(others: dict[str, Any]) -> None:
    """Refuse options of a fit where a fitted model is drawn from: they would be passed over."""
    for option, given in others.items():
        if given:
            raise ParameterError(
                f"A saved model is drawn from as it was fitted; leave out {option}, or fit anew without --from-model."
            )


def _check_parts(parts: Path | None, workers: int, others: dict[str, Any], *, resume: bool) -> None:
    """Refuse what does not go with a folder of parts, and what goes only with one."""
    if parts is None:
        for option, given in (("--workers", workers != 1), ("--resume", resume)):
            if given:
                raise ParameterError(f"{option} is about parts: name their folder with --parts FOLDER.")
        return
    for option, given in others.items():
        if given:
            raise ParameterError(f"--parts writes one synthetic file as Parquet parts; leave out {option}.")


def _check_memory(memory: float, others: dict[str, Any]) -> None:
    if not memory > 0:
        raise ParameterError("--memory must be a number of gigabytes above 0.")
    for option, given in others.items():
        if given:
            raise ParameterError(f"--memory is about learning from a sample of the file; leave out {option}.")


def _show_plan(planned: Any, *, json: bool) -> None:
    if planned is None:
        raise ParameterError("This synthesizer has no plan to show: it models all columns at once.")
    if json:
        options.print_json(planned.to_dict())
    else:
        say(str(planned))


def _summary(
    fitted: Fitted,
    files: list[Microdata],
    targets: list[str],
    model: Path | None,
    *seconds: float,
) -> dict[str, Any]:
    planned = getattr(fitted, "plan", None)
    return {
        "files": [Path(target).name for target in targets],
        "records": fitted.rows if not files else _height(files[0]),
        "columns": list(files[0].columns) if files else list(fitted.like.columns),
        "plan": None if planned is None else planned.to_dict(),
        "combining_rule": fitted.combining_rule,
        "learned_from": fitted.learned_from or None,
        "guarantee": fitted.guarantee,
        "why_none": fitted.why_none,
        "private": fitted.private.to_dict() if fitted.private else None,
        "spending": fitted.spending.to_dict() if fitted.spending else None,
        "model": None if model is None else model.name,
        # How long the fit took depends on the records.
        "seconds": None if fitted.guarantee else {"fit": round(seconds[0], 3), "draw": round(seconds[1], 3)},
    }


def _height(data: Microdata) -> int:
    from discreet import engine

    return engine.overview(data, ()).rows


def _refuse_empty(files: list[Microdata]) -> None:
    """Write no file without records: a generator that may show nobody has drawn none."""
    from discreet import engine

    if any(not engine.collect(file).height for file in files):
        raise InputError(
            "Nothing was drawn, because too few people have anything in common to be shown; no file was written. Take "
            "fewer columns, or columns with fewer values, or more records."
        )


def _show(summary: dict[str, Any], said: str | None = None) -> None:
    for warning in (summary["plan"] or {}).get("warnings", ()):
        typer.secho("Note: ", fg="yellow", bold=True, nl=False, err=True)
        say(warning, err=True)
    taken = summary["seconds"]
    size = f"{_counted(summary['records'], 'record')}, {_counted(len(summary['columns']), 'column')}"
    say(f"{size}; fitted in {taken['fit']:.1f} s, drawn in {taken['draw']:.1f} s." if taken else f"{size}.")
    for name in summary["files"]:
        say(f"Wrote {name}")
    if summary["learned_from"]:
        say(summary["learned_from"])
    if summary["model"]:
        say(f"Model: {summary['model']} (it holds real values; keep it as the data are kept)")
    if summary["guarantee"]:
        say(f"Guarantee: {summary['guarantee']}")
        if summary["private"]:
            say(summary["private"]["in_plain_words"])
            say("Not covered:")
            for sentence in summary["private"]["not_covered"]:
                say(f"  {sentence}")
    elif summary["why_none"]:
        say(f"No guarantee: {summary['why_none']}")
    if said:
        say(said)
    if summary["files"] and "verdicts" not in summary:
        say("Synthetic is not the same as safe: run discreet compare ORIGINAL SYNTHETIC before it goes out.")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
