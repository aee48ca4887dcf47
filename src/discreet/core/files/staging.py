"""Folders in which something is made before it takes its place, and what killed runs left of them.

A run that is killed cannot clean up after itself, so the next one does: a staging folder has a name that nobody else
would choose, and whoever works in it holds a lock on it, which the operating system lets go when the process ends. A
folder with such a name and without a holder is a leftover and is removed; the old version of a folder whose replacement
was cut short is put back first.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from discreet.core.files.locks import is_free, is_mine, lock, unlock, user_name

NAME = re.compile(r"^\.discreet-[0-9a-f]{16}\.unfinished$")
MADE, REPLACED = "new", "old"
# Where the file system has no locks on folders, age tells: no write takes that long.
_SURELY_OVER = 24 * 3600


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """Give an empty folder of one's own inside ``parent``; it is gone when the block ends, however it ends.

    Leftovers of runs that were killed are removed from ``parent`` on the way in.
    """
    folder = parent / f".discreet-{secrets.token_hex(8)}.unfinished"
    if NAME.match(parent.name):
        # A staging folder is held by whoever works in it: waiting for it would be waiting for oneself.
        folder.mkdir(mode=0o700)
        handle = None
    else:
        # Nobody sweeps while a folder is there and its lock is not yet taken.
        with _held_if_free(parent) as alone:
            _sweep(parent, alone=alone)
            folder.mkdir(mode=0o700)
            handle = lock(folder)
    try:
        yield folder
    finally:
        _remove(folder)
        unlock(handle)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a private folder for copies that only this run needs; those of killed runs are removed on the way in."""
    place = Path(tempfile.gettempdir()) / f"discreet-{user_name()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.is_symlink() or not is_mine(place):
        # Somebody else took the name: a folder nobody can guess, which is then only removed by this run.
        with tempfile.TemporaryDirectory(prefix="discreet-") as alone:
            yield Path(alone)
        return
    place.chmod(0o700)
    with staging(place) as folder:
        yield folder


def sweep(parent: Path) -> None:
    """Remove what killed runs left in a folder, and put back what they had moved out of the way."""
    with _held_if_free(parent) as alone:
        _sweep(parent, alone=alone)


def _sweep(parent: Path, *, alone: bool) -> None:
    with contextlib.suppress(OSError):
        with os.scandir(parent) as entries:
            found = [Path(entry.path) for entry in entries if NAME.match(entry.name)]
        for folder in found:
            if _is_leftover(folder, alone=alone):
                _put_back(folder, parent)
                _remove(folder)


def _is_leftover(folder: Path, *, alone: bool) -> bool:
    if folder.is_symlink() or not folder.is_dir() or not is_mine(folder):
        return False
    free = is_free(folder) if alone else None
    return _is_old(folder) if free is None else free


def _put_back(folder: Path, parent: Path) -> None:
    """Give the old version of a folder its name again where the new one never took it."""
    kept = folder / REPLACED
    if not kept.is_dir():
        return
    for old in kept.iterdir():
        if not (parent / old.name).exists():
            with contextlib.suppress(OSError):
                old.rename(parent / old.name)


def _remove(folder: Path) -> None:
    for _ in range(3):  # again, where something was put into it meanwhile
        if not folder.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held_if_free(folder: Path) -> Iterator[bool]:
    with contextlib.ExitStack() as stack:
        try:
            alone = stack.enter_context(held(folder))
        except BlockingIOError:
            alone = False
        yield alone


@contextlib.contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Hold a folder against other runs for a moment; False where there are no such locks.

    Raises `BlockingIOError` where somebody else does not let it go.
    """
    handle = lock(folder)
    try:
        yield handle is not None
    finally:
        unlock(handle)


def _is_old(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > _SURELY_OVER
