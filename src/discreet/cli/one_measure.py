"""What the commands for one measure share: files and settings put where the measure wants them, its detail tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli import options
from discreet.cli.printing import say
from discreet.core.errors import InputError, ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.core.results import Measure
    from discreet.microdata import Microdata

# As in assess: the same command gives the same figures, unless another seed is set.
SEED = 0
SLOTS = {"released": ("released", "next"), "control": ("control", "holdout")}
"""What a file is called in Python that goes by one option on the command line."""
_FILES = ("released", "next", "population", "holdout", "control", "reference")


def arguments(
    name: str, measure: Callable[..., Measure], files: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Put files and settings where the measure wants them, and refuse what it does not take."""
    from discreet.core.parameters import check, function_hints

    known = inspect.signature(measure).parameters
    arguments = dict(settings)
    for role, data in files.items():
        slot = next((slot for slot in SLOTS.get(role, (role,)) if slot in known), None)
        if slot is None:
            raise ParameterError(f"{name} takes no --{role} file. Leave it out.")
        arguments[slot] = data
    for setting in settings:
        if setting not in known:
            takes = [parameter for parameter in list(known)[1:] if parameter not in _FILES]
            raise ParameterError(f"In --set: {unknown_name(setting, takes, what='parameter')}")
        if setting in (*_FILES, next(iter(known))):
            raise ParameterError(f"--set gives values, not files: name the file with --{setting}.")
        check(settings[setting], function_hints(measure).get(setting, Any), setting, where="In --set")
    for slot, option in (("released", "--released"), ("next", "--released"), ("population", "--population")):
        needed = slot in known and known[slot].default is inspect.Parameter.empty
        if needed and slot not in arguments:
            raise ParameterError(f"{name} compares two files; name the other one with {option} FILE.")
    for parameter in list(known.values())[1:]:
        if parameter.default is inspect.Parameter.empty and parameter.name not in arguments:
            raise ParameterError(
                f"{name} needs '{parameter.name}': name it with --set {parameter.name}=VALUE."
            )
    return arguments


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
