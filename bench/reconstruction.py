"""How long does the reconstruction of one block take: 1,000 rows, 5,000 counts, 1,000 steps a run?

    python bench/reconstruction.py [--runs 2] [--device cpu]

Runs are independent and share the processors; 100 runs take 50 times what 2 take. ``bench/reconstruction_on_card.py``
asks the same of a graphics card, where there may be nothing but torch and NumPy.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

from discreet import attack

LEVELS = (2, 2, 6, 9, 11, 13, 16, 22, 29)


def main() -> None:
    """Print the seconds a run and the error of the fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    common = rng.normal(size=1000)
    people = pl.DataFrame(
        {
            f"a{i}": np.floor(levels / (1 + np.exp(-(common + rng.normal(size=1000))))).astype(int)
            for i, levels in enumerate(LEVELS)
        }
    )
    schema = {f"a{i}": list(range(levels)) for i, levels in enumerate(LEVELS)}
    queries = attack.marginal_queries(schema, 2)
    counts = attack.answer_queries(queries, people, schema)
    attack.reconstruct(queries, counts, schema, 1000, runs=1, steps=1, device=asked.device, seed=1)
    start, wall = time.process_time(), time.perf_counter()
    found = attack.reconstruct(
        queries, counts, schema, 1000, runs=asked.runs, steps=asked.steps, device=asked.device, seed=1
    )
    spent, waited = time.process_time() - start, time.perf_counter() - wall
    print(
        f"{len(queries):,} counts, {asked.runs} runs of {asked.steps:,} steps: {spent / asked.runs:.2f} s CPU a run, "
        f"{waited:.1f} s in all; mean error {found.figures['mean_error']:.3f} people"
    )


if __name__ == "__main__":
    main()
