"""Who waits for the compiler is told why, once; nobody else is."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from discreet.core import compiling
from discreet.core.progress import listening


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Put a terminal in the place of stderr; in the test itself, because pytest takes stderr for itself before it."""
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    return screen


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(compiling.time, "monotonic", lambda: clock.now)
    return clock


def function(module):
    def ours():
        pass

    ours.__module__ = module
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=ours)})


OURS, OTHERS = function("discreet.numerics.trees.grow_kernels"), function("numba.np.arrayobj")


def test_compiling_that_takes_long_is_said_in_one_line(monkeypatch, clock):
    screen, watch = terminal(monkeypatch), compiling.Watch()
    for _ in range(4):
        watch.on_start(OURS)
        clock.now += 0.5
        watch.on_start(OTHERS)
        clock.now += 0.5
        watch.on_end(OTHERS)
        watch.on_end(OURS)
        clock.now += 60.0  # work between two functions is no compiling
    assert screen.getvalue() == f"{compiling.SENTENCE}\n"


def test_it_is_said_while_one_waits_and_not_afterwards(monkeypatch, clock):
    screen, watch = terminal(monkeypatch), compiling.Watch()
    watch.on_start(OURS)
    clock.now = 3.5
    watch.on_start(OTHERS)
    assert screen.getvalue() == f"{compiling.SENTENCE}\n"


def test_nothing_is_said_of_short_waits_or_of_functions_of_others(monkeypatch, clock):
    screen, watch = terminal(monkeypatch), compiling.Watch()
    watch.on_start(OURS)
    clock.now += 2.9
    watch.on_end(OURS)
    watch.on_start(OTHERS)
    clock.now += 60.0
    watch.on_end(OTHERS)
    assert screen.getvalue() == ""


def test_a_pipe_or_a_log_gets_the_line_too_and_a_page_instead_of_it(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    heard = []
    for listens in (False, True):
        watch = compiling.Watch()
        watch.on_start(OURS)
        clock.now += 3.5
        if listens:
            with listening(lambda what, done, total: heard.append((what, done, total))):
                watch.on_end(OURS)
        else:
            watch.on_end(OURS)
    assert file.getvalue() == f"{compiling.SENTENCE}\n"
    assert heard == [(compiling.SENTENCE, 0, None)]


def test_the_compiler_is_heard_when_it_compiles_and_not_when_it_reads_from_disk(tmp_path):
    code = (
        "import numpy as np; from discreet.core import compiling; compiling.PATIENCE = 0.0;"
        "from discreet.numerics.trees.walk_kernels import intervals; intervals(np.zeros(1), np.zeros(1))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        ).stderr
        for _ in range(2)
    ]
    assert said == [f"{compiling.SENTENCE}\n", ""]
