"""How long does the reconstruction of one block take on a graphics card? Needs torch and NumPy, and nothing else.

    python bench/reconstruction_on_card.py [--runs 100] [--steps 1000]

The same block as in ``bench/reconstruction.py``: 1,000 rows, 5,000 counts of two attributes. That one says what the
processor needs for a run. Machines with a card often have torch and little more, so only the module of the projection
is loaded here, as it is, and the queries are coded by hand.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import types
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LEVELS = (2, 2, 6, 9, 11, 13, 16, 22, 29)
ROWS = 1000
HOUSE = Path(__file__).resolve().parent.parent / "src" / "discreet"


class Coded(NamedTuple):
    """Queries in numbers, as `discreet.attack.counting_queries.Coded` has them."""

    starts: Any
    factors: Any
    queries: Any
    width: int


def projection_alone() -> Any:
    """Load the module of the projection without the rooms around it, which need data frames."""
    sys.dont_write_bytecode = True
    for name, folder in (
        ("discreet", HOUSE),
        ("discreet.attack", HOUSE / "attack"),
    ):
        room = types.ModuleType(name)
        room.__path__ = [str(folder)]
        sys.modules[name] = room
    queries: Any = types.ModuleType("discreet.attack.counting_queries")
    queries.Coded = Coded
    sys.modules[queries.__name__] = queries
    return importlib.import_module("discreet.attack.ranked_reconstruction")


def block() -> tuple[Coded, np.ndarray]:
    """Draw the people of the block; code all tables of two attributes and count them."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=ROWS)
    people = np.column_stack(
        [np.floor(levels / (1 + np.exp(-(common + rng.normal(size=ROWS))))).astype(int) for levels in LEVELS]
    )
    starts = np.append(0, np.cumsum(LEVELS))
    queries, counts = [], []
    for a, b in combinations(range(len(LEVELS)), 2):
        cells = np.indices((LEVELS[a], LEVELS[b])).reshape(2, -1).T
        queries.append(cells + np.array([starts[a], starts[b]]))
        counts.append(np.bincount(people[:, a] * LEVELS[b] + people[:, b], minlength=LEVELS[a] * LEVELS[b]))
    width = int(starts[-1])
    coded = Coded(starts, np.eye(width, dtype=bool), np.concatenate(queries), width)
    return coded, np.concatenate(counts).astype(float)


def main() -> None:
    """Print the seconds a run and the error of the fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    coded, counts = block()
    shares = counts / ROWS
    module = projection_alone()

    def rebuilt(runs: int, steps: int) -> tuple[float, float]:
        own = module.Projection(coded, shares, shares, ROWS, steps, learning_rate=0.1, batch=1024, seed=1)
        start = time.perf_counter()
        chances = list(own.runs(runs, device="cuda"))
        waited = time.perf_counter() - start
        a, b = coded.queries.T
        made = np.array([(one[a] * one[b]).sum(axis=1) for one in chances])
        return waited, float(np.abs(made - counts).mean())

    rebuilt(1, 2)
    waited, error = rebuilt(asked.runs, asked.steps)
    print(
        f"{len(counts):,} counts, {asked.runs} runs of {asked.steps:,} steps: {waited:.1f} s in all, "
        f"{waited / asked.runs:.2f} s a run; mean error {error:.3f} people"
    )


if __name__ == "__main__":
    main()
