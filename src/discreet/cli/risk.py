"""``discreet risk NAME FILE``: one measure of risk, with all its options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.one_measure import SEED, answer, detail_table, hand_out, measure_called
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.cards import Card
    from discreet.core.requests import FileRole


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
    from discreet.core.requests import Request

    card = _card(name)
    options.check_picture(plot)
    options.check_report(html)
    data = source.read()
    others: dict[FileRole, str | None] = {"released": released, "population": population, "holdout": holdout}
    files: dict[FileRole, Any] = {
        "original": data,
        **{role: source.read_other(path) for role, path in others.items() if path},
    }
    settings = options.settings(setting)
    if population_size is not None:
        if "population_size" not in card.takes.settings:
            raise ParameterError(f"{name} takes no --population-size. Leave it out.")
        settings["population_size"] = population_size
    found = answer(name, card, Request(files, {"seed": SEED}, settings))
    tables = [detail_table(found, item, overwrite=overwrite) for item in detail or ()]
    if plot:
        options.write_picture(found.plot(), plot)
    hand_out(found, data, tables, html=html, json=json, overwrite=overwrite)


def _card(name: str) -> Card:
    from discreet import risk as room
    from discreet.core.cards import card_of

    plain = name.removeprefix("risk.").replace("-", "_")
    if plain in dir(room) and card_of(plain) is None:
        raise ParameterError(
            f"{plain} does not measure, it makes a release. Call discreet.risk.{plain} in Python."
        )
    return measure_called("risk", name, what="measure")
