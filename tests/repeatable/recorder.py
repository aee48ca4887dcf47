"""Write down what the house answers to its tests, so that a moved house can be held against the one before.

A pytest plugin::

    python -m pytest -p repeatable.recorder --record before.jsonl tests src

Every call that a test (or an example in a docstring) makes into the package is noted by the test, the order and the
name of what was called: a digest of the raw answer, and one with its floats in twelve digits. Refusals, warnings and
what commands print are noted by their words. Calls that the package makes in itself are not: they are what may change
when modules move. Seconds, folders and addresses are left out of texts, and entropy is the same in every run.

`comparing.py` holds one record against another; ``make fingerprints BASE=REV`` makes both on this machine.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import json
import os
import random
import re
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping, Set
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl
import pytest

HOUSE = str(Path(__file__).parent.parent.parent / "src" / "discreet")
TESTS = str(Path(__file__).parent.parent)
_DEEPEST = 12
# What tells when and how long, not what: it differs between two runs of the same code.
_PASSING = {
    "seconds",
    "time",
    "took",
    "started",
    "finished",
    "created",
    "written_at",
    "checksum_time",
    "duration",
}
_PLACES = re.compile(
    "|".join(
        map(
            re.escape, sorted({tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())}, key=len)[::-1]
        )
    )
    + r"[^\s'\",)]*"
)
_AT = re.compile(r" at 0x[0-9a-f]+")
_SECONDS = re.compile(r"\b\d+(?:\.\d+)? (?:s|seconds|CPU s)\b")


class Digest:
    """Take an answer apart and make two checksums of it: to the last bit, and with floats in twelve digits."""

    def __init__(self) -> None:
        self._raw, self._rounded = hashlib.sha256(), hashlib.sha256()
        self._above: list[int] = []

    @classmethod
    def of(cls, thing: Any) -> tuple[str, str]:
        digest = cls()
        digest.take(thing)
        return digest._raw.hexdigest()[:16], digest._rounded.hexdigest()[:16]

    def take(self, thing: Any) -> None:
        if id(thing) in self._above or len(self._above) > _DEEPEST:
            self._note("…")
            return
        self._above.append(id(thing))
        try:
            self._taken(thing)
        finally:
            self._above.pop()

    def _taken(self, thing: Any) -> None:
        if thing is None or isinstance(thing, bool | int | complex):
            self._note(repr(thing))
        elif isinstance(thing, float | np.floating):
            self._note(repr(float(thing)), f"{float(thing):.12g}")
        elif isinstance(thing, str):
            self._note(_without_places(thing))
        elif isinstance(thing, bytes | bytearray | memoryview):
            self._note(hashlib.sha256(bytes(thing)).hexdigest())
        elif isinstance(thing, PurePath):
            self._note(thing.name)
        elif isinstance(thing, np.ndarray):
            self._array(thing)
        elif isinstance(thing, pl.DataFrame | pl.LazyFrame):
            frame = thing.lazy().collect()
            self._note(repr(frame.schema))
            for name in frame.columns:
                self._series(frame[name])
        elif isinstance(thing, pl.Series):
            self._series(thing)
        elif isinstance(
            thing, enum.Enum | datetime.date | datetime.time | datetime.timedelta | type | np.generic
        ):
            self._note(repr(thing) if not isinstance(thing, type) else thing.__name__)
        elif isinstance(thing, Mapping):
            self._mapping(thing)
        elif isinstance(thing, Set):
            self._note("set")
            for digest in sorted(Digest.of(one) for one in thing):
                self._note(*digest)
        elif isinstance(thing, list | tuple):
            self._note(f"{len(thing)}")
            for one in thing:
                self.take(one)
        elif isinstance(thing, BaseException):
            self._note(f"{type(thing).__name__}: {_without_places(str(thing))}")
        elif isinstance(
            thing, Iterator | types.FunctionType | types.MethodType | types.ModuleType | types.FrameType
        ):
            self._note(type(thing).__name__)  # looking into it would use it up, or tell where it lives
        else:
            self._object(thing)

    def _object(self, thing: Any) -> None:
        self._note(type(thing).__name__)
        to_dict = getattr(type(thing), "to_dict", None)
        arrow = getattr(thing, "to_arrow_table", None) or getattr(thing, "__arrow_c_stream__", None)
        if to_dict is not None and type(thing).__module__.startswith("discreet"):
            self.take(thing.to_dict())
            if hasattr(thing, "data") and hasattr(thing.data, "frame"):
                self.take(thing.data.frame)
        elif hasattr(thing, "frame") and type(thing).__module__.startswith("discreet"):
            self.take(thing.frame)
            self.take(getattr(thing, "roles", None))
        elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            self._mapping(
                {field.name: getattr(thing, field.name, None) for field in dataclasses.fields(thing)}
            )
        elif arrow is not None:
            self.take(pl.DataFrame(thing))
        elif type(thing).__module__.startswith("discreet") and hasattr(thing, "__dict__"):
            self._mapping({name: value for name, value in vars(thing).items() if not name.startswith("_")})
        else:
            self._note(_AT.sub("", _without_places(repr(thing)))[:10_000])

    def _mapping(self, thing: Mapping[Any, Any]) -> None:
        self._note(f"{len(thing)}")
        for key, value in thing.items():
            if key not in _PASSING:
                self.take(key)
                self.take(value)

    def _array(self, thing: np.ndarray[Any, Any]) -> None:
        self._note(f"{thing.dtype.kind}{thing.shape}")
        if thing.dtype.kind == "O":
            for one in thing.flat:
                self.take(one)
        elif thing.dtype.kind == "f":
            numbers = np.ascontiguousarray(thing, dtype=np.float64)
            self._raw.update(numbers.tobytes())
            self._rounded.update(" ".join(f"{number:.12g}" for number in numbers.ravel()).encode())
        else:
            self._note(hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest())

    def _series(self, thing: pl.Series) -> None:
        self._note(f"{thing.name} {thing.dtype} {len(thing)}")
        if thing.dtype.is_float():
            self._array(thing.fill_null(-1.25e300).to_numpy())
        else:
            self._note(hashlib.sha256(repr(thing.to_list()).encode()).hexdigest())

    def _note(self, raw: str, rounded: str | None = None) -> None:
        self._raw.update(raw.encode("utf-8", "surrogatepass") + b"\0")
        self._rounded.update((raw if rounded is None else rounded).encode("utf-8", "surrogatepass") + b"\0")


def _without_places(text: str) -> str:
    return _SECONDS.sub("N s", _AT.sub("", _PLACES.sub("PLACE", text)))


def name_of(test: str) -> str:
    """Name a test whatever module it is in, if it is an example in a docstring: these move.

    >>> name_of("src/discreet/risk/classes/k_anonymity.py::discreet.risk.classes.k_anonymity.k_anonymity")
    'example k_anonymity'
    """
    file, _, own = test.partition("::")
    if not file.startswith("src/"):
        return test
    module = ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")
    return f"example {own.removeprefix(module).removeprefix('.') or module.rpartition('.')[2]}"


class Recorder:
    """Note what comes back to the code of a test, and what was said on the way."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8")
        self._test = ""
        self._number = 0

    def note(self, what: str, thing: Any) -> None:
        """Note one answer under the test that runs."""
        if not self._test:
            return
        watching = sys.getprofile()
        sys.setprofile(None)
        try:
            raw, rounded = Digest.of(thing)
        except Exception as error:  # an answer that cannot be looked at twice is noted as that
            raw = rounded = f"not looked at: {type(error).__name__}"
        finally:
            sys.setprofile(watching)
        line = {"test": self._test, "number": self._number, "what": what, "raw": raw, "rounded": rounded}
        self._file.write(json.dumps(line) + "\n")
        self._number += 1

    def watch(self, frame: types.FrameType, event: str, answer: Any) -> None:
        """Take what a function of the house gives back to a test."""
        if event != "return" or not frame.f_code.co_filename.startswith(HOUSE):
            return
        caller, code = frame.f_back, frame.f_code
        if (
            caller is None
            or code.co_name.startswith("<")
            or code.co_name in ("__getattr__", "__dir__", "__init__")
        ):
            return
        asked_by = caller.f_code.co_filename
        if code.co_flags & _NOT_ANSWERED or not (asked_by.startswith((TESTS, "<doctest"))):
            return
        self.note(code.co_name, answer)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._test, self._number = name_of(item.nodeid), 0
        numbers = random.Random(self._test)
        with pytest.MonkeyPatch.context() as patch:
            for module, name in ((os, "urandom"), (random, "_urandom")):
                patch.setattr(module, name, numbers.randbytes)
            sys.setprofile(self.watch)
            try:
                return (yield)
            finally:
                sys.setprofile(None)
                self._test = ""

    def pytest_sessionfinish(self) -> None:
        self._file.close()


