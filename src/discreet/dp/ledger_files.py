"""A ledger on disk: a TOML file with a checksum over all that it says, read back before it takes its place.

It says which data it belongs to: files are known by their bytes, data by their content.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.untrusted import parsed_toml, read_toml
from discreet.dp.costs import Cost
from discreet.io.fingerprints import check_unchanged, content_of
from discreet.microdata import Microdata

FORMAT = 2
_HEADER = {
    1: ("format", "source", "fingerprint", "epsilon", "delta", "adjacency", "unit", "closed"),
    2: (
        *("format", "id", "source", "fingerprint", "content", "follows"),
        *("epsilon", "delta", "adjacency", "unit", "closed", "same"),
    ),
}
_LATER: dict[str, Any] = {"id": "", "content": "", "follows": "", "same": []}
"""What a ledger of the first format does not say."""

_ASTRAL = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_LONE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89a-f][0-9a-f]{2})", re.IGNORECASE)
_NUMPY = re.compile(r"^(\w+ = )np\.\w+\(([^()\n]*)\)$", re.MULTILINE)
_STANDS_FOR_LONE = 0x10F800  # where the 2,048 lone halves of signs are kept while a damaged file is read


def read_ledger(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read what a ledger says; one whose checksum does not fit is refused."""
    check_place(path)
    mended = False
    try:
        content = read_toml(path, "ledger")
    except InputError:
        content, mended = _mended(path), True
    form = content.get("format")
    names = _HEADER.get(form, ()) if isinstance(form, int) else ()
    header = {name: content.get(name) for name in names}
    entries = content.get("record", [])
    broken = InputError(
        f"The ledger '{path.name}' was changed by hand or damaged: its checksum does not fit. Restore it from a copy; "
        "until then nothing may be published from its source."
    )
    if not names or not isinstance(entries, list):
        raise broken
    try:
        sealed = seal(header, entries)
    except (TypeError, ValueError) as error:
        raise broken from error
    if content.get("checksum") != sealed:
        raise broken
    header = {**_LATER, **header}
    return (_in_text(header, well_formed), _in_text(entries, well_formed)) if mended else (header, entries)


def check_place(path: Path) -> None:
    """Refuse what is no ordinary file, and a file with several names: whoever writes one leaves the others behind."""
    if not path.exists():
        raise InputError(f"There is no ledger '{path.name}' there. Check the path.")
    if not path.is_file():
        raise InputError(f"'{path.name}' is no ordinary file and cannot be a ledger. Name a file.")
    if path.stat().st_nlink > 1:
        raise InputError(
            f"The ledger '{path.name}' has a second name (a hard link), under which it could be spent again. Remove "
            "the other name, or replace it by a symbolic link."
        )


