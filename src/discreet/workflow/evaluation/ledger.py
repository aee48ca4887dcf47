"""The results of a study on disk: one JSON line a cell, appended whole, read again when the study goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.workflow.evaluation.cells import Cell, Record, print_of
from discreet.workflow.evaluation.metrics import Metric

_START = '{"cell": '


class Ledger:
    """The cells that were run, in memory and, where there is a file, on disk."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._records: dict[str, list[Record]] = {}
        if path is not None and path.exists():
            self._open(path)

    def _open(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        *lines, last = text.split("\n")
        if last:
            # A study that was killed while it wrote leaves half a line; that cell is run again.
            if not (last.startswith(_START) or _START.startswith(last)):
                raise _not_ours(path)
            with path.open("r+b") as file:
                file.truncate(len(text.encode()) - len(last.encode()))
        for line in lines:
            if not line:
                continue
            try:
                record = json.loads(line)
                self._records.setdefault(record["cell"], []).append(record)
            except (ValueError, KeyError, TypeError) as error:
                raise _not_ours(path) from error

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
        if self._path is None:
            return
        line = (json.dumps(record, allow_nan=False) + "\n").encode()
        # One write to a file that is opened for appending: a crash leaves all of it or a part that is cut off next
        # time, and two studies that share a file do not mix their lines.
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line)
            os.fsync(handle)
        finally:
            os.close(handle)

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


def _not_ours(path: Path) -> InputError:
    return InputError(
        f"The file '{path.name}' does not hold results of a study. Name another folder, or start afresh."
    )
