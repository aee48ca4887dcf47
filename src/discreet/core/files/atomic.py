"""Write a file or a folder whole or not at all.

Whatever is written goes to a hidden folder beside its place and is moved there only when it is complete, so that a
failure, a kill or a full disk never leaves half of it behind. A folder, because some writers open their file in the
background and may do so after they have failed: once the folder is gone they cannot. Who may read what was written is
for the umask to say; what is replaced keeps who may read it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from discreet.core.errors import InputError
from discreet.core.files.inputs import check_not_read, is_same, note_made, place_of
from discreet.core.files.locks import rename_over
from discreet.core.files.staging import MADE, REPLACED, staging


@contextlib.contextmanager
def replacing(path: str | Path, *, overwrite: bool = True, private: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to ``path`` when the block ends well, else remove it.

    Parameters
    ----------
    path
        Where the file is to be in the end. Its folder must exist.
    overwrite
        Whether a file that is already there may be replaced.
    private
        Whether nobody but its owner may read it, whatever the umask and the file before it say.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "page.html") as unfinished:
    ...     _ = unfinished.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['page.html']
    """
    with replacing_together([path], overwrite=overwrite, private=private) as (unfinished,):
        yield unfinished


@contextlib.contextmanager
def replacing_together(
    paths: Sequence[str | Path], *, overwrite: bool = True, private: bool = False
) -> Iterator[list[Path]]:
    """Give temporary paths for files that belong together; none takes its place before all are complete.

    Parameters
    ----------
    paths
        Where the files are to be in the end; their folders must exist.
    overwrite
        Whether files that are already there may be replaced.
    private
        As in `replacing`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing_together([folder / "a.txt", folder / "b.txt"]) as (first, second):
    ...     _ = first.write_text("one"), second.write_text("two")
    >>> sorted(file.name for file in folder.iterdir())
    ['a.txt', 'b.txt']
    """
    targets = [Path(path) for path in paths]
    for target in targets:
        check_target(target, overwrite=overwrite)
    check_different(targets)
    with contextlib.ExitStack() as opened, explained(targets[0].name, targets[0].parent):
        unfinished = [opened.enter_context(staging(target.parent)) / target.name for target in targets]
        yield unfinished
        for file, target in zip(unfinished, targets, strict=True):
            _put_in_place(file, target, overwrite=overwrite, private=private)


def _put_in_place(unfinished: Path, target: Path, *, overwrite: bool, private: bool) -> None:
    with explained(target.name, target.parent):
        if private:
            unfinished.chmod(0o600)
        elif overwrite and target.exists():
            # A private report must not become public.
            unfinished.chmod(target.stat().st_mode & 0o777)
        if overwrite:
            rename_over(unfinished, target)
        else:
            _publish_new(unfinished, target)
    note_made(target)
    note_written(target.name)


@contextlib.contextmanager
def replacing_folder(path: str | Path, *, overwrite: bool = False, private: bool = False) -> Iterator[Path]:
    """Give an empty folder to fill; it becomes ``path`` when the block ends well, else it is removed.

    A folder that is there already is exchanged with the complete new one in one step, and only then removed. Where the
    file system cannot exchange folders the old one is moved aside first; a run that is killed at that very moment
    leaves it in a hidden folder from which the next run puts it back.

    Parameters
    ----------
    path
        Where the folder is to be in the end. The folder it lies in must exist.
    overwrite
        Whether a folder that is already there may be replaced, with everything in it: the caller makes sure that it is
        one of its own.
    private
        Whether nobody but its owner may look into it, nor read a file in it.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "package"
    >>> for text in ("old", "new"):
    ...     with replacing_folder(place, overwrite=True) as unfinished:
    ...         _ = (unfinished / "content.txt").write_text(text)
    >>> (place / "content.txt").read_text(), [folder.name for folder in place.parent.iterdir()]
    ('new', ['package'])
    """
    target = Path(path)
    check_folder(target)
    with explained(target.name, target.parent), staging(target.parent) as stage:
        # Looked at only now: the staging may have put back what a killed run had moved aside.
        if target.exists() and not target.is_dir():
            raise InputError(f"'{target.name}' is a file; give the name of a folder to write.")
        if target.exists() and not overwrite:
            raise _already_there(target)
        made = stage / MADE / target.name
        made.parent.mkdir()
        made.mkdir()
        yield made
        if target.exists():
            made.chmod(target.stat().st_mode & 0o777)
        if private:
            for inside in made.rglob("*"):
                inside.chmod(0o700 if inside.is_dir() else 0o600)
            made.chmod(0o700)
        _take_place(made, target, stage, overwrite=overwrite)
    note_made(target)
    note_written(target.name)


def _take_place(made: Path, target: Path, stage: Path, *, overwrite: bool) -> None:
    if not target.exists():
        made.rename(target)
        return
    if not overwrite:
        raise _appeared(target)
    if exchange(made, target):
        return
    aside = stage / REPLACED / target.name
    aside.parent.mkdir()
    target.rename(aside)
    try:
        made.rename(target)
    except BaseException:
        aside.rename(target)
        raise


