"""Why does it take so long the first time? Routines are compiled once after installation; whoever waits is told."""

from __future__ import annotations

import sys
import threading
from typing import TextIO

PATIENCE, EVERY = 3.0, 0.25
SENTENCE = "Compiling routines. This happens once after installation, and takes some seconds."


def tell_of_compiling() -> None:
    """Watch, beside the command, whether compiling takes long, and say so once on a terminal."""
    if sys.stderr and sys.stderr.isatty():
        threading.Thread(target=_watch, args=(sys.stderr,), daemon=True).start()


def _watch(screen: TextIO) -> None:
    pause, compiled = threading.Event(), 0.0
    while compiled < PATIENCE:
        pause.wait(EVERY)
        compiled += EVERY * _compiling()
    screen.write(f"{SENTENCE}\n")


def _compiling() -> bool:
    """Ask the compiler's lock, without loading the compiler where nobody needs it."""
    locks = sys.modules.get("numba.core.compiler_lock")
    lock = getattr(locks, "global_compiler_lock", None)
    return bool(lock is not None and lock.is_locked())
