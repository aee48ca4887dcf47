"""The results of a study on disk: one JSON line a cell, appended whole, read again when the study goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError
from discreet.core.files.journals import append_line, lines_of
from discreet.core.files.texts import parsed_json
from discreet.workflow.evaluation.cells import Cell, Record, print_of
from discreet.workflow.evaluation.metrics import Metric

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
