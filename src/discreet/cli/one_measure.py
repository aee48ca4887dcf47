"""``discreet risk NAME FILE``, ``discreet attack NAME FILE``: one measure of risk or one attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source
from discreet.core.errors import InputError, ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.core.cards import Card
    from discreet.core.requests import FileRole, Request
    from discreet.core.results import Measure
    from discreet.microdata import Microdata


# As in assess: the same command gives the same figures, unless another seed is set.
SEED = 0


def measure_called(room: str, name: str, *, what: str) -> Card:
    """Find a measure of a file by its name on the command line."""
    from discreet.core.cards import all_cards

    plain = name.removeprefix(f"{room}.").replace("-", "_")
    known = {card.name: card for card in all_cards(room) if "original" in card.takes.files}
    if plain not in known:
        raise ParameterError(_elsewhere(room, name) or unknown_name(plain, known, what=what))
    return known[plain]


def _elsewhere(room: str, name: str) -> str:
    """Say where to find what is published under a name; nothing where nobody publishes anything under it."""
    from discreet.core.index import entries

    found = [entry for entry in entries().values() if entry.offered and entry.called(name) in (0, 1)]
    for entry in sorted(found, key=lambda entry: (entry.room != room, entry.called(name))):
        home, _, measure = entry.name.partition(".")
        if entry.kind == "measure" and measure != name.replace("-", "_"):
            return f"'{name}' is answered by {measure}: discreet {home} {measure} FILE."
        return f"'{name}' is not asked of a file here: discreet.{entry.name} in Python (discreet methods {name})."
    return ""


def answer(name: str, card: Card, request: Request) -> Measure:
    """Ask a measure, and refuse what it does not take."""
    from discreet.core.parameters import describe, hints_of
    from discreet.core.requests import check_settings

    takes, given = card.takes, request.settings
    for role in request.files:
        if role not in takes.files:
            raise ParameterError(f"{name} takes no --{role} file. Leave it out.")
    for setting in given:
        if setting in takes.files.values():
            raise ParameterError(f"--set gives values, not files: name the file with --{setting}.")
    check_settings(card.function, given, "In --set")
    for role in ("released", "population"):
        if takes.files.get(role) in takes.needed and role not in request.files:
            raise ParameterError(f"{name} compares two files; name the other one with --{role} FILE.")
    for setting in takes.settings:
        if setting in takes.needed and setting not in given:
            wanted = describe(hints_of(card.function).get(setting, object))
            raise ParameterError(f"{name} needs '{setting}', {wanted}: name it with --set {setting}=VALUE.")
    return card.ask(request)


def detail_table(found: Measure, item: str, *, overwrite: bool) -> tuple[Any, Path]:
    """Find a detail table and the place it goes to, and refuse before anything is written."""
    from discreet.io.naming import format_of

    name, equals, place = item.partition("=")
    if not (equals and place):
        raise ParameterError(f"--detail is written name=FILE; '{item}' is not.")
    path = Path(place)
    format_of(path)
    if path.exists() and not overwrite:
        raise InputError(f"'{path.name}' is there already. Use --overwrite to replace it, or another name.")
    return found.detail[name], path


def hand_out(
    found: Measure,
    data: Microdata,
    tables: Sequence[tuple[Any, Path]],
    *,
    html: Path | None,
    json: bool,
    overwrite: bool,
) -> None:
    """Write the report and the detail tables that were asked for, and print what was found."""
    from discreet.io import write

    if html:
        from discreet.workflow.assessment import about_file

        found.to_html(html, about=about_file(data, ()))
    for table, path in tables:
        write(table, path, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))


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
    holdout: Annotated[
        str | None,
        typer.Option("--holdout", help="A file of people who were not used to make the release."),
    ] = None,
    control: Annotated[str | None, typer.Option("--control", hidden=True)] = None,
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
        raise ParameterError("--control is called --holdout now.")
    if holdout:
        files["holdout"] = source.read_other(holdout)
    settings = options.settings(setting)
    given = {
        "secret": _secret(name, options.columns(secret), card),
        "known": options.columns(known),
        "columns": _columns(columns, card),
        "attacks": attacks,
    }
    settings |= {option: value for option, value in given.items() if value is not None}
    request = Request(files, {"seed": seed, "progress": not json}, settings)
    found = answer(name, card, request)
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
