"""The file of a command: which one, which role its columns play, how to read it.

Every command that reads a file takes the same argument and options. A command asks for them with one parameter
``source`` and the decorator `takes_source`, which puts them on the command line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import columns
from discreet.cli.printing import note_names

if TYPE_CHECKING:
    from discreet.microdata import Microdata

_FILE = Annotated[
    str, typer.Argument(help="A data file (CSV, Parquet, SPSS, Stata, SAS, Excel) or a database address.")
]
_ROLE_HELP = {
    "keys": ("-k", "Columns an intruder may know, separated by commas."),
    "sensitive": ("-s", "Columns that must not be learned, separated by commas."),
    "identifiers": (None, "Direct identifiers, separated by commas."),
    "weight": ("-w", "Survey weight column."),
    "household": (None, "Household id column."),
    "person": (None, "Person id column, where a person has several records."),
    "strata": (None, "Stratum columns, separated by commas."),
    "location": (None, "Coordinate columns, separated by a comma."),
    "contributor": (None, "Column of the contributing unit (a company, a meter)."),
    "employer": (None, "Employer id column."),
    "time": (None, "Time column."),
    "psu": (None, "Primary sampling unit column."),
}
_ROLES, _READING = "The roles of the columns", "How to read the file"
_FLAGS = ("only_missing",)
_REPEATED = ("missing_token", "dates")
_MANY = ("keys", "sensitive", "identifiers", "strata", "location")
_READING_HELP = {
    "query": "For a database: a table name or a SELECT statement.",
    "separator": "Column separator of a text file.",
    "decimal": "Decimal mark of a text file.",
    "encoding": "Encoding of a text file.",
    "missing_token": "Text that marks a missing value, beside the usual ones (NA, NULL, ?); may be repeated.",
    "only_missing": "Nothing but --missing-token and the empty field marks a missing value.",
    "dates": "How dates are written: dmy, mdy or ymd where it is in doubt, COLUMN=FORMAT, or text; may be repeated.",
    "sheet": "Sheet of an Excel file.",
}


@dataclass(frozen=True)
class Source:
    """What the command line says about the file: its name, the roles of its columns and how to read it."""

    file: str
    roles: Mapping[str, Any]
    reading: Mapping[str, Any]

    def read(self, **roles: Any) -> Microdata:
        """Read the file, with the roles of the command line unless others are named."""
        from discreet.io import read

        options = {**self.reading, **(roles or self.roles)}
        return _noted(
            read(self.file, **{name: value for name, value in options.items() if value is not None})
        )

    def read_other(self, file: str) -> Microdata:
        """Read another file without roles; of the reading options those that fit its format count."""
        from discreet.io import options_for, read

        fitting = {name: self.reading.get(name) for name in options_for(file)}
        given = {name: value for name, value in fitting.items() if value is not None}
        return _noted(read(file, roles={}, **given))


def _noted(data: Microdata) -> Microdata:
    """Let the printer know the names of columns, some of which may hold line breaks."""
    note_names(data.columns)
    return data


def takes_source(
    *, roles: bool = True, optional: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the file, the roles (unless they do not matter) and the reading options on the command line.

    A command for which the file is ``optional`` looks itself whether there is one: its name is empty otherwise.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = {**(_role_options() if roles else {}), **_reading_options()}
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            Parameter(
                "file", Parameter.KEYWORD_ONLY, annotation=_FILE, **({"default": ""} if optional else {})
            )
            if parameter.name == "source"
            else parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in own
        ]
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in shared.items()
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            said = {name: given.pop(name) for name in shared}
            return command(source=_source(given.pop("file"), said), **given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _source(file: str, said: Mapping[str, Any]) -> Source:
    roles: dict[str, Any] = {"roles": said.get("roles")}
    for name in _ROLE_HELP:
        value = said.get(name)
        roles[name] = columns(value) if name in _MANY else value
    reading = {name: said.get(name) for name in _READING_HELP if name != "missing_token"}
    return Source(file, roles, {**reading, "missing": said.get("missing_token")})


def _role_options() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (short, words) in _ROLE_HELP.items():
        names = [f"--{name}", *([short] if short else [])]
        kind: Any = list[str] | None if name in _MANY else str | None
        found[name] = Annotated[kind, typer.Option(*names, help=words, rich_help_panel=_ROLES)]
    found["roles"] = Annotated[
        str | None,
        typer.Option("--roles", help="A roles file (TOML), as inspect writes it.", rich_help_panel=_ROLES),
    ]
    return found


def _reading_options() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, words in _READING_HELP.items():
        kind: Any = list[str] if name in _REPEATED else bool if name in _FLAGS else str
        option = typer.Option(f"--{name.replace('_', '-')}", help=words, rich_help_panel=_READING)
        found[name] = Annotated[kind | None, option]
    return found
