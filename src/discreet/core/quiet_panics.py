"""Keep what an engine prints when it gives up off the terminal: its words may quote data.

An engine written in Rust prints a trace to the error stream of the process before Python hears of it. Whoever turns
such an end into a plain refusal (`discreet.core.errors.is_panic`) does so inside `quiet_panics`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

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
