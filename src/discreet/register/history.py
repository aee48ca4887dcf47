"""What went out of a source, as one door knows it: its register, the releases at hand, and what is entered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.files.journals import digest_of
from discreet.core.results import Release
from discreet.core.verdicts import Verdict
from discreet.io import read
from discreet.microdata import Microdata
from discreet.register.releases import NOBODY_KNOWS, SUFFIX, Kind, Register

Previous = Mapping[str, Microdata] | Sequence[str | Path] | None
_REFUSED = "does not meet the policy and was not entered; discreet register add enters it, should it go out."
_NO_FILE = "is no file yet and was not entered; discreet register add enters it once it is one."


def _as_it_is(file: str) -> Microdata:
    return read(file, roles={})


@dataclass
class History:
    """What went out of a source, as one door knows it.

    Attributes
    ----------
    data
        The source, as it was read.
    register, place
        Its register, and where that lies or is to be made; None where there is none.
    writes
        Whether what goes out is entered.
    given
        Files of earlier releases that somebody named.
    earlier, lost
        Earlier releases that are at hand, by name, and the names of those that are not.
    speaks
        Whether it is said that there is no register, also where nothing shows that there should be one.
    kind
        What goes out.
    read_file
        How files of earlier releases are read.
    """

    data: Microdata | None = None
    register: Register | None = None
    place: Path | None = None
    writes: bool = False
    given: Sequence[str] = ()
    earlier: dict[str, Microdata] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    speaks: bool = False
    kind: Kind = "microdata"
    read_file: Callable[[str], Microdata] = _as_it_is
    _left_out: str = ""

    @classmethod
    def of(
        cls,
        data: Microdata | None,
        register: Self | str | Path | None = None,
        previous: Previous = None,
        *,
        without: Sequence[str | None] = (),
        synthetic: bool = False,
        speaks: bool = False,
        read_file: Callable[[str], Microdata] = _as_it_is,
    ) -> Self:
        """Read the register that was named, or that lies beside the file, and the releases that are at hand.

        Parameters
        ----------
        data
            The source, as it was read.
        register
            Where its register is kept, to be made where it is not there; what is known already is taken as it is.
        previous
            Earlier releases: files, or data by name.
        without
            Checksums of the files that are judged now: they may stand in the register already.
        synthetic
            Records of a synthetic file are nobody's and are laid beside none.
        speaks
            Say also that nobody knows what went out before.
        read_file
            How files of earlier releases are read.
        """
        if isinstance(register, cls):
            return register
        if register is not None and data is None:
            raise ParameterError(
                "A register belongs to data: name the original (data=…, --original) as well."
            )
        beside = _beside(data)
        named = None if register is None else Path(str(register))
        if named is not None and beside is not None and not (named.exists() and named.samefile(beside)):
            raise ParameterError(
                f"A register lies beside the file, '{beside.name}', and would not know of this release. Name it: "
                f"--register {beside}."
            )
        place = named or beside
        held = None if data is None or place is None or not place.exists() else Register(place, data)
        known = dict(previous) if isinstance(previous, Mapping) else {}
        given = [] if isinstance(previous, Mapping) else [str(one) for one in previous or ()]
        found = cls(data, held, place, named is not None, given, known, speaks=speaks, read_file=read_file)
        found.kind = "synthetic" if synthetic else "microdata"
        if not synthetic:
            found._take(without)
        return found

    def _take(self, without: Sequence[str | None]) -> None:
        """Read earlier releases that are at hand."""
        paths = [Path(one) for one in self.given]
        own = [*without, *(one.metadata.checksum for one in self.earlier.values())]
        marks = [mark for mark in own if mark]
        for line in [] if self.register is None else self.register.of_kind("microdata", without=marks):
            at = None if self.register is None else self.register.file_of(line, self.given)
            if at is None:
                self.lost.append(str(line["file"]))
            else:
                paths.append(at)
        places = dict.fromkeys(one.resolve() if one.exists() else one for one in paths)
        names = [one.name for one in places]
        for one in places:
            self.earlier[one.name if names.count(one.name) == 1 else str(one)] = self.read_file(str(one))

    def enter(
        self,
        kind: Kind,
        released: Microdata | None,
        file: str | Path | None = None,
        verdict: Verdict | None = None,
        *,
        decided: bool = False,
        **more: Any,
    ) -> None:
        """Enter a release that was written, where the door was asked to; without a file, the one it was read from.

        What does not meet its policy should not go out, and is entered only where somebody ``decided`` that it does.
        """
        if not self.writes or self.place is None or self.data is None:
            return
        if verdict is not None and verdict.outcome == "not met" and not decided:
            self._left_out = _REFUSED
            return
        if released is not None:
            more |= {"columns": released.columns, "records": engine.overview(released, ()).rows}
        name, mark = Path(file or "").name, ""
        if file is not None:
            mark = digest_of(Path(file)) if Path(file).is_file() else ""
            name = self._told_from_here(Path(file))
        elif released is not None and released.metadata.checksum:
            name, mark = released.metadata.source or "", released.metadata.checksum
        else:
            self._left_out = _NO_FILE
            return
        self._left_out = ""
        held = self.opened()
        if held is not None and not (verdict is None and held.of_file(mark)):
            held.enter(kind, file=name, checksum=mark, verdict=verdict, **more)

    def _told_from_here(self, file: Path) -> str:
        """Name a file so that it is found again below the folder of the register."""
        folder = Path() if self.place is None else self.place.resolve().parent
        place = file.resolve()
        return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else file.name

    def opened(self) -> Register | None:
        """The register, made where it was named and is not there."""
        if self.register is None and self.place is not None and self.data is not None:
            self.register = Register(self.place, self.data)
        return self.register

    def enter_made(
        self, release: Release, file: str | Path, verdict: Verdict | None = None, *, decided: bool = False
    ) -> None:
        """Enter what a plan made, once it was written."""
        steps = [{"treatment": step.treatment, **step.to_dict()["parameters"]} for step in release.log]
        self.enter("microdata", release.data, file, verdict, decided=decided, parameters={"steps": steps})

    @property
    def line(self) -> str:
        """What is known of what went out before, in a sentence."""
        written = f" This one {self._left_out}" if self._left_out else ""
        if self.register is None:
            known = self.given or self.earlier
            nobody = "Whether more went out before is not known: no register." if known else NOBODY_KNOWS
            return f"{nobody}{written}"
        before, name = len(self.register.releases), self.register.path.name
        if not self.writes:
            written = f" This one was not entered; --register {name} does."
        return f"The register '{name}' holds {before} release{'s' * (before != 1)}.{written}"

    @property
    def said(self) -> str:
        """The same, where there is anything to say: a register, or one of another file in the same folder."""
        if self.speaks or self.register is not None or self.writes or self.given or self.earlier:
            return self.line
        folders = {place.parent for place in _places(self.data)}
        return self.line if any(any(one.glob(f"*{SUFFIX}")) for one in folders) else ""

    def document(self, verdict: Verdict | None = None) -> dict[str, Any]:
        """The same, for a JSON document."""
        return {"register": self.line, **({} if verdict is None else {"verdict": verdict.to_dict()})}


def _places(data: Microdata | None) -> list[Path]:
    """The files that data were read from."""
    origins = () if data is None else data.metadata.origins
    return [Path(where) for where, query in origins if not query and Path(where).is_file()]


def _beside(data: Microdata | None) -> Path | None:
    """The register that lies beside the file that data were read from."""
    beside = (Register.place_beside(place) for place in _places(data))
    return next((one for one in beside if one.is_file()), None)
