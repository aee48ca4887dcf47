"""``discreet register``: what went out of a source, and how other commands ask and write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.verdicts import Acceptance, Verdict
    from discreet.microdata import Microdata
    from discreet.register import Register
    from discreet.register.releases import Kind

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
    from discreet.register import Register

    if same == bool(released):
        raise ParameterError("Name files that went out, or --same for a changed source; one of the two.")
    data = source.read()
    place = register or Register.place_beside(source.file)
    if same:
        Register.load(place).same_source(data, why=why)
        say(f"Declared: {source.file} is about the people of {place.name}.")
        return
    history = History(data, Register(place, data), place)
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


_REFUSED = " This one does not meet the policy and was not entered; discreet register add enters it, should it go out."


@dataclass
class History:
    """What went out of a source, as one command knows it."""

    data: Microdata | None
    register: Register | None = None
    place: Path | None = None
    writes: bool = True
    given: Sequence[str] = ()
    earlier: dict[str, Microdata] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    refused: bool = False

    @classmethod
    def of(
        cls,
        source: Source,
        data: Microdata | None,
        register: Path | None,
        previous: Sequence[str] | None = None,
        *,
        released: Sequence[str] = (),
        synthetic: bool = False,
    ) -> History:
        """Read the register that was named, or that lies beside the file, and the releases that are at hand.

        ``released`` are the files that are judged now: they may stand in the register already. Records of a synthetic
        file are nobody's and are laid beside none.
        """
        from discreet.core.files.journals import digest_of
        from discreet.register import Register

        if register is not None and data is None:
            raise ParameterError("--register is about a source: name the original file as well.")
        file = source.file
        beside = Register.place_beside(file) if file and Path(file).is_file() else None
        if beside is not None and not beside.exists():
            beside = None
        if register is not None and beside is not None and not _is_same(register, beside):
            raise ParameterError(
                f"A register lies beside the file, '{beside.name}', and would not know of this release. Name it: "
                f"--register {beside}."
            )
        place = register or beside
        held = None if data is None or place is None or not place.exists() else Register(place, data)
        found = cls(data, held, place, register is not None, previous or ())
        if synthetic:
            return found
        own = [digest_of(Path(one)) for one in released if Path(one).is_file()]
        paths = [Path(one) for one in previous or ()]
        for line in held.of_kind("microdata", without=own) if held is not None else ():
            at = held.file_of(line, previous or ()) if held is not None else None
            if at is None:
                found.lost.append(str(line["file"]))
            else:
                paths.append(at)
        places = dict.fromkeys(one.resolve() if one.exists() else one for one in paths)
        names = [one.name for one in places]
        found.earlier = {
            one.name if names.count(one.name) == 1 else str(one): source.read_other(str(one))
            for one in places
        }
        return found

    def judged(
        self,
        verdict: Verdict | None,
        released: Microdata,
        policy: str | None = None,
        accept: Sequence[Acceptance] = (),
    ) -> Verdict | None:
        """Judge a release together with what went out before."""
        from discreet.workflow.earlier_releases import with_earlier
        from discreet.workflow.pairing import with_roles_of

        if not (self.earlier or self.lost):
            return verdict
        keys = self.data.roles.keys if self.data is not None else ()
        file = released if self.data is None else with_roles_of(self.data, released)
        return with_earlier(
            verdict, file, self.earlier, policy=policy, keys=keys, lost=self.lost, accept=accept
        )

    def enter(
        self,
        kind: Kind,
        released: Microdata | None,
        file: str | None,
        verdict: Verdict | None = None,
        **more: Any,
    ) -> None:
        """Enter a release that was written, where the command was asked to."""
        from discreet import engine
        from discreet.core.files.journals import digest_of
        from discreet.register import Register

        if not self.writes or self.place is None or self.data is None or file is None:
            return
        if verdict is not None and verdict.outcome == "not met":
            self.refused = True
            return
        if self.register is None:
            self.register = Register(self.place, self.data)
        if released is not None:
            more |= {"columns": released.columns, "records": engine.overview(released, ()).rows}
        out = Path(file)
        mark = digest_of(out) if out.is_file() else ""
        if not (verdict is None and self.register.of_file(mark)):
            self.register.enter(kind, file=out.name, checksum=mark, verdict=verdict, **more)

    @property
    def line(self) -> str:
        """What is known of what went out before, in a sentence."""
        from discreet.register.releases import NOBODY_KNOWS

        if self.register is None:
            nobody = "Whether more went out before is not known: no register." if self.given else NOBODY_KNOWS
            return f"{nobody}{_REFUSED if self.refused else ''}"
        before = len(self.register.releases)
        name = self.register.path.name
        written = "" if self.writes else f" This one was not entered; --register {name} does."
        if self.refused:
            written = _REFUSED
        return f"The register '{name}' holds {before} release{'s' * (before != 1)}.{written}"

    def say(self, verdict: Verdict | None, *, told: bool) -> None:
        """Print what went out before, and the verdict unless a report has ``told`` it."""
        if verdict is not None and not told:
            say(verdict.line)
        if self.line:
            say(self.line)

    def document(self, verdict: Verdict | None = None) -> dict[str, Any]:
        """The same, for a JSON document."""
        return {"register": self.line, **({} if verdict is None else {"verdict": verdict.to_dict()})}


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and one.samefile(other)
