"""A full disk is called by its name, whoever met it."""

from __future__ import annotations

import errno
import os
import sqlite3

import polars as pl
import pytest

from discreet.core.errors import InputError
from discreet.core.files.atomic import is_full
from discreet.io import write


def raised(error, **more):
    for name, value in more.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "no"), True),
        (OSError(errno.EDQUOT, "no"), True),
        (OSError(errno.EACCES, "no"), False),
        (RuntimeError(f"engine: {os.strerror(errno.ENOSPC)} (28)"), True),
        (raised(ValueError("wrapped"), __cause__=OSError(errno.ENOSPC, "no")), True),
        (raised(ValueError("wrapped"), orig=raised(sqlite3.OperationalError(), sqlite_errorcode=13)), True),
        (raised(sqlite3.OperationalError(), sqlite_errorcode=1), False),
        (ValueError("a column of lists"), False),
    ],
)
def test_the_cause_is_found_however_it_is_wrapped(error, full, tmp_path):
    assert is_full(error, tmp_path) == full


@pytest.mark.parametrize(
    "file",
    ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.arrow", "a.xlsx", "a.sav", "a.zsav", "a.dta", "a.xpt"],
)
def test_every_format_says_that_the_disk_is_full_and_leaves_nothing(tmp_path, monkeypatch, file):
    """The disk has no room from the moment the writer begins; `tests/fuzz` fills a real one."""

    class Usage:
        free = 0

    def fails(*arguments, **options):
        raise RuntimeError("the engine says something else")

    monkeypatch.setattr("discreet.core.files.atomic.shutil.disk_usage", lambda place: Usage)
    monkeypatch.setattr("discreet.io.writing._write_file", fails)
    with pytest.raises(InputError, match="the disk is full"):
        write(pl.DataFrame({"a": [1.5]}), tmp_path / file)
    assert list(tmp_path.iterdir()) == []
