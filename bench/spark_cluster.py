"""What does discreet add to a query of Spark, and how much faster are two executors than one?

    python bench/spark_cluster.py [--rows 2000000] [--pinned] [--only protect "same by hand"]

Every number of executors has a process of its own with a cluster of real executors (``local-cluster[n,1,2048]``). A job
is held against a query of Spark that is written by hand: the overhead is told by the processor time of the driver and
all executors, which a busy machine changes least. Two executors are held against one by the clock, which means
something only where two processors have nothing else to do. With ``--pinned`` as many processors as executors are used,
driver included: otherwise one executor has its Java, its Python and its housekeeping on two processors already.

``protect`` is held against two: the bare expressions, which draw by the place of a record in its partition (another
number of partitions, another release) and look at nothing before, and ``same by hand``, which does what `protect` does:
it refuses a key that does not tell records apart, counts the jobs for the chances of PRAM, takes the spread of pay for
the noise, and draws by a hash of key and seed. Neither counts changed cells, which the log of a release counts when it
is asked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
from large_files import make

BESIDE = {
    "k_anonymity": ["group-by"],
    "assess": ["group-by + join"],
    "protect": ["expressions", "same by hand"],
    "tables": ["cells"],
}

JOB = """
import json, math, os, shutil, sys, threading, time, warnings
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from discreet import Microdata, assess, risk
from discreet.protect import AddNoise, Band, Plan, Pram, TopBottomCode
from discreet.tables import Table

executors, source, target, *only = sys.argv[1:]
keys = ["age", "sex", "job", "region", "size", "marital"]
spark = (
    SparkSession.builder.master(f"local-cluster[{executors},1,2048]")
    .config("spark.executor.memory", "1g").config("spark.ui.enabled", "false")
    # Java would give every executor of one core the garbage collector of the whole machine otherwise.
    .config("spark.executor.extraJavaOptions", "-XX:ActiveProcessorCount=1")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "4").config("spark.log.level", "OFF").getOrCreate()
)
frame = spark.read.parquet(source)
plan = Plan([Band(widths={"age": 5}), TopBottomCode(top={"pay": 9000}), Pram(["job"]), AddNoise("pay")])


def data():
    return Microdata(frame, keys=keys, sensitive="ill")


spent = {}


def look():
    # Driver, executors and their workers are one session. What was seen of a worker that has ended is kept.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == os.getsid(0):
            spent[stat, fields[19]] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def look_on():
    while True:
        look()
        time.sleep(1)


threading.Thread(target=look_on, daemon=True).start()


def processor_time():
    look()
    return sum(spent.values())


def counted():
    return frame.groupBy(*keys).count().groupBy("count").agg(F.count("*")).collect()


def joined():
    sizes = frame.groupBy(*keys).count()
    on = [frame[key].eqNullSafe(sizes[key]) for key in keys]
    both = frame.join(sizes, on=on, how="left")
    return both.groupBy("count", "ill").agg(F.count("*")).collect()


def by_hand():
    low = F.floor(F.col("age") / 5) * 5
    drawn = F.element_at(F.array(*map(F.lit, ["clerk", "cook", "nurse", "spy"])), (F.rand(1) * 4 + 1).cast("int"))
    treated = frame.select(
        "id", F.concat(F.lit("["), low, F.lit(", "), low + 5, F.lit(")")).alias("age"), "sex",
        F.when(F.rand(2) < 0.9, F.col("job")).otherwise(drawn).alias("job"),
        "region", "size", "marital", "ill", "visits",
        (F.least(F.col("pay"), F.lit(9000)) + 100 * F.randn(3)).alias("pay"), "hours", "savings", "wave",
    )
    treated.write.parquet(target)


