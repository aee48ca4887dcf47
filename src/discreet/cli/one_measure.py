"""What the commands for one measure share: files and settings put where the measure wants them, its detail tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli import options
from discreet.cli.printing import say
from discreet.core.errors import InputError, ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.core.cards import Card
    from discreet.core.requests import Request
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
        raise ParameterError(unknown_name(plain, known, what=what))
    return known[plain]


def answer(name: str, card: Card, request: Request, *, holdout: str = "holdout") -> Measure:
    """Ask a measure, and refuse what it does not take; ``holdout`` is the option for people who were not used."""
    from discreet.core.parameters import describe, hints_of
    from discreet.core.requests import check_settings

    takes, given = card.takes, request.settings
    for role in request.files:
        if role not in takes.files:
            raise ParameterError(
                f"{name} takes no --{holdout if role == 'holdout' else role} file. Leave it out."
            )
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
