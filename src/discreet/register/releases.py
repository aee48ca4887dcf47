"""What went out of a data source? One register beside it, one line a release, which every door reads before the next.

A release that is safe alone can give somebody away beside an earlier one. So a `Register` lies beside the data
(``people.register.jsonl``) and says of every release when it went out, what it was, its columns, how many people it was
about, by which plan it was made, the checksum of its file, and the verdict. It holds no record and no value; of outputs
it holds who they were about as a keyed sketch (`discreet.register.people_sketch`).

The lines follow each other in a chain of hashes. Beside the register lies its key (``people.register.key``), which also
notes how far the register had come: an older copy that is put back without it is noticed. Both are as confidential as
the data and readable by their owner only. Whoever may write both can forge both; the register is a tool of honest
people.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from discreet import engine
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.journals import (
    add_link,
    alone_with,
    check_chain,
    digest_of,
    read_chain,
    register_key,
)
from discreet.core.files.untrusted import parsed_json
from discreet.core.values import jsonable
from discreet.core.verdicts import Verdict
from discreet.io.fingerprints import check_unchanged, content_of
from discreet.microdata import Microdata
from discreet.register.people_sketches import PeopleSketch, key_mark, people_sketch

SUFFIX = ".register.jsonl"
FORMAT = 1
NOBODY_KNOWS = "What went out before is not known: no register."
"""What a door says that was given no register and finds none."""
Kind = Literal["microdata", "synthetic", "table", "output"]
_SOURCE, _WHAT = "source", "line of a register of releases"
_FEW = 0.2  # of the records may differ in a version of the source that is known again by itself


class Register:
    """What went out of one data source.

    Parameters
    ----------
    path
        Where the register is kept; it is made where it is not there.
    data
        The source, as it was read. Data that the register does not belong to are refused until `same_source` declares
        them to be about the same people; where few records changed, joined or left, they are known again.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"age": range(30, 60), "pay": range(30)}))
    >>> register = Register(Path(tempfile.mkdtemp()) / "people.register.jsonl", people)
    >>> entry = register.enter("microdata", columns=["age"], records=30, file="public.csv", checksum="…")
    >>> [(line["kind"], line["columns"], line["records"]) for line in register.releases]
    [('microdata', ['age'], 30)]
    """

    def __init__(self, path: str | Path, data: Microdata) -> None:
        self.path = Path(path).resolve()
        self._lines: list[dict[str, Any]] = []
        self.version = _content(data)
        self._unheard: dict[str, Any] | None = None
        if self.path.exists():
            self._read()
            self.check_source(data)
            return
        with replacing(self.path, overwrite=False, private=True) as draft:
            draft.write_text("", encoding="utf-8")
        self._enter(
            {"kind": _SOURCE, "format": FORMAT, **self._marks(data), "why": "the register was opened"}
        )

    @classmethod
    def load(cls, path: str | Path) -> Register:
        """Open a register that exists."""
        register = cls.__new__(cls)
        register.path, register._lines, register.version = Path(path).resolve(), [], ""
        register._unheard = None
        if not register.path.is_file():
            raise InputError(f"There is no register '{register.path.name}' there. Check the path.")
        register._read()
        return register

    @staticmethod
    def place_beside(source: str | Path) -> Path:
        """Where the register of a file lies.

        Examples
        --------
        >>> Register.place_beside("survey.csv.gz").name
        'survey.register.jsonl'
        """
        place = Path(source)
        place = place.resolve() if place.is_symlink() else place  # another name of the same data
        return place.with_name(place.name.split(".")[0] + SUFFIX)

    @property
    def releases(self) -> list[dict[str, Any]]:
        """What went out, in order."""
        return [line for line in self._lines if line["kind"] != _SOURCE]

    @property
    def source(self) -> str:
        """The name of the file that it belongs to."""
        return str(self._lines[0]["source"])

    @property
    def key(self) -> bytes:
        """The key behind which sets of people stand."""
        return register_key() or bytes.fromhex(self._state()["key"])

    def check_source(self, data: Microdata) -> None:
        """Refuse data that the register does not belong to; a new version of its source is noted with its releases."""
        contents = {line["content"] for line in self._lines if line["kind"] == _SOURCE}
        checksums = {line["checksum"] for line in self._lines if line["kind"] == _SOURCE} - {None}
        if data.metadata.checksum in checksums:
            check_unchanged(data.metadata, data.frame)
            return
        if contents & {_content(data), *data.content_marks()}:
            return
        marks = self._marks(data)
        now = PeopleSketch.of_text(marks["people"])
        known = [line for line in self._lines if line["kind"] == _SOURCE and line["key"] == marks["key"]]
        apart = [PeopleSketch.of_text(line["people"]).apart(now) for line in known]
        near = [number for number in apart if number is not None and number <= _FEW * max(now.people, 1)]
        if not near:
            raise InputError(
                f"The register '{self.path.name}' belongs to '{self.source}', and these are other data, or data that "
                "have changed much since. Name the register of this file, or declare the data to be about the same "
                "people: discreet register add FILE --register REGISTER --same --why TEXT (register.same_source)."
            )
        self._unheard = {**marks, "why": f"{min(near):,} records differ from an earlier version"}

    def same_source(self, data: Microdata, *, why: str) -> None:
        """Declare that data are about the people of this register; the declaration stays in it."""
        if not why.strip():
            raise ParameterError("why must say who declares the data to be the same source, and why.")
        self._enter({"kind": _SOURCE, **self._marks(data), "why": why.strip()})
        self.version = _content(data)

    def enter(
        self,
        kind: Kind,
        *,
        columns: Sequence[str],
        records: int,
        file: str = "",
        checksum: str = "",
        parameters: Mapping[str, Any] | None = None,
        verdict: Verdict | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Enter a release.

        Parameters
        ----------
        kind
            ``microdata``, ``synthetic``, ``table`` or ``output``.
        columns, records
            What is in it, and how many records (for outputs: people) it is about.
        file, checksum
            The name of the file and the checksum of its bytes.
        parameters
            What may be known of how it was made.
        verdict
            What the policy said, and who accepted what.
        more
            What belongs to the kind: dimensions and suppressed cells of a table, the question of an output.
        """
        if kind not in get_args(Kind):
            raise ParameterError(f"kind must be one of {', '.join(map(repr, get_args(Kind)))}.")
        if self._unheard is not None:
            self._enter({"kind": _SOURCE, **self._unheard})
            self._unheard = None
        judged = None if verdict is None else {"policy": verdict.policy, "outcome": verdict.outcome}
        accepted = [] if verdict is None else [one.to_dict() for _, one in verdict.accepted]
        told = {
            "columns": list(columns), "records": records, "file": file, "checksum": checksum,
            "parameters": jsonable(dict(parameters or {})), "verdict": judged, "accepted": accepted,
        }  # fmt: skip
        return self._enter({"kind": kind, "version": self.version, **told, **jsonable(more)})

    def of_kind(self, *kinds: Kind, without: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What went out of some kinds, but for files with these checksums."""
        return [line for line in self.releases if line["kind"] in kinds and line["checksum"] not in without]

    def of_file(self, checksum: str) -> dict[str, Any] | None:
        """Find the release that went out as a file."""
        return next((line for line in self.releases if checksum and line["checksum"] == checksum), None)

    def file_of(self, line: Mapping[str, Any], given: Sequence[str | Path] = ()) -> Path | None:
        """Find the file of a release: among those that were given, else below the register, by its checksum."""
        beside = self.path.parent / str(line["file"])
        places = [*map(Path, given), *([beside] if line["file"] else [])]
        return next((one for one in places if one.is_file() and digest_of(one) == line["checksum"]), None)

    def _marks(self, data: Microdata) -> dict[str, Any]:
        person = data.roles.person or data.roles.contributor
        return {
            "source": data.metadata.source or "data",
            "checksum": data.metadata.checksum,
            "content": _content(data),
            "people": people_sketch(engine.collect(data), data.columns, self.key, person=person).to_text(),
            "key": key_mark(self.key),
        }

    def _enter(self, told: Mapping[str, Any]) -> dict[str, Any]:
        with alone_with(self.path):
            self._read()
            stamped = {"time": datetime.now(UTC).isoformat(timespec="seconds"), **told}
            self._lines.append(add_link(self.path, self._lines, stamped))
            self._save_state()
        return self._lines[-1]

    def _read(self) -> None:
        # What was noted is read before the lines: a line may be entered meanwhile, and is noted after it.
        noted = self._state()
        lines = read_chain(self.path, what=_WHAT)
        check_chain(lines, self.path.name, what=_WHAT)
        seen = max(noted["lines"], len(self._lines))
        last = noted["last"] if seen == noted["lines"] else self._lines[-1]["hash"]
        if seen and (len(lines) < seen or lines[seen - 1]["hash"] != last):
            raise InputError(
                f"The register '{self.path.name}' is not what it was: lines that were in it are gone, or an older copy "
                "took its place. Put the latest copy back; until then nobody knows what went out."
            )
        if lines and lines[0].get("kind") != _SOURCE:
            raise InputError(f"The file '{self.path.name}' is no register of releases. Name another one.")
        self._lines = lines

    def _state(self) -> dict[str, Any]:
        """What lies in the key file; a key is made where there is none, and what stood behind the old one is lost."""
        place = self._key_file
        if not place.exists():
            with replacing(place, private=True) as draft:
                draft.write_text(json.dumps({"key": secrets.token_hex(32), "lines": 0, "last": ""}))
        try:
            found: dict[str, Any] = parsed_json(place.read_bytes())
            bytes.fromhex(found["key"])
            return {"key": str(found["key"]), "lines": int(found["lines"]), "last": str(found["last"])}
        except Exception as error:
            raise InputError(
                f"The key '{place.name}' of the register cannot be read. Put it back from a copy; without it sets of "
                "people that went out are not known again."
            ) from error

    def _save_state(self) -> None:
        known = {**self._state(), "lines": len(self._lines), "last": self._lines[-1]["hash"]}
        with replacing(self._key_file, private=True) as draft:
            draft.write_text(json.dumps(known))

    @property
    def _key_file(self) -> Path:
        return self.path.with_name(self.path.name.removesuffix(".jsonl") + ".key")


def _content(data: Microdata) -> str:
    try:
        return content_of(data)
    except DiscreetError:  # values that have no canonical form: then the checksum of the file has to do
        return f"unknown {data.metadata.checksum}"
