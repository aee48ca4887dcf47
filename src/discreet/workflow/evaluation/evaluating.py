"""``evaluate``: generators on data sets, repeated, measured in as many processes as asked for, kept, put together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from discreet._version import __version__
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import make_folder
from discreet.core.progress import track
from discreet.workflow.evaluation.evaluation_result import Evaluation
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_cells import Cell, Ledger, Record, cells_of, run_cell, used_by

RESULTS = "results.jsonl"


def evaluate(
    study: Study | str | Path,
    *,
    out: str | Path | None = None,
    workers: int = 1,
    resume: bool = True,
    retry: bool = False,
    progress: bool = True,
    seed: int | None = None,
) -> Evaluation:
    """Which generator keeps the data usable, and which gives people away?

    Every generator of the study is fitted to the training part of every data set, once for each seed; its synthetic
    files are compared with the training part (utility), models learned from them are tested on the hold-out, and risk
    is held against what the hold-out shows by mere chance. A generator that fails, or takes too long, is a result too:
    the reason is written down and the others go on.

    Parameters
    ----------
    study
        A `Study`, or the path of a study file (TOML).
    out
        A folder for the results (made where it is not there): ``results.jsonl``, one line a cell, ``study.toml`` and,
        where the study keeps them, the synthetic files. Nothing is kept without it.
    workers
        Number of processes. The figures do not depend on it. A script that uses more than one runs this under
        ``if __name__ == "__main__":``.
    resume
        Take what is in ``out`` already. A cell counts as done when data, generator, seed and metric are the same; of a
        cell with new metrics only these are measured. False starts afresh.
    retry
        With ``resume``: run again what has failed.
    progress
        Show a progress bar on a terminal.
    seed
        Goes before the study's own seed.

    Returns
    -------
    Evaluation
        With ``table()``, ``ranks()``, ``failures``, ``plot()``, ``to_html(path)`` and ``to_dict()``.

    How to read it
    --------------
    Look at one layer at a time: global utility, fitness for purpose, the models you named, risk. There is no total
    score, for what one gains by copying records one loses in risk. The row ``holdout`` shows what a perfect generator
    could reach: real people who were not used. A generator that beats it in utility has copied.

    When not to trust it
    --------------------
    Differences between generators that are not large beside their standard deviations over seeds are chance. Defaults
    are compared with defaults: a tuned generator may do better. Files that other tools made count as if they had been
    made from the training part; nobody can check that here.

    Examples
    --------
    >>> from discreet.synth import Sequential
    >>> from discreet.workflow.evaluation import DataSet
    >>> study = Study(
    ...     data=[DataSet("adult", rows=400, columns=["age", "sex", "income"])],
    ...     generators={"margins": Sequential(method="sample")},
    ...     metrics=["margins"],
    ... )
    >>> found = evaluate(study)
    >>> found.table()["generator"].unique(maintain_order=True).to_list()
    ['holdout', 'margins']
    """
    chosen = Study.load(study) if isinstance(study, str | Path) else study
    if not isinstance(chosen, Study):
        raise ParameterError(f"study must be a Study or the path of one, not {type(study).__name__}.")
    if seed is not None:
        chosen = replace(chosen, seed=seed)
    folder = None if out is None else Path(out)
    if chosen.keep_files and folder is None:
        raise ParameterError("The study keeps its synthetic files: say where with out.")
    keep = folder / "synthetic" if folder is not None and chosen.keep_files else None
    # The data sets are read first, so that a study of files that are not there leaves no folder behind.
    cells = cells_of(chosen, keep=keep)
    if folder is not None:
        make_folder(folder)
        chosen.save(folder / "study.toml", overwrite=True)
        if not resume:
            (folder / RESULTS).unlink(missing_ok=True)
    ledger = Ledger(None if folder is None else folder / RESULTS)
    todo = []
    for cell in cells:
        metrics = ledger.open_metrics(cell, retry=retry)
        if metrics is not None:
            todo.append(replace(cell, metrics=metrics))
    limits = Limits(chosen.time_limit, chosen.memory_limit)
    for record in track(run(todo, workers, limits), len(todo), "Evaluating", progress=progress):
        ledger.add(record)
    results = [ledger.result(cell) for cell in cells]
    return Evaluation(chosen, tuple(result for result in results if result is not None))


# Run cells one after the other or in several processes, each with one thread; a process that dies loses one cell.
#
# Under limits every cell has a process of its own: what one generator leaves in memory (a library of networks takes
# more than a gigabyte) would otherwise count against the next, or hide what the next takes.


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
