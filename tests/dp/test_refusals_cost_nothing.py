"""What a private door refuses is not charged: every parameter of every door, with values that make no sense."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, dp, protect, synth, tables
from discreet.core.errors import DiscreetError

LEVELS = {"x": ["a", "b"], "y": ["a", "b"]}
UNIT = {"x": (-1, 1), "y": (-1, 1)}
rng = np.random.default_rng(1)
CODES = Microdata(
    pl.DataFrame(
        {
            name: pl.Series(own, dtype=pl.Enum(["a", "b"]))
            for name, own in zip("xy", rng.choice(["a", "b"], (60, 2)).T, strict=True)
        }
    ),
    keys=["x", "y"],
)
NUMBERS = Microdata(pl.DataFrame({"x": rng.uniform(-1, 1, 30), "y": rng.uniform(-1, 1, 30)}))
PEOPLE = Microdata(NUMBERS.frame.with_columns(who=pl.int_range(pl.len()) % 10), person="who")
TABLE = tables.Table.from_microdata(
    pl.concat([CODES.frame] * 40), ["x"], hierarchies={"x": {"Total": ["a", "b"]}}, zeros="all"
)
SPAN = {"column": "x", "lower": -1, "upper": 1, "epsilon": 1.0}
LINE = {"y": "y", "x": "x", "x_bounds": {"x": (-1, 1)}}
STAY = math.e / (1 + math.e)
PRAM = {"x": {"a": {"a": STAY, "b": 1 - STAY}, "b": {"a": 1 - STAY, "b": STAY}}}

# A door: what is called, with what on top of its data, and how the answer is asked for where that is a second step.
QUERIES = {
    "count": (dp.count, (CODES,), {"epsilon": 1.0}),
    "count of people": (dp.count, (PEOPLE,), {"epsilon": 1.0, "max_records": 2}),
    "total": (dp.total, (NUMBERS,), SPAN),
    "mean": (dp.mean, (NUMBERS,), SPAN),
    "mean of people": (dp.mean, (PEOPLE,), SPAN),
    "variance": (dp.variance, (NUMBERS,), SPAN),
    "quantiles": (dp.quantiles, (NUMBERS,), {**SPAN, "probabilities": [0.5], "points": 10}),
    "histogram": (dp.histogram, (CODES,), {"column": "x", "levels": ["a", "b"], "epsilon": 1.0}),
    "table": (dp.table, (CODES,), {"by": ["x", "y"], "levels": LEVELS, "epsilon": 1.0}),
    "table with a mean": (
        dp.table,
        (NUMBERS.with_frame(NUMBERS.frame.with_columns(z=pl.lit("a"))),),
        {"by": "z", "levels": {"z": ["a"]}, **SPAN},
    ),
    "table of unknown cells": (dp.table, (CODES,), {"by": "x", "delta": 1e-6, "epsilon": 1.0}),
    "laplace": (dp.laplace, (), {"value": 3, "sensitivity": 1, "epsilon": 1.0}),
    "laplace of numbers": (dp.laplace, (), {"value": [0.5, 1.5], "sensitivity": 1.0, "epsilon": 1.0}),
    "gaussian": (dp.gaussian, (), {"value": 3.5, "sensitivity": 1, "epsilon": 1.0, "delta": 1e-6}),
    "local laplace": (dp.local_laplace, (), {"values": [0.5], "lower": 0, "upper": 1, "epsilon": 1.0}),
    "choose": (dp.choose, (), {"scores": [1, 2], "sensitivity": 1, "epsilon": 1.0}),
    "sparse vector": (dp.SparseVector, (), {"threshold": 3, "sensitivity": 1, "epsilon": 1.0}),
    "linear regression": (dp.linear_regression, (NUMBERS,), {**LINE, "y_bounds": (-1, 1), "epsilon": 1.0}),
    "functional": (
        dp.linear_regression,
        (NUMBERS,),
        {**LINE, "y_bounds": (-1, 1), "epsilon": 1.0, "mechanism": "functional"},
    ),
    "kng": (
        dp.quantile_regression,
        (NUMBERS,),
        {**LINE, "intercept": False, "theta_bound": 4, "mechanism": "kng", "epsilon": 1.0, "steps": 5},
    ),
}
MADE = {
    "lapgraph": (protect.LapGraph, "apply", np.zeros((3, 3), dtype=np.int64), {"epsilon": 1.0}),
    "pram": (protect.Pram, "apply", CODES, {"columns": ["x"], "matrix": PRAM, "invariant": False}),
    "sample-and-anonymize": (
        protect.SampleAndAnonymize,
        "apply",
        CODES,
        {"epsilon": 1.0, "delta": 1e-3},
    ),
    "noisy-counts": (tables.NoisyCounts, "apply", TABLE, {"epsilon": 1.0, "domain": "public"}),
    "noisy-counts apart": (
        tables.NoisyCounts,
        "apply",
        TABLE,
        {"epsilon": 1.0, "domain": "public", "margins": "independent"},
    ),
    "poisson-synthesis": (
        tables.PoissonSynthesis,
        "apply",
        TABLE,
        {"alpha": 40, "epsilon": 1.0, "domain": "public"},
    ),
    "mst": (synth.MST, "fit", CODES, {"epsilon": 1.0, "delta": 1e-6, "domain": LEVELS}),
    "aim": (synth.AIM, "fit", CODES, {"epsilon": 1.0, "delta": 1e-6, "domain": LEVELS}),
    "bayesian-network": (synth.BayesianNetwork, "fit", CODES, {"epsilon": 1.0, "domain": LEVELS}),
    "perturbed-histogram": (
        synth.PerturbedHistogram,
        "fit",
        CODES,
        {"bins_per_dim": 2, "epsilon": 1.0, "domain": LEVELS},
    ),
    "smooth-histogram": (
        synth.SmoothHistogram,
        "fit",
        CODES,
        {"bins_per_dim": 2, "epsilon": 1.0, "domain": LEVELS},
    ),
    "noisy-bayes": (synth.NoisyBayes, "fit", NUMBERS, {"epsilon": 1.0, "bounds": UNIT, "n_datasets": 1}),
    "pmse-mechanism": (
        synth.PMSEMechanism,
        "fit",
        NUMBERS,
        {"epsilon": 1.0, "prior": UNIT, "depth": 1, "sampler": "candidates", "candidates": 10},
    ),
    "catall": (
        synth.Sequential,
        "fit",
        CODES,
        {"method": "catall", "method_options": {"catall": {"epsilon": 1.0}}},
    ),
}
SMALL = [
    0,
    -1,
    float("nan"),
    None,
    True,
    "no such",
    [],
    ["a", "a"],
    {"x": None},
    {"x": (1, -1)},
    np.array([1.0]),
]
BOUNDS = [1e-9, 1e-7, 1e-4, 0.5, 3, 512.0, 1e9, 1e300, -1e300, 5e-324, 10**400, float("inf")]
SENSELESS = [*SMALL, *BOUNDS, "", [1, "a"], {}, {"x": [1, "a"]}, (1, -1), {"x": (0, 5e-324)}, pl.DataFrame()]
PRICES = {"epsilon", "delta", "split"}  # more of these makes no call longer
SKIPPED = {"ledger", "seed", "self", "data", "progress"}


def tried(call, parameters, given, values=lambda _: SENSELESS) -> list[str]:
    """Call with each parameter in turn made senseless; say where a refusal was charged, or an answer not once."""
    wrong = []
    for name in parameters:
        for value in values(name):
            ledger = dp.Ledger(512.0, 0.1, adjacency="replace")
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    call({**given, name: value}, ledger)
            except DiscreetError as error:
                if ledger.table().height:
                    wrong.append(f"{name}={value!r:.40} was refused and charged: {error}")
            except Exception as error:
                wrong.append(
                    f"{name}={value!r:.40}: {type(error).__name__}: {error!s:.100}, {ledger.table().height} charged"
                )
            else:
                if ledger.table().height > 1:
                    wrong.append(f"{name}={value!r:.40} was charged twice")
    return wrong


@pytest.mark.parametrize("door", QUERIES)
def test_what_a_query_refuses_is_not_charged(door):
    ask, data, given = QUERIES[door]
    names = [name for name in inspect.signature(ask).parameters if name not in SKIPPED]
    assert not tried(lambda asked, ledger: ask(*data, **asked, ledger=ledger), names, given)


def fewer(name: str) -> list:
    return SMALL + BOUNDS if name in PRICES else [-1, "no such", {"x": None}]


@pytest.mark.parametrize("door", MADE)
def test_what_a_release_refuses_is_not_charged(door):
    kind, verb, data, given = MADE[door]
    names = [name for name in inspect.signature(kind).parameters if name not in SKIPPED]
    assert not tried(
        lambda asked, ledger: getattr(kind(**asked), verb)(data, ledger=ledger), names, given, fewer
    )


@pytest.mark.parametrize("size", [0, 2, 4, -1, 10**6])
def test_noisy_counts_of_another_size_than_a_site_has_cost_its_owner_nothing(size):
    from discreet.federated import counts_over_sites
    from discreet.federated.parties import Holder
    from discreet.federated.quantities import contributed

    holder = Holder("B", pl.DataFrame({"x": ["a", "b", "b"]}))
    holder.ledger = dp.Ledger(1.0)
    asked = {"kind": "noisy-counts", "columns": ["x"], "levels": {"x": ["a", "b"]}, "epsilon": 0.5}
    assert counts_over_sites.NoisyCounts  # which makes the quantity known
    with pytest.raises(DiscreetError, match=r"another number was asked for|of another type"):
        contributed(holder, {**asked, "size": size})
    assert holder.ledger.left == 1.0
    assert contributed(holder, {**asked, "size": 3}).shape == (3,)
    assert holder.ledger.left == 0.5
