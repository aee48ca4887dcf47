"""Options that several commands share: which file, which columns, how to read it."""

from __future__ import annotations

import csv
import sys
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure as Picture


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


def settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Read ``name=value`` settings; a value that is not a TOML literal is text.

    Examples
    --------
    >>> settings(["threshold=5", "kind=entropy", "keys=['a', 'b']"])
    {'threshold': 5, 'kind': 'entropy', 'keys': ['a', 'b']}
    """
    found = {}
    for item in given or ():
        name, equals, text = item.partition("=")
        if not (equals and name.strip()):
            raise ParameterError(f"--set is written name=value; '{item}' is not.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = text
    return found


def print_json(document: Any) -> None:
    """Print one JSON document, escaped where the output is not Unicode, so that it stays JSON."""
    import json

    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False))


def write_picture(picture: Picture, path: Path) -> None:
    """Write a drawing to a file of the kind its suffix says."""
    from discreet.io import replacing

    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ParameterError("--plot writes .svg, .png or .pdf files.")
    with replacing(path) as temporary:
        picture.savefig(temporary, format=path.suffix.lstrip(".").lower())


def check_report(path: Path | None) -> None:
    """Refuse a report that would overwrite something else."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--html writes a report; '{path.name}' must end in .html.")
