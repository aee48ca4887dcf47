"""How does the search for special uniques grow with the file, and how does it compare?

    python bench/special_uniques.py [--peer-python PATH] [--peer-records 2000]

The peer is the package ``suda`` in an environment of its own, made beforehand with

    python -m venv .venv-suda && .venv-suda/bin/pip install suda
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.risk.suda import special_uniques

LEVELS = {
    "region": 50,
    "age": 90,
    "sex": 2,
    "marital": 6,
    "job": 40,
    "education": 12,
    "household": 8,
    "origin": 25,
}
PEER = """
import sys, time
import pandas as pd
from suda import suda
table = pd.read_csv(sys.argv[1])
start = time.perf_counter()
suda(table, max_msu=3, columns=list(table.columns))
print(time.perf_counter() - start)
"""


def people(records: int) -> pl.DataFrame:
    """Draw records whose values are as unequally frequent as in a census."""
    rng = np.random.default_rng(2024)
    skewed = {key: (levels * rng.random(records) ** 2).astype(int) for key, levels in LEVELS.items()}
    return pl.DataFrame(skewed)


def timed(table: pl.DataFrame, **options: object) -> tuple[float, int]:
    start = time.perf_counter()
    found = special_uniques(Microdata(table, keys=table.columns), progress=False, **options)
    return time.perf_counter() - start, int(found.figures["msus"])


def with_gaps(table: pl.DataFrame) -> pl.DataFrame:
    """Empty one value in fifty of every column."""
    rng = np.random.default_rng(7)
    return table.select(
        pl.when(pl.Series(rng.random(table.height) > 0.02)).then(name).alias(name) for name in table.columns
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--peer-python", type=Path)
    options.add_argument("--peer-records", type=int, default=2000)
    chosen = options.parse_args()
    timed(people(1000))
    print(f"{len(LEVELS)} keys, all 255 sets of keys, {os.cpu_count()} cores")
    print(f"{'records':>9} {'MSUs':>9} {'seconds':>8} {'with gaps as wildcard':>22}")
    for records in (10_000, 20_000, 50_000, 100_000):
        table = people(records)
        seconds, msus = timed(table)
        wild, _ = timed(with_gaps(table), missing="wildcard")
        print(f"{records:>9,} {msus:>9,} {seconds:>8.2f} {wild:>22.2f}")
    if chosen.peer_python:
        table = people(chosen.peer_records)
        ours, _ = timed(table, max_size=3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "people.csv"
            table.write_csv(path)
            done = subprocess.run(
                [chosen.peer_python, "-c", PEER, path], capture_output=True, text=True, check=True
            )
        theirs = float(done.stdout.split()[-1])
        print(f"\n{chosen.peer_records:,} records, sets of up to 3 keys")
        print(f"discreet {ours:.3f} s, suda {theirs:.2f} s: {theirs / ours:,.0f} times as long")


if __name__ == "__main__":
    main()
