"""Options that several commands share: which columns, which settings, where a command writes."""

from __future__ import annotations

import csv
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing import printable_json, say
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.files.inputs import Place, check_not_read, is_same, note_read, one_run, place_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from discreet.core.results import Assessment
    from discreet.core.verdicts import Acceptance
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
Accept = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        help="An open rule (not a failed one) that somebody takes responsibility for; with --because, --by.",
    ),
]
Because = Annotated[str | None, typer.Option("--because", help="Why the open rule is accepted.")]
By = Annotated[str | None, typer.Option("--by", help="Who accepts the open rule.")]
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


def acceptances(rules: Sequence[str] | None, because: str | None, by: str | None) -> tuple[Acceptance, ...]:
    """Read who accepts which open rules, and why."""
    from discreet.core.verdicts import Acceptance

    if not rules:
        if because or by:
            raise ParameterError(
                "--because and --by say who accepts an open rule: name it with --accept RULE."
            )
        return ()
    if not because or not by:
        raise ParameterError(
            "--accept needs --because TEXT and --by NAME: a rule is accepted by a person, for a reason."
        )
    return tuple(Acceptance(rule, because, by) for rule in rules)


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


# Where a command writes: never where it reads, and never twice to one place; asked before any work is done


WRITTEN = frozenset(
    ("out", "html", "log", "internal_log", "plot", "detail", "save_plan", "save_study", "findings", "parts", "training")
)  # fmt: skip
"""What options are called that name a file or a folder to write."""
WRITTEN_BY = {
    "synthesize": {"model": "--model"},
    "preflight": {"plan": "--save-plan"},
    "suggest": {"resume": "--resume"},
    "search": {"resume": "--resume"},
    "make_keys": {"file": "FILE"},
    "prepare_trial": {"folder": "FOLDER"},
}
"""What else a command writes, by the name of its function, and what the command line calls it."""
_SERVERS = ("open_page", "serve_site", "review_package")  # each of their jobs or answers is a run of its own
_KEPT = ("ledger", "register")  # read, and written again by the command itself
_FOLDERS = ("released", "release", "plans", "package", "files")  # options that may name a folder to read


def in_one_run(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command be one run: what its command line names to be read is not written over, however it is spelled."""
    if command.__name__ in _SERVERS:
        return command
    usual = {name: f"--{name.replace('_', '-')}" for name in WRITTEN}
    written = {**usual, **WRITTEN_BY.get(command.__name__, {})}

    @functools.wraps(command)
    def run(*given: Any, **named: Any) -> None:
        values = inspect.signature(command).bind(*given, **named).arguments
        with one_run():
            _note({name: value for name, value in values.items() if name not in written})
            check_places(
                (written[name], path)
                for name, value in values.items()
                if name in written
                for path in _targets(value)
                # What cannot be a report is refused by the command, which says how its name must end.
                if name != "html" or path.suffix.lower() in (".html", ".htm")
            )
            command(*given, **named)

    return run


def _note(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        for path in _paths(value):
            if path.is_file() or (name in _FOLDERS and path.is_dir()):
                note_read(path, kept=name in _KEPT)
                if path.is_file():
                    for beside in (".roles.toml", ".privacy.toml", ".register.jsonl", ".register.key"):
                        note_read(path.with_name(path.name.split(".")[0] + beside), kept=True)


def check_places(targets: Iterable[tuple[str, Path]]) -> None:
    """Refuse a place that is read in this run, and two places that are one; a target is an option and its path."""
    seen: list[tuple[str, Place]] = []
    for option, path in targets:
        check_not_read(path, named=f"{option} '{path.name}'", declared=True)
        place = place_of(path)
        for other, there in seen:
            if is_same(place, there):
                both = f"{other} and {option}" if other != option else f"Two files of {option}"
                raise ParameterError(f"{both} name the same file '{path.name}'. Give each its own.")
        seen.append((option, place))


def _targets(value: Any) -> Iterator[Path]:
    """The files or folders that an option names to be written: a path, an address of a file, or NAME=FILE."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Path):
            yield one
        elif isinstance(one, str):
            text = one.partition("=")[2] if isinstance(value, list | tuple) and "=" in one else one
            file = _file_of(text)
            if file is not None:
                yield file


def _paths(value: Any) -> Iterator[Path]:
    """All that a value could name: itself, what stands behind a sign of equality, and what stands between commas."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(one, str | Path):
            continue
        texts = {str(one), str(one).partition("=")[2]}
        texts |= {part.strip() for text in list(texts) for part in text.split(",")}
        for text in texts - {""}:
            try:
                file = _file_of(text)
                if file is not None and file.exists():
                    yield file
            except (OSError, ValueError):  # no name that a file could have
                continue


def _file_of(text: str) -> Path | None:
    from discreet.io.naming import is_address

    if not is_address(text):
        return Path(text)
    from discreet.io.naming import parsed_address

    try:
        return parsed_address(text).file
    except DiscreetError:  # the command itself says what is wrong with it
        return None
