"""Options that several commands share: which file, which columns, how to read it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing import printable_json, say
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from discreet.core.results import Assessment
    from discreet.workflow.comparison_results import Comparison


MissingKeys = Annotated[
    str, typer.Option("--missing", help="How missing key values count: category, wildcard or drop.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Show key values of the riskiest classes.")]
WriteAs = Annotated[
    list[str] | None,
    typer.Option(
        "--write-as",
        help="How a text file is written, where not as the file that came in: separator=;, decimal=., encoding=utf-8, "
        "newline=crlf, dates=iso; may be repeated.",
    ),
]
GuardFormulas = Annotated[
    bool,
    typer.Option(
        "--guard-formulas", help="Text and Excel files: let no spreadsheet take a text for a formula."
    ),
]
_PICTURES = (".svg", ".png", ".pdf")


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


def writing(given: Sequence[str] | None, out: str | None, *, guard: bool = False) -> dict[str, Any]:
    """Read ``name=value`` options of how a text file is written, and whether formulas are guarded against.

    Examples
    --------
    >>> writing(["separator=;", "encoding=utf-8"], "people.csv")
    {'separator': ';', 'encoding': 'utf-8'}
    """
    from discreet.io.naming import format_of, is_address

    if given and out is not None and (is_address(out) or format_of(Path(out)) != "csv"):
        raise ParameterError(
            "--write-as is for delimited text files (.csv, .tsv). Leave it out, or name one as --out."
        )
    known = ("separator", "decimal", "encoding", "newline", "dates", "missing")
    found: dict[str, Any] = {}
    if guard:
        if out is None or is_address(out) or format_of(Path(out)) not in ("csv", "excel"):
            raise ParameterError(
                "--guard-formulas is for text files and Excel. Leave it out, or name one as --out."
            )
        found["guard_formulas"] = True
    for item in given or ():
        name, equals, value = item.partition("=")
        if not equals or name.strip() not in known:
            raise ParameterError(
                f"--write-as is written name=value, with one of the names {', '.join(known)}."
            )
        if name.strip() == "dates" and value != "iso":
            raise ParameterError("--write-as dates takes 'iso' only; otherwise dates go out as they came in.")
        found[name.strip()] = value
    return found


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


def precision(given: Sequence[str] | None) -> Any:
    """Read how precisely numbers are compared: one word or number, or ``column=decimals`` several times."""
    named: dict[str, int | str] = {}
    for part in columns(given) or ():
        name, equals, value = part.rpartition("=")
        wanted: int | str = int(value) if value.isdecimal() else value
        if not equals:
            if len(columns(given) or ()) > 1:
                raise ParameterError("--precision is one word or number, or column=decimals for each column.")
            return wanted
        named[name] = wanted
    return named or None


def settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Read ``name=value`` settings; a value that is not a TOML literal is text.

    Examples
    --------
    >>> settings(["threshold=5", "kind=entropy", "keys=['a', 'b']"])
    {'threshold': 5, 'kind': 'entropy', 'keys': ['a', 'b']}
    """
    from discreet.core.files.untrusted import parsed_toml

    found = {}
    for item in given or ():
        name, equals, text = item.partition("=")
        if not (equals and name.strip()):
            raise ParameterError(f"--set is written name=value; '{item}' is not.")
        try:
            found[name.strip()] = parsed_toml(f"value = {text}")["value"]
        except ValueError:
            found[name.strip()] = text
    return found


def print_json(document: Any, *, show_values: bool = False) -> None:
    """Print one JSON document without values of the data, escaped where the output is not Unicode."""
    import json

    from discreet.core.value_gate import gated

    document = gated(document, show_values=show_values)
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(document, indent=2, ensure_ascii=not is_unicode, allow_nan=False)
    typer.echo(printable_json(text))


def printed(found: Assessment | Comparison, *, json: bool, check: bool, show_values: bool) -> bool:
    """Print findings as one document or as one line where that was asked for; say whether it was."""
    if json:
        print_json(found.to_dict(), show_values=show_values)
    elif check:
        say(found.line)
    return json or check


def say_written(path: Path) -> None:
    """Say where instructions were written, and how to keep them where they hold values of the data."""
    from discreet.core.value_gate import MARK

    with path.open(encoding="utf-8") as file:
        marked = file.readline() == MARK
    say(f"Wrote {path}{' (it holds values of the data; keep it as the data are kept)' if marked else ''}")


def write_picture(picture: Picture, path: Path) -> None:
    """Write a drawing to a file of the kind its suffix says."""
    from discreet.core.files.atomic import replacing

    check_picture(path)
    with replacing(path) as temporary:
        picture.savefig(temporary, format=path.suffix.lstrip(".").lower())


def check_report(path: Path | None) -> None:
    """Refuse a report that would overwrite something else or cannot be written, before any work is done."""
    from discreet.core.files.atomic import check_target

    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--html writes a report; '{path.name}' must end in .html.")
    check_target(path, overwrite=True)


def check_picture(path: Path | None) -> None:
    """Refuse a drawing that cannot be written, before any work is done."""
    from discreet.core.files.atomic import check_target

    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(f"--plot writes .svg, .png or .pdf files; '{path.name}' is none of them.")
    check_target(path, overwrite=True)


def check_targets(*targets: tuple[str, str | Path | None, bool]) -> None:
    """Refuse files that cannot be written, share a name or would replace what is read, before any work is done.

    A target is the option that names it, its path, and whether a file that is there may be replaced.
    """
    from discreet.cli.places import check_places
    from discreet.core.files.atomic import check_target
    from discreet.io.naming import is_address

    files = [
        (option, Path(to), over) for option, to, over in targets if to is not None and not is_address(str(to))
    ]
    check_places((option, path) for option, path, _ in files)
    for option, path, overwrite in files:
        if path.is_file() and not overwrite:
            raise ParameterError(
                f"'{path.name}' already exists. Give another name under {option}, or add --overwrite to replace it."
            )
        check_target(path, overwrite=overwrite)
