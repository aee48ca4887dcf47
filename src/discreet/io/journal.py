"""Files that grow by whole lines: what is done is noted as it is done, and read again after a stop."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from discreet.core.errors import InputError
from discreet.core.files.atomic import explained, note_written


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
