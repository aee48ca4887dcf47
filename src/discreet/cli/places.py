"""Where does a command write? Never where it reads, and never twice to one place: asked before any work is done."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.files.inputs import Place, check_not_read, is_same, note_read, one_run, place_of

WRITTEN = frozenset(
    ("out", "html", "log", "internal_log", "plot", "detail", "save_plan", "save_study", "findings", "parts", "training")
)  # fmt: skip
"""What options are called that name a file or a folder to write."""
WRITTEN_BY = {
    "synthesize": {"model": "--model"},
    "preflight": {"plan": "--save-plan"},
    "suggest": {"resume": "--resume"},
    "search": {"resume": "--resume"},
    "make_keys": {"file": "FILE"},
    "prepare_trial": {"folder": "FOLDER"},
}
"""What else a command writes, by the name of its function, and what the command line calls it."""
_SERVERS = ("open_page", "serve_site", "review_package")  # each of their jobs or answers is a run of its own
_KEPT = ("ledger",)  # read, and written again by the command itself
_FOLDERS = ("released", "release", "plans", "package", "files")  # options that may name a folder to read


def in_one_run(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command be one run: what its command line names to be read is not written over, however it is spelled."""
    if command.__name__ in _SERVERS:
        return command
    usual = {name: f"--{name.replace('_', '-')}" for name in WRITTEN}
    written = {**usual, **WRITTEN_BY.get(command.__name__, {})}

    @functools.wraps(command)
    def run(*given: Any, **named: Any) -> None:
        values = inspect.signature(command).bind(*given, **named).arguments
        with one_run():
            _note({name: value for name, value in values.items() if name not in written})
            check_places(
                (written[name], path)
                for name, value in values.items()
                if name in written
                for path in _targets(value)
                # What cannot be a report is refused by the command, which says how its name must end.
                if name != "html" or path.suffix.lower() in (".html", ".htm")
            )
            command(*given, **named)

    return run


def _note(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        for path in _paths(value):
            if path.is_file() or (name in _FOLDERS and path.is_dir()):
                note_read(path, kept=name in _KEPT)
                if path.is_file():
                    for beside in (".roles.toml", ".privacy.toml"):
                        note_read(path.with_name(path.name.split(".")[0] + beside), kept=True)


def check_places(targets: Iterable[tuple[str, Path]]) -> None:
    """Refuse a place that is read in this run, and two places that are one; a target is an option and its path."""
    seen: list[tuple[str, Place]] = []
    for option, path in targets:
        check_not_read(path, named=f"{option} '{path.name}'", declared=True)
        place = place_of(path)
        for other, there in seen:
            if is_same(place, there):
                both = f"{other} and {option}" if other != option else f"Two files of {option}"
                raise ParameterError(f"{both} name the same file '{path.name}'. Give each its own.")
        seen.append((option, place))


def _targets(value: Any) -> Iterator[Path]:
    """The files or folders that an option names to be written: a path, an address of a file, or NAME=FILE."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Path):
            yield one
        elif isinstance(one, str):
            text = one.partition("=")[2] if isinstance(value, list | tuple) and "=" in one else one
            file = _file_of(text)
            if file is not None:
                yield file


def _paths(value: Any) -> Iterator[Path]:
    """All that a value could name: itself, what stands behind a sign of equality, and what stands between commas."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(one, str | Path):
            continue
        texts = {str(one), str(one).partition("=")[2]}
        texts |= {part.strip() for text in list(texts) for part in text.split(",")}
        for text in texts - {""}:
            try:
                file = _file_of(text)
                if file is not None and file.exists():
                    yield file
            except (OSError, ValueError):  # no name that a file could have
                continue


def _file_of(text: str) -> Path | None:
    from discreet.io.naming import is_address

    if not is_address(text):
        return Path(text)
    from discreet.io.naming import parsed_address

    try:
        return parsed_address(text).file
    except DiscreetError:  # the command itself says what is wrong with it
        return None
