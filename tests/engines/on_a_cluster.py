"""Work on two executors in processes of their own, one of which is killed on the way; run by test_cluster.py."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession

from discreet import Microdata, assess, risk
from discreet.core.errors import ParameterError
from discreet.protect import AddNoise, LocalSuppression, Mondrian, Plan, RecordSwap
from discreet.synth import Sequential
from engines.agreement import in_kind, in_polars
from engines.test_row_wise import ROLES, TREATMENTS, people

STEPS = ("top", "recode", "pram", "noise", "dates", "donut")


def executors() -> list[int]:
    """The processes of the executors."""
    found = subprocess.run(
        ["pgrep", "-f", "local-cluster-test.*CoarseGrainedExecutorBackend"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(each) for each in found.stdout.split()]


def digests(folder: Path) -> list[str]:
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.parquet"))]


def register(rows: int = 4000) -> pl.DataFrame:
    """People with coarse keys, so that classes are large enough to be treated."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "age": rng.integers(0, 60, rows),
            "sex": rng.choice(["f", "m"], rows),
            "town": rng.choice(["a", "b", "c"], rows),
            "ill": rng.choice(["no", "yes"], rows),
            "pay": rng.lognormal(size=rows),
        }
    )


def by_classes(spark: SparkSession, scratch: Path) -> None:
    """Treat by classes and write with Spark, as the how-to says."""
    roles = {"keys": ["age", "sex"], "sensitive": "ill"}
    table = register()
    here, there = Microdata(table, **roles), Microdata(spark.createDataFrame(table.to_pandas()), **roles)
    assert assess(there)["k_anonymity"].value == assess(here)["k_anonymity"].value
    swapping = RecordSwap(geography=["town"], keys=["age", "sex"], k=2, share=0.1)
    for treatment in (Mondrian(k=5), swapping):
        ours, theirs = (
            in_polars(treatment.apply(data, record_key="id", seed=1).data.frame).sort("id")
            for data in (there, here)
        )
        written = [each.select(pl.all().cast(pl.String)) for each in (ours, theirs)]
        assert written[0].equals(written[1]), treatment.name
    left = LocalSuppression(k=3).apply(there, record_key="id", seed=1).data
    assert assess(left)["k_anonymity"].value >= 3
    left.frame.drop("id").write.parquet(str(scratch / "release"))
    assert (
        pl.scan_parquet(scratch / "release" / "*.parquet").select(pl.len()).collect().item() == table.height
    )
    with pytest.raises(ParameterError, match="record_key"):
        AddNoise("pay").apply(there, seed=1)


def main(scratch: Path) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,2048]")
        .appName("local-cluster-test")
        .config("spark.executor.memory", "1g")
        .config("spark.executor.extraJavaOptions", "-Dname=local-cluster-test")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    table = people(2000)
    there = Microdata(in_kind(table, "pyspark", spark).repartition(6), **ROLES)
    here = Microdata(table, **ROLES)

    plan = Plan([TREATMENTS[name] for name in STEPS])
    made = plan.apply(there, record_key="name", seed=3).data.frame
    wanted = in_polars(plan.apply(here, record_key="name", seed=3).data.frame).sort("name")
    assert in_polars(made).sort("name").equals(wanted)
    first = executors()
    assert len(first) == 2, first
    print("the same bytes on two executors")

    assert risk.k_anonymity(there).figures == risk.k_anonymity(here).figures
    print("the same classes")

    by_classes(spark, scratch)
    print("the same cells by classes")

    os.kill(first[0], signal.SIGKILL)
    assert in_polars(made).sort("name").equals(wanted)
    print("the same bytes after an executor was killed")

    model = Sequential().fit(here, seed=1)
    model.sample(900, to=scratch / "here", rows_per_part=200, seed=2)
    model.sample(900, to=scratch / "there", rows_per_part=200, cluster=spark, seed=2)
    assert digests(scratch / "there") == digests(scratch / "here")
    assert len(digests(scratch / "there")) == 5
    print("the same synthetic parts")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
