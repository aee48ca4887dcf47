"""``discreet preflight FILE``: what would spoil a synthesis of this file, and a plan that takes care of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source
from discreet.cli.synthesized_files import refuse_others


@takes_source(optional=True)
def preflight(
    source: Source,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", help="Linked tables: a schema file (TOML) that names them; leave out FILE."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--save-plan", help="Write a plan for discreet synthesize from the accepted findings."),
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator",
            help="Write the plan of another generator that the file calls for, e.g. population.",
        ),
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
    from discreet.core.errors import ParameterError
    from discreet.synth import preflight as look
    from discreet.synth import save_plan
    from discreet.synth.synthesizer import USUAL

    if schema is not None:
        refuse_others({"FILE": source.file, "--findings": findings, "--generator": generator}, "--schema")
        _look_at_linked(schema, plan, accept, show_values=show_values, overwrite=overwrite, json=json)
        return
    if generator is not None and plan is None:
        raise ParameterError("--generator chooses what --save-plan writes: say where the plan goes.")
    if not source.file:
        raise ParameterError(
            "Name the file to look at: discreet preflight FILE, or --schema SCHEMA for linked tables."
        )
    found = look(source.read(), accept=accept, show_values=show_values)
    wanted = None if plan is None else found.generator(generator or USUAL)
    if findings is not None:
        found.save(findings, show_values=show_values, overwrite=overwrite)
    if plan is not None and wanted is not None:
        save_plan(wanted, plan, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict(), show_values=show_values)
        return
    say(str(found))
    for path in (findings, plan):
        if path is not None:
            options.say_written(path)


def _look_at_linked(
    schema: Path, plan: Path | None, accept: str, *, show_values: bool, overwrite: bool, json: bool
) -> None:
    from discreet.synth import LinkedTables, preflight_linked

    found = preflight_linked(LinkedTables.read(schema), accept=accept, show_values=show_values)
    if plan is not None:
        found.save_plan(plan, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict(), show_values=show_values)
        return
    say(str(found))
    if plan is not None:
        options.say_written(plan)
