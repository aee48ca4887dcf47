"""How long does it take to compare all two-way tables of 30 columns?

    python bench/two_way_tables.py [--rows 1000000] [--columns 30] [--growth] [--duckdb]

A third of the columns are continuous, a third whole numbers, a third words. The yardstick is the bare engine: Polars
grouping by each pair of columns that were cut and coded beforehand (which is the smaller part of the work), in both
files, without any measure computed from the counts. The counts are checked against each other.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.utility import tabular


def made(rows: int, columns: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    words = np.array(["north", "south", "east", "west", "center", "coast", "hills", "islands"])
    kinds = [
        lambda: random.normal(size=rows),
        lambda: random.integers(0, 100, rows),
        lambda: pl.Series(words[random.integers(0, len(words), rows)]),
    ]
    return pl.DataFrame({f"v{i}": kinds[i % 3]() for i in range(columns)})


class Clock:
    """Wall and processor seconds; the latter do not depend on who else uses the machine."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stopped(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


def timed(work):
    clock = Clock()
    found = work()
    return clock.stopped(), found


def bare(
    ours: pl.DataFrame, theirs: pl.DataFrame, breaks: dict[str, list[float]]
) -> tuple[tuple[float, float], int]:
    """Group by every pair in both files, on columns that are cut already; only the group-bys are timed."""
    cut = [
        frame.with_columns(
            *(
                pl.Series(c, np.searchsorted(at, frame[c].to_numpy(), "left"), dtype=pl.UInt8)
                for c, at in breaks.items()
            )
        )
        for frame in (ours, theirs)
    ]
    clock, cells = Clock(), 0
    for pair in itertools.combinations(ours.columns, 2):
        before, after = (frame.group_by(pair).len() for frame in cut)
        cells += before.join(after, on=pair, how="full", nulls_equal=True).height
    return clock.stopped(), cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--duckdb", action="store_true")
    options = parser.parse_args()
    small = [Microdata(made(100, 3, seed)) for seed in (1, 2)]
    tabular(*small)  # compiled once, for this machine
    ours, theirs = (made(options.rows, options.columns, seed) for seed in (1, 2))
    seconds, found = timed(lambda: tabular(Microdata(ours), Microdata(theirs)))
    pooled = pl.concat([ours, theirs])
    breaks = {
        c: [float(pooled[c].quantile(q, "lower")) for q in (0.2, 0.4, 0.6, 0.8)]
        for c in ours.columns
        if ours[c].dtype.is_numeric()
    }
    plain, cells = bare(ours, theirs, breaks)
    assert cells == found.detail["tables"]["cells"].sum()
    print(
        f"{options.rows:,} records in each file, {options.columns} columns, {found.figures['tables']} tables"
    )
    print(f"  {'':<34}{'wall':>9}{'CPU':>9}  seconds")
    print(f"  {'tabular, all measures':<34}{seconds[0]:9.2f}{seconds[1]:9.2f}")
    print(f"  {'bare Polars group-bys, no measure':<34}{plain[0]:9.2f}{plain[1]:9.2f}")
    print(
        f"  the group-bys take {plain[0] / seconds[0]:.1f} times as long, {plain[1] / seconds[1]:.1f} times the CPU"
    )
    if options.duckdb:
        import duckdb

        sources = [duckdb.connect().from_arrow(frame.to_arrow()) for frame in (ours, theirs)]
        inside, counted = timed(lambda: tabular(*(Microdata(source) for source in sources)))
        assert np.allclose(counted.detail["tables"]["VW"], found.detail["tables"]["VW"])
        print(f"  {'tabular on DuckDB relations':<34}{inside[0]:9.2f}{inside[1]:9.2f}")
    if options.growth:
        print("records, wall and CPU seconds for all pairs of 30 columns")
        for rows in (10_000, 100_000, 1_000_000, 3_000_000):
            files = [Microdata(made(rows, 30, seed)) for seed in (1, 2)]
            (wall, cpu), _ = timed(lambda files=files: tabular(*files))
            print(f"  {rows:>9,}{wall:9.2f}{cpu:9.2f}")
        print("columns, wall and CPU seconds for all pairs of 1,000,000 records")
        for columns in (10, 20, 40, 60):
            files = [Microdata(made(1_000_000, columns, seed)) for seed in (1, 2)]
            (wall, cpu), _ = timed(lambda files=files: tabular(*files))
            print(f"  {columns:>9,}{wall:9.2f}{cpu:9.2f}")


if __name__ == "__main__":
    main()
