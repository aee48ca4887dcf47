"""One cell of a study: a generator, fitted to a data set with one seed, what is measured on it, and how it is kept."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from discreet._version import __version__
from discreet.core.errors import DiscreetError, DiscreetWarning, InputError
from discreet.core.files.journals import append_line, lines_of
from discreet.core.files.untrusted import parsed_json
from discreet.core.randomness import generator
from discreet.core.values import jsonable
from discreet.microdata import Microdata
from discreet.workflow.evaluation.linked_releases import rows_of
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_data import DataSet, Parts, Split, parts_of
from discreet.workflow.evaluation.study_generators import Generator, Made, Request
from discreet.workflow.evaluation.study_metrics import Metric

Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One cell and what is still to be measured on it."""

    data: DataSet
    maker: Generator
    seed: int
    metrics: tuple[Metric, ...]
    split: Split
    base: int
    copies: int
    rows: int | None
    folder: Path
    keep: Path | None
    key: str

    @property
    def name(self) -> tuple[str, str, int]:
        """Data set, generator and seed."""
        return self.data.name, self.maker.name, self.seed

    @property
    def stream(self) -> int:
        """The seed of this repetition; all generators share it."""
        return int(generator(self.base, "repetition", self.data.name, str(self.seed)).integers(2**62))


def cells_of(study: Study, *, keep: Path | None = None) -> list[Cell]:
    """List the cells of a study, each with the print that tells whether it was run before."""
    contents = {data.name: _content(data, study.folder) for data in study.data if isinstance(data, DataSet)}
    found = []
    for at, by, seed in study.cells():
        data, maker = study.named("data", at), study.named("makers", by)
        described = {
            "data": contents[at],
            "maker": maker.describe(at, seed, study.copies, study.folder),
            "seed": [study.seed, seed],
            "split": [study.holdout, study.split],
            "copies": study.copies,
            "rows": study.rows,
        }
        metrics = tuple(metric for metric in study.asked if not metric.data or at in metric.data)
        found.append(
            Cell(
                data, maker, seed, metrics, study.division, study.seed, study.copies, study.rows, study.folder,
                keep, print_of(described),
            )
        )  # fmt: skip
    return found


