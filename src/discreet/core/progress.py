"""How far is it? A progress bar for whoever is looking at a terminal, and silence for everybody else.

Who has no terminal but wants to know (a page that runs the work in another process) listens with `listening`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int | None], None]
_listeners: list[Listener] = []


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
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    if progress and _listeners:
        yield from _told(iterable, total, description or "Working", _listeners[-1])
        return
    if not (progress and _someone_is_looking()):
        yield from iterable
        return
    from rich.console import Console
    from rich.progress import track as tracked

    yield from tracked(
        iterable,
        description=description or "Working",
        total=total,
        console=Console(file=sys.stderr),
        transient=True,
    )


def tell(sentence: str) -> None:
    """Say one sentence to whoever waits: to a listener, else on stderr, which may be a terminal, a pipe or a log.

    Examples
    --------
    >>> with listening(lambda what, done, total: print(what)):
    ...     tell("This takes a moment.")
    This takes a moment.
    """
    if _listeners:
        _listeners[-1](sentence, 0, None)
    elif sys.stderr:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


@contextmanager
def listening(to: Listener) -> Iterator[None]:
    """Tell a function of every block of work that is begun or done: what is being done, how many, of how many.

    Examples
    --------
    >>> heard = []
    >>> with listening(lambda what, done, total: heard.append((what, done, total))):
    ...     _ = list(track("ab", description="Reading"))
    >>> heard
    [('Reading', 0, 2), ('Reading', 1, 2), ('Reading', 2, 2)]
    """
    _listeners.append(to)
    try:
        yield
    finally:
        _listeners.remove(to)


def _told(
    iterable: Iterable[Item], total: int | None, description: str, listener: Listener
) -> Iterator[Item]:
    listener(description, 0, total)
    for done, item in enumerate(iterable, start=1):
        yield item
        listener(description, done, total)


def _someone_is_looking() -> bool:
    return bool(sys.stderr and sys.stderr.isatty())