def same_by_hand(seed=1):
    # As a careful analyst writes it: the key checked, chances and scale from the file, draws that belong to records.
    checked = frame.agg(F.count("*"), F.count("id")).first()
    if not checked[0] == checked[1] == frame.select("id").distinct().count():
        raise ValueError("id does not tell records apart")
    jobs = [row for row in frame.groupBy("job").count().sort("job").collect() if row["job"] is not None]
    known = sum(row["count"] for row in jobs)
    pay = F.least(F.col("pay"), F.lit(9000))
    scale = 0.1 * frame.agg(F.stddev_samp(pay)).first()[0]

    def uniform(part):
        return F.shiftrightunsigned(F.xxhash64("id", F.lit(seed), F.lit(part)), 11) * F.lit(2.0**-53)

    drawn, below = F.lit(jobs[-1]["job"]), 1.0
    for row in reversed(jobs):
        drawn, below = F.when(uniform(2) < below, row["job"]).otherwise(drawn), below - row["count"] / known
    low = F.floor(F.col("age") / 5) * 5
    normal = F.sqrt(-2 * F.log(uniform(3) + F.lit(2.0**-54))) * F.cos(2 * math.pi * uniform(4))
    treated = frame.select(
        "id", F.concat(F.lit("["), low, F.lit(", "), low + 5, F.lit(")")).alias("age"), "sex",
        F.when(F.col("job").isNull() | (uniform(1) < 0.9), F.col("job")).otherwise(drawn).alias("job"),
        "region", "size", "marital", "ill", "visits", (pay + scale * normal).alias("pay"), "hours", "savings", "wave",
    )
    treated.write.parquet(target)


def cells():
    return frame.cube("age", "sex", "wave").agg(F.count("*"), F.sum("pay")).collect()


jobs = {
    "group-by": counted,
    "k_anonymity": lambda: risk.k_anonymity(data()),
    "group-by + join": joined,
    "assess": lambda: assess(data()),
    "expressions": by_hand,
    "same by hand": same_by_hand,
    "protect": lambda: plan.apply(data(), record_key="id", seed=1).data.frame.write.parquet(target),
    "cells": cells,
    "tables": lambda: Table.from_microdata(data(), "age*sex*wave", measure="pay"),
}
for name, job in jobs.items():
    if only and name not in only:
        continue
    job()  # warms Java up
    shutil.rmtree(target, ignore_errors=True)
    began, used = time.perf_counter(), processor_time()
    job()
    found = name, time.perf_counter() - began, processor_time() - used
    print("found " + json.dumps(found), flush=True)
    shutil.rmtree(target, ignore_errors=True)
spark.stop()
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--pinned", action="store_true", help="as many processors as executors")
    asked.add_argument("--only", nargs="*", default=[], help="names of jobs")
    given = asked.parse_args()
    told: dict[int, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole = folder / "whole.parquet"
        make(whole, given.rows)
        (folder / "in").mkdir()
        numbered = pl.scan_parquet(whole).with_row_index("id").cast({"id": pl.Int64})
        for part in range(8):
            size = -(-given.rows // 8)
            numbered.slice(part * size, size).sink_parquet(folder / "in" / f"{part}.parquet")
        script = folder / "job.py"
        script.write_text(JOB)
        for executors in (1, 2):
            pinned = ["taskset", "--cpu-list", f"0-{executors - 1}"] if given.pinned else []
            job = subprocess.Popen(
                [*pinned, sys.executable, script, str(executors), folder / "in", folder / "out", *given.only],
                env={
                    **os.environ,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_WORKER_DIR": str(folder / "work"),
                },
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            assert job.stdout is not None
            for line in job.stdout:
                if not line.startswith("found "):
                    continue
                name, seconds, processor = json.loads(line.removeprefix("found "))
                told.setdefault(executors, {})[name] = seconds, processor
                ratio = "".join(
                    f", {processor / told[executors][beside][1]:.2f} x {beside}"
                    for beside in BESIDE.get(name, ())
                    if beside in told[executors]
                )
                print(
                    f"{executors} executors  {name:<16} {seconds:7.1f} s, {processor:7.1f} s of processor time{ratio}",
                    flush=True,
                )
            if job.wait():
                sys.exit(job.returncode)
    for name, (seconds, _) in told[1].items():
        print(f"{name:<16} two executors {seconds / told[2][name][0]:.2f} x as fast as one")


if __name__ == "__main__":
    main()
