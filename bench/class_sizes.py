"""How close to the bare engine are class sizes and the measures that rest on them?

Ten million rows, six keys (100, 50, 20, 10, 5 and 2 values) and a sensitive column, as Parquet; medians of three
runs, each in a process of its own, with its peak memory. The bare group-by hands back its table of classes, which
k_anonymity does not need (it keeps the number of classes of each size), so a ratio below one is no faster group-by;
record detail includes the k_anonymity call before it. ``--keys realistic`` takes skewed text keys with missing
values and few classes instead. pycanon runs in an environment of its own, at the largest size it finishes in time::

    python -m venv .venv-pycanon && .venv-pycanon/bin/pip install pycanon pandas pyarrow
    python bench/class_sizes.py --peer-python .venv-pycanon/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = (
    "group-by",
    "group-by + join",
    "k_anonymity",
    "k_anonymity, records",
    "l_diversity",
    "t_closeness",
    "assess",
)
CARDINALITIES = (100, 50, 20, 10, 5, 2)
KEYS = [f"k{i}" for i in range(len(CARDINALITIES))]

JOB = """
import json, resource, sys, time
job, engine, path = sys.argv[1:]
keys = [f"k{i}" for i in range(6)]
if engine == "pycanon":
    import pandas as pd
    from pycanon import anonymity
else:
    import polars as pl
    from discreet import Microdata, assess, risk
    warm = Microdata(pl.LazyFrame({"a": [1, 2], "s": ["x", "y"]}), keys="a", sensitive="s")
    risk.k_anonymity(warm), risk.l_diversity(warm), risk.t_closeness(warm)
    if job == "assess":
        assess(warm)

def source():
    if engine == "duckdb":
        import duckdb
        return duckdb.connect().read_parquet(path)
    return pl.scan_parquet(path)

def data():
    return Microdata(source(), keys=keys, sensitive="s")

def records():
    detail = risk.k_anonymity(data()).detail["records"]
    return detail.to_arrow_table() if engine == "duckdb" else detail.collect(engine="streaming")

def group_by():
    if engine == "duckdb":
        return source().aggregate(", ".join(keys) + ", count(*) as n", ", ".join(keys)).to_arrow_table()
    return source().group_by(keys).agg(n=pl.len()).collect(engine="streaming")

