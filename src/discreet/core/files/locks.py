"""What differs between systems when a place is held against other programs: locks, users and processes.

Two kinds of lock. A *file lock* (`lock`) goes with its process, but Windows has none on folders, and some network
drives have none or keep it to one machine. It guards what is only tidying up. A *lock folder* (`alone`) needs nothing
but the making of folders, which succeeds once on every file system and for every machine that sees it. It guards what
must never be done twice, such as spending a budget.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WINDOWS = os.name == "nt"
PATIENCE = 5.0
_ALL_PATIENCE = 120.0
_SHARED_FOR = 2.0  # seconds that Windows refuses to rename over a file somebody is reading, at most

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # Windows
    fcntl = None


def lock(place: Path) -> int | None:
    """Lock a file or folder until the handle is given to `unlock` or the process ends; None where nothing can.

    Raises `BlockingIOError` where somebody else does not let it go.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        return None
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience:
                os.close(handle)
                raise
            time.sleep(0.01)
        except OSError:
            os.close(handle)
            return None
        else:
            return handle


def unlock(handle: int | None) -> None:
    """Let a place go, also where a process that was forked meanwhile has the same handle."""
    if handle is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def is_free(place: Path) -> bool | None:
    """Whether nobody holds a lock on a place; None where there are no such locks, False where it cannot be opened."""
    if fcntl is None:
        return None
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    finally:
        os.close(handle)
    return True


@contextlib.contextmanager
def alone(file: Path) -> Iterator[None]:
    """Hold a file against every other thread, process and machine, on systems with locks and without.

    A folder beside the file is the lock, and a file in it names the holder. The lock is taken by whoever makes the
    folder, writes that name and then finds no other in it. A holder that was killed is recognized by its process, where
    it ran on this system, and put aside; one on another machine is waited for. Nobody is put aside on a guess: only
    the name of a process that is known to be over is removed, so that a holder who is merely slow stays the holder.

    Raises
    ------
    BlockingIOError
        Where a holder does not let it go, with a sentence that names the folder.
    """
    folder = file.with_name(f".{file.name}.lock")
    mine = folder / f"{_process_mark(os.getpid())}@{secrets.token_hex(8)}"
    try:
        _wait_for(file, folder, mine)
        yield
    finally:
        with contextlib.suppress(OSError):
            mine.unlink()
            folder.rmdir()


def rename_over(source: Path, target: Path) -> None:
    """Give a file the name of another; Windows refuses it for as long as somebody reads the other."""
    patience = time.monotonic() + _SHARED_FOR
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if not WINDOWS or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return


def user_name() -> str:
    """A name for the user of this process, for folders that are shared by several."""
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def is_mine(place: Path) -> bool:
    """Whether a place belongs to the user of this process, as far as the system knows users."""
    return not hasattr(os, "getuid") or place.stat().st_uid == os.getuid()


def is_over(pid: int) -> bool:
    """Whether a process of this system has ended for certain; False in doubt."""
    if WINDOWS:  # asking for a process there with os.kill would end it
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def _wait_for(file: Path, folder: Path, mine: Path) -> None:
    began = waited = time.monotonic()
    seen: list[str] = []
    while not _taken(folder, mine):
        others = [name for name in _names(folder) if not _removed_if_over(folder, name)]
        if not others:
            with contextlib.suppress(OSError):  # left by a process that was killed before it wrote its name
                folder.rmdir()
        now = time.monotonic()
        if others != seen:
            seen, waited = others, now
        if now - waited > PATIENCE or now - began > _ALL_PATIENCE:
            raise BlockingIOError(
                f"'{file.name}' is held by another program. Try again when it is done. If none is running, on this "
                f"machine or another, remove the folder '{folder.name}' beside it."
            )
        time.sleep((1 + secrets.randbelow(10)) / 1000)


def _taken(folder: Path, mine: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    except PermissionError:
        if WINDOWS and folder.exists():  # a folder that is just being removed
            return False
        raise
    try:
        with mine.open("x"):
            pass
        if os.listdir(folder) == [mine.name]:
            return True
    except FileNotFoundError:  # somebody took the empty folder for one that was left behind
        return False
    except BaseException:
        mine.unlink(missing_ok=True)
        raise
    mine.unlink(missing_ok=True)
    return False


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _removed_if_over(folder: Path, name: str) -> bool:
    mark = name.rpartition("@")[0]
    system, _, process = mark.rpartition("+")
    pid, _, _ = process.partition("-")
    if system != _system_mark() or not pid.isdigit() or int(pid) == 0:
        return False
    # A number that was given to a new process since is told by the time the process began, where that is known: the
    # processes of other users may be hidden.
    now = _process_mark(int(pid))
    if not is_over(int(pid)) and (now == mark or now.endswith("-")):
        return False
    with contextlib.suppress(OSError):
        (folder / name).unlink()
    return True


def _process_mark(pid: int) -> str:
    """A name for a process that no other has: its system, its number and, on Linux, when it began."""
    began = ""
    with contextlib.suppress(OSError, IndexError):
        about = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        # One that was killed and that its parent has not asked for yet does nothing any more.
        began = "over" if about[0] in (b"Z", b"X") else about[19].decode()
    return f"{_system_mark()}+{pid}-{began}"


@functools.cache
def _system_mark() -> str:
    """A name for what numbers the processes: this machine since it was started, or a container on it.

    Where it cannot be had nobody else has the name either, so that no process of another system is taken for one of
    this that is over.
    """
    import socket
    import uuid

    parts = [socket.gethostname()]
    if sys.platform == "linux":
        try:
            parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
            parts.append(os.readlink("/proc/self/ns/pid"))
        except OSError:
            parts.append(secrets.token_hex(8))
    else:
        parts.append(f"{uuid.getnode():x}")
    return "".join(sign for sign in "+".join(parts) if sign.isalnum() or sign in "-+")
