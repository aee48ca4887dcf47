"""How are loops compiled? Once on a machine and kept on disk, and without doors that nobody uses.

Every door to a compiled function costs time at its first call: nothing here is called from C, and what only other
compiled functions call needs none to Python either.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.event import Event, Listener, register

from discreet.core.progress import tell


def watch_the_compiler() -> None:
    """Listen to the compiler from now on."""
    register("numba:compile", Watch())


# Why does it take so long the first time? Loops are compiled once after installation; whoever waits is told.


PATIENCE = 3.0
SENTENCE = "Compiling routines. This happens once after installation, and takes some seconds."


class Watch(Listener):  # type: ignore[misc]
    """Add up the seconds that this process spends on compiling our loops, and say so once when they are many.

    The compiler does one thing at a time, and reports the beginning and the end of every function, those that others
    call within those; what is read from disk is no compiling. Meanwhile no garbage is collected: the compiler makes
    hundreds of thousands of objects that live until it is done, and looking through them takes a tenth of its time.
    """

    def __init__(self) -> None:
        self.depth, self.spent, self.begun, self.said = 0, 0.0, 0.0, False
        self.collects = True

    def on_start(self, event: Event) -> None:
        """A function begins, ours or one that ours call."""
        if self.depth == 0:
            if not event.data["dispatcher"].py_func.__module__.startswith("discreet."):
                return
            self.begun, self.collects = time.monotonic(), gc.isenabled()
            gc.disable()
        self.depth += 1
        self._look_at_the_clock()

    def on_end(self, event: Event) -> None:
        """A function is done, or has failed."""
        if self.depth == 0:
            return
        self._look_at_the_clock()
        self.depth -= 1
        if self.depth == 0:
            self.spent += time.monotonic() - self.begun
            if self.collects:
                gc.enable()

    def _look_at_the_clock(self) -> None:
        if not self.said and self.spent + time.monotonic() - self.begun >= PATIENCE:
            self.said = True
            tell(SENTENCE)


watch_the_compiler()

Function = TypeVar("Function", bound=Callable[..., Any])

# A plain 0 is a type of its own to the compiler: a function that is handed it, and later a count, is compiled twice.
ZERO: int = cast(int, np.int64(0))


# Numbers are divided as NumPy does it: a check of every divisor would have to be compiled as well.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: Function) -> Function:
    """Compile a function that Python calls."""
    return cast(Function, numba.njit(cache=True, **_OPTIONS)(function))


def inner(function: Function) -> Function:
    """Compile a function that only other compiled ones call."""
    return cast(Function, numba.njit(**_OPTIONS, no_cpython_wrapper=True)(function))


def interpreted(kernel: Function) -> Function:
    """Give the same loops as plain Python, down to the last one they call: on little work they are done sooner.

    Only for loops whose sums are of 64 bits: numbers of fewer keep their width in Python, and would wrap around.

    Examples
    --------
    >>> from discreet.tables.gauss.column_kernels import shrink
    >>> column = np.array([6, -9])
    >>> int(interpreted(shrink)(column, np.array([0, 1]), 2)), column.tolist()
    (3, [2, -3])
    """
    plain = _plain(kernel)

    def run(*given: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled loops do not speak of numbers that wrap around either
            return plain(*given)

    return cast(Function, run)


def _plain(kernel: Any) -> Callable[..., Any]:
    function = kernel.py_func
    names = dict(function.__globals__)
    plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    for name in function.__code__.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = plain if names[name] is kernel else _plain(names[name])
    return plain


@dataclass
class Patience:
    """How much work plain Python still does in this process before compiling pays, in whatever it is counted.

    Examples
    --------
    >>> patience = Patience(100)
    >>> patience.covers(70), patience.covers(70), patience.covers(30)
    (True, False, True)
    """

    left: int

    def covers(self, work: int) -> bool:
        """Whether so much work is done sooner without compiling; it then counts as done."""
        if work > self.left:
            return False
        self.left -= work
        return True
