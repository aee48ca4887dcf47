"""``discreet risk NAME FILE``: one measure of risk, with all its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.one_measure import SEED, arguments, detail_table, hand_out
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.core.results import Measure


@takes_source()
def risk(
    name: Annotated[
        str, typer.Argument(help="A measure, as `discreet methods` lists them, e.g. k_anonymity.")
    ],
    source: Source,
    released: Annotated[
        str | None, typer.Option("--released", help="The released (synthetic, protected, later) file.")
    ] = None,
    population: Annotated[str | None, typer.Option("--population", help="A file of the population.")] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="A file of people the release knows nothing about.")
    ] = None,
    population_size: Annotated[
        int | None, typer.Option("--population-size", help="Number of people the data were drawn from.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another parameter: name=value, e.g. threshold=5; repeat."),
    ] = None,
    detail: Annotated[
        list[str] | None,
        typer.Option("--detail", help="Write a detail table: name=FILE, e.g. classes=c.csv."),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write the picture (SVG, PNG or PDF).")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a report of the measure.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace detail tables that are there.")
    ] = False,
    json: options.AsJson = False,
) -> None:
    """Compute one measure of risk on a file, or between a file and its release."""
    measure = _measure(name)
    options.check_picture(plot)
    options.check_report(html)
    data = source.read()
    others = {"released": released, "population": population, "holdout": holdout}
    files = {role: source.read_other(path) for role, path in others.items() if path}
    settings = options.settings(setting)
    if population_size is not None:
        if "population_size" not in inspect.signature(measure).parameters:
            raise ParameterError(f"{name} takes no --population-size. Leave it out.")
        settings["population_size"] = population_size
    if "seed" in inspect.signature(measure).parameters:
        settings.setdefault("seed", SEED)
    found = measure(data, **arguments(name, measure, files, settings))
    tables = [detail_table(found, item, overwrite=overwrite) for item in detail or ()]
    if plot:
        options.write_picture(found.plot(), plot)
    hand_out(found, data, tables, html=html, json=json, overwrite=overwrite)


def _measure(name: str) -> Callable[..., Measure]:
    from discreet import risk as room
    from discreet.core.cards import all_cards

    plain = name.removeprefix("risk.").replace("-", "_")
    measures = {card.name: card.function for card in all_cards("risk")}
    if plain in dir(room) and plain not in measures:
        raise ParameterError(
            f"{plain} does not measure, it makes a release. Call discreet.risk.{plain} in Python."
        )
    if plain not in measures:
        raise ParameterError(unknown_name(plain, measures, what="measure"))
    return measures[plain]
