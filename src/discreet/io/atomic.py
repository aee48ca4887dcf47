"""Write a file whole or not at all.

Whatever is written goes to a hidden folder beside its place and is moved there only when it is complete, so that a
failure or a full disk never leaves half a file behind. A folder, because some writers open their file in the background
and may do so after they have failed: once the folder is gone they cannot.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from discreet.errors import InputError


@contextlib.contextmanager
def replacing(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to; rename it to ``path`` when the block ends well, else remove it.

    Parameters
    ----------
    path
        Where the file is to be in the end. Its folder must exist.
    overwrite
        Whether a file that is already there may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "page.html") as unfinished:
    ...     _ = unfinished.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['page.html']
    """
    target = Path(path)
    check_target(target, overwrite=overwrite)
    folder = target.with_name(f".{target.stem}.{secrets.token_hex(4)}")
    try:
        folder.mkdir(mode=0o700)
        unfinished = folder / target.name
        yield unfinished
        if target.exists():
            # A replaced file keeps who may read it; a private report must not become public.
            unfinished.chmod(target.stat().st_mode & 0o777)
        if overwrite:
            unfinished.replace(target)
        else:
            _publish_new(unfinished, target)
    except OSError as error:
        raise InputError(
            f"'{target.name}' cannot be written: {error.strerror or type(error).__name__}. "
            "Name a place where you may write and that has room."
        ) from error
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    for _ in range(3):  # again, where something was put into it meanwhile
        if not folder.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that is a folder, lies in a folder that is not there, or would be overwritten."""
    if target.is_dir():
        raise InputError(f"'{target.name}' is a folder; give the name of a file to write.")
    if not target.parent.is_dir():
        raise InputError(
            f"'{target.name}' cannot be written: the folder '{target.parent}' does not exist. Create it first."
        )
    if target.exists() and not overwrite:
        raise InputError(
            f"'{target.name}' already exists. Give another name, or overwrite=True to replace it."
        )


def _publish_new(unfinished: Path, target: Path) -> None:
    """Give a file its name only if nobody took the name in the meantime."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise InputError(
            f"'{target.name}' appeared while it was being written; it was left as it is. Give another name."
        ) from None
    except OSError:
        # File systems without hard links (FAT, some network shares) only know the rename.
        unfinished.replace(target)
