"""The desk: the journeys that are open, where uploads go, and what the person at the page prefers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.app.guard import Door
from discreet.app.journey import ENDING, Journey
from discreet.app.private_folder import PrivateFolder
from discreet.core.errors import InputError
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
