"""The how-to for Spark clusters, on executors in processes of their own (``local-cluster``), as on a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.agreement import why_no_spark

SRC = Path(__file__).parents[2] / "src"

SCRIPT = """
import json, os, sys
import polars as pl
from pyspark.sql import SparkSession

from discreet import Microdata, assess
from discreet.errors import ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect import AddNoise, Band, LocalSuppression, Mondrian, Plan, Pram, RecordSwap

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local-cluster[2,1,2048]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    .config("spark.executor.memory", "1g")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
table = pl.read_parquet(f"{folder}/people.parquet")
roles = {"keys": ["age", "sex"], "sensitive": "ill"}
whole = Microdata(table, **roles)
people = Microdata(spark.read.parquet(f"{folder}/people.parquet").repartition(6), **roles)
told = {"tasks_elsewhere": spark.sparkContext.parallelize(range(4), 4).map(lambda _: os.getpid()).distinct().count()}
told["k"] = [assess(data)["k_anonymity"].value for data in (whole, people)]

def same(treatment, **options):
    ours = pl.from_arrow(treatment.apply(people, record_key="id", seed=1, **options).data.frame.toArrow()).sort("id")
    theirs = treatment.apply(whole, record_key="id", seed=1, **options).data.frame.sort("id")
    return ours.select(pl.all().cast(pl.String)).equals(theirs.select(pl.all().cast(pl.String)))

told["row-wise"] = same(Plan([Band(widths={"age": 10}), Pram(["ill"], change=0.2), AddNoise("pay", level=0.1)]))
told["mondrian"] = same(Mondrian(k=5))
told["swap"] = same(RecordSwap(geography=["town"], keys=["age", "sex"], k=2, share=0.1))
left = LocalSuppression(k=3).apply(people, record_key="id", seed=1).data
told["suppressed k"] = assess(left)["k_anonymity"].value
left.frame.drop("id").write.parquet(f"{folder}/release")
told["rows"] = pl.scan_parquet(f"{folder}/release/*.parquet").select(pl.len()).collect().item()
try:
    AddNoise("pay").apply(people, seed=1)
except ParameterError as error:
    told["without a key"] = "record_key" in str(error)
print("FOUND " + json.dumps(told))
spark.stop()
"""


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_the_how_to_works_on_executors_of_their_own(tmp_path):
    import numpy as np
    import polars as pl
    import pyspark

    rng = np.random.default_rng(1)
    rows = 4000
    pl.DataFrame(
        {
            "id": np.arange(rows),
            "age": rng.integers(0, 60, rows),
            "sex": rng.choice(["f", "m"], rows),
            "town": rng.choice(["a", "b", "c"], rows),
            "ill": rng.choice(["no", "yes"], rows),
            "pay": rng.lognormal(size=rows),
        }
    ).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "job.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(SRC), *filter(None, sys.path)])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Executors of a local cluster are started by the scripts of the distribution.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, tmp_path / "job.py", tmp_path],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-2000:]
    told = json.loads(lines[0].removeprefix("FOUND "))
    assert told["tasks_elsewhere"] >= 2
    assert told["k"][0] == told["k"][1]
    assert told["row-wise"]
    assert told["mondrian"]
    assert told["swap"]
    assert told["suppressed k"] >= 3
    assert told["rows"] == rows
    assert told["without a key"]
