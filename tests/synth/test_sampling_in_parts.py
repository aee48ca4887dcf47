"""Synthetic files in parts: the same bytes for any number of workers, and a stopped run goes on."""

from __future__ import annotations

import copy
import hashlib
import json

import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.synth import Sequential


def people(rows: int = 300) -> Microdata:
    ages = [(7 * i) % 61 + 20 for i in range(rows)]
    jobs = ["clerk" if i % 3 else "cook" for i in range(rows)]
    return Microdata(pl.DataFrame({"age": ages, "job": jobs}), keys=["age", "job"])


def digests(folder) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.parquet"))
    }


@pytest.fixture(scope="module")
def model():
    return Sequential().fit(people(), seed=1)


def test_parts_are_a_file_that_is_read_part_by_part(model, tmp_path):
    made = model.sample(1050, to=tmp_path / "out", rows_per_part=400, seed=2)
    assert isinstance(made.frame, pl.LazyFrame)
    assert made.roles.keys == ("age", "job")
    assert made.frame.select(pl.len()).collect().item() == 1050
    noted = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert noted["complete"]
    assert noted["parts"] == 3
    assert len({*digests(tmp_path / "out").values()}) == 3


def test_a_stopped_run_goes_on_where_it_was(model, tmp_path):
    model.sample(1000, to=tmp_path / "whole", rows_per_part=250, seed=2)
    model.sample(1000, to=tmp_path / "out", rows_per_part=250, seed=2)
    (tmp_path / "out" / "part-000002.parquet").unlink()
    (tmp_path / "out" / "part-000001.parquet").write_bytes(b"half of it")
    kept = (tmp_path / "out" / "part-000000.parquet").stat().st_mtime_ns
    model.sample(1000, to=tmp_path / "out", rows_per_part=250, seed=2, resume=True)
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    assert (tmp_path / "out" / "part-000000.parquet").stat().st_mtime_ns == kept


def test_what_does_not_belong_together_is_refused(model, tmp_path):
    model.sample(500, to=tmp_path / "out", rows_per_part=250, seed=2)
    with pytest.raises(InputError, match="not empty"):
        model.sample(500, to=tmp_path / "out", rows_per_part=250, seed=2)
    with pytest.raises(InputError, match="another seed"):
        model.sample(500, to=tmp_path / "out", rows_per_part=250, seed=3, resume=True)
    with pytest.raises(ParameterError, match="seed of the first run"):
        model.sample(500, to=tmp_path / "out", resume=True)
    with pytest.raises(ParameterError, match="one copy"):
        model.sample(500, to=tmp_path / "new", copies=2)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        model.sample(500, to=tmp_path / "file")


def test_households_are_not_numbered_anew_in_every_part(model, tmp_path):
    of_households = copy.copy(model)
    of_households.like = model.like.with_roles(household="age")
    with pytest.raises(ParameterError, match="household"):
        of_households.sample(500, to=tmp_path / "out", rows_per_part=250, seed=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_workers(model, tmp_path):
    model.sample(1000, to=tmp_path / "one", rows_per_part=250, seed=2)
    model.sample(1000, to=tmp_path / "two", rows_per_part=250, workers=2, seed=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
