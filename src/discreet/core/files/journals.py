"""Files that grow by whole lines: what is done is noted as it is done, and read again after a stop."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError
from discreet.core.files.atomic import explained, note_written, replacing
from discreet.core.files.locks import alone
from discreet.core.files.untrusted import parsed_json


def append_line(path: Path, line: str) -> None:
    r"""Add one line to a file in one piece.

    One write to a file that is opened for appending: a crash leaves all of the line or a part without its end, which
    `lines_of` cuts off, and two writers do not mix their lines. A disk without room for all of it gets nothing.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "done.jsonl"
    >>> append_line(file, '{"n": 1}')
    >>> lines_of(file, begins='{"n"', what="numbers")
    ['{"n": 1}']
    """
    # Half of a sign, as in file names of other systems, is written as JSON writes it.
    content = (line + "\n").encode("utf-8", "backslashreplace")
    with explained(path.name, path.parent):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            before = os.fstat(handle).st_size
            if os.write(handle, content) < len(content):
                os.ftruncate(handle, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)
    note_written(path.name)


def lines_of(path: Path, *, begins: str, what: str) -> list[str]:
    """Read the lines of such a file, and cut off half a line that a killed run left at its end.

    Parameters
    ----------
    path
        The file.
    begins
        How every line begins; a file with another end is somebody else's and is refused, untouched.
    what
        What the file should hold, for the message.
    """
    try:
        text = path.read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"The file '{path.name}' cannot be read: {error.strerror}.") from error
    *lines, last = text.split("\n")
    if not all(line.startswith(begins) for line in lines if line) or not (
        last.startswith(begins) or begins.startswith(last)
    ):
        raise InputError(f"The file '{path.name}' does not hold {what}. Name another one, or start afresh.")
    if last:
        with explained(path.name, path.parent), path.open("r+b") as file:
            file.truncate(
                len(text.encode("utf-8", "surrogateescape")) - len(last.encode("utf-8", "surrogateescape"))
            )
    return [line for line in lines if line]


# Registers: lines that follow each other in a chain.
#
# Every line has the hash of the line before it, so that one that is changed, taken out or put in breaks the chain from
# there on. That shows tampering to whoever kept a later hash; whoever may write the whole file could write a new chain.
# With a key (in the environment, never in a file beside it) the hashes are keyed, and only those who hold it can write
# a line that verifies.


KEY_VARIABLE = "DISCREET_REGISTER_KEY"
_START = "0" * 64


@contextlib.contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Hold a register for one writer: two lines with the same number would break the chain."""
    with contextlib.ExitStack() as stack, explained(file.name, file.parent):
        try:
            stack.enter_context(alone(file))
        except BlockingIOError as error:
            raise InputError(str(error)) from None
        yield


def read_chain(file: Path, *, what: str) -> list[dict[str, Any]]:
    """Read the lines of a register without verifying them; none where there is no file yet."""
    if not file.exists():
        return []
    try:
        # Only the line feed ends a line: a note may hold what Unicode counts as an end as well.
        lines = [parsed_json(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"The register '{file.name}' cannot be read: a line is damaged.") from error
    if not all(isinstance(line, dict) and "hash" in line and "before" in line for line in lines):
        raise InputError(f"The register '{file.name}' has a line that is no {what}.")
    return lines


def check_chain(lines: Sequence[Mapping[str, Any]], name: str, *, what: str) -> None:
    """Refuse a register whose lines do not follow each other."""
    before = _START
    for place, line in enumerate(lines, start=1):
        if line["before"] != before or line.get("number") != place:
            raise InputError(
                f"The register '{name}' was tampered with: {what} {place} does not follow the one before."
            )
        if line.get("keyed") and register_key() is None:
            raise InputError(
                f"The register '{name}' is keyed. Put its key into the environment variable {KEY_VARIABLE}."
            )
        if not hmac.compare_digest(
            repr(line["hash"]).encode("utf-8", "replace"), repr(_link_of(line)).encode()
        ):
            raise InputError(f"The register '{name}' was tampered with: {what} {place} was changed.")
        before = line["hash"]


def add_link(file: Path, lines: Sequence[Mapping[str, Any]], told: Mapping[str, Any]) -> dict[str, Any]:
    """Add a line to a register that holds some lines already, and return it; hold the file with `alone_with`."""
    line = {
        "number": len(lines) + 1,
        **told,
        "before": lines[-1]["hash"] if lines else _START,
        "keyed": register_key() is not None,
    }
    line["hash"] = _link_of(line)
    # One write of one line at the end: a crash leaves the earlier lines as they were.
    append_line(file, json.dumps(line, ensure_ascii=False, sort_keys=True))
    return line


def register_key() -> bytes | None:
    """The key of registers, where one is set."""
    value = os.environ.get(KEY_VARIABLE, "")
    return value.encode("utf-8") if value else None


def _link_of(line: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in line.items() if name != "hash"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    key = register_key() if line.get("keyed") else None
    return hmac.new(key, text, hashlib.sha256).hexdigest() if key else hashlib.sha256(text).hexdigest()


# Which parts of a folder are finished? A manifest beside them says so, and a stopped run goes on from there.


MANIFEST = "manifest.json"


@dataclass(frozen=True)
class PartsManifest:
    """The parts of a folder, and what they have in common.

    Attributes
    ----------
    folder
        Where they lie.
    head
        What parts of one run share: how many records, a mark of where they come from. Parts with another head are of
        another run.
    parts
        How many there will be.
    others
        What parts with another head may be of, for the message.
    """

    folder: Path
    head: Mapping[str, Any]
    parts: int
    others: str

    def path(self, number: int) -> Path:
        """Where a part goes."""
        return self.folder / f"part-{number:06d}.parquet"

    def finished(self, *, resume: bool) -> dict[int, str]:
        """Read which parts are there, whole and of the same run: their numbers and digests.

        The folder is made where it is not there; one with anything else in it is refused.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"'{self.folder.name}' is a file. Name a folder for the parts.")
        self.folder.mkdir(parents=True, exist_ok=True)
        there = sorted(file.name for file in self.folder.iterdir() if not file.name.startswith("."))
        if not there:
            return {}
        manifest = self.folder / MANIFEST
        if not resume or not manifest.exists():
            way_out = "Name an empty one." if resume else "Name an empty one, or go on with resume=True."
            raise InputError(f"The folder '{self.folder.name}' is not empty. {way_out}")
        try:
            noted = json.loads(manifest.read_text(encoding="utf-8"))
            same = all(noted[name] == value for name, value in self.head.items())
            finished = {int(number): str(digest) for number, digest in noted["finished"].items()}
        except (ValueError, KeyError, AttributeError, OSError) as error:
            raise InputError(
                f"The manifest of '{self.folder.name}' cannot be read. Name an empty folder."
            ) from error
        if not same:
            raise InputError(
                f"The parts in '{self.folder.name}' are of {self.others}. Give the seed of the first run, or name an "
                "empty folder."
            )
        return {
            number: digest
            for number, digest in finished.items()
            if self.path(number).exists() and digest_of(self.path(number)) == digest
        }

    def note(self, done: Mapping[int, str]) -> None:
        """Write down which parts are finished."""
        document = {
            **self.head,
            "parts": self.parts,
            "complete": len(done) == self.parts,
            "finished": {str(number): done[number] for number in sorted(done)},
        }
        with replacing(self.folder / MANIFEST) as unfinished:
            unfinished.write_text(json.dumps(document, indent=1), encoding="utf-8")


def digest_of(path: Path) -> str:
    """Tell the bytes of a file from others."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
