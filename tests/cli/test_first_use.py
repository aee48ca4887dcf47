"""Who waits for the compiler is told why, once; nobody else is."""

from __future__ import annotations

import io
import sys
import threading
from types import SimpleNamespace

import pytest

from discreet.cli import first_use


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setattr(first_use, "EVERY", 0.01)
    monkeypatch.setattr(first_use, "PATIENCE", 0.03)
    return io.StringIO()


def compiler(monkeypatch, *, busy):
    lock = SimpleNamespace(is_locked=lambda: busy)
    monkeypatch.setitem(sys.modules, "numba.core.compiler_lock", SimpleNamespace(global_compiler_lock=lock))


def test_compiling_that_takes_long_is_said_in_one_line(screen, monkeypatch):
    compiler(monkeypatch, busy=True)
    first_use._watch(screen)
    assert screen.getvalue() == f"{first_use.SENTENCE}\n"


def test_nothing_is_said_where_nothing_is_compiled(screen, monkeypatch):
    compiler(monkeypatch, busy=False)
    watch = threading.Thread(target=first_use._watch, args=(screen,), daemon=True)
    watch.start()
    watch.join(0.2)
    assert screen.getvalue() == ""
    compiler(monkeypatch, busy=True)
    watch.join(5)


def test_nobody_is_told_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    before = threading.active_count()
    first_use.tell_of_compiling()
    assert threading.active_count() == before


def test_the_lock_of_the_compiler_says_when_it_is_held():
    from numba.core.compiler_lock import global_compiler_lock

    assert not first_use._compiling()
    with global_compiler_lock:
        assert first_use._compiling()