_NOT_ANSWERED = 0x20 | 0x80 | 0x200  # generators and coroutines give back many things, or none yet


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, help="write what the house answers to its tests into this file")


def pytest_configure(config: pytest.Config) -> None:
    """Watch from the beginning, where a file is named."""
    place = config.getoption("--record")
    if place is None:
        return
    import warnings

    from _pytest.capture import CaptureFixture
    from _pytest.raises import RaisesExc
    from click.testing import CliRunner

    worker = os.environ.get("PYTEST_XDIST_WORKER")
    recorder = Recorder(place.with_suffix(f".{worker}{place.suffix}") if worker else place)
    config.pluginmanager.register(recorder)
    leave, read, invoke, warn = RaisesExc.__exit__, CaptureFixture.readouterr, CliRunner.invoke, warnings.warn

    def left(self: Any, kind: Any, error: Any, trace: Any) -> bool:
        recorder.note("refusal", error)
        return leave(self, kind, error, trace)

    def shown(self: Any) -> Any:
        found = read(self)
        recorder.note("printed", [found.out, found.err])
        return found

    def ran(self: Any, *given: Any, **more: Any) -> Any:
        result = invoke(self, *given, **more)
        recorder.note("command", [result.exit_code, result.output])
        return result

    def warned(message: Any, category: Any = None, *given: Any, **more: Any) -> None:
        if "Discreet" in getattr(category, "__name__", "") or "Discreet" in type(message).__name__:
            recorder.note("warning", str(message))
        more["stacklevel"] = more.get("stacklevel", given[0] if given else 1) + 1
        warn(message, category, more.pop("stacklevel"), *given[1:], **more)

    RaisesExc.__exit__, CaptureFixture.readouterr = left, shown  # type: ignore[method-assign]
    CliRunner.invoke, warnings.warn = ran, warned  # type: ignore[method-assign, assignment]