def print_of(described: Mapping[str, Any]) -> str:
    """Tell descriptions apart by their content."""
    text = json.dumps(jsonable(described), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def run_cell(cell: Cell) -> Record:
    """Fit, sample and measure; whatever goes wrong is written down with the reason."""
    began = time.perf_counter()
    at, by, seed = cell.name
    record: Record = {
        "cell": cell.key,
        "data": at,
        "generator": by,
        "seed": seed,
        "failed": None,
        "notes": [],
        "measures": {},
        "version": __version__,
    }
    with _noted(record["notes"]):
        memory = PeakMemory()
        try:
            parts = parts_of(cell.data, cell.split, seed, cell.folder)
            with memory:
                made = _made(cell, parts)
        except DiscreetError as error:
            record["failed"] = str(error)
        except MemoryError:
            record["failed"] = "it ran out of memory"
        except Exception as error:
            # One generator must not take the study down; the text of a foreign error may hold data values.
            record["failed"] = f"it broke off with a {type(error).__name__}; run it alone to see where"
        else:
            _described(record, parts, made)
            record["memory_mb"] = memory.megabytes
            is_holdout = cell.maker.reference == "holdout"
            for metric in cell.metrics:
                answer = metric.answer(parts, made.copies, cell.stream, is_holdout=is_holdout)
                record["measures"][print_of(metric.describe())] = {"metric": metric.name, **answer}
    record["seconds"] = time.perf_counter() - began
    record["notes"] = list(dict.fromkeys(record["notes"]))
    return record


def _made(cell: Cell, parts: Parts) -> Made:
    request = Request(cell.data.name, cell.seed, cell.stream, cell.copies, cell.rows)
    made = cell.maker.make(parts, request, cell.folder, cell.data.reading)
    if cell.keep is not None and not cell.maker.reference and not cell.maker.files:
        _keep(made, cell)
    return made


def _described(record: Record, parts: Parts, made: Made) -> None:
    rows = [rows_of(part) for part in (parts.training, made.copies[0])]
    record["rows"] = {
        "training": rows[0],
        "holdout": None if parts.holdout is None else rows_of(parts.holdout),
        "released": rows[1],
    }
    record["fit_seconds"], record["sample_seconds"] = made.fit_seconds, made.sample_seconds
    record["guarantee"], record["why_none"] = made.guarantee, made.why_none
    record["notes"] += made.notes


def _keep(made: Made, cell: Cell) -> None:
    from discreet.core.files.atomic import make_folder
    from discreet.io import write_together

    assert cell.keep is not None
    make_folder(cell.keep)
    names = ["-".join(map(str, (*cell.name, number))) for number in range(1, len(made.copies) + 1)]
    if not isinstance(made.copies[0], Microdata):
        for copy, name in zip(made.copies, names, strict=True):
            copy.save(cell.keep / name, overwrite=True)
        return
    places = [cell.keep / f"{name}.parquet" for name in names]
    write_together(made.copies, places, overwrite=True)


def _content(data: DataSet, folder: Path) -> dict[str, Any]:
    """Say what a data set depends on: the bytes of its files, how they are read, and the roles that count."""
    from discreet.io.naming import checksum

    if data.is_linked:
        linked = data.read_linked(folder)
        files = {
            name: checksum(folder / data.source_folder / str(t.file))
            for name, t in linked.schema.tables.items()
        }
        return {"name": data.name, "schema": linked.schema.to_dict(), "files": files, "target": data.target}
    whole = data.read(folder)
    held = None if data.holdout is None else folder / data.holdout
    return {
        **{
            name: value for name, value in data.to_dict().items() if name not in ("name", "source", "holdout")
        },
        "name": data.name,
        "checksum": whole.metadata.checksum,
        "columns": list(data.columns or whole.columns),
        "roles": whole.roles.to_dict(),
        "holdout": None if held is None else checksum(held) if held.is_file() else str(data.holdout),
    }


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    """Write down our own warnings, and keep those of other libraries from the reader."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    notes += [str(said.message) for said in seen if issubclass(said.category, DiscreetWarning)]


# The results of a study on disk: one JSON line a cell, appended whole, read again when the study goes on.


_START = '{"cell": '
_WHAT = "results of a study"


class Ledger:
    """The cells that were run, in memory and, where there is a file, on disk."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._records: dict[str, list[Record]] = {}
        if path is not None and path.exists():
            self._open(path)

    def _open(self, path: Path) -> None:
        # A study that was killed while it wrote leaves half a line; that cell is run again.
        for line in lines_of(path, begins=_START, what=_WHAT):
            try:
                record = parsed_json(line)
                self._records.setdefault(record["cell"], []).append(record)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"The file '{path.name}' does not hold {_WHAT}. Name another folder, or start afresh."
                ) from error

    def open_metrics(self, cell: Cell, *, retry: bool) -> tuple[Metric, ...] | None:
        """Return what is still to be measured on a cell; None when it is done, or failed and is not to be retried."""
        runs = self._records.get(cell.key, [])
        if not runs:
            return cell.metrics
        if runs[-1]["failed"]:
            return cell.metrics if retry else None
        known = self._measures(runs)
        todo = tuple(
            metric
            for metric in cell.metrics
            if (answer := known.get(print_of(metric.describe()))) is None or (retry and answer["failed"])
        )
        return todo or None

    def add(self, record: Record) -> None:
        """Note a cell; on disk its line is written in one piece."""
        self._records.setdefault(record["cell"], []).append(record)
        if self._path is not None:
            append_line(self._path, json.dumps(record, allow_nan=False))

    def result(self, cell: Cell) -> Record | None:
        """Return what is known about a cell, with the answers of the study's own metrics by their names."""
        runs = self._records.get(cell.key)
        if not runs:
            return None
        latest = runs[-1]
        if latest["failed"]:
            return {**latest, "data": cell.data.name, "generator": cell.maker.name, "measures": {}}
        known = self._measures(runs)
        answers: dict[str, Any] = {}
        for metric in cell.metrics:
            answer = known.get(print_of(metric.describe()))
            if answer is not None:
                answers[metric.name] = answer
        first = next(run for run in runs if not run["failed"])
        return {
            **first,
            "data": cell.data.name,
            "generator": cell.maker.name,
            "notes": list(dict.fromkeys(note for run in runs for note in run["notes"])),
            "measures": answers,
        }

    @staticmethod
    def _measures(runs: list[Record]) -> dict[str, Any]:
        return {key: answer for run in runs if not run["failed"] for key, answer in run["measures"].items()}


# How much memory a piece of work takes at most, where the operating system tells.


_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class PeakMemory:
    """Watch the memory of this process while a block runs.

    ``megabytes`` is the highest use during the block above what was in use before, or None where the system keeps no
    such figure that can be set back (it does on Linux).

    Examples
    --------
    >>> with PeakMemory() as watched:
    ...     _ = bytearray(1_000_000)
    >>> watched.megabytes is None or watched.megabytes >= 0
    True
    """

    def __init__(self) -> None:
        self.megabytes: float | None = None
        self._before: float | None = None

    def __enter__(self) -> PeakMemory:
        try:
            # 5 sets the high-water mark of this process back to what it uses now.
            _RESET.write_text("5")
            self._before = _status("VmRSS")
        except OSError:
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            self.megabytes = max(_status("VmHWM") - self._before, 0.0)


def used_by(process: int | None) -> float | None:
    """Return the megabytes that another process uses now; None where that cannot be seen."""
    try:
        return _read(Path(f"/proc/{process}/status"), "VmRSS")
    except (OSError, StopIteration):
        return None


def _status(name: str) -> float:
    return _read(_STATUS, name)


def _read(file: Path, name: str) -> float:
    lines = file.read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024
