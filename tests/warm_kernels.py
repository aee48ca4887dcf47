"""Compile the large routines once, two at a time, before the tests share them.

Test processes that start together on a fresh install would each compile the same routines; what one of them has
compiled, the others read from disk.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import polars as pl

import discreet
from discreet import Microdata, protect, synth, tables
from discreet.core.compiling import Patience
from discreet.numerics import mdav_kernels as grouping
from discreet.tables import gauss
from discreet.tables.gauss import elimination_runs as elimination


def _people() -> Microdata:
    draws, rows = np.random.default_rng(1), 120
    frame = pl.DataFrame(
        {
            "age": draws.integers(20, 60, rows),
            "sex": draws.choice(["f", "m"], rows),
            "town": draws.choice(["a", "b", "c", "d"], rows),
            "pay": draws.normal(size=rows),
        }
    )
    return Microdata(frame, keys=["age", "sex", "town"], sensitive=["pay"])


def _trees_and_distances() -> None:
    people = _people()
    discreet.compare(people, synth.Sequential().fit(people, seed=1).sample(seed=1))


def _groups_and_tables() -> None:
    people = _people()
    grouping.PATIENCE = elimination.PATIENCE = Patience(-1)  # so little is done in plain Python otherwise
    protect.Microaggregate(k=3, columns=["age", "pay"]).apply(people, seed=1)
    protect.LocalSuppression(k=3).apply(people, seed=1)
    table = tables.Table.from_microdata(people, ["sex", "town"])
    tables.Suppression().apply(tables.primary(table, tables.Threshold(20)))


def _zeros_that_would_show() -> None:
    elimination.PATIENCE = Patience(-1)
    gauss.secondary(np.eye(4, 5, dtype=int), [0], zero_method="subspace", strict=True, special_rows=[1])


def _conditional_trees_and_swaps() -> None:
    people = _people()
    synth.Sequential(method="ctree").fit(people, seed=1).sample(seed=1)
    protect.RecordSwap(geography=["town"], keys=["sex"], k=2, share=0.1).apply(people, seed=1)


def _buckets() -> None:
    synth.SynDiffix().fit(_people(), seed=1).sample(seed=1)


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as processes:
        work = (
            _trees_and_distances,
            _groups_and_tables,
            _buckets,
            _conditional_trees_and_swaps,
            _zeros_that_would_show,
        )
        jobs = [processes.submit(job) for job in work]
    sys.exit(any(job.exception() is not None for job in jobs))
