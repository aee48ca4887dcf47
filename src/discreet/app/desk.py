"""The desk: the journeys that are open, where uploads go, and what the person at the page prefers."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.app.guard import Door
from discreet.app.journey import ENDING, Journey
from discreet.core.errors import InputError
from discreet.core.files.locks import is_mine, is_over
from discreet.io.naming import is_address


@dataclass
class Desk:
    """All that one running page holds."""

    folder: PrivateFolder
    door: Door
    journeys: dict[int, Journey] = field(default_factory=dict)
    dark: bool | None = None
    review: Journey = field(default_factory=lambda: Journey(number=0, name="outputs"))
    outputs: dict[str, Any] = field(default_factory=dict)  # the review desk: folder, packages, checker

    def add(self, journey: Journey) -> Journey:
        """Put a journey on the desk."""
        journey.number = max(self.journeys, default=0) + 1
        self.journeys[journey.number] = journey
        journey.files_open = self.files_open
        return journey

    def files_open(self) -> list[str]:
        """Which files the page has open: no job of any journey writes over them."""
        return [one.place for one in self.journeys.values() if one.place and not is_address(one.place)]

    def begin(
        self,
        place: str,
        *,
        kind: str = "file",
        name: str = "",
        query: str = "",
        waiting: Journey | None = None,
    ) -> Journey:
        """Begin the journey of a file, a database, or one that was saved in a project file.

        ``waiting`` is a journey whose file was an upload and is to be found again: it goes on with this one.
        """
        place = place.strip()
        if not place:
            raise InputError("Name a file on this machine, or the address of a database.")
        if is_address(place):
            return self.add(Journey(name=name or "database", kind="database", place=place, query=query))
        path = Path(place).expanduser()
        if path.suffix == ENDING:
            return self.add(Journey.load(path))
        if not path.is_file():
            raise InputError(
                f"There is no file '{path.name}' in '{path.parent}'."
                if path.parent.is_dir()
                else f"There is no folder '{path.parent}'."
            )
        if waiting is not None and waiting.number in self.journeys:
            waiting.name, waiting.kind, waiting.place = name or path.name, kind, str(path.resolve())
            return waiting
        return self.add(Journey(name=name or path.name, kind=kind, place=str(path.resolve())))

    def remove(self, journey: Journey) -> None:
        """Take a journey off the desk and end its work."""
        journey.close()
        self.journeys.pop(journey.number, None)

    @property
    def busy(self) -> bool:
        """Whether any job is running."""
        return any(journey.running() for journey in self._all())

    def _all(self) -> list[Journey]:
        return [*self.journeys.values(), self.review]

    def mask(self) -> None:
        """Show no values of the data any more, on any page."""
        for journey in self._all():
            if journey.values_shown:
                journey.show_values(False, "")

    def close(self) -> None:
        """End all work and remove what was uploaded."""
        for journey in self._all():
            journey.close()
        self.folder.remove()


# A folder for uploads that only this user can open, and that is gone when the page is.
#
# It is removed at the end; a folder that a killed page has left is removed when the next one starts.


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


# What is dropped on the page is copied to the private folder: whole, or nothing of it stays.


async def kept_copy(desk: Desk, file: Any) -> Path:
    """Copy an upload to the private folder and return where it lies; a full disk is refused with a sentence."""
    place = desk.folder.place_for(file.name)
    try:
        if file.size() > shutil.disk_usage(desk.folder.path).free:
            raise InputError("There is not enough room on the disk for a copy. Point to the file instead.")
        await file.save(place)
    except (InputError, OSError) as error:
        shutil.rmtree(place.parent, ignore_errors=True)
        if isinstance(error, InputError):
            raise
        raise InputError(
            "The copy could not be written; the disk may be full. Nothing is left of it. Point to the file instead."
        ) from error
    return place