def group_by_join():
    if engine == "duckdb":
        rows, on = source(), " and ".join(f"a.{key} is not distinct from b.{key}" for key in keys)
        sizes = rows.aggregate(", ".join(keys) + ", count(*) as n", ", ".join(keys))
        chosen = ", ".join(f"a.{key}" for key in keys)
        return rows.set_alias("a").join(sizes.set_alias("b"), on, how="left").project(f"{chosen}, n").to_arrow_table()
    sizes = source().group_by(keys).agg(n=pl.len())
    joined = source().select(keys).join(sizes, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.collect(engine="streaming")

def peer():
    frame = pd.read_parquet(path)
    return anonymity.k_anonymity(frame, keys) if job == "k_anonymity" else anonymity.l_diversity(frame, keys, ["s"])

jobs = {
    "group-by": group_by,
    "group-by + join": group_by_join,
    "k_anonymity": lambda: risk.k_anonymity(data()),
    "k_anonymity, records": records,
    "l_diversity": lambda: risk.l_diversity(data()),
    "t_closeness": lambda: risk.t_closeness(data()),
    "assess": lambda: assess(data()),
}
run = peer if engine == "pycanon" else jobs[job]
start = time.perf_counter()
run()
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def write(path: Path, rows: int, kind: str) -> None:
    """Write the file: even numbers for keys, or skewed texts with missing values."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(20)
    columns = {}
    for key, levels in zip(KEYS, CARDINALITIES, strict=True):
        if kind == "even":
            columns[key] = pl.Series(rng.integers(0, levels, rows))
            continue
        weights = 1 / np.arange(1, levels + 1) ** 2
        codes = pl.Series(rng.choice(levels, rows, p=weights / weights.sum()))
        texts = pl.Series([f"category {i} of {key}" for i in range(levels)]).gather(codes)
        columns[key] = pl.select(pl.when(pl.Series(rng.random(rows) > 0.01)).then(texts)).to_series()
    columns["s"] = pl.Series(rng.integers(0, 20, rows))
    pl.DataFrame(columns).write_parquet(path)


def timed(python: str, job: str, engine: str, path: Path, limit: float = 600) -> tuple[float, float] | str:
    """Run one job in a process of its own: seconds and peak MiB, or why there are none."""
    command = [python, "-W", "ignore", "-c", JOB, job, engine, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"not within {limit:.0f} s"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return f"crashed (exit code {done.returncode}): {said[-1][:200] if said else 'it said nothing'}"
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def against_engine(engine: str, full: Path, tenth: Path, repeats: int, jobs: list[str]) -> None:
    """Print one engine's table, each job beside the bare query it is held against.

    The jobs take turns, so that a machine that gets busier meanwhile is not read as a slower method.
    """
    places = [(job, full) for job in jobs] + [("k_anonymity", tenth)]
    runs: dict[tuple[str, Path], list[tuple[float, float] | str]] = {place: [] for place in places}
    for _ in range(repeats):
        for place in places:
            if not any(isinstance(run, str) for run in runs[place]):
                runs[place].append(timed(sys.executable, place[0], engine, place[1]))
    middle: dict[tuple[str, Path], float] = {}
    for place, results in runs.items():
        done = [result for result in results if not isinstance(result, str)]
        failed = [result for result in results if isinstance(result, str)]
        if failed:
            print(f"{engine:8} {place[0]:24} {failed[0]}")
            continue
        seconds = sorted(result[0] for result in done)
        middle[place] = statistics.median(seconds)
        base = "group-by" if place[0] in ("group-by", "k_anonymity") else "group-by + join"
        ratio = f"{middle[place] / middle[base, full]:5.2f} x {base}" if (base, full) in middle else ""
        if place[1] == tenth:
            ratio = f"a tenth of the rows; growth {middle['k_anonymity', full] / middle[place]:.1f} x"
        spread = f"({seconds[0]:.2f} to {seconds[-1]:.2f})"
        peak = max(result[1] for result in done)
        print(
            f"{engine:8} {place[0]:24} {middle[place]:7.2f} s {spread:18} {peak:6.0f} MiB  {ratio}",
            flush=True,
        )


def against_peer(python: str, folder: Path, kind: str, limit: float) -> None:
    """Find the largest size pycanon finishes in time, growing by ten and stopping at the first that it does not."""
    for job in ("k_anonymity", "l_diversity"):
        for rows in (10_000, 100_000, 1_000_000, 10_000_000):
            path = folder / f"peer-{rows}.parquet"
            if not path.exists():
                write(path, rows, kind)
            theirs = timed(python, job, "pycanon", path, limit)
            if isinstance(theirs, str):
                print(f"pycanon  {job:24} {rows:>10,} rows: {theirs}", flush=True)
                break
            ours = timed(sys.executable, job, "polars", path, limit)
            said = (
                f" discreet {ours}"
                if isinstance(ours, str)
                else f" discreet {ours[0]:.2f} s, {theirs[0] / ours[0]:.0f} x"
            )
            print(
                f"pycanon  {job:24} {rows:>10,} rows: {theirs[0]:.2f} s {theirs[1]:.0f} MiB;{said}",
                flush=True,
            )


def main() -> None:
    """Run it all and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--keys", choices=("even", "realistic"), default="even")
    options.add_argument("--engines", default="polars,duckdb")
    options.add_argument("--without", nargs="*", default=[], choices=JOBS, help="jobs to leave out")
    options.add_argument("--peer-python", help="Python of an environment that has pycanon")
    options.add_argument("--peer-limit", type=float, default=300.0)
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, {chosen.rows:,} rows, {chosen.keys} keys, medians of {chosen.repeats}")
    jobs = [job for job in JOBS if job not in chosen.without]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        full, tenth = folder / "full.parquet", folder / "tenth.parquet"
        write(full, chosen.rows, chosen.keys)
        write(tenth, chosen.rows // 10, chosen.keys)
        for engine in chosen.engines.split(","):
            against_engine(engine, full, tenth, chosen.repeats, jobs)
        if chosen.peer_python:
            against_peer(chosen.peer_python, folder, chosen.keys, chosen.peer_limit)


if __name__ == "__main__":
    main()
