"""A real cluster: executors in processes of their own give the bytes of one machine, also after one is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.core.errors import ParameterError
from engines.agreement import why_no_spark

TESTS = Path(__file__).parents[1]
SAID = (
    "the same bytes on two executors",
    "the same classes",
    "the same cells by classes",
    "the same bytes after an executor was killed",
    "the same synthetic parts",
)


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_two_executors_give_the_same_bytes(tmp_path):
    # A process of its own: a session of Spark that is there already would be handed out again.
    there = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "DISCREET_KEY": "a secret of at least sixteen bytes",
    }
    run = subprocess.run(
        [sys.executable, str(TESTS / "engines" / "on_a_cluster.py"), str(tmp_path)],
        env=there,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert [line for line in run.stdout.splitlines() if line in SAID] == list(SAID)


def test_a_cluster_draws_into_a_folder_and_must_be_one(tmp_path):
    import polars as pl

    from discreet import Microdata
    from discreet.synth import Independent

    model = Independent().fit(Microdata(pl.DataFrame({"age": [30, 40, 50]})), seed=1)
    with pytest.raises(ParameterError, match="Name it under to"):
        model.sample(5, cluster=object(), seed=1)
    with pytest.raises(ParameterError, match="classic Spark session"):
        model.sample(5, to=tmp_path / "a", cluster=object(), seed=1)
    with pytest.raises(ParameterError, match="one of the two"):
        model.sample(5, to=tmp_path / "b", cluster=object(), workers=2, seed=1)
