"""What killed runs leave behind is found and removed; a folder is replaced in one step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from discreet.core.errors import InputError
from discreet.core.files import atomic
from discreet.core.files.atomic import replacing, replacing_folder, replacing_together, write_folder, written
from discreet.core.files.journals import append_line
from discreet.core.files.staging import NAME, REPLACED, scratch_folder, staging, sweep
from discreet.io import write

KILLED = """
import sys, time
from pathlib import Path
from discreet.core.files.atomic import replacing, replacing_folder
from discreet.core.files.staging import scratch_folder
place = Path(sys.argv[2])
made = {"file": replacing, "folder": lambda to: replacing_folder(to, overwrite=True)}
with scratch_folder() if sys.argv[1] == "scratch" else made[sys.argv[1]](place) as unfinished:
    target = unfinished if sys.argv[1] == "file" else unfinished / "a.txt"
    target.write_text("half")
    print("here", flush=True)
    time.sleep(60)
"""


def killed_while_writing(kind, place, **environment):
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED, kind, str(place)],
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert run.stdout is not None
    assert run.stdout.readline().strip() == b"here"
    run.send_signal(signal.SIGKILL)
    run.wait()


def fails_within(making):
    def half():
        with making as unfinished:
            first = unfinished[0] if isinstance(unfinished, list) else unfinished
            (first / "a.txt" if first.is_dir() else first).write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()


def unfinished_in(folder):
    return [entry for entry in folder.iterdir() if NAME.match(entry.name)]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_killed_run_leaves_the_old_version_and_the_next_run_removes_the_rest(tmp_path, kind):
    place = tmp_path / "result"
    if kind == "folder":
        write_folder({"a.txt": b"old"}, place)
    else:
        place.write_text("old")
    killed_while_writing(kind, place)
    assert (place / "a.txt" if kind == "folder" else place).read_text() == "old"
    assert len(unfinished_in(tmp_path)) == 1
    with replacing(tmp_path / "another.txt") as unfinished:
        unfinished.write_text("new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["another.txt", "result"]


def test_copies_for_other_processes_are_removed_after_a_kill(tmp_path, monkeypatch):
    killed_while_writing("scratch", tmp_path, TMPDIR=str(tmp_path))
    (own,) = tmp_path.iterdir()
    assert len(unfinished_in(own)) == 1
    assert own.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_folder() as folder:
        assert unfinished_in(own) == [folder]
    assert unfinished_in(own) == []


def test_the_folder_of_a_run_that_still_works_is_left_alone(tmp_path):
    with staging(tmp_path) as mine:
        sweep(tmp_path)
        with staging(tmp_path) as other:
            assert mine.is_dir()
            assert other.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_inside_a_folder_of_ones_own_is_there_at_once(tmp_path):
    began = time.monotonic()
    with staging(tmp_path) as outer:
        with staging(outer) as inner:
            assert inner.parent == outer
        assert list(outer.iterdir()) == []
    assert time.monotonic() - began < 2, "it does not wait for its own lock"


def test_only_names_of_our_own_are_swept(tmp_path):
    kept = [
        ".discreet-0123456789abcdef.unfinishedx",
        ".people.0123abcd",
        "discreet-0123456789abcdef.unfinished",
    ]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / ".discreet-0123456789abcde0.unfinished").write_text("a file, not a folder")
    (tmp_path / ".discreet-0123456789abcde1.unfinished").symlink_to(tmp_path / kept[0])
    (tmp_path / ".discreet-0123456789abcde2.unfinished").mkdir()
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(kept) + 2


def test_a_folder_that_was_moved_aside_is_put_back(tmp_path):
    """What a kill between the two renames leaves, where folders cannot be exchanged in one step."""
    aside = tmp_path / ".discreet-0123456789abcdef.unfinished" / REPLACED / "package"
    aside.mkdir(parents=True)
    (aside / "a.txt").write_text("old")
    sweep(tmp_path)
    assert (tmp_path / "package" / "a.txt").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["package"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    place = tmp_path / "package"
    write_folder({"a.txt": b"old", "more/b.txt": b"old"}, place)
    with pytest.raises(InputError, match="already exists"):
        write_folder({"a.txt": b"new"}, place)
    fails_within(replacing_folder(place, overwrite=True))
    assert (place / "a.txt").read_text() == "old"
    write_folder({"a.txt": b"new"}, place, overwrite=True)
    assert [file.name for file in place.iterdir()] == ["a.txt"]
    assert (place / "a.txt").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["package"]


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path):
    place = tmp_path / "package"
    with pytest.raises(InputError, match="appeared while"), replacing_folder(place):
        write_folder({"a.txt": b"theirs"}, place)
    assert (place / "a.txt").read_text() == "theirs"
    assert [entry.name for entry in tmp_path.iterdir()] == ["package"]


def test_files_that_belong_together_take_their_place_together(tmp_path):
    places = [tmp_path / "1.txt", tmp_path / "2.txt"]
    fails_within(replacing_together(places))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_modes_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "page.html") as unfinished:
            unfinished.write_text("all of it")
        write_folder({"deep/a.txt": b"text"}, tmp_path / "package")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {
        "page.html": 0o666 & ~mask,
        "package": 0o777 & ~mask,
        "deep": 0o777 & ~mask,
        "a.txt": 0o666 & ~mask,
    }


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.csv.gz", "a.parquet", "a.arrow", "a.xlsx", "a.sav", "a.dta", "a.xpt", "pandas.parquet"],
)
def test_every_format_follows_the_umask(tmp_path, name):
    frame = pl.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    before = os.umask(0o027)
    try:
        write(frame.to_pandas() if name.startswith("pandas") else frame, tmp_path / name)
        append_line(tmp_path / "done.jsonl", "{}")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_device_is_no_place_to_write(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="no ordinary file"), replacing(pipe):
        pass
    assert pipe.is_fifo()


def test_what_was_written_is_known(tmp_path):
    before = len(written())
    fails_within(replacing(tmp_path / "a.txt"))
    assert len(written()) == before
    write_folder({"a.txt": b"text"}, tmp_path / "package")
    assert written()[before:] == ("package",)


def test_waiting_for_a_folder_that_somebody_holds_ends(tmp_path, monkeypatch):
    import fcntl

    monkeypatch.setattr("discreet.core.files.locks.PATIENCE", 0.05)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    began = time.monotonic()
    with replacing(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("all of it")
    os.close(handle)
    assert time.monotonic() - began < 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]
