"""``discreet evaluate STUDY``: generators on data sets, repeated and measured, as a study file describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.cli.synthesized_files import refuse_others
from discreet.core.errors import ParameterError


def evaluate(
    study: Annotated[
        Path,
        typer.Argument(
            help="A study file (TOML): data, generators, seeds, metrics; with --generators a data file of any kind, "
            "with --release a data file or a schema (TOML) of linked tables."
        ),
    ],
    generators: Annotated[
        str | None,
        typer.Option(
            "--generators",
            help="Compare generators on one data file: 'default', or names between commas; anchors stand beside them.",
        ),
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(
            "--release",
            help="Measure one release of the data file: a file, the folder of many tables, or of linked ones.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="With --release: the groups of the k-marginal score.")
    ] = None,
    slope: Annotated[
        str | None, typer.Option("--slope", help="With --release: y,x or y,x,group, the slopes to compare.")
    ] = None,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help="With --release: a rule of the records; repeat.")
    ] = None,
    household: Annotated[
        str | None, typer.Option("--household", help="With --release: which records live together.")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", help="With --release: people who were not used to make it.")
    ] = None,
    keys: Annotated[str | None, typer.Option("--keys", help="Keys of the data file, between commas.")] = None,
    sensitive: Annotated[
        str | None, typer.Option("--sensitive", help="Its sensitive columns, between commas.")
    ] = None,
    weight: Annotated[str | None, typer.Option("--weight", help="Its survey weight.")] = None,
    identifiers: Annotated[
        str | None, typer.Option("--identifiers", help="Its identifiers, between commas; they are left out.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="What models learn to predict; the first sensitive column.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Use a random sample of so many records.")
    ] = None,
    copies: Annotated[int, typer.Option("--copies", help="Files of each generator in one repetition.")] = 1,
    repetitions: Annotated[int, typer.Option("--repetitions", help="How often each is fitted anew.")] = 2,
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Seconds for a generator in one repetition.")
    ] = 600.0,
    memory_limit: Annotated[
        float | None,
        typer.Option("--memory-limit", help="Megabytes for a generator; not limited unless given."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of a generator: generator.parameter=value; repeat."),
    ] = None,
    no_attacks: Annotated[
        bool, typer.Option("--no-attacks", help="Leave out the attacks, which take long.")
    ] = False,
    save_study: Annotated[
        Path | None, typer.Option("--save-study", help="Write the study of --generators to this file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder that keeps the results, to go on after a stop."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Number of processes.")] = 1,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write the risk-utility map (SVG, PNG, PDF).")
    ] = None,
    json: options.AsJson = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away the results that are there.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what has failed.")] = False,
    training: Annotated[
        Path | None,
        typer.Option(
            "--training", help="Only write the training parts and hold-outs here (CSV), for other tools."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the study and list what would be run; run nothing.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Goes before the study's own seed.")] = None,
) -> None:
    """Run a study of generators and say which keeps the data usable, and which gives people away."""
    from dataclasses import replace

    from discreet.workflow.evaluation import Study, benchmark
    from discreet.workflow.evaluation import evaluate as run_study

    if fresh and retry:
        raise ParameterError("--fresh runs everything again; leave out --retry.")
    options.check_report(html)
    options.check_picture(plot)
    roles = {"keys": keys, "sensitive": sensitive, "weight": weight, "identifiers": identifiers}
    of_release = {"group": group, "slope": slope, "rule": rule, "household": household, "holdout": holdout}
    if release is not None:
        refuse_others({"--generators": generators, "--rows": rows, "--set": setting}, "--release")
        chosen = _of_release(study, release, {**roles, "household": household}, target, of_release)
    elif any(of_release.values()):
        raise ParameterError("--group, --slope, --rule, --household and --holdout go with --release.")
    elif generators is None:
        if any((*roles.values(), target, rows, setting, save_study)):
            raise ParameterError(
                "Roles, --target, --rows, --set and --save-study go with --generators; a study file says them itself."
            )
        chosen = Study.load(study)
    else:
        chosen = benchmark(
            study,
            generators,
            roles={role: _between_commas(role, given) for role, given in roles.items() if given},
            target=target,
            rows=rows,
            copies=copies,
            repetitions=repetitions,
            attacks=not no_attacks,
            time_limit=time_limit,
            memory_limit=memory_limit,
            parameters=_by_generator(options.settings(setting)),
        )
    if seed is not None:
        chosen = replace(chosen, seed=seed)
    if save_study is not None:
        chosen.save(save_study)
    if training is not None:
        for path in chosen.write_training(training):
            say(f"Wrote {path.name}")
        return
    if dry_run:
        _list(chosen.cells(), json=json)
        return
    found = run_study(chosen, out=out, workers=workers, resume=not fresh, retry=retry, progress=not json)
    if html is not None:
        found.to_html(html)
    if plot is not None:
        options.write_picture(found.plot(), plot)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))


def _of_release(
    original: Path, release: Path, roles: dict[str, str | None], target: str | None, more: dict[str, Any]
) -> Any:
    from discreet.workflow.evaluation import released_study

    return released_study(
        original,
        release,
        roles={role: _between_commas(role, given) for role, given in roles.items() if given},
        target=target,
        group=more["group"],
        slope=[] if more["slope"] is None else [name.strip() for name in more["slope"].split(",")],
        rules=more["rule"] or [],
        holdout=None if more["holdout"] is None else more["holdout"],
    )


def _between_commas(role: str, given: str) -> str | list[str]:
    return (
        given
        if role in ("weight", "household")
        else [name.strip() for name in given.split(",") if name.strip()]
    )


def _by_generator(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort settings by the generator they are for."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        generator, dot, parameter = name.partition(".")
        if not dot:
            raise ParameterError(f"--set {name}=… must name the generator too: generator.parameter=value.")
        found.setdefault(generator, {})[parameter] = value
    return found


def _list(cells: list[tuple[str, str, int]], *, json: bool) -> None:
    if json:
        options.print_json([{"data": at, "generator": by, "seed": seed} for at, by, seed in cells])
        return
    for at, by, seed in cells:
        say(f"{at}  {by}  seed {seed}")
