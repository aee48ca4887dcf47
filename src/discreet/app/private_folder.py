"""A folder for uploads that only this user can open, and that is gone when the page is.

It is removed at the end; a folder that a killed page has left is removed when the next one starts.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from pathlib import Path

from discreet.core.errors import InputError
from discreet.core.files.locks import is_mine, is_over

_PREFIX = "discreet-page-"
_OWNER = "owner"
_LONGEST_NAME = 120


class PrivateFolder:
    """A folder of one running page."""

    def __init__(self, root: Path | None = None) -> None:
        home = root or Path(tempfile.gettempdir())
        swept(home)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))  # readable by this user only
        except OSError as error:
            raise InputError(
                f"No private folder for uploads can be made in '{home}': {error.strerror}."
            ) from error
        (self.path / _OWNER).write_text(str(os.getpid()), encoding="ascii")
        self._pid = os.getpid()
        atexit.register(self.remove)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if os.getpid() == self._pid:
            shutil.rmtree(self.path, ignore_errors=True)

    def place_for(self, name: str) -> Path:
        """Return a new place for an upload; the name is kept as far as it is one."""
        folder = Path(tempfile.mkdtemp(dir=self.path))
        return folder / plain_name(name)

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def plain_name(name: str) -> str:
    """Reduce what a browser calls a file to a name without a path, at most as long as a system takes it.

    Examples
    --------
    >>> plain_name("../../etc/passwd"), plain_name("a b.csv"), plain_name(""), plain_name("..")
    ('passwd', 'a b.csv', 'upload', 'upload')
    """
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(sign for sign in last if sign.isprintable() and sign not in '<>:"|?*').strip(" .")
    stem, dot, ending = kept.rpartition(".")
    if len(kept) > _LONGEST_NAME and dot:
        kept = (
            f"{stem[: _LONGEST_NAME - len(ending) - 1]}.{ending}"
            if len(ending) < 20
            else kept[:_LONGEST_NAME]
        )
    return kept[:_LONGEST_NAME] or "upload"


def swept(root: Path) -> list[Path]:
    """Remove the folders of pages that run no more, and return which."""
    gone = []
    for folder in root.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or not is_mine(folder):
                continue
            owner = int((folder / _OWNER).read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        if is_over(owner):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
    return gone
