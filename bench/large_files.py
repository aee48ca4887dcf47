"""Protecting a file larger than memory: how long beside copying it, and with how much memory?

Every job runs in a process of its own, which is killed when its private memory has grown beyond the cap since its
imports. ``python bench/large_files.py --rows 10000000 --cap 2000`` writes the file first (a few columns, gaps, skew).
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

JOB = """
import sys, time
import polars as pl
from discreet import Microdata, write
from discreet.protect import AddNoise, Band, Plan, Pram, TopBottomCode

job, source, target = sys.argv[1:]
plan = Plan([Band(widths={"age": 5}), TopBottomCode(top={"pay": 9000}), Pram(["job"]), AddNoise("pay")])
plan.apply(Microdata(pl.DataFrame({"age": [1, 2], "pay": [1.0, 2.0], "job": ["a", "b"]})), seed=1)
if job.endswith("duckdb"):
    import duckdb
    frame = duckdb.connect(config={"memory_limit": "1GB"}).read_parquet(source)
else:
    frame = pl.scan_parquet(source)
print("ready", flush=True)
began, used = time.perf_counter(), time.process_time()
data = Microdata(frame, keys=["age", "job"])
write(data if job.startswith("copy") else plan.apply(data, seed=1).data, target)
print(f"{time.perf_counter() - began:.2f} {time.process_time() - used:.2f}")
"""


def make(path: Path, rows: int) -> None:
    """Write the file, a part at a time."""
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(1), None
    for start in range(0, rows, 500_000):
        size = min(500_000, rows - start)
        part = pl.DataFrame(
            {
                "age": rng.integers(0, 95, size),
                "job": rng.choice(["clerk", "cook", "nurse", "spy"], size, p=[0.6, 0.25, 0.1, 0.05]),
                "region": rng.zipf(1.6, size) % 400,
                "pay": pl.Series(rng.lognormal(7, 1, size)).set(pl.Series(rng.random(size) < 0.1), None),
            }
        ).to_arrow()
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def run(job: str, source: Path, folder: Path, cap: int) -> str:
    """Run one job under the cap; give wall-clock time, processor time and the most memory it took."""
    script = folder / "job.py"
    script.write_text(JOB)
    target = folder / f"{job}.parquet"
    child = subprocess.Popen([sys.executable, script, job, source, target], stdout=subprocess.PIPE, text=True)
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
    return f"{said[0]} s, {said[1]} s of processor time, {most / 2**20:.0f} MB" if said else "failed"


def private_memory(process: int) -> int:
    """Bytes of memory of its own that a process holds, without pages of files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--cap", type=int, default=2000, help="MB beyond what the imports take")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder / "in.parquet", given.rows)
        for job in ("copy-polars", "protect-polars", "copy-duckdb", "protect-duckdb"):
            print(f"{job:<16} {run(job, folder / 'in.parquet', folder, given.cap * 2**20)}", flush=True)


if __name__ == "__main__":
    main()
