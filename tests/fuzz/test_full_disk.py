"""A disk without room says so, for every kind of file, keeps what was there and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import Microdata
from discreet.core.errors import InputError
from discreet.hierarchy import Hierarchy
from discreet.io import write
from discreet.outputs import Session, append_decision, verify_register
from discreet.synth import Bootstrap, load

pytestmark = pytest.mark.slow
_ROOM = "256k"


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only the superuser of a Linux system can mount a small disk to fill")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this system does not let a small disk be mounted")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)  # a failed writer may still hold its file


@pytest.fixture(scope="module")
def large() -> pl.DataFrame:
    draws = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": draws.integers(0, 10**9, 40_000),
            "pay": draws.normal(size=40_000),
            "sex": draws.choice(["f", "m"], 40_000),
        }
    )


def is_refused(disk, call):
    before = {path.name: path.read_bytes() for path in disk.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="disk is full"):
        call()
    after = {path.name: path.read_bytes() for path in disk.iterdir() if path.is_file()}
    assert after == before
    assert {path.name for path in disk.iterdir()} == set(before)


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.tsv.gz", "a.parquet", "a.arrow", "a.feather", "a.xlsx", "a.sav", "a.zsav", "a.dta", "a.xpt"],
)
def test_a_data_file_keeps_its_old_content(small_disk, large, name):
    place = small_disk / name
    try:
        write(large.head(3), place)
    except InputError as error:
        pytest.skip(f"discreet does not write this format: {error}")
    is_refused(small_disk, lambda: write(large, place, overwrite=True))
    assert discreet.engine.collect(discreet.read(place)).height == 3


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_keeps_its_old_table(small_disk, large, kind, tmp_path):
    address = f"{kind}:///{small_disk / 'a.db'}"
    try:
        write(large.head(3), address, table="people")
    except InputError:
        # An empty database of some engines is larger than the disk; then nothing of it stays.
        assert list(small_disk.iterdir()) == []
        return
    with pytest.raises(InputError, match="cannot be written"):
        write(large, address, table="people", overwrite=True)
    assert discreet.engine.collect(discreet.read(address, query="people")).height == 3


@pytest.mark.parametrize("name", ["pack", "pack.zip"])
def test_a_package_keeps_its_old_content(small_disk, large, name):
    place = small_disk / name
    with Session(data=large) as session:
        session.crosstab("sex", name="one")
        session.save(place)
        session.crosstab("age", "sex", name="two", data=large.head(20_000))
        with pytest.raises(InputError, match="disk is full"):
            session.save(place, overwrite=True)
    assert [path.name for path in small_disk.iterdir()] == [name]
    assert len(list(discreet.outputs.Package.load(place))) == 1


def test_a_model_keeps_its_old_content(small_disk, large):
    place = small_disk / "m.model"
    Bootstrap().fit(Microdata(large.head(30)), seed=1).save(place)
    fitted = Bootstrap().fit(Microdata(large), seed=1)
    is_refused(small_disk, lambda: fitted.save(place))
    assert load(place).sample(4, seed=1).frame.height == 4


def test_reports_and_pictures_and_hierarchies_say_so(small_disk, large):
    (small_disk / "fill").write_bytes(b"x" * 250 * 1024)
    found = discreet.assess(Microdata(large.head(500), keys=["sex"]))
    is_refused(small_disk, lambda: found.to_html(small_disk / "r.html"))
    steps = Hierarchy.intervals(widths=[5, 20])
    is_refused(small_disk, lambda: steps.to_csv(small_disk / "h.csv", pl.Series(range(20_000))))


def test_a_register_stays_whole(small_disk):
    register = small_disk / "d.jsonl"
    common = {"output": "one", "decision": "accept", "checker": "C", "about": {"status": "pass"}}
    append_decision(register, note="small", **common)
    is_refused(small_disk, lambda: append_decision(register, note="x" * 400_000, **common))
    assert verify_register(register) == 1
