"""How far is it? A progress bar for whoever is looking at a terminal, and silence for everybody else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def track(
    iterable: Iterable[Item], total: int | None = None, description: str = "", *, progress: bool = True
) -> Iterator[Item]:
    """Hand over the items one by one and show how many are done, on stderr and only when it is a terminal.

    Parameters
    ----------
    iterable
        The blocks of work.
    total
        How many there are; taken from the iterable when it knows its length.
    description
        What is being done, e.g. ``"Nearest neighbors"``.
    progress
        False keeps it silent on a terminal too.

    Examples
    --------
    >>> sum(track([1, 2, 3], description="Adding"))
    6
    """
    if not (progress and _someone_is_looking()):
        yield from iterable
        return
    from rich.console import Console
    from rich.progress import track as tracked

    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    yield from tracked(
        iterable,
        description=description or "Working",
        total=total,
        console=Console(file=sys.stderr),
        transient=True,
    )


def _someone_is_looking() -> bool:
    return bool(sys.stderr and sys.stderr.isatty())
