"""``discreet preflight FILE``: what would spoil a synthesis of this file, and a plan that takes care of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source


@takes_source()
def preflight(
    source: Source,
    plan: Annotated[
        Path | None,
        typer.Option("--save-plan", help="Write a plan for discreet synthesize from the accepted findings."),
    ] = None,
    accept: Annotated[
        str, typer.Option("--accept", help="Act on findings of this confidence or more: high, medium or low.")
    ] = "high",
    findings: Annotated[
        Path | None, typer.Option("--findings", help="Write the findings to a TOML file to be edited.")
    ] = None,
    show_values: options.ShowValues = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    json: options.AsJson = False,
) -> None:
    """Look at a file before it is synthesized: codes, derived columns, rules, outliers, cost."""
    from discreet.synth import preflight as look
    from discreet.synth import save_plan

    found = look(source.read(), accept=accept, show_values=show_values)
    if findings is not None:
        found.save(findings, show_values=show_values, overwrite=overwrite)
    if plan is not None:
        save_plan(found.synthesizer(), plan, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict(), show_values=show_values)
        return
    say(str(found))
    for path in (findings, plan):
        if path is not None:
            options.say_written(path)
