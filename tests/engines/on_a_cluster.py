"""Work on two executors in processes of their own, one of which is killed on the way; run by test_cluster.py."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from discreet import Microdata, risk
from discreet.protect import Plan
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
