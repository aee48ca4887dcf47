"""``discreet register``: what went out of a source, and how other commands ask and write it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.verdicts import Verdict
    from discreet.microdata import Microdata
    from discreet.register import History

register = typer.Typer(
    name="register",
    help="What went out of a source already? One register beside it, which every release is held against.",
    no_args_is_help=True,
)
RegisterFile = Annotated[
    Path | None,
    typer.Option(
        "--register",
        help="Hold the release against what went out before, and enter it here (made where it is not there).",
    ),
]
Previous = Annotated[
    list[str] | None,
    typer.Option("--previous", help="A file that went out earlier, of the same people; repeat."),
]


@register.command("show")
def show_register(
    file: Annotated[Path, typer.Argument(help="The register, or the data file that it lies beside.")],
    json: options.AsJson = False,
) -> None:
    """List what went out: when, what, which columns, how many, and who accepted what."""
    from discreet.register.releases import SUFFIX, Register

    found = Register.load(file if file.name.endswith(SUFFIX) else Register.place_beside(file))
    if json:
        options.print_json({"source": found.source, "releases": found.releases})
        return
    say(f"Source: {found.source}")
    for line in found.releases:
        judged = f"; {line['verdict']['outcome']}: {line['verdict']['policy']}" if line["verdict"] else ""
        say(
            f"{line['number']:>4}  {line['time'][:10]}  {line['kind']:<9}  {line['file'] or '-'}  "
            f"{line['records']:,} records, {', '.join(line['columns'])}{judged}"
        )
        for one in line["accepted"]:
            say(f"      {one['rule']} accepted by {one['by']}, because {one['because']}")
    if not found.releases:
        say("Nothing went out yet.")


@register.command("add")
@takes_source()
def add_release(
    source: Source,
    released: Annotated[
        list[str] | None, typer.Argument(help="Files that went out before there was a register.")
    ] = None,
    register: RegisterFile = None,
    kind: Annotated[str, typer.Option("--kind", help="microdata, synthetic, table or output.")] = "microdata",
    same: Annotated[
        bool, typer.Option("--same", help="Declare FILE to be about the people of the register; needs --why.")
    ] = False,
    why: Annotated[
        str, typer.Option("--why", help="Who declares it, and why; it stays in the register.")
    ] = "",
) -> None:
    """Enter files that went out earlier, or declare changed data to be about the same people."""
    from discreet.register import History, Register

    if same == bool(released):
        raise ParameterError("Name files that went out, or --same for a changed source; one of the two.")
    data = source.read()
    place = register or Register.place_beside(source.file)
    if same:
        Register.load(place).same_source(data, why=why)
        say(f"Declared: {source.file} is about the people of {place.name}.")
        return
    history = History(data, Register(place, data), place, writes=True)
    for file in released or ():
        out = source.read_other(file)
        history.enter(kind, out, file)  # type: ignore[arg-type]
        say(f"Entered {Path(file).name}.")


@register.command("check")
@takes_source()
def check_register(source: Source, register: RegisterFile = None, previous: Previous = None) -> None:
    """Check that the register is whole, is about FILE, and that what went out is at hand (else exit code 4)."""
    from discreet.register import Register

    place = register or Register.place_beside(source.file)
    found = Register.load(place)
    found.check_source(source.read())
    filed = found.of_kind("microdata", "synthetic", "table")
    lost = [line["file"] for line in filed if found.file_of(line, previous or ()) is None]
    say(f"The register is whole, belongs to {source.file} and holds {len(found.releases)} releases.")
    for name in lost:
        say(f"Not at hand, or changed since: {name} (--previous FILE names it where it lies now)")
    end_by([None] if lost else [])


# How other commands ask and write it


def history_of(
    source: Source,
    data: Microdata | None,
    register: Path | None,
    previous: Sequence[str] | None = None,
    *,
    released: Sequence[str] = (),
    synthetic: bool = False,
) -> History:
    """Ask what went out before; ``released`` are the files that are judged now."""
    from discreet.core.files.journals import digest_of
    from discreet.register import History

    own = [digest_of(Path(one)) for one in released if Path(one).is_file()]
    return History.of(
        data,
        register,
        previous,
        without=own,
        synthetic=synthetic,
        speaks=True,
        read_file=source.read_other,
    )


def say_history(history: History, verdict: Verdict | None = None) -> None:
    """Print what went out before, and the verdict unless a report has said it."""
    if verdict is not None:
        say(verdict.line)
    say(history.line)
