"""What does this run read? It may not be written over: the one place where that is decided.

A command or a job of the page is a run. Whoever reads a file for it notes the file here, and `check_not_read` is asked
by everything that puts a file or a folder in its place (`discreet.core.files.atomic`). Files are told apart by what the
operating system says they are, not by how their names are spelled: links, ``./``, ``..``, capital letters and trailing
dots name the same file wherever they do for the system. What a run has made itself it may make again.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from discreet.core.errors import InputError


class Place(NamedTuple):
    """A file or a folder: its full path without links, and what the system knows it by."""

    path: str
    identity: tuple[int, int] | None
    is_folder: bool


@dataclass
class _Run:
    read: list[Place] = field(default_factory=list)
    kept: list[Place] = field(
        default_factory=list
    )  # what is read and also written by the run itself: ledgers
    made: set[str] = field(default_factory=set)


_run: ContextVar[_Run | None] = ContextVar("run", default=None)


@contextlib.contextmanager
def one_run() -> Iterator[None]:
    """Begin a run; what is read from now on is not written over until the block ends.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age")
    >>> with one_run():
    ...     note_read(file)
    ...     check_not_read(file.parent / "." / "people.csv")
    Traceback (most recent call last):
    discreet.core.errors.InputError: 'people.csv' is the file that is read: it would be lost. Give another name.
    """
    token = _run.set(_Run())
    try:
        yield
    finally:
        _run.reset(token)


def note_read(path: str | Path, *, kept: bool = False) -> None:
    """Note a file or a folder that the run reads; ``kept`` where the run itself also writes it, as a ledger."""
    run = _run.get()
    if run is None:
        return
    place = place_of(path)
    listed = run.kept if kept else run.read
    if place.identity is not None and place.path not in run.made and place not in listed:
        listed.append(place)


def note_made(path: str | Path) -> None:
    """Note what the run has put in place itself."""
    run = _run.get()
    if run is not None:
        run.made.add(os.path.realpath(path))


def check_not_read(
    target: str | Path, *, replaced: bool = False, named: str = "", declared: bool = False
) -> None:
    """Refuse to write where the run reads.

    Parameters
    ----------
    target
        The file or folder that is to be written.
    replaced
        Whether a folder goes away with all that is in it.
    named
        How the message names the target; by its name unless given.
    declared
        Whether the target was named by the user, who may not name what the run keeps, either.
    """
    run = _run.get()
    if run is not None and os.path.realpath(target) not in run.made:
        check_apart(target, [*run.read, *(run.kept if declared else ())], replaced=replaced, named=named)


def check_apart(
    target: str | Path, read: Sequence[Place], *, replaced: bool = False, named: str = ""
) -> None:
    """Refuse a target that is one of some places, lies in one, or, where it is ``replaced``, holds one."""
    place = place_of(target)
    called = named or f"'{Path(target).name}'"
    for one in read:
        if is_same(place, one):
            what = "folder" if one.is_folder else "file"
            raise InputError(f"{called} is the {what} that is read: it would be lost. Give another name.")
        if one.is_folder and _holds(one, place):
            raise InputError(
                f"{called} lies in the folder '{Path(one.path).name}', which is read. Name a place outside of it."
            )
        if replaced and _holds(place, one):
            raise InputError(
                f"{called} holds '{Path(one.path).name}', which is read: it would be lost. Name another folder."
            )


def place_of(path: str | Path) -> Place:
    """Ask the system what a path leads to; nothing need be there."""
    real = os.path.realpath(path)
    try:
        state = os.stat(real)
    except (OSError, ValueError):
        return Place(real, None, is_folder=False)
    return Place(real, (state.st_dev, state.st_ino), is_folder=os.path.isdir(real))


def is_same(one: Place, other: Place) -> bool:
    """Whether two places are one, also where nothing is there yet.

    Examples
    --------
    >>> is_same(place_of("a/../b.csv"), place_of("./b.csv")), is_same(place_of("a.csv"), place_of("b.csv"))
    (True, False)
    """
    if one.identity is not None and other.identity is not None and one.identity[1]:
        return one.identity == other.identity
    if one.path == other.path:
        return True
    # What is there already has an identity, and all its names have the same: only names of files to come are compared.
    folders = [os.path.dirname(place.path) for place in (one, other)]
    names = [_plain(os.path.basename(place.path)) for place in (one, other)]
    return names[0] == names[1] and _one_folder(*folders) and _ignores_case(folders[0])


def _plain(name: str) -> str:
    """A name as a system reads it that looks neither at case nor at how accents are made, nor at dots at the end."""
    return unicodedata.normalize("NFC", name).casefold().rstrip(". ")


def _one_folder(one: str, other: str) -> bool:
    if os.path.isdir(one) and os.path.isdir(other):
        return os.path.samefile(one, other)
    return os.path.normcase(one) == os.path.normcase(other)


def _ignores_case(folder: str) -> bool:
    """Whether a folder takes a name in capital letters for the same name: tried out on the name of the folder."""
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    above, name = os.path.split(folder)
    while name and name.swapcase() == name:
        above, name = os.path.split(above)
    other = os.path.join(above, name.swapcase())
    with contextlib.suppress(OSError):
        return bool(name) and os.path.samefile(os.path.join(above, name), other)
    return False


def _holds(folder: Place, place: Place) -> bool:
    """Whether a place lies somewhere below a folder."""
    above = os.path.dirname(place.path)
    while True:
        if is_same(place_of(above), folder):
            return True
        if os.path.dirname(above) == above:
            return False
        above = os.path.dirname(above)
