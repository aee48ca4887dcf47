"""What this process has put in place, so that nobody says that nothing was written when something was."""

from __future__ import annotations

_written: list[str] = []


def written() -> tuple[str, ...]:
    """Name the files, folders and tables that were put in place since this process began, in order."""
    return tuple(_written)


def note_written(name: str) -> None:
    """Note that a file, a folder or a table is in place."""
    _written.append(name)
