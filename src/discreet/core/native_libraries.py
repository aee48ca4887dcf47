"""How are compiled libraries kept in check? Linear algebra on one thread, and no traces that may quote data.

A sum that is spread over threads is added up in another order for every number of threads, and differs in its last bits
from machine to machine. Treatments and generators therefore keep the linear algebra below them to one thread; what they
spread over cores themselves (columns, trees, blocks of records) is cut in the same way however many there are.

An engine written in Rust prints a trace to the error stream of the process before Python hears of it. Whoever turns
such an end into a plain refusal (`discreet.core.errors.is_panic`) does so inside `quiet_panics`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import IO, TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread within the block.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     print(int((np.eye(2) @ np.eye(2)).sum()))
    2
    """
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(_: int) -> ThreadpoolController:
    """Find the libraries of linear algebra, which takes milliseconds, and anew only after a module was imported.

    A library comes into a program with a module that needs it, so that the number of modules says whether there may be
    another.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that runs within `one_thread`."""

    @wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread():
            return function(*args, **kwargs)

    return within


def in_threads(function: Callable[[T], R], jobs: Iterable[T]) -> Iterator[R]:
    """Do jobs side by side, one core each; linear algebra that also spreads out would only get in their way.

    Examples
    --------
    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    with one_thread(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(function, jobs)


# Traces of an engine that gives up


_ERRORS = 2


class _HeldBack:
    """The error stream while somebody works quietly; several threads may, and the last one gives it back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.kept: int | None = None
        self.held: IO[bytes] | None = None

    def take(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside > 1:
                return
            # Without an error stream, or room for a file, nothing is held back.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.flush()
                self.held = tempfile.TemporaryFile()  # noqa: SIM115  (closed when it is given back)
                self.kept = os.dup(_ERRORS)
                os.dup2(self.held.fileno(), _ERRORS)

    def give_back(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside:
                return
            held, kept, self.held, self.kept = self.held, self.kept, None, None
            if held is None or kept is None:
                return
            os.dup2(kept, _ERRORS)
            os.close(kept)
            with held:
                held.seek(0)
                said = held.read()
            if said and b"panicked at" not in said:
                os.write(_ERRORS, said)


_stream = _HeldBack()


@contextlib.contextmanager
def quiet_panics() -> Iterator[None]:
    """Hold back the error stream; afterwards all is printed, unless an engine left its trace there."""
    _stream.take()
    try:
        yield
    finally:
        _stream.give_back()
