"""Options that several commands share: which file, which columns, how to read it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure as Picture

    from discreet.microdata import Microdata

File = Annotated[
    str, typer.Argument(help="A data file (CSV, Parquet, SPSS, Stata, SAS, Excel) or a database address.")
]
Keys = Annotated[
    list[str] | None, typer.Option("--keys", "-k", help="Columns an intruder may know, separated by commas.")
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", "-s", help="Columns that must not be learned, separated by commas."),
]
Identifiers = Annotated[
    list[str] | None, typer.Option("--identifiers", help="Direct identifiers, separated by commas.")
]
Weight = Annotated[str | None, typer.Option("--weight", "-w", help="Survey weight column.")]
Household = Annotated[str | None, typer.Option("--household", help="Household id column.")]
Location = Annotated[
    list[str] | None, typer.Option("--location", help="Coordinate columns, separated by a comma.")
]
RolesFile = Annotated[str | None, typer.Option("--roles", help="A roles file (TOML), as inspect writes it.")]
Query = Annotated[
    str | None, typer.Option("--query", help="For a database: a table name or a SELECT statement.")
]
Separator = Annotated[str | None, typer.Option("--separator", help="Column separator of a text file.")]
Decimal = Annotated[str | None, typer.Option("--decimal", help="Decimal mark of a text file.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of a text file.")]
MissingTokens = Annotated[
    list[str] | None,
    typer.Option("--missing-token", help="Text that marks a missing value; may be repeated."),
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="Sheet of an Excel file.")]
MissingKeys = Annotated[
    str, typer.Option("--missing", help="How missing key values count: category, wildcard or drop.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Show key values of the riskiest classes.")]


def columns(given: Sequence[str] | None) -> list[str] | None:
    """Split what was given on the command line into column names; a name with a comma stands in quotation marks.

    Examples
    --------
    >>> columns(["age, sex", "zip"])
    ['age', 'sex', 'zip']
    >>> columns(['"pay, gross",sex'])
    ['pay, gross', 'sex']
    """
    if not given:
        return None
    return [name for part in given for name in _split(part)]


def _split(part: str) -> list[str]:
    try:
        names = next(csv.reader([part], skipinitialspace=True), [])
    except csv.Error:
        names = part.split(",")
    return [name.strip() for name in names if name.strip()]


def named_columns(given: Sequence[str] | None, option: str) -> dict[str, list[str]]:
    """Split ``name=col,col`` options.

    Examples
    --------
    >>> named_columns(["neighbor=age,sex"], "--scenario")
    {'neighbor': ['age', 'sex']}
    """
    found = {}
    for item in given or ():
        name, equals, rest = item.partition("=")
        if not (equals and name.strip() and rest.strip()):
            raise ParameterError(f"{option} is written name=column,column; '{item}' is not.")
        if name.strip() in found:
            raise ParameterError(f"{option} names '{name.strip()}' twice. Give each its own name.")
        found[name.strip()] = columns([rest]) or []
    return found


def print_json(document: Any) -> None:
    """Print one JSON document, escaped where the output is not Unicode, so that it stays JSON."""
    import json

    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False))


def read_file(source: str, **options: Any) -> Microdata:
    """Read the file of a command."""
    from discreet.io import read

    given = {name: value for name, value in options.items() if value is not None}
    return read(source, **given)


def read_other(source: str, reading: Mapping[str, Any]) -> Microdata:
    """Read a second file of a command, without roles; of the reading options those that fit its format count."""
    from discreet.io import options_for

    return read_file(source, roles={}, **{name: reading.get(name) for name in options_for(source)})


def write_picture(picture: Picture, path: Path) -> None:
    """Write a drawing to a file of the kind its suffix says."""
    from discreet.io import replacing

    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ParameterError("--plot writes .svg, .png or .pdf files.")
    with replacing(path) as temporary:
        picture.savefig(temporary, format=path.suffix.lstrip(".").lower())
