"""``discreet attack NAME FILE``: one attack, run before an intruder runs it."""

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
def attack(
    name: Annotated[
        str, typer.Argument(help="An attack, as `discreet methods` lists them, e.g. singling_out.")
    ],
    source: Source,
    released: Annotated[
        list[str] | None,
        typer.Option("--released", help="The released file; repeat it where an attack takes several."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option("--control", help="A file of people who were not used to make the release."),
    ] = None,
    secret: Annotated[
        list[str] | None, typer.Option("--secret", help="Columns to be guessed, separated by commas.")
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option("--known", help="Columns the attacker knows, separated by commas.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="Columns to use, separated by commas; for linkability give it twice, once a side.",
        ),
    ] = None,
    attacks: Annotated[int | None, typer.Option("--attacks", help="How many attacks are run.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another parameter: name=value, e.g. neighbors=5; repeat."),
    ] = None,
    detail: Annotated[
        list[str] | None,
        typer.Option("--detail", help="Write a detail table: name=FILE, e.g. records=r.csv."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a report of the attack.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace detail tables that are there.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", help="Who is attacked, and all draws; the same seed, the same answer.")
    ] = SEED,
    json: options.AsJson = False,
) -> None:
    """Run one attack against a release, beside the same attack on people who are not in it."""
    from discreet.core.requests import Request

    card = measure_called("attack", name, what="attack on a file")
    options.check_report(html)
    data = source.read()
    files: dict[FileRole, Any] = {"original": data}
    if released:
        if len(released) > 1 and card.takes.copies == "one":
            raise ParameterError(f"{name} takes one --released file; run it for each.")
        files["released"] = [source.read_other(file) for file in released]
    if control:
        files["holdout"] = source.read_other(control)
    settings = options.settings(setting)
    given = {
        "secret": _secret(name, options.columns(secret), card),
        "known": options.columns(known),
        "columns": _columns(columns, card),
        "attacks": attacks,
    }
    settings |= {option: value for option, value in given.items() if value is not None}
    request = Request(files, {"seed": seed, "progress": not json}, settings)
    found = answer(name, card, request, holdout="control")
    tables = [detail_table(found, item, overwrite=overwrite) for item in detail or ()]
    hand_out(found, data, tables, html=html, json=json, overwrite=overwrite)


def _secret(name: str, given: list[str] | None, card: Card) -> Any:
    """Read the columns to be guessed: a list, or one name where an attack guesses one column at a time."""
    if given is None or card.fits("secret", given):
        return given
    if len(given) != 1:
        raise ParameterError(
            f"{name} guesses one column at a time: name one with --secret, and run it for each."
        )
    return given[0]


def _columns(given: list[str] | None, card: Card) -> Any:
    """Read the columns: one list, or two where an attack has two sides."""
    if not given:
        return None
    listed = options.columns(given)
    if card.fits("columns", listed):
        return listed
    if len(given) != 2:
        raise ParameterError(
            "Give --columns twice: what the one file of the attacker knows, and what the other."
        )
    return tuple(options.columns([side]) for side in given)
