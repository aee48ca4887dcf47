"""Evaluations that were made, kept in a file: a fit that failed goes on without asking the sites again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError


class Journal:
    """Values of the likelihood by a digest of where it was evaluated; one line each, written as they come.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fit.jsonl"
    >>> Journal(path).note("ab", 3.5)
    >>> Journal(path).known
    {'ab': 3.5}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.known: dict[str, float] = {}
        self._about: dict[str, Any] | None = None
        if self.path.exists():
            self._read()

    def belongs_to(self, about: Mapping[str, Any]) -> None:
        """Refuse to go on with the evaluations of other data."""
        if self._about is None:
            self._about = dict(about)
            self._append({"about": self._about})
        elif self._about != dict(about):
            raise InputError(f"'{self.path.name}' holds evaluations of other data. Give another file.")

    def note(self, key: str, value: float) -> None:
        """Keep an evaluation."""
        self.known[key] = value
        self._append({"at": key, "value": value.hex()})

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(f"'{self.path.name}' cannot be written.") from error

    def _read(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"'{self.path.name}' cannot be read.") from error
        for at, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if "about" in entry:
                    self._about = entry["about"]
                else:
                    self.known[str(entry["at"])] = float.fromhex(entry["value"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if at == len(lines) - 1:
                    # A run that was killed may have left its last line unfinished.
                    continue
                raise InputError(f"'{self.path.name}' is no list of evaluations.") from error
