"""How fast are categories randomized and values swapped, and how do both grow?

    python bench/perturb_categories.py

Seconds are of whole treatments, log and changed cells included. The peer is quoted, not run here: sdcMicro 5.8.1,
CPU seconds on a 2-core machine. The floor of PRAM is what merely copying and drawing takes: a random number for
every cell, one table look-up, and counting the cells that differ.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.protect.pram import Pram
from discreet.protect.rank_swapping import RandomSwap, RankSwap
from discreet.protect.record_swapping import RecordSwap
from discreet.protect.treatment import Treatment

QUOTED = {("pram", 1_000_000): 12.0, ("rank-swap", 250_000): 57.0}


def categories(records: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "job": (30 * rng.random(records) ** 2).astype(np.int64),
            "region": rng.choice(np.array(list("ABCDEFGHI")), records),
        }
    )


def numbers(records: int) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame({"income": rng.lognormal(10, 1, records), "savings": rng.normal(size=records)})


def households(records: int) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    home = np.sort(rng.integers(0, records * 2 // 5, records))
    town = rng.integers(0, 500, records * 2 // 5)
    return pl.DataFrame(
        {
            "household": home,
            "county": town[home] // 20,
            "town": town[home],
            "age": rng.integers(0, 18, records),
            "sex": rng.integers(0, 2, records),
        }
    )


def seconds(treatment: Treatment, frame: pl.DataFrame, repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        data = Microdata(frame)
        began = time.perf_counter()
        treatment.apply(data, seed=1)
        best = min(best, time.perf_counter() - began)
    return best


def floor_of_pram(frame: pl.DataFrame) -> float:
    rng = np.random.default_rng(1)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for name in frame.columns:
            drawn = (rng.random(frame.height) * 9).astype(np.int64)
            (frame[name].head(9).gather(drawn) != frame[name]).sum()
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    swap = RecordSwap(
        geography=["county", "town"], household="household", keys=["age", "sex"], match=[["age"], []], k=2
    )
    rows: list[tuple[str, Treatment, Callable[[int], pl.DataFrame], tuple[int, ...]]] = [
        ("PRAM, 2 columns, invariant", Pram(columns=["job", "region"]), categories, (1_000_000, 10_000_000)),
        ("PRAM, crossed", Pram(columns=["job", "region"], jointly=True), categories, (1_000_000,)),
        (
            "rank swapping, 2 columns, p = 5",
            RankSwap(columns=["income", "savings"]),
            numbers,
            (250_000, 2_000_000),
        ),
        (
            "random swapping, 2 columns",
            RandomSwap(columns=["income", "savings"]),
            numbers,
            (250_000, 2_000_000),
        ),
        ("record swapping, 5 columns", swap, households, (100_000, 1_000_000)),
    ]
    print(f"{os.cpu_count()} cores; best of 3, in seconds")
    print(f"{'task':<34} {'records':>11} {'discreet':>9} {'sdcMicro (quoted)':>18} {'times as long':>14}")
    for title, treatment, make, sizes in rows:
        seconds(treatment, make(2_000), 1)
        for records in sizes:
            ours = seconds(treatment, make(records), 3 if records <= 1_000_000 else 1)
            theirs = QUOTED.get((treatment.name, records)) if "crossed" not in title else None
            peer = f"{theirs:>18.0f} {theirs / ours:>14,.0f}" if theirs else ""
            print(f"{title:<34} {records:>11,} {ours:>9.2f} {peer}")
    for records in (1_000_000, 10_000_000):
        print(f"{'floor of PRAM, 2 columns':<34} {records:>11,} {floor_of_pram(categories(records)):>9.2f}")


if __name__ == "__main__":
    main()
