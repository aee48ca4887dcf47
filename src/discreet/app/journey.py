"""The journey of one file: all that the page knows about it, as plain state, and the project file that keeps it.

The data are not in it, and neither are seeds: whoever has a seed can undo noise.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.app.jobs import Job, Lane, RefusedError
from discreet.core.errors import InputError
from discreet.core.files.untrusted import parsed_json
from discreet.core.randomness import fresh_seed
from discreet.core.roles import ROLES
from discreet.core.value_gate import holds_values
from discreet.io.sidecar import save_text

ENDING = ".discreet"
_FORM = 1
_LARGEST_PROJECT = 20_000_000
MANY = ("keys", "sensitive", "identifiers", "strata", "location")
_KEPT = ("name", "kind", "place", "query", "reading", "checksum", "columns", "roles", "policy", "scenarios", "steps",
         "signed", "folder", "ending", "activity")  # fmt: skip


@dataclass
class Journey:
    """One file on its way from raw to released."""

    number: int = 1
    name: str = ""
    kind: str = "file"  # file, upload, example or database
    place: str = ""
    query: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    checksum: str | None = None
    found: dict[str, Any] = field(default_factory=dict)  # what reading the file told
    columns: list[dict[str, Any]] = field(
        default_factory=list
    )  # name, type, counts, proposed role and reason
    roles: dict[str, str] = field(default_factory=dict)  # column -> role; columns without a role are left out
    policy: str = "scientific-use-file"
    scenarios: dict[str, list[str]] = field(default_factory=dict)
    live: dict[str, Any] = field(default_factory=dict)
    assessment: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    undone: list[dict[str, Any]] = field(default_factory=list)
    effects: list[dict[str, Any]] = field(default_factory=list)
    preview: dict[str, Any] = field(default_factory=dict)
    suggestion: dict[str, Any] = field(default_factory=dict)
    comparison: dict[str, Any] = field(default_factory=dict)
    folder: str = ""
    ending: str = ""
    signed: dict[str, str] = field(default_factory=dict)
    release: dict[str, Any] = field(default_factory=dict)
    look: dict[str, Any] = field(default_factory=dict)  # findings before a synthesis
    copies: dict[str, Any] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    tabulated: dict[str, Any] = field(default_factory=dict)  # what was last asked for on the page Tables
    table_signed: dict[str, str] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    activity: list[dict[str, str]] = field(default_factory=list)
    values_shown: bool = False
    project: str = ""
    note: str = ""
    revision: int = 0
    refusals: dict[str, dict[str, str]] = field(default_factory=dict)  # task -> field -> sentence
    jobs: list[Job] = field(default_factory=list)
    seed: int = field(default_factory=fresh_seed, repr=False)
    files_open: Callable[[], list[str]] = field(default=list, repr=False)
    lanes: dict[str, Lane] = field(default_factory=dict, repr=False)
    _following: set[asyncio.Task[None]] = field(default_factory=set, repr=False)

    @property
    def source(self) -> dict[str, Any]:
        """The file as a worker reads it."""
        # A process that was ended and started again must see the same file as the one before it.
        stamp = self.found.get("stamp")
        return {"place": self.place, "query": self.query, "reading": dict(self.reading), "stamp": stamp}

    @property
    def is_read(self) -> bool:
        """Whether the file was read in this sitting."""
        return bool(self.found)

    def named_roles(self) -> dict[str, Any]:
        """Return the roles as `discreet.Microdata` takes them."""
        named: dict[str, Any] = {}
        order = [column["column"] for column in self.columns]
        for role in ROLES:
            held = [column for column in order if self.roles.get(column) == role]
            if held:
                named[role] = held if role in MANY else held[0]
        return named

    def holding(self, role: str) -> list[str]:
        """Return the columns in a role, in the order of the file."""
        return [row["column"] for row in self.columns if self.roles.get(row["column"]) == role]

    def changed(self) -> None:
        """Let every page that shows the journey know that something is different."""
        self.revision += 1

    def log(self, what: str) -> None:
        """Note what was done, for whoever signs."""
        self.activity.append({"time": datetime.now(UTC).isoformat(timespec="seconds"), "what": what})

    def show_values(self, on: bool, where: str) -> None:
        """Show or mask values of the data; asking for them is noted."""
        if on and not self.values_shown:
            self.log(f"Asked to see values of the data, on the page {where}.")
        self.values_shown = on
        self.preview = {}
        if not on:  # what was found with values holds them: it is found again without
            for held in ("assessment", "comparison", "table"):
                if getattr(self, held).get("show_values"):
                    setattr(self, held, {})
        self.changed()

    # Work

    def work(
        self, task: str, title: str, then: Callable[[Any], None], *, lane: str = "long", **given: Any
    ) -> Job:
        """Begin a job on the file as it is read, with the roles as they are set."""
        return self.start(task, title, then, lane=lane, source=self.source, roles=self.named_roles(), **given)

    def start(
        self,
        task: str,
        title: str,
        then: Callable[[Any], None],
        *,
        lane: str = "long",
        **given: Any,
    ) -> Job:
        """Begin a job; when it is done its result is handed on, whether or not anybody looks at the page."""
        self.refusals.pop(task, None)
        for old in self.jobs:
            if old.task == task and old.is_open:
                old.cancel()
        job = Job(task, title, given, reads=tuple(self.files_open()))
        self.jobs = [*[old for old in self.jobs if old.is_open], job]
        self.changed()
        following = asyncio.get_running_loop().create_task(self._follow(job, lane, then))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return job

    async def _follow(self, job: Job, lane: str, then: Callable[[Any], None]) -> None:
        try:
            result = await self.lanes.setdefault(lane, Lane()).do(job)
            if job.state != "cancelled":
                then(result)
        except RefusedError as refusal:
            if job.state != "cancelled":
                self.refusals.setdefault(job.task, {})[refusal.field] = refusal.sentence
        finally:
            self.changed()

    def cancel(self, job: Job) -> None:
        """End a job; what was there before is as it was."""
        job.cancel()
        self.log(f"Cancelled: {job.title}.")
        self.changed()

    def running(self, task: str | None = None) -> Job | None:
        """Return the job that is open, of one task or of any."""
        return next((job for job in self.jobs if job.is_open and task in (None, job.task)), None)

    def refused(self, task: str, field: str = "") -> str:
        """Return what was refused about a field; the whole action without one."""
        return self.refusals.get(task, {}).get(field, "")

    def close(self) -> None:
        """End all that runs for this journey."""
        for job in self.jobs:
            job.cancel()
        for lane in self.lanes.values():
            lane.close()

    # Project file

    def to_dict(self) -> dict[str, Any]:
        """Return the journey without the data, ready for JSON."""
        kept = {name: getattr(self, name) for name in _KEPT}
        if self.kind == "upload":
            kept["place"] = ""  # the upload is gone with the page; the file is asked for again
        document = {"discreet": _FORM, **kept}
        if holds_values({"step": self.steps}):
            document["note"] = "This file holds values of the data: keep it as the data are kept."
        return document

    def save(self, path: str | Path) -> Path:
        """Write the project file; an older one there is replaced."""
        place = Path(path)
        if place.suffix != ENDING:
            place = place.with_name(place.name + ENDING)
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        written = save_text(text + "\n", place, overwrite=True, private=True)
        self.project = str(written)
        return written

    @classmethod
    def load(cls, path: str | Path, number: int = 1) -> Journey:
        """Open a project file; the data are read again from where they lie."""
        place = Path(path)
        try:
            if place.stat().st_size > _LARGEST_PROJECT:
                raise InputError(f"'{place.name}' is too large for a project file.")
            text = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The project file '{place.name}' cannot be read.") from error
        journey = cls.from_text(text, place.name, number)
        journey.project = str(place)
        return journey

    @classmethod
    def from_text(cls, text: str, name: str, number: int = 1) -> Journey:
        """Read the text of a project file; whatever is not of its form is refused."""
        refusal = InputError(f"'{name}' is no project file of discreet. Open the data file itself.")
        try:
            document = parsed_json(text)
        except ValueError as error:
            raise refusal from error
        if not isinstance(document, Mapping) or document.get("discreet") != _FORM:
            raise refusal
        journey = cls(number=number)
        for entry in _KEPT:
            if entry in document:
                if not isinstance(
                    document[entry], type(getattr(journey, entry)) if entry != "checksum" else object
                ):
                    raise refusal
                setattr(journey, entry, document[entry])
        named = all(isinstance(row, dict) and isinstance(row.get("column"), str) for row in journey.columns)
        roles = all(role in ROLES for role in journey.roles.values() if isinstance(role, str))
        if not named or not roles or not all(isinstance(step, dict) for step in journey.steps):
            raise refusal
        return journey

    def default_folder(self) -> str:
        """Propose where the release goes: beside the file, or where the page was started."""
        stem = Path(self.name or "release").name.split(".")[0]
        home = Path(self.place).parent if self.kind == "file" and self.place else Path.cwd()
        return str(home / f"{stem}-release")
