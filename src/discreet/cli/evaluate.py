"""``discreet evaluate STUDY``: generators on data sets, repeated and measured, as a study file describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.errors import ParameterError


def evaluate(
    study: Annotated[Path, typer.Argument(help="A study file (TOML): data, generators, seeds, metrics.")],
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
    seed: Annotated[int | None, typer.Option("--seed", help="Goes before the study's own seed.")] = None,
    training: Annotated[
        Path | None,
        typer.Option(
            "--training", help="Only write the training parts and hold-outs here (CSV), for other tools."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the study and list what would be run; run nothing.")
    ] = False,
) -> None:
    """Run a study of generators and say which keeps the data usable, and which gives people away."""
    from dataclasses import replace

    from discreet.workflow.evaluation import Study
    from discreet.workflow.evaluation import evaluate as run_study

    if fresh and retry:
        raise ParameterError("--fresh runs everything again; leave out --retry.")
    options.check_report(html)
    options.check_picture(plot)
    chosen = Study.load(study)
    if seed is not None:
        chosen = replace(chosen, seed=seed)
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


def _list(cells: list[tuple[str, str, int]], *, json: bool) -> None:
    if json:
        options.print_json([{"data": at, "generator": by, "seed": seed} for at, by, seed in cells])
        return
    for at, by, seed in cells:
        say(f"{at}  {by}  seed {seed}")
