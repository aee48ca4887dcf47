"""Treat, synthesize and measure one file with a seed, and print a digest of the bytes of every result.

Run by the tests in processes of their own, with one thread and with two: NumPy, Polars and Numba read the number of
threads when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings

os.environ.setdefault("DISCREET_KEY", "a key for tests only, long enough")

import numpy as np
import polars as pl

from discreet import Hierarchy, Microdata, protect, risk, synth

warnings.simplefilter("ignore")
NUMBERS = [f"x{i}" for i in range(24)]


def frame(n: int = 6000) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    base = rng.normal(size=(n, 6)) @ rng.normal(size=(6, len(NUMBERS)))
    numbers = np.exp(0.3 * (base + rng.normal(size=base.shape)))
    return pl.DataFrame(
        {
            "home": np.arange(n) // 2,
            "region": np.repeat(rng.choice(["north", "south", "east", "west"], n // 2), 2),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
            "weight": rng.uniform(1, 9, n).round(2),
            **{name: numbers[:, at] for at, name in enumerate(NUMBERS)},
        }
    )


def small(n: int = 1500) -> Microdata:
    return Microdata(frame(n).select("region", "sex", "age", *NUMBERS[:4]), keys=["region", "sex", "age"])


def people() -> Microdata:
    return Microdata(frame(), keys=["region", "sex", "age"], sensitive=["x0"])


def released(treatment: protect.Treatment) -> bytes:
    return _bytes(treatment.apply(people(), seed=3).data.frame)


def drawn(maker: synth.Synthesizer, data: Microdata | None = None) -> bytes:
    fitted = maker.fit(small() if data is None else data, seed=3)
    return _bytes(fitted.sample(seed=4).frame)


def saved(maker: synth.Synthesizer) -> bytes:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return (
            maker.fit(people().with_frame(frame().select(NUMBERS)), seed=3)
            .save(Path(folder) / "m")
            .read_bytes()
        )


def measured(found: object) -> bytes:
    return json.dumps(found.to_dict(), sort_keys=True, default=repr).encode()  # type: ignore[attr-defined]


def _bytes(table: pl.DataFrame) -> bytes:
    return b"".join(
        table[name].cast(pl.String).fill_null("\0").str.join("\n").item().encode()
        if not table[name].dtype.is_numeric()
        else np.nan_to_num(table[name].to_numpy().astype(np.float64), nan=-1e300).tobytes()
        for name in table.columns
    )


AGE = Hierarchy.intervals([10, 30])
CASES = {
    "add-noise": lambda: released(protect.AddNoise(columns=NUMBERS)),
    "add-noise by strata": lambda: released(protect.AddNoise(columns=NUMBERS[:4], strata=["region"])),
    "add-noise correlated": lambda: released(protect.AddNoise(columns=NUMBERS, method="correlated")),
    "add-noise outliers": lambda: released(protect.AddNoise(columns=NUMBERS[:8], method="outliers")),
    "spectral O": lambda: released(protect.SpectralAnonymize(columns=NUMBERS)),
    "spectral P": lambda: released(protect.SpectralAnonymize(columns=NUMBERS, method="P", standardize=True)),
    "microaggregate weighted": lambda: _bytes(
        protect.Microaggregate(k=5, columns=NUMBERS[:3], strata=["region"])
        .apply(people().with_roles(weight="weight"), seed=3)
        .data.frame
    ),
    "microaggregate": lambda: released(protect.Microaggregate(k=5, columns=NUMBERS[:6])),
    "mondrian": lambda: released(protect.Mondrian(k=4)),
    "shuffle": lambda: released(protect.Shuffle(columns=NUMBERS[:6], given=["age"])),
    "rank-swap": lambda: released(protect.RankSwap(columns=NUMBERS[:4], p=10)),
    "regression": lambda: released(protect.RegressionSynthesis(columns=NUMBERS[:8], given=["age", "sex"])),
    "pram": lambda: released(protect.Pram(columns=["sex", "region"])),
    "local-suppression": lambda: released(protect.LocalSuppression(k=3)),
    "sequential": lambda: drawn(synth.Sequential()),
    "sequential parametric": lambda: drawn(synth.Sequential(method="parametric")),
    "all-others": lambda: drawn(synth.AllOthers()),
    "bayesian-network": lambda: drawn(synth.BayesianNetwork()),
    "gaussian-copula": lambda: drawn(synth.GaussianCopula()),
    "saved gaussian-copula": lambda: saved(synth.GaussianCopula()),
    "population": lambda: measured(risk.population(small(), sampling_fraction=0.1, seed=3)),
    "log_linear": lambda: measured(risk.log_linear(small(), sampling_fraction=0.1, seed=3)),
    "t_closeness": lambda: measured(risk.t_closeness(people(), sensitive="x0")),
    "vine-copula": lambda: drawn(synth.VineCopula()),
}


if __name__ == "__main__":
    found = {}
    for name in sys.argv[1:] or CASES:
        try:
            found[name] = hashlib.sha256(CASES[name]()).hexdigest()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))
