"""Run a case and hold it to what is promised: a result or a plain refusal, soon, whole files, no values.

Inside the library a case may end well or in a `DiscreetError`. On the command line it ends with one of the documented
codes and without a trace, the files that were there are as they were, nothing half-made lies about, a refusal wrote
nothing, and no value of the data is printed or stands in a report.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError

SECONDS = 20
_DEADLOCK = 240
CODES = (0, 2, 3, 4)
_TEXTS = (".html", ".json", ".jsonl", ".toml", ".svg", ".md", ".txt")


class TookTooLong(BaseException):
    """A case that is still at work after the limit; no Exception, so that nothing on the way swallows it."""


@contextlib.contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Stop after so many seconds of work, and where nothing moves at all after some minutes.

    Work is measured in processor time: a busy machine is no fault. A library that hears no signal is ended with its
    process, with the place it was at.
    """

    def stop(number: int, frame: Any) -> None:
        if number == signal.SIGPROF and _is_compiling(frame):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            return
        raise TookTooLong(
            f"still at work after {seconds} s" if number == signal.SIGPROF else "nothing moves any more"
        )

    before = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _DEADLOCK)
    faulthandler.dump_traceback_later(2 * _DEADLOCK, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


def _is_compiling(frame: Any) -> bool:
    """Whether a kernel is being compiled, which is done once on a machine and must not be broken off."""
    while frame is not None:
        if "/numba/" in frame.f_code.co_filename or "/llvmlite/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def refused_or_done(call: Callable[[], Any]) -> Any:
    """Run a call of the library: what it gives, or None where it was refused with a plain word.

    It runs in a folder of its own: a checkpoint may be drawn that is called like a column.
    """
    with tempfile.TemporaryDirectory() as here, contextlib.chdir(here), limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except DiscreetError:
            return None


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its code, all it printed, and the files that are new or differ."""

    code: int
    printed: str
    written: dict[str, bytes]


def command(arguments: Sequence[str], folder: Path, canaries: Iterable[str] = ()) -> Outcome:
    """Run a command in this process, in a folder of its own, and check all that must hold of any command."""
    around = folder.parent
    before = _tree(around)
    with tempfile.TemporaryFile() as stream:
        code = _ended(arguments, folder, stream)
        stream.seek(0)
        printed = stream.read().decode("utf-8", "replace")
    after = _tree(around)
    written = {name: content for name, content in after.items() if before.get(name) != content}
    outcome = Outcome(code, printed, written)
    _check(outcome, before, after, arguments, canaries)
    return outcome


def _check(
    outcome: Outcome,
    before: dict[str, bytes],
    after: dict[str, bytes],
    arguments: Sequence[str],
    canaries: Iterable[str],
) -> None:
    assert outcome.code in CODES, f"ended with {outcome.code}: {outcome.printed[-400:]}"
    for word in ("Traceback (most recent", "panicked at"):
        assert word not in outcome.printed, f"a trace was printed: …{_around(outcome.printed, word, 600)}…"
    gone = sorted(set(before) - set(after))
    assert not gone, f"lost: {gone}"
    hidden = [name for name in outcome.written if any(part.startswith(".") for part in Path(name).parts)]
    assert not hidden, f"left over: {hidden}"
    if outcome.code == 2:
        assert not outcome.written, (
            f"refused, and yet wrote {sorted(outcome.written)}: {outcome.printed[-300:]}"
        )
    if "--overwrite" not in arguments:
        replaced = sorted(name for name in outcome.written if name in before and not _may_change(name))
        assert not replaced, f"changed without being told: {replaced}"
    if "--show-values" in arguments:
        return
    texts = {"what was printed": outcome.printed}
    texts |= {
        name: content.decode("utf-8", "replace")
        for name, content in outcome.written.items()
        if name.endswith(_TEXTS)
    }
    for place, text in texts.items():
        seen = [value for value in canaries if value in text]
        assert not seen, f"a value of the data stands in {place}: …{_around(text, seen[0])}…"


def _may_change(name: str) -> bool:
    """Reports and pictures replace their earlier selves; registers of decisions and ledgers grow."""
    return name.endswith((".html", ".htm", ".svg", ".png", ".pdf", ".jsonl", ".privacy.toml"))


def _around(text: str, value: str, more: int = 60) -> str:
    at = text.index(value)
    return text[max(0, at - 120) : at + more].replace("\n", " ")


def _tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink() or not any(path.iterdir())
    }


def _ended(arguments: Sequence[str], folder: Path, stream: Any) -> int:
    """Run the command line as a shell would, and give its code; what is no refusal comes out as it is."""
    from discreet.cli import main

    kept = sys.argv, sys.stdout, sys.stderr, os.getcwd(), os.environ.get("DISCREET_TRACEBACK")
    sys.argv = ["discreet", *arguments]
    text = io.TextIOWrapper(os.fdopen(os.dup(stream.fileno()), "wb"), encoding="utf-8", write_through=True)
    sys.stdout = sys.stderr = text
    error_stream = os.dup(2)
    os.dup2(stream.fileno(), 2)  # what libraries print past Python
    os.environ["DISCREET_TRACEBACK"] = "1"
    os.chdir(folder)
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                main()
            except SystemExit as end:
                return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            return 0
    finally:
        os.chdir(kept[3])
        os.dup2(error_stream, 2)
        os.close(error_stream)
        sys.argv, sys.stdout, sys.stderr = kept[:3]
        with contextlib.suppress(OSError, ValueError):
            text.close()
        if kept[4] is None:
            del os.environ["DISCREET_TRACEBACK"]
        else:
            os.environ["DISCREET_TRACEBACK"] = kept[4]
