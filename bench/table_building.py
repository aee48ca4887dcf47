"""How close to the bare engine is building a hierarchical table from ten million records?

Four dimensions (100 regions in 2 levels of groups, 80 activities in 1, 18 ages in 1, sex) with counts and the sum of
one measure: about 288,000 inner cells and 874,000 published ones. The bare engine aggregates the inner cells, and, as a
second yardstick, all published cells by one query each level (grouping sets in DuckDB). Every figure is the median of
three runs in processes of their own::

    python bench/table_building.py
    python bench/table_building.py --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = (
    ("polars", "inner cells, bare"),
    ("polars", "Table"),
    ("polars", "Table, one column of codes as hierarchy"),
    ("polars", "Table, then Dominance(1, 85)"),
    ("polars", "Table, then PPercent(10)"),
    ("polars", "Table, then x"),
    ("duckdb", "inner cells, bare"),
    ("duckdb", "all cells, bare grouping sets"),
    ("duckdb", "Table"),
)

JOB = """
import json, resource, sys, time
import polars as pl
from discreet.tables import Dominance, PPercent, Table, primary
engine, job, path = sys.argv[1:]
keys = ["region", "activity", "age", "sex"]
fives = [[f"r{i * 5 + k:03d}" for k in range(5)] for i in range(20)]
regions = {f"R{i}": {f"R{i}.{j}": fives[2 * i + j] for j in range(2)} for i in range(10)}
activities = {f"A{i}": [f"a{i * 10 + k:02d}" for k in range(10)] for i in range(8)}
ages = {f"g{i}": [i * 3 + k for k in range(3)] for i in range(6)}
hierarchies = {"region": regions, "activity": activities, "age": ages}

def source():
    if engine == "duckdb":
        import duckdb
        return duckdb.connect().read_parquet(path)
    return pl.scan_parquet(path)

def inner():
    if engine == "duckdb":
        columns = ", ".join(keys)
        return source().aggregate(f"{columns}, count(*) as n, sum(turnover) as turnover", columns).to_arrow_table()
    return source().group_by(keys).agg(n=pl.len(), turnover=pl.col("turnover").sum()).collect(engine="streaming")

def everything():
    import duckdb, itertools
    levels = [["region", "left(region, 3)", "left(region, 2)", None], ["activity", "left(activity, 2)", None],
              ["age", "age // 3", None], ["sex", None]]
    sets = ", ".join("(" + ", ".join(c for c in chosen if c) + ")" for chosen in itertools.product(*levels))
    query = f"select count(*) as n, sum(turnover) as t from '{path}' group by grouping sets ({sets})"
    return duckdb.sql(query).to_arrow_table()

def table(hierarchies=hierarchies):
    return Table.from_microdata(source(), "region*activity*age*sex", measure="turnover", hierarchies=hierarchies)

jobs = {
    "inner cells, bare": inner,
    "all cells, bare grouping sets": everything,
    "Table": table,
    "Table, one column of codes as hierarchy": lambda: table({**hierarchies, "region": "county"}),
    "Table, then Dominance(1, 85)": lambda: primary(table(), Dominance(1, 85)),
    "Table, then PPercent(10)": lambda: primary(table(), PPercent(10)),
    "Table, then x": lambda: table().x,
}
Table.from_microdata(pl.DataFrame({"a": ["x", "y"]}), "a").x
start = time.perf_counter()
jobs[job]()
print(json.dumps([time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def write(path: Path, rows: int) -> None:
    """Write the records."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(20)
    region, activity = rng.integers(0, 100, rows), rng.integers(0, 80, rows)
    names = {
        "region": pl.Series([f"r{i:03d}" for i in range(100)]),
        "county": pl.Series([f"R{i // 10}" for i in range(100)]),
    }
    pl.DataFrame(
        {
            **{name: labels.gather(region) for name, labels in names.items()},
            "activity": pl.Series([f"a{i:02d}" for i in range(80)]).gather(activity),
            "age": rng.integers(0, 18, rows),
            "sex": pl.Series(["f", "m"]).gather(rng.integers(0, 2, rows)),
            "turnover": np.round(np.exp(rng.normal(3, 2, rows)), 2),
        }
    ).write_parquet(path)


def timed(engine: str, job: str, path: Path) -> tuple[float, float]:
    """Run one job in a process of its own: seconds and peak MiB."""
    done = subprocess.run(
        [sys.executable, "-c", JOB, engine, job, str(path)], capture_output=True, text=True, check=True
    )
    seconds, memory = json.loads(done.stdout.strip().splitlines()[-1])
    return seconds, memory


def main() -> None:
    """Write the file, run the jobs, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write(path, options.rows)
        bare: dict[str, float] = {}
        print(f"{options.rows:,} records, {options.runs} runs each\n")
        print(f"{'engine':<8} {'job':<42} {'seconds':>8} {'MiB':>8} {'to bare':>8}")
        for engine, job in JOBS:
            runs = [timed(engine, job, path) for _ in range(options.runs)]
            seconds = statistics.median(run[0] for run in runs)
            memory = max(run[1] for run in runs)
            bare.setdefault(engine, seconds)
            print(f"{engine:<8} {job:<42} {seconds:>8.2f} {memory:>8,.0f} {seconds / bare[engine]:>8.2f}")


if __name__ == "__main__":
    main()
