"""Files larger than memory: how long does the work take beside the bare engine, and with how much memory?

Every job runs in a process of its own, which is killed when its private memory has grown beyond the cap since its
imports. ``python bench/large_files.py --rows 10000000 --cap 8000`` writes the file first: twelve columns, six of them
keys, skewed texts and numbers with gaps (``--many-classes`` for keys that few records share). A job is held against the
bare one named beside it, by processor time, which a busy machine changes least. ``sample`` draws as many records from a
model of the Adult file by two worker processes and prints records a second; ``compare`` holds the file against a
treated copy of itself, beside the bare queries: every column and every pair of columns of both counted by the engine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

JOB = """
import os, sys, time
from itertools import combinations
import polars as pl
from discreet import Microdata, assess, compare, datasets, utility, write
from discreet.protect import AddNoise, Band, LocalSuppression, Mondrian, Plan, Pram, RobinHood, TopBottomCode
from discreet.synth import Sequential
from discreet.tables import PPercent, Table, Threshold, primary


def main(job, source, target, rows):
    keys = ["age", "sex", "job", "region", "size", "marital"]
    plan = Plan([Band(widths={"age": 5}), TopBottomCode(top={"pay": 9000}), Pram(["job"]), AddNoise("pay")])
    few = pl.DataFrame({"age": [1, 2] * 9, "pay": [1.0, 2.0] * 9, "job": ["a", "b"] * 9})
    small = Microdata(few.lazy(), keys=["age", "job"], sensitive="pay")
    plan.apply(Microdata(few), seed=1), assess(small), LocalSuppression(k=3).apply(small).data.frame.collect()
    Mondrian(k=3).apply(small).data.frame.collect(), utility.tabular(small, small)
    if job.endswith("polars"):
        frame = pl.scan_parquet(source)
    else:
        import duckdb
        connection = duckdb.connect(config={"memory_limit": "2GB"})
        frame = connection.read_parquet(source)
    data = Microdata(frame, keys=keys, sensitive="ill")
    pairs = list(combinations([name for name in data.columns if name not in ("pay", "hours", "savings")], 2))
    if job.startswith("sample"):
        model = Sequential().fit(datasets.adult(), seed=1)
    if job.endswith("compare polars") or job.endswith("compare duckdb"):
        drawn = Plan([Pram(["job"]), Band(widths={"age": 5})]).apply(Microdata(pl.scan_parquet(source)), seed=1)
        write(drawn.data, target)
        other = pl.scan_parquet(target) if job.endswith("polars") else connection.read_parquet(target)
        released = Microdata(other)

    def count_and_join():
        on = " and ".join(f"a.{key} is not distinct from b.{key}" for key in keys)
        sizes = frame.aggregate(", ".join(keys) + ", count(*) as n", ", ".join(keys))
        joined = frame.set_alias("a").join(sizes.set_alias("b"), on, how="left")
        return joined.aggregate("n, count(*)", "n").fetchall()

    def two_way_tables():
        for pair in pairs:
            frame.aggregate(", ".join(pair) + ", count(*)", ", ".join(pair)).fetchall()

    def tables():
        utility.tabular(data, data, columns=sorted({name for pair in pairs for name in pair}), ways=2)

    def inner_cells():
        columns = "region, age, sex, wave"
        frame.aggregate(columns + ", count(*), sum(pay), max(pay)", columns).to_arrow_table()

    def built():
        primary(Table.from_microdata(data, "region*age*sex*wave", measure="pay"), Threshold(3), PPercent(10))

    def bare_compare():
        names = list(data.columns)
        for columns in [(name,) for name in names] + list(combinations(names, 2)):
            wide = [name for name in columns if name in ("pay", "hours", "savings")]
            for one in (frame, other):
                if job.endswith("polars"):
                    groups = [pl.col(n) if n not in wide else (pl.col(n) // 1000).alias(n) for n in columns]
                    one.group_by(groups).agg(pl.len()).collect(engine="streaming")
                else:
                    cut = ", ".join(f"{n} // 1000" if n in wide else n for n in columns)
                    one.aggregate(f"{cut}, count(*)", cut).fetchall()

    def treated(treatment):
        return write(treatment.apply(data, seed=1).data, target)

    jobs = {
        "copy": lambda: write(data, target),
        "protect": lambda: treated(plan),
        "group-by + join": count_and_join,
        "assess": lambda: assess(data),
        "two-way tables": two_way_tables,
        "tabular": tables,
        "inner cells": inner_cells,
        "table": built,
        "load": lambda: len(frame.collect() if job.endswith("polars") else frame.to_arrow_table()),
        "local suppression": lambda: treated(LocalSuppression(k=3)),
        "mondrian": lambda: treated(Mondrian(k=5)),
        "robin hood": lambda: treated(RobinHood("sex", k_target=10, keys=["sex", "size", "marital"])),
        "bare compare": bare_compare,
        "compare": lambda: compare(data, released, rows=100_000, seed=1),
        "sample": lambda: model.sample(int(rows), to=target + " parts", workers=2, seed=2),
    }
    print("ready", flush=True)
    began, used = time.perf_counter(), sum(os.times()[:4])
    jobs[job.rpartition(" ")[0]]()
    print(f"{time.perf_counter() - began:.2f} {sum(os.times()[:4]) - used:.2f}")

if __name__ == "__main__":  # worker processes read this file again
    main(*sys.argv[1:])
"""

JOBS = {
    "copy polars": None,
    "protect polars": "copy polars",
    "copy duckdb": None,
    "protect duckdb": "copy duckdb",
    "group-by + join duckdb": None,
    "assess duckdb": "group-by + join duckdb",
    "two-way tables duckdb": None,
    "tabular duckdb": "two-way tables duckdb",
    "inner cells duckdb": None,
    "table duckdb": "inner cells duckdb",
    "local suppression polars": "copy polars",
    "mondrian polars": "copy polars",
    "robin hood polars": "copy polars",
    "bare compare polars": None,
    "compare polars": "bare compare polars",
    "bare compare duckdb": None,
    "compare duckdb": "bare compare duckdb",
    "sample polars": None,
}


def make(path: Path, rows: int, *, many_classes: bool = False) -> None:
    """Write the file, a part at a time; with many classes, a hundred million records have five million of them."""
    steep, regions = (1.4, 740) if many_classes else (1.6, 400)
    rng, writer = np.random.default_rng(1), None
    for start in range(0, rows, 500_000):
        size = min(500_000, rows - start)

        def gaps(values, share: float, many: int = size) -> pl.Series:
            return pl.Series(values).set(pl.Series(rng.random(many) < share), None)

        part = pl.DataFrame(
            {
                "age": rng.integers(0, 95, size),
                "sex": rng.choice(["f", "m", "x"], size, p=[0.5, 0.49, 0.01]),
                "job": gaps(
                    rng.choice(["clerk", "cook", "nurse", "spy"], size, p=[0.6, 0.25, 0.1, 0.05]), 0.02
                ),
                "region": rng.zipf(steep, size) % regions,
                "size": rng.choice(["1", "2", "3-4", "5+"], size),
                "marital": rng.choice(["single", "married", "widowed"], size, p=[0.4, 0.5, 0.1]),
                "ill": rng.choice(["no", "mild", "severe"], size, p=[0.8, 0.15, 0.05]),
                "visits": rng.poisson(2, size),
                "pay": gaps(rng.lognormal(7, 1, size), 0.1),
                "hours": gaps(rng.normal(36, 9, size).round(1), 0.05),
                "savings": gaps(rng.lognormal(9, 2, size).round(2), 0.2),
                "wave": rng.integers(1, 9, size),
            }
        ).to_arrow()
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def run(job: str, source: Path, folder: Path, cap: int, rows: int) -> tuple[float, float, int] | str:
    """Run one job under the cap: wall-clock time, processor time and the most memory it took, or what stopped it."""
    script = folder / "job.py"
    script.write_text(JOB)
    target = folder / f"{job}.parquet"
    child = subprocess.Popen(
        [sys.executable, script, job, source, target, str(rows)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    if child.stdout.readline() != "ready\n":
        return "failed"
    first, most = private_memory(child.pid), 0
    while child.poll() is None:
        most = max(most, private_memory(child.pid) - first)
        if most > cap:
            child.kill()
            child.wait()
            return f"killed beyond {cap / 2**20:.0f} MB"
        time.sleep(0.01)
    said = child.stdout.read().split()
    target.unlink(missing_ok=True)
    return (float(said[-2]), float(said[-1]), most) if len(said) >= 2 else "failed"


def private_memory(process: int) -> int:
    """Bytes of memory of their own that a process and its children hold, without pages of files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)
    return own + sum(private_memory(int(child)) for child in children)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--cap", type=int, default=8000, help="MB beyond what the imports take")
    asked.add_argument("--jobs", nargs="*", default=list(JOBS), help="of those in JOBS, or 'load polars'")
    asked.add_argument(
        "--many-classes", action="store_true", help="finer regions: five million classes at most"
    )
    asked.add_argument(
        "--file", type=Path, help="write the file there, or take the one that is there, and keep it"
    )
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = given.file or folder / "in.parquet"
        if not source.exists():
            make(source, given.rows, many_classes=given.many_classes)
        rows = pq.read_metadata(source).num_rows
        print(f"{rows:,} rows, {source.stat().st_size / 2**20:,.0f} MB", flush=True)
        used: dict[str, float] = {}
        for job in given.jobs:
            found = run(job, source, folder, given.cap * 2**20, rows)
            if isinstance(found, str):
                print(f"{job:<26} {found}", flush=True)
                continue
            seconds, processor, memory = found
            used[job] = processor
            beside = JOBS.get(job)
            ratio = f", {processor / used[beside]:.2f} x {beside}" if beside and used.get(beside) else ""
            if job.startswith("sample"):
                ratio = f", {given.rows / seconds:,.0f} rows/s, {given.rows / processor:,.0f} per processor second"
            print(
                f"{job:<26} {seconds:8.1f} s, {processor:8.1f} s of processor time, {memory / 2**20:6.0f} MB{ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
