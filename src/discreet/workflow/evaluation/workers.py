"""Run cells one after the other or in several processes, each with one thread; a process that dies loses one cell.

Under limits every cell has a process of its own: what one generator leaves in memory (a library of networks takes more
than a gigabyte) would otherwise count against the next, or hide what the next takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any

from discreet._version import __version__
from discreet.core.errors import InputError, ParameterError
from discreet.workflow.evaluation.study_cells import Cell, Record, run_cell, used_by

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_LOOK_EVERY = 0.2
_READY = "ready"


@dataclass(frozen=True)
class Limits:
    """What a cell may take: seconds and megabytes; None is no limit."""

    seconds: float | None = None
    megabytes: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is any limit."""
        return self.seconds is not None or self.megabytes is not None


def run(cells: Sequence[Cell], workers: int, limits: Limits) -> Iterator[Record]:
    """Run the cells and hand over their records as they come.

    Without limits and with one worker this process does the work; otherwise others do, so that one that takes too
    much can be ended; with limits each takes one cell.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ParameterError("workers must be a whole number of 1 or more.")
    if limits.megabytes is not None and used_by(os.getpid()) is None:
        raise ParameterError("memory_limit needs a system that tells how much memory a process uses (Linux).")
    if not limits.is_set and (workers == 1 or len(cells) < 2):
        with _one_thread():
            for cell in cells:
                yield run_cell(cell)
        return
    yield from _in_processes(cells, min(workers, len(cells)), limits)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep numerical libraries to one thread, so that sums are added up in the same order as in workers."""
    import numba
    import sklearn.ensemble  # noqa: F401 - only libraries that are there already can be limited
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        numba.set_num_threads(before)


class _Worker:
    """A process that runs the cells it is handed, one at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()
        self.cell: Cell | None = None
        self.began = 0.0
        self.is_ready = False

    def hand(self, cell: Cell) -> None:
        self.cell, self.began = cell, time.monotonic()
        self.line.send(cell)

    def exceeds(self, limits: Limits) -> str | None:
        """Say which limit the cell has passed, if any; the start of the process does not count."""
        if not self.is_ready:
            self.began = time.monotonic()
            return None
        if limits.seconds is not None and time.monotonic() - self.began > limits.seconds:
            return f"it took longer than {limits.seconds:g} seconds"
        used = None if limits.megabytes is None else used_by(self.process.pid)
        if limits.megabytes is not None and used is not None and used > limits.megabytes:
            return f"it used more than {limits.megabytes:g} MB of memory"
        return None

    def end(self) -> None:
        self.line.close()
        self.process.join(timeout=_LOOK_EVERY)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(line: Any) -> None:
    """Be a worker: say that you are there, then run what you are handed until nobody hands any more."""
    line.send(_READY)
    while True:
        try:
            cell = line.recv()
        except EOFError:
            return
        found = run_cell(cell)
        try:
            line.send(found)
        except BrokenPipeError:  # The study was killed meanwhile; the next one runs the cell again.
            return


def _in_processes(cells: Sequence[Cell], count: int, limits: Limits) -> Iterator[Record]:
    waiting = list(reversed(cells))
    crew: list[_Worker] = []
    try:
        while waiting or any(worker.cell for worker in crew):
            while waiting and len(crew) < count:
                crew.append(_Worker())
                crew[-1].hand(waiting.pop())
            for line in connection.wait([worker.line for worker in crew], timeout=_LOOK_EVERY):
                worker = next(one for one in crew if one.line is line)
                record = _heard(worker)
                if record is None:
                    continue
                yield record
                worker.cell = None
                goes_on = worker.process.is_alive() and not limits.is_set and not record.get("ended")
                if goes_on and waiting:
                    worker.hand(waiting.pop())
                else:
                    crew.remove(worker)
                    worker.end()
            for worker in list(crew):
                reason = worker.exceeds(limits) if worker.cell else None
                if reason and worker.cell and not worker.line.poll():
                    worker.process.kill()
                    yield _lost(worker.cell, reason)
                    worker.cell = None
                    crew.remove(worker)
                    worker.end()
    finally:
        for worker in crew:
            if worker.cell is not None:
                worker.process.kill()
            worker.end()


def _heard(worker: _Worker) -> Record | None:
    """Take what a worker says; None when it only says that it is there."""
    try:
        said = worker.line.recv()
    except (EOFError, ConnectionError):
        worker.process.join(timeout=1)
        if not worker.is_ready:
            raise InputError(
                "A worker process could not be started. In a script, put the call under the line "
                "if __name__ == '__main__':, or use workers=1."
            ) from None
        assert worker.cell is not None
        code = worker.process.exitcode
        return _lost(
            worker.cell, f"its process ended before its time (code {code}); it may have run out of memory"
        )
    if said == _READY:
        worker.is_ready = True
        worker.began = time.monotonic()
        return None
    record: Record = said
    return record


def _lost(cell: Cell, reason: str) -> Record:
    at, by, seed = cell.name
    return {
        "cell": cell.key,
        "data": at,
        "generator": by,
        "seed": seed,
        "failed": reason,
        "notes": [],
        "measures": {},
        "version": __version__,
        "seconds": None,
        "ended": True,
    }
