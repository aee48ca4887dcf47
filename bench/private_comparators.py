"""How near do the pMSE mechanism and the methods it is compared with come? Three numbers of Adult, three seeds.

Age, years of education and hours of work of 5,000 records of the training file, epsilon 1 for one synthetic file. tv1
and tv2 are the mean total variation distances of all one- and two-way tables (cut at deciles), corr is the mean
absolute error of the three correlations. The pMSE mechanism stands there with the sampler that carries the guarantee
and with the one that comes nearer and claims nothing; `MST` and a file drawn evenly from the declared ranges are what
to hold them against. Needs the folder DISCREET_TEST_DATA.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from private_synthesis import RANGES, distance

from discreet import Microdata, synth

NAMES = ["age", "education-num", "hours-per-week"]
BOUNDS = {name: RANGES[name] for name in NAMES}
PRIOR = {name: ((low + high) / 2, (high - low) / 4) for name, (low, high) in BOUNDS.items()}
"""The middle of the range, and a quarter of it: what is known without looking."""


def mechanism(sampler: str) -> synth.Synthesizer:
    """A quarter of the usual particles: a run with all of them takes minutes."""
    return synth.PMSEMechanism(
        1.0,
        prior=PRIOR,
        depth=2,
        sensitivity="tight",
        sampler=sampler,  # type: ignore[arg-type]
        particles=50,
    )


def evenly(data: Microdata, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {name: rng.integers(low, high + 1, data.frame.height) for name, (low, high) in BOUNDS.items()}
    )


def drawn_from(plan: synth.Synthesizer) -> Callable[[Microdata, int], pl.DataFrame]:
    return lambda data, seed: plan.fit(data, seed=seed).sample(seed=seed).frame


GENERATORS = {
    "evenly within the ranges": evenly,
    "SmoothHistogram, 4 bins": drawn_from(synth.SmoothHistogram(4, 1.0, domain=BOUNDS, never_missing=NAMES)),
    "PerturbedHistogram, 8 bins": drawn_from(
        synth.PerturbedHistogram(8, 1.0, domain=BOUNDS, never_missing=NAMES)
    ),
    "NoisyBayes": drawn_from(synth.NoisyBayes(1.0, bounds=BOUNDS, n_datasets=1)),
    "PMSEMechanism, candidates": drawn_from(mechanism("candidates")),
    "PMSEMechanism, smc, no claim": drawn_from(mechanism("smc")),
    "MST (delta 1e-5)": drawn_from(synth.MST(1.0, delta=1e-5, domain=BOUNDS, never_missing=NAMES)),
}


def main() -> None:
    folder = os.environ.get("DISCREET_TEST_DATA")
    if not folder:
        sys.exit("Set DISCREET_TEST_DATA to the folder of the test data.")
    people = pl.read_csv(Path(folder) / "adult" / "adult_train.csv.gz").select(NAMES).sample(5_000, seed=1)
    cuts = {name: np.unique(np.quantile(people[name], np.linspace(0, 1, 11)[1:-1])) for name in NAMES}
    real = coded(people, cuts)
    print(f"{'generator':<32}{'CPU s':>7}{'tv1':>9}{'tv2':>9}{'corr':>8}")
    for title, draw in GENERATORS.items():
        figures = []
        for seed in range(3):
            start = time.process_time()
            with warnings.catch_warnings():
                # A seed voids the guarantee, and a small budget is warned of.
                warnings.simplefilter("ignore")
                made = draw(Microdata(people), seed)
            spent = time.process_time() - start
            copy = coded(made, cuts)
            one = np.mean([distance(real[name], copy[name]) for name in NAMES])
            two = np.mean(
                [
                    distance(real[a] * 100 + real[b], copy[a] * 100 + copy[b])
                    for a, b in itertools.combinations(NAMES, 2)
                ]
            )
            figures.append((spent, one, two, correlations_apart(people, made)))
        middle = np.median(np.asarray(figures), axis=0)
        print(f"{title:<32}{middle[0]:7.2f}{middle[1]:9.4f}{middle[2]:9.4f}{middle[3]:8.3f}", flush=True)


def coded(frame: pl.DataFrame, cuts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.searchsorted(cuts[name], frame[name].to_numpy(), side="right") for name in NAMES}


def correlations_apart(here: pl.DataFrame, there: pl.DataFrame) -> float:
    """How far the correlations of two files are apart, on average."""
    found = [np.corrcoef(frame.select(NAMES).to_numpy().T) for frame in (here, there)]
    return float(np.abs(found[0] - found[1])[np.triu_indices(len(NAMES), 1)].mean())


if __name__ == "__main__":
    main()
