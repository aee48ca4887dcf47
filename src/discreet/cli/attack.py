"""``discreet attack NAME FILE``: one attack, run before an intruder runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.one_measure import SEED, arguments, detail_table, hand_out
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.core.results import Measure


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
    run = _attack(name)
    takes = inspect.signature(run).parameters
    options.check_report(html)
    data = source.read()
    files: dict[str, Any] = {}
    if released:
        many = "Sequence[Microdata]" in str(takes["released"].annotation) if "released" in takes else False
        if len(released) > 1 and not many:
            raise ParameterError(f"{name} takes one --released file; run it for each.")
        read = [source.read_other(file) for file in released]
        files["released"] = read if many else read[0]
    if control:
        files["control"] = source.read_other(control)
    settings = options.settings(setting)
    given = {
        "secret": _secret(name, options.columns(secret), takes),
        "known": options.columns(known),
        "columns": _columns(columns, takes),
        "attacks": attacks,
    }
    settings |= {option: value for option, value in given.items() if value is not None}
    if "seed" in takes:
        settings.setdefault("seed", seed)
    if "progress" in takes:
        settings.setdefault("progress", not json)
    found = run(data, **arguments(name, run, files, settings))
    tables = [detail_table(found, item, overwrite=overwrite) for item in detail or ()]
    hand_out(found, data, tables, html=html, json=json, overwrite=overwrite)


def _attack(name: str) -> Callable[..., Measure]:
    from discreet.core.cards import all_cards

    plain = name.removeprefix("attack.").replace("-", "_")
    known = {
        card.name: card.function
        for card in all_cards("attack")
        if "original" in inspect.signature(card.function).parameters
    }
    if plain not in known:
        raise ParameterError(unknown_name(plain, known, what="attack on a file"))
    return known[plain]


def _secret(name: str, given: list[str] | None, takes: Any) -> Any:
    """Read the columns to be guessed: a list, or one name where an attack guesses one column at a time."""
    if given is None or "secret" not in takes or str(takes["secret"].annotation) != "str":
        return given
    if len(given) != 1:
        raise ParameterError(
            f"{name} guesses one column at a time: name one with --secret, and run it for each."
        )
    return given[0]


def _columns(given: list[str] | None, takes: Any) -> Any:
    """Read the columns: one list, or two where an attack has two sides."""
    if not given:
        return None
    if "columns" in takes and "tuple" in str(takes["columns"].annotation):
        if len(given) != 2:
            raise ParameterError(
                "Give --columns twice: what the one file of the attacker knows, and what the other."
            )
        return tuple(options.columns([side]) for side in given)
    return options.columns(given)
