"""Work in the background: jobs in processes of their own, with progress, time left and cancel.

The page never computes. It hands a job to a lane, which is one process that holds the file; a job that crashes or is
cancelled takes its process along and nothing else, and the next job gets a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from discreet.core.errors import DiscreetError

State = Literal["waiting", "running", "done", "refused", "failed", "cancelled"]
_LONGEST_ANSWER = 256 * 1024 * 1024
MOST_WORKERS = 4
"""How many processes the page keeps at most: each holds the libraries and a file."""
_LOOK = 0.05  # seconds between two looks for a process that has become free


@dataclass
class Job:
    """One piece of work: what it is, how far it is, how it ended."""

    task: str
    title: str
    given: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()  # files of other journeys, which it must leave alone
    state: State = "waiting"
    began: float | None = None
    ended: float | None = None
    what: str = ""
    done: int = 0
    total: int | None = None
    sentence: str = ""
    notes: tuple[str, ...] = ()
    lane: Lane | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""
        return self.state in ("waiting", "running")

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody has ended it; that may happen while it is waited for."""
        return self.state == "cancelled"

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began

    @property
    def share(self) -> float | None:
        """Which part is done; None while nobody knows."""
        return self.done / self.total if self.total else None

    @property
    def time_left(self) -> str:
        """How long it will take, in words, from what it has taken so far."""
        if not self.is_open:
            return ""
        if self.state == "waiting":
            return "waiting for the job before it"
        if not self.share:
            return f"running for {in_words(self.seconds)}"
        return f"about {in_words(self.seconds * (1 - self.share) / self.share)} left"

    def hear(self, what: str, done: int, total: int | None) -> None:
        """Note how far it is. The first thing counted is the whole; what is counted inside it is only named."""
        if self.total is None or what == self.what:
            self.what, self.done, self.total = what, done, total

    def cancel(self) -> None:
        """End it now; what was there before is as it was."""
        if self.is_open:
            self.state = "cancelled"
            self.ended = time.monotonic()
            if self.lane is not None:
                self.lane.drop(self)


class Lane:
    """One process that does one job after the other and holds the file between them."""

    # Those that have a process, or are about to start one; who was used last stands last.
    living: ClassVar[list[Lane]] = []

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._current: Job | None = None
        self._turn = asyncio.Lock()
        self._number = 0
        self._holds = True

    async def do(self, job: Job) -> Any:
        """Do a job when its turn comes and return what it found; raise `RefusedError` where it found no answer."""
        job.lane = self
        async with self._turn:
            if job.is_cancelled:
                raise RefusedError("Cancelled.")
            job.state, job.began = "running", time.monotonic()
            self._current = job
            try:
                return await self._answer(job)
            finally:
                self._current = None
                job.ended = time.monotonic()
                if not self._holds:
                    self.close()

    async def _answer(self, job: Job) -> Any:
        process = await self._started()
        if job.is_cancelled:
            self._holds = False
            raise RefusedError("Cancelled.")
        assert process.stdin is not None
        assert process.stdout is not None
        self._number, self._holds = self._number + 1, True
        request = {"id": self._number, "task": job.task, "given": job.given, "reads": job.reads}
        with contextlib.suppress(ConnectionError):
            process.stdin.write((json.dumps(request) + "\n").encode())
            await process.stdin.drain()
        while line := await process.stdout.readline():
            said = json.loads(line)
            if job.is_cancelled:  # the answer was on its way already; nobody wants it any more
                raise RefusedError("Cancelled.")
            if "what" in said:
                job.hear(said["what"], said["done"], said["total"])
            elif "result" in said:
                job.state, job.notes = "done", tuple(said["notes"])
                return said["result"]
            elif "refused" in said:
                # A process that refused the file it was started for holds nothing that anybody will ask for again.
                self._holds = bool(said.get("holds", True))
                job.state, job.sentence = "refused", said["refused"]
                raise RefusedError(said["refused"], said.get("field", ""))
            else:
                self._holds = bool(said.get("holds", True))
                job.state = "failed"
                job.sentence = (
                    f"Something went wrong inside discreet ({said['failed']}). What was there before is as it was. "
                    "Please report it."
                )
                raise RefusedError(job.sentence)
        self._holds = False
        if job.is_cancelled:
            raise RefusedError("Cancelled.")
        job.state = "failed"
        job.sentence = (
            "The job ended before it was done; it may have run out of memory. The page and your settings are as they "
            "were: try again, with fewer columns if it happens twice."
        )
        raise RefusedError(job.sentence)

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            await self._room()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "discreet.app.worker",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # A trace may show data, and the terminal of the page is no place for it.
                stderr=None if os.environ.get("DISCREET_TRACEBACK") else subprocess.DEVNULL,
                limit=_LONGEST_ANSWER,
                start_new_session=True,
            )
            if self not in Lane.living:  # cancelled while it was started
                Lane.living.append(self)
        elif self in Lane.living:
            Lane.living.remove(self)
            Lane.living.append(self)
        return self._process

    async def _room(self) -> None:
        """Wait until there is room for one more process; the one that nobody has used for longest makes room."""
        if self in Lane.living:
            Lane.living.remove(self)
        while len(Lane.living) >= MOST_WORKERS and not (self._current and self._current.is_cancelled):
            idle = next((lane for lane in Lane.living if lane._current is None), None)
            if idle is None:
                await asyncio.sleep(_LOOK)
            else:
                idle.close()
        Lane.living.append(self)

    def drop(self, job: Job) -> None:
        """End the process if it is busy with this job."""
        if self._current is job:
            self.close()

    def close(self) -> None:
        """End the process, and those it has started."""
        process, self._process = self._process, None
        if self in Lane.living:
            Lane.living.remove(self)
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


def in_words(seconds: float) -> str:
    """Say a time as one would say it.

    Examples
    --------
    >>> in_words(0.4), in_words(42), in_words(130), in_words(7300)
    ('a second', '42 seconds', '2 minutes', '2 hours')
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{round(seconds)} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{round(seconds / 3600)} hours"


# Refusals: the work says which field of a form one belongs to, and the page puts the sentence there


class RefusedError(Exception):
    """What the library refused, or what went wrong, said to the person at the page.

    ``field`` names the field it belongs to; empty where it belongs to the whole action.
    """

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field


@contextmanager
def caused_by(field: str) -> Iterator[None]:
    """Mark what the library refuses in here as caused by one field of the page; the innermost mark counts.

    Examples
    --------
    >>> from discreet.core.errors import ParameterError
    >>> try:
    ...     with caused_by("policy"):
    ...         raise ParameterError("There is no such policy.")
    ... except ParameterError as error:
    ...     print(field_of(error))
    policy
    """
    try:
        yield
    except DiscreetError as error:
        if not field_of(error):
            error.field = field  # type: ignore[attr-defined]
        raise


def field_of(error: BaseException) -> str:
    """Return the field that an error was caused by; empty where none was named."""
    return str(getattr(error, "field", ""))