def write_ledger(place: Path, header: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    """Write a ledger to a draft, to the disk, and read it back: what cannot be read takes no other's place."""
    with place.open("w", encoding="utf-8", newline="\n") as file:
        file.write(as_toml(header, entries))
        file.flush()
        os.fsync(file.fileno())
    place.chmod(0o600)
    if seal(*read_ledger(place)) != seal(header, entries):
        raise InputError(f"The ledger '{place.name}' could not be written as it is; it was left as it was.")


def resolved(path: str | Path) -> Path:
    """Where a ledger really lies: under every other name it would have another lock, or be replaced by a file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"The path of the ledger '{Path(path).name}' leads nowhere. Check it.") from error


def as_entry(cost: Cost) -> dict[str, Any]:
    """A release in plain numbers and texts, which any file can hold."""
    entry = {name: value for name, value in asdict(cost).items() if value is not None}
    for name, kind in _KINDS.items():
        if name in entry:
            entry[name] = kind(entry[name])
    return entry


def as_cost(entry: dict[str, Any]) -> Cost:
    """The release behind an entry."""
    names = {field.name for field in fields(Cost)}
    return Cost(**{name: value for name, value in entry.items() if name in names})


def as_toml(header: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    """Write what a ledger says."""
    import tomli_w

    told = {name: header[name] for name in _HEADER[FORMAT]}
    same = told.pop("same")
    head = tomli_w.dumps({**told, "checksum": seal(header, entries)})
    tables = tomli_w.dumps({"same": same, "record": [dict(entry) for entry in entries]})
    return f"# The privacy budget of a data source. Do not edit: the checksum would no longer fit.\n{head}\n{tables}"


def seal(header: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    """A checksum over all that a ledger says."""
    names = _HEADER[header["format"]]
    text = json.dumps([{name: header[name] for name in names}, entries], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def well_formed(text: str) -> str:
    r"""A text that can be written: half of a sign, as in file names of other systems, becomes its number.

    Examples
    --------
    >>> well_formed("na\udcefve")
    'na\\udcefve'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _mended(path: Path) -> dict[str, Any]:
    r"""Read a ledger that earlier versions wrote and could not read: emoji, halves of signs and numbers of NumPy.

    Every other fault stays one. The checksum, which was taken over what was meant, says whether this is it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        text = _ASTRAL.sub(lambda at: at[1] + json.loads(f'"\\u{at[2]}\\u{at[3]}"'), text)
        text = _LONE.sub(lambda at: at[1] + chr(_STANDS_FOR_LONE + int(at[2], 16) - 0xD800), text)
        content: dict[str, Any] = _in_text(parsed_toml(_NUMPY.sub(r"\1\2", text)), _with_halves)
    except (OSError, ValueError):
        return read_toml(path, "ledger")  # which says what is wrong
    return content


def _with_halves(text: str) -> str:
    codes = ((sign, ord(sign) - _STANDS_FOR_LONE) for sign in text)
    return "".join(chr(0xD800 + code) if 0 <= code < 0x800 else sign for sign, code in codes)


def _in_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_in_text(item, change) for item in value]
    return (
        {name: _in_text(item, change) for name, item in value.items()} if isinstance(value, dict) else value
    )


_KINDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("epsilon", "delta", "rho", "sensitivity"), float),
    **dict.fromkeys(("mechanism", "purpose"), lambda text: well_formed(str(text))),
    "values": int,
    "proved": bool,
}


# Which data does a ledger belong to?


Source = str | Path | Microdata
_INCOMPARABLE = "-"
"""The content of a file that cannot be read as a table, or holds what has no canonical form."""


def fingerprints(source: Source) -> dict[str, str]:
    """By what a source is known: its name, the checksum of its bytes and the fingerprint of its content."""
    if isinstance(source, Microdata):
        about = source.metadata
        content = _content(source)
        if about.checksum is None and content == _INCOMPARABLE:
            raise InputError(
                "These data hold values by which they cannot be recognized, such as lists. Leave those columns out, or "
                "give the file as the source of the ledger."
            )
        name = about.source or "data"
        return {"source": well_formed(name), "fingerprint": about.checksum or "", "content": content}
    return {
        "source": well_formed(Path(source).name),
        "fingerprint": _checksum(source),
        "content": _content(source),
    }


def known_by(header: Mapping[str, Any], source: Source) -> bool:
    """Whether a source is that of a ledger, or was declared to be."""
    own = [header, *header["same"]]
    files = {known["fingerprint"] for known in own} - {""}
    contents = {known["content"] for known in own} - {"", _INCOMPARABLE}
    if not header["fingerprint"] and not header["content"]:
        return True
    if not isinstance(source, Microdata):
        return _checksum(source) in files or (bool(contents) and _content(source) in contents)
    if source.metadata.checksum in files:
        check_unchanged(source.metadata, source.frame)
        return True
    if not contents:  # an older ledger, which was not opened with its file since
        return False
    return any(known in contents for known in source.content_marks()) or _content(source) in contents


def foreign(path: Path | None) -> InputError:
    """What to say of a source that the ledger does not belong to."""
    name = f"The ledger '{path.name}'" if path else "The ledger"
    return InputError(
        f"{name} belongs to another file or other data, or its source has changed since. Give the data as they "
        "were read with discreet.read(path), or a part made of them with data.with_frame(...). The owner of the "
        "budget can declare changed data to be about the same people (ledger.same_source, discreet budget declare "
        "--same), or open a budget for a file about other people (Ledger.new_source, --new)."
    )


def rolled_back(path: Path | None) -> InputError:
    """What to say of a ledger that holds less than it held before."""
    return InputError(
        f"The ledger '{path.name if path else ''}' is not what it was: records that were in it are gone, "
        "or another ledger took its place. Put the latest copy back. If the owner has put this one there, open it "
        "anew in a new run of the program."
    )


def _content(source: Source) -> str:
    if isinstance(source, Microdata):
        try:
            return content_of(source)
        except DiscreetError:
            return _INCOMPARABLE
    from discreet.io import read

    try:
        return content_of(read(source, roles={}))
    except Exception:  # a ledger can belong to a file of any kind, which is then known by its bytes alone
        return _INCOMPARABLE


def _checksum(source: str | Path) -> str:
    try:
        with Path(source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"The file '{Path(source).name}' cannot be read: {error.strerror}.") from error
