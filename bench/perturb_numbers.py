"""How fast are numbers perturbed, compared with the bare arithmetic?

    python bench/perturb_numbers.py [--rows 10000000] [--wide 1000000]

Independent noise on one column of ``rows`` records stands beside two bare NumPy runs on the same array: copying it
(memory speed), and drawing and adding normal noise in one thread. The other methods run on ``wide`` records of five
correlated columns, beside the matrix product of such a block with a 5 × 5 matrix. The treatments are timed as a user
runs them: with the log, the counted cells and the rebuilt frame. The last line is the rotation of spectral
anonymization at n = 1000, p = 6, for which its paper reports 2.44 s (quoted; n × n matrices in R).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.protect.additive_noise import AddNoise
from discreet.protect.regression_synthesis import RegressionSynthesis, Shuffle
from discreet.protect.spectral import SpectralAnonymize
from discreet.protect.treatment import Treatment


def best(work: Callable[[], object], rounds: int = 3) -> float:
    """The fastest of some runs, in seconds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def show(what: str, seconds: float, bare: float) -> None:
    print(f"{what:<58}{seconds:>9.3f} s{seconds / bare:>9.1f} ×", flush=True)


def timed(treatment: Treatment, data: Microdata, rounds: int = 3) -> float:
    return best(lambda: treatment.apply(data, seed=1), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--wide", type=int, default=1_000_000)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)

    column = rng.normal(size=asked.rows)
    data = Microdata(pl.DataFrame({"x": column, "n": (1000 * column).astype(np.int32)}))
    fresh = np.random.default_rng(1)
    bare = best(lambda: column + 0.1 * column.std() * fresh.standard_normal(len(column)))
    print(f"{asked.rows:,} records, one column; the last figure is the multiple of the bare draw")
    show("  copy of the array", best(column.copy), bare)
    show("  bare draw and sum, one thread", bare, bare)
    show("  AddNoise independent", timed(AddNoise(["x"]), data), bare)
    show("  AddNoise independent, whole numbers", timed(AddNoise(["n"]), data), bare)
    show("  AddNoise laplace", timed(AddNoise(["x"], method="laplace"), data), bare)

    mixed = rng.normal(size=(asked.wide, 5)) @ rng.normal(size=(5, 5))
    names = list("abcde")
    wide = Microdata(pl.DataFrame(mixed, schema=names))
    turn = rng.normal(size=(5, 5))
    bare = best(lambda: fresh.standard_normal(mixed.shape) @ turn + mixed)
    print(f"{asked.wide:,} records, five columns; multiples of correlated noise in bare NumPy")
    show("  bare draw, product and sum", bare, bare)
    for method in ("independent", "correlated", "restricted", "romm", "outliers"):
        show(f"  AddNoise {method}", timed(AddNoise(names, method=method), wide), bare)
    show("  Shuffle three columns given two", timed(Shuffle(names[:3], given=names[3:]), wide, 1), bare)
    for method in ("exact", "sampled"):
        treatment = RegressionSynthesis(names[:3], given=names[3:], method=method)
        show(f"  RegressionSynthesis {method}, three columns given two", timed(treatment, wide), bare)
    for method in ("O", "P"):
        show(
            f"  SpectralAnonymize {method}, with its diagnostics",
            timed(SpectralAnonymize(names, method=method), wide, 1),
            bare,
        )

    small = Microdata(pl.DataFrame(rng.normal(size=(1_000, 6)) * np.arange(6, 0, -1), schema=list("abcdef")))
    taken = timed(SpectralAnonymize(list("abcdef"), method="O"), small)
    print(f"SpectralAnonymize O, 1,000 × 6: {taken:.4f} s, with diagnostics (paper: 2.44 s, quoted)")


if __name__ == "__main__":
    main()
