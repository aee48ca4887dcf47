"""``discreet assess``: how risky is this file, and does it meet the policy?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say, say_commands
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.results import Assessment


@takes_source()
def assess(
    source: Source,
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="A policy file (TOML) or the name of a template.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print only the verdict line (policy 'public-use-file' unless named)."),
    ] = False,
    scenario: Annotated[
        list[str] | None, typer.Option("--scenario", help="What another intruder knows: name=column,column.")
    ] = None,
    population: Annotated[
        str | None, typer.Option("--population", help="A file of the population the data come from.")
    ] = None,
    population_size: Annotated[
        int | None, typer.Option("--population-size", help="Number of people the data were drawn from.")
    ] = None,
    missing: options.MissingKeys = "category",
    seed: Annotated[int | None, typer.Option("--seed", help="For the estimators that simulate.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")] = None,
    accept: options.Accept = None,
    because: options.Because = None,
    by: options.By = None,
    json: options.AsJson = False,
    show_values: options.ShowValues = False,
) -> None:
    """Measure the disclosure risk of a file and hold it against a policy."""
    from discreet.workflow import assess as assess_data

    if json and check:
        raise ParameterError("--json and --check exclude each other: one document, or one line.")
    options.check_report(html)
    data = source.read()
    found = assess_data(
        data,
        policy or ("public-use-file" if check else None),
        population=source.read_other(population) if population else None,
        population_size=population_size,
        scenarios=options.named_columns(scenario, "--scenario"),
        missing=missing,  # type: ignore[arg-type]
        show_values=show_values,
        progress=not json,
        accept=options.acceptances(accept, because, by),
        seed=seed,
    )
    written = found.to_html(html) if html else None
    if not options.printed(found, json=json, check=check, show_values=show_values):
        _show(found, written)
    if found.verdict is not None:
        if not json and not check:
            say_commands([found.verdict], source, FILE=source.file, RELEASE=source.file, POLICY=policy)
        end_by([found.verdict])


def _show(found: Assessment, written: Path | None) -> None:
    from discreet.cli.terminal import show_assessment

    show_assessment(found)
    if written:
        say(f"Report: {written}")
