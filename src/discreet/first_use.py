"""Why does it take so long the first time? Loops are compiled once after installation; whoever waits is told."""

from __future__ import annotations

import time

from numba.core.event import Event, Listener, register

from discreet.progress import tell

PATIENCE = 3.0
SENTENCE = "Compiling routines. This happens once after installation, and takes some seconds."


class Watch(Listener):  # type: ignore[misc]
    """Add up the seconds that this process spends on compiling our loops, and say so once when they are many.

    The compiler does one thing at a time, and reports the beginning and the end of every function, those that others
    call within those; what is read from disk is no compiling.
    """

    def __init__(self) -> None:
        self.depth, self.spent, self.begun, self.told = 0, 0.0, 0.0, False

    def on_start(self, event: Event) -> None:
        """A function begins, ours or one that ours call."""
        if self.depth == 0:
            if not event.data["dispatcher"].py_func.__module__.startswith("discreet."):
                return
            self.begun = time.monotonic()
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

    def _look_at_the_clock(self) -> None:
        if not self.told and self.spent + time.monotonic() - self.begun >= PATIENCE:
            self.told = True
            tell(SENTENCE)


def watch_the_compiler() -> None:
    """Listen to the compiler from now on."""
    register("numba:compile", Watch())