def write_folder(files: Mapping[str, bytes], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write files, by their names below the folder, to a folder that takes its place only when it is complete."""
    target = Path(path)
    with replacing_folder(target, overwrite=overwrite) as unfinished:
        for name, content in files.items():
            place = unfinished / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    return target


def make_folder(path: str | Path) -> Path:
    """Make a folder that grows, with those above it, where it is not there; say so where it cannot be made."""
    place = Path(path)
    with explained(place.name, place.parent):
        is_new = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
    if is_new:
        note_written(place.name)
    return place


@contextlib.contextmanager
def explained(name: str, place: Path) -> Iterator[None]:
    """Turn what the operating system says into a refusal that names the file and the way out."""
    try:
        yield
    except OSError as error:
        if is_full(error, place):
            raise full_disk(name) from error
        raise InputError(
            f"'{name}' cannot be written: {error.strerror or type(error).__name__}. "
            "Name a place where you may write and that has room."
        ) from error


def _check_place(target: Path) -> None:
    if not target.parent.is_dir():
        raise InputError(
            f"'{target.name}' cannot be written: the folder '{target.parent}' does not exist. Create it first."
        )


def _already_there(target: Path) -> InputError:
    return InputError(f"'{target.name}' already exists. Give another name, or overwrite=True to replace it.")


def _appeared(target: Path) -> InputError:
    return InputError(
        f"'{target.name}' appeared while it was being written; it was left as it is. Give another name."
    )


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that is a folder, lies in a folder that is not there, or would be overwritten."""
    if target.is_dir():
        raise InputError(f"'{target.name}' is a folder; give the name of a file to write.")
    _check_place(target)
    if target.exists() and not target.is_file():
        # A file takes its place by being renamed, which would do away with a device or a pipe of that name.
        raise InputError(f"'{target.name}' is no ordinary file; give the name of a file to write.")
    if target.exists() and not overwrite:
        raise _already_there(target)
    check_not_read(target)


def check_folder(target: Path) -> None:
    """Refuse a folder that would go away with something in it that is read, or lies where nothing can be written."""
    _check_place(target)
    check_not_read(target, replaced=True)


def check_only(folder: Path, ending: str) -> None:
    """Refuse to replace a folder that holds anything but files with an ending: it is somebody else's, then."""
    for inside in folder.iterdir() if folder.is_dir() else ():
        if not (inside.is_file() and inside.name.lower().endswith(ending)):
            raise InputError(
                f"The folder '{folder.name}' holds more than {ending} files, and would go away with all that is in it. "
                "Name another folder."
            )


def check_different(targets: Sequence[Path]) -> None:
    """Refuse two targets that are one file, however they are spelled."""
    places = [place_of(target) for target in targets]
    for number, place in enumerate(places):
        if any(is_same(place, other) for other in places[:number]):
            raise InputError(
                f"Two files are to be written to '{targets[number].name}'. Give each its own name."
            )


def _publish_new(unfinished: Path, target: Path) -> None:
    """Give a file its name only if nobody took the name in the meantime."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise _appeared(target) from None
    except OSError:
        # File systems without hard links (FAT, some network shares) only know the rename, which asks nobody: the name
        # is taken first, by a file that only one can make.
        try:
            target.touch(exist_ok=False)
        except FileExistsError:
            raise _appeared(target) from None
        try:
            rename_over(unfinished, target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise


# Swap two folders in one step, where the operating system can.


_HERE = -100  # paths are relative to the working folder
_SWAP = 2
_UNABLE = {errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP}


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders at once; False where system or file system cannot, and nothing was done."""
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    done = call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_SWAP))
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code))


# Did a write fail because the disk is full?
#
# Engines hide what the operating system told them behind errors of their own, so the chain of errors is searched for
# the number of the operating system, and the disk itself is asked: what was half written still fills it.


_FULL = {errno.ENOSPC, errno.EDQUOT}
_SQLITE_FULL = 13
_NOTHING_LEFT = 16 * 1024


def is_full(error: BaseException, place: Path) -> bool:
    """Whether an error comes from a disk or a quota that has no room left.

    Parameters
    ----------
    error
        What the writer raised.
    place
        The folder that was written to, with what was half written still in it.
    """
    seen: BaseException | None = error
    while seen is not None:
        for told in (seen, getattr(seen, "orig", None)):
            if isinstance(told, OSError) and told.errno in _FULL:
                return True
            # Engines in other languages pass on the words of the operating system only.
            if told is not None and any(os.strerror(code) in str(told) for code in _FULL):
                return True
            if (
                isinstance(told, sqlite3.Error)
                and getattr(told, "sqlite_errorcode", 0) & 0xFF == _SQLITE_FULL
            ):
                return True
        seen = seen.__cause__ or seen.__context__
    try:
        return shutil.disk_usage(place).free < _NOTHING_LEFT
    except OSError:
        return False


def full_disk(name: str) -> InputError:
    """Word the refusal."""
    return InputError(f"'{name}' cannot be written: the disk is full. Make room, or name another place.")


# What this process has put in place, so that nobody says that nothing was written when something was.


_written: list[str] = []


def written() -> tuple[str, ...]:
    """Name the files, folders and tables that were put in place since this process began, in order."""
    return tuple(_written)


def note_written(name: str) -> None:
    """Note that a file, a folder or a table is in place."""
    _written.append(name)
