"""Releases with a guarantee, one of every kind, for tests that walk all of them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from discreet import Hierarchy, Microdata, protect, synth, tables

SHARED = 180
LEVELS = {"sex": ["f", "m"], "job": ["cook", "clerk", "judge"]}
DOMAIN = {**LEVELS, "age": (0, 100)}


def people(records: int, odd: int) -> pl.DataFrame:
    """The first records are the same in every file; the others, and how many there are, are not."""
    rng, other = np.random.default_rng(5), np.random.default_rng(odd)
    more = records - SHARED
    return pl.DataFrame(
        {
            "sex": [*rng.choice(["f", "m"], SHARED), *other.choice(["f", "m"], more, p=[0.9, 0.1])],
            "job": [*rng.choice(["cook", "clerk"], SHARED), *other.choice(LEVELS["job"], more)],
            "age": [*rng.integers(20, 60, SHARED), *other.integers(0, 100, more)],
        }
    )


SMALL, LARGE = people(200, 1), people(340, 2)
REPLACED = people(340, 3)
UNLIKE = {"add-remove": (SMALL, LARGE), "replace": (REPLACED, LARGE)}


def coded(frame: pl.DataFrame) -> Microdata:
    kept = frame.select(pl.col(name).cast(pl.Enum(levels)) for name, levels in LEVELS.items())
    return Microdata(kept, keys=["sex", "job"])


def all_of(frame: pl.DataFrame) -> Microdata:
    return Microdata(frame, keys=["sex", "job"])


def numbers(frame: pl.DataFrame) -> Microdata:
    return Microdata(frame.select(pl.col("age").cast(pl.Float64), hours=pl.col("age") * 0.5))


def counted(frame: pl.DataFrame) -> tables.Table:
    codes = {name: {"Total": own} for name, own in LEVELS.items()}
    return tables.Table.from_microdata(frame, "sex*job", hierarchies=codes, zeros="all")


STAY = math.e / (1 + math.e)
MATRIX = {"sex": {"f": {"f": STAY, "m": 1 - STAY}, "m": {"f": 1 - STAY, "m": STAY}}}
SAMPLE = {"epsilon": 2.0, "delta": 1e-3, "sampling_rate": 0.3, "keys": ["sex", "job"]}
JOBS = {"job": Hierarchy.from_tree({"indoors": ["cook", "clerk"], "court": ["judge"]})}

TREATMENTS = {
    "sample-and-anonymize": lambda: protect.SampleAndAnonymize(**SAMPLE, hierarchies=JOBS),
    "pram": lambda: protect.Pram(columns=["sex"], matrix=MATRIX, invariant=False),
}
TABLES = {
    "noisy-counts": lambda: tables.NoisyCounts(epsilon=1.0, domain="public"),
    "poisson-synthesis": lambda: tables.PoissonSynthesis(alpha=60, epsilon=1.0, domain="public"),
}
GENERATORS = {
    "mst": ("add-remove", all_of, lambda: synth.MST(1.0, domain=DOMAIN)),
    "aim": ("add-remove", all_of, lambda: synth.AIM(1.0, domain=DOMAIN, max_seconds=0.01)),
    "bayesian-network": ("replace", all_of, lambda: synth.BayesianNetwork(epsilon=1.0, domain=DOMAIN)),
    "perturbed-histogram": ("replace", all_of, lambda: synth.PerturbedHistogram(4, 1.0, domain=DOMAIN)),
    "smooth-histogram": ("replace", all_of, lambda: synth.SmoothHistogram(4, 1.0, domain=DOMAIN)),
    "noisy-bayes": (
        "replace",
        numbers,
        lambda: synth.NoisyBayes(9.0, bounds={"age": (0, 100), "hours": (0, 50)}, n_datasets=1),
    ),
    "pmse-mechanism": (
        "replace",
        numbers,
        lambda: synth.PMSEMechanism(
            1.0, prior={"age": (0, 100), "hours": (0, 50)}, depth=1, sampler="candidates", candidates=10
        ),
    ),
    "dpgan": ("add-remove", coded, lambda: synth.DPGAN(4.0, domain=LEVELS, steps=2, width=8, critic=4)),
    "pategan": (
        "add-remove",
        coded,
        lambda: synth.PATEGAN(8.0, domain=LEVELS, steps=2, width=8, critic=4, teachers=5),
    ),
    "sequential": (
        "add-remove",
        coded,
        lambda: synth.Sequential(method="catall", method_options={"catall": {"epsilon": 1.0}}),
    ),
}
WITHOUT_ANY = {
    "all-others": "its Laplace switch guarantees nothing, and says so",
    "multinomial-dirichlet-synthesis": "drawn in floating point",
    "negative-binomial-synthesis": "drawn in floating point",
    "poisson-inverse-gaussian-synthesis": "drawn in floating point",
}
