"""A release in parts is whole or not there, and a run that was stopped goes on with the same bytes."""

from __future__ import annotations

import errno
import hashlib
import json
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, read
from discreet.core.errors import InputError, ParameterError
from discreet.core.files import journals
from discreet.engine import spooling
from discreet.io import write_parts
from discreet.io import writing as module
from discreet.protect import AddNoise, Band, Plan, Pram

PLAN = Plan([Band(widths={"age": 10}), Pram(["job"], change=0.3), AddNoise("pay", level=0.2)])


def people(rows: int = 2000) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 90, rows),
            "job": rng.choice(["clerk", "cook", None], rows),
            "pay": rng.lognormal(size=rows),
        }
    )


def digests(folder) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.parquet"))
    }


@pytest.fixture
def source(tmp_path):
    people().write_parquet(tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def stopped(monkeypatch, after: int, error: BaseException) -> None:
    """Let the writing fail after so many parts."""
    whole, seen = module.digest_of, []

    def fails(path):
        seen.append(path)
        if len(seen) > after:
            raise error
        return whole(path)

    monkeypatch.setattr(module, "digest_of", fails)


def test_parts_have_the_records_of_the_release_in_order(source, tmp_path):
    release = PLAN.apply(read(source), seed=1)
    folder = write_parts(release.data, tmp_path / "out", rows_per_part=300)
    noted = json.loads((folder / "manifest.json").read_text())
    assert (noted["complete"], noted["parts"], noted["rows"]) == (True, 7, 2000)
    whole = PLAN.apply(Microdata(people()), seed=1).data.frame
    made = pl.read_parquet(folder / "part-*.parquet")
    assert made.with_columns(pl.col("age").cast(pl.String)).equals(
        whole.with_columns(pl.col("age").cast(pl.String))
    )
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in.parquet", "out"]


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_a_run_that_was_stopped_goes_on_with_the_same_bytes(kind, source, tmp_path, monkeypatch):
    def release(seed=1):
        if kind == "polars":
            return PLAN.apply(read(source), seed=seed).data
        duckdb = pytest.importorskip("duckdb")
        return PLAN.apply(Microdata(duckdb.connect().read_parquet(str(source))), seed=seed).data

    expected = digests(write_parts(release(), tmp_path / "whole", rows_per_part=300))
    with monkeypatch.context() as patched:
        stopped(patched, 3, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            write_parts(release(), tmp_path / "out", rows_per_part=300)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="resume=True"):
        write_parts(release(), tmp_path / "out", rows_per_part=300)
    with pytest.raises(InputError, match="another plan or another seed"):
        write_parts(release(2), tmp_path / "out", rows_per_part=300, resume=True)
    with pytest.raises(InputError, match="another source"):
        write_parts(release(), tmp_path / "out", rows_per_part=400, resume=True)
    (tmp_path / "out.unfinished" / "part-000001.parquet").write_bytes(b"half of it")
    assert digests(write_parts(release(), tmp_path / "out", rows_per_part=300, resume=True)) == expected
    assert not (tmp_path / "out.unfinished").exists()


def test_a_full_disk_leaves_no_release_and_says_how_to_go_on(source, tmp_path, monkeypatch):
    release = PLAN.apply(read(source), seed=1).data
    with monkeypatch.context() as patched:
        stopped(patched, 2, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        with pytest.raises(InputError, match=r"disk is full.*no release.*--resume"):
            write_parts(release, tmp_path / "out", rows_per_part=300)
    assert not (tmp_path / "out").exists()
    write_parts(release, tmp_path / "out", rows_per_part=300, resume=True)
    assert pl.scan_parquet(tmp_path / "out" / "*.parquet").select(pl.len()).collect().item() == 2000


def test_a_source_that_changes_while_it_is_read_is_refused(source, tmp_path, monkeypatch):
    release = PLAN.apply(read(source), seed=1).data
    note, times = journals.PartsManifest.note, []

    def noted(self, done):
        times.append(len(done))
        if len(times) == 3:
            os.utime(source, ns=(1, 1))
        note(self, done)

    monkeypatch.setattr(journals.PartsManifest, "note", noted)
    with pytest.raises(InputError, match="changed or removed since it was opened"):
        write_parts(release, tmp_path / "out", rows_per_part=300)
    assert not (tmp_path / "out").exists()


def test_bad_places_are_refused(tmp_path):
    (tmp_path / "there").mkdir()
    for name, message in (("there", "already exists"), ("no/where", "does not exist")):
        with pytest.raises(InputError, match=message):
            write_parts(people(5), tmp_path / name)
    with pytest.raises(ParameterError, match="rows_per_part"):
        write_parts(people(5), tmp_path / "out", rows_per_part=0)
    with pytest.raises(InputError, match="no record"):
        write_parts(people(5).head(0), tmp_path / "out")
    (tmp_path / "x.unfinished").write_text("")
    with pytest.raises(InputError, match="is a file"):
        write_parts(people(5), tmp_path / "x", resume=True)


@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.integers(0, 7), max_size=12), rows=st.integers(1, 6))
def test_batches_of_any_size_make_parts_of_one_size(sizes, rows):
    numbers = pl.DataFrame({"x": range(sum(sizes))})
    ends = np.cumsum([0, *sizes])
    batches = (numbers.slice(int(begin), size) for begin, size in zip(ends, sizes, strict=False))
    parts = list(spooling._of_size(batches, rows))
    assert all(part.height == rows for part in parts[:-1])
    assert sum(part.height for part in parts) == numbers.height
    assert not parts or pl.concat(parts).equals(numbers)
