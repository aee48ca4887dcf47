"""Did a write fail because the disk is full?

Engines hide what the operating system told them behind errors of their own, so the chain of errors is searched for the
number of the operating system, and the disk itself is asked: what was half written still fills it.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path

from discreet.errors import InputError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_SQLITE_FULL = 13
_NOTHING_LEFT = 16 * 1024


def is_full(error: BaseException, place: Path) -> bool:
    """Whether an error comes from a disk or a quota that has no room left.

    Parameters
    ----------
    error
        What the writer raised.
    place
        The folder that was written to, with what was half written still in it.
    """
    seen: BaseException | None = error
    while seen is not None:
        for told in (seen, getattr(seen, "orig", None)):
            if isinstance(told, OSError) and told.errno in _FULL:
                return True
            # Engines in other languages pass on the words of the operating system only.
            if told is not None and any(os.strerror(code) in str(told) for code in _FULL):
                return True
            if (
                isinstance(told, sqlite3.Error)
                and getattr(told, "sqlite_errorcode", 0) & 0xFF == _SQLITE_FULL
            ):
                return True
        seen = seen.__cause__ or seen.__context__
    try:
        return shutil.disk_usage(place).free < _NOTHING_LEFT
    except OSError:
        return False


def full_disk(name: str) -> InputError:
    """Word the refusal."""
    return InputError(f"'{name}' cannot be written: the disk is full. Make room, or name another place.")
