"""Ask an estimator of population risk, and how far its answer could be off.

One function for all of them: a copula that simulates the population, a log-linear model of the key table, or a
model of the class sizes; each with a 95 % interval from leaving out random groups of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.risk.population_models.coded_sample import CodedSample
from discreet.risk.population_models.jackknife import interval, jackknife_error
from discreet.risk.population_models.log_linear import fit_sample, model_caveats, model_terms, refitted
from discreet.risk.population_models.size_models import SIZE_MODELS, Estimate
from discreet.risk.population_models.synthetic_population import Kind, Simulated, refuse_continuous, simulated

Estimator = Literal[
    "average",
    "gaussian",
    "d-vine",
    "log-linear",
    "pitman",
    "zayatz",
    "snb",
    "ewens",
    "chao",
    "mu-argus",
    "dankar",
]

ESTIMATORS: tuple[str, ...] = ("average", "gaussian", "d-vine", "log-linear", *SIZE_MODELS)

#: Populations of the jackknife need not be larger than this: they are compared only with each other.
_LARGEST_REPEAT = 200_000
#: People simulated in all; large populations vary little, so that a few of them do.
_PEOPLE = 20_000_000


@dataclass(frozen=True)
class Answer:
    """An estimate with its interval, the notes and the settings that belong to it."""

    estimate: Estimate
    low: float | None = None
    high: float | None = None
    notes: tuple[str, ...] = ()
    sizes: pl.DataFrame | None = None
    parts: tuple[Answer, ...] = ()
    settings: Mapping[str, Any] | None = None


def answer(
    sample: CodedSample,
    estimator: str,
    repeats: int,
    seed: int,
    *,
    progress: bool = False,
    quick: bool = False,
) -> Answer:
    """Ask an estimator; ``quick`` leaves the interval out."""
    if sample.records == sample.population:
        return _everybody(sample, estimator)
    if estimator == "average":
        return _average(sample, repeats, seed, progress=progress, quick=quick)
    if estimator in ("gaussian", "d-vine"):
        return _by_copula(sample, estimator, repeats, seed, progress=progress, quick=quick)  # type: ignore[arg-type]
    if estimator == "log-linear":
        return _by_log_linear(sample, repeats, seed, progress=progress, quick=quick)
    return _by_sizes(sample, estimator, repeats, seed, progress=progress, quick=quick)


def _everybody(sample: CodedSample, estimator: str) -> Answer:
    """The sample is the population: both risks are known."""
    unique, risk = float(sample.sizes().uniques), sample.classes / sample.population
    known = Estimate(estimator, risk, float(sample.classes), unique, unique)
    note = "The file is its whole population, so nothing had to be estimated."
    return Answer(known, risk, risk, (note,))


def _average(sample: CodedSample, repeats: int, seed: int, *, progress: bool, quick: bool) -> Answer:
    parts = tuple(
        _by_copula(sample, kind, repeats, seed, progress=progress, quick=quick)
        for kind in ("gaussian", "d-vine")
    )
    first, second = (part.estimate for part in parts)
    mean = Estimate(
        "average",
        risk=_mean(first.risk, second.risk),
        classes=_mean(first.classes, second.classes),
        uniques=_mean(first.uniques, second.uniques),
    )
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    sizes = [part.sizes for part in parts if part.sizes is not None]
    both = (
        pl.concat(sizes).group_by("class_size").agg(pl.col("classes").sum() / len(sizes)).sort("class_size")
    )
    return Answer(
        mean,
        # The two models disagree more than either varies, so the interval spans both.
        low=None if None in lows else min(low for low in lows if low is not None),
        high=None if None in highs else max(high for high in highs if high is not None),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        sizes=both,
        parts=parts,
    )


def _by_copula(
    sample: CodedSample, kind: Kind, repeats: int, seed: int, *, progress: bool, quick: bool
) -> Answer:
    refuse_continuous(sample)
    populations = min(repeats, max(2, _PEOPLE // sample.population))
    full = simulated(sample, kind, populations, seed)
    risk = float(full.estimate.risk or 0.0)
    if quick:
        return Answer(full.estimate, notes=full.notes, sizes=full.sizes)
    people = min(sample.population, max(_LARGEST_REPEAT, sample.records))
    groups = [
        group.in_population(people) for group in sample.leave_out(repeats, generator(seed, "jackknife", kind))
    ]
    # The same random numbers in every group: what differs between the answers is then the sample, not the draw.
    runs: list[Simulated] = [
        simulated(group, kind, 1, seed)
        for group in track(groups, len(groups), f"Refitting the {kind} copula", progress=progress)
    ]
    values = [float(run.estimate.risk or 0.0) for run in runs]
    error = jackknife_error(values)
    relative = None if error is None else error / float(np.mean(values))
    total = (
        None
        if relative is None
        else float(np.sqrt((relative * risk) ** 2 + full.spread**2 / populations + full.drawing))
    )
    low, high = interval(risk, total, *_limits(sample, risk))
    return Answer(full.estimate, low, high, full.notes, full.sizes)


def _by_log_linear(sample: CodedSample, repeats: int, seed: int, *, progress: bool, quick: bool) -> Answer:
    fitted = fit_sample(sample)
    notes = tuple(model_caveats(fitted)) if fitted.model else ()
    settings = {"model": model_terms(sample, fitted)}
    if quick or fitted.model is None:
        return Answer(fitted.estimate, notes=notes, settings=settings)
    return _jackknifed(
        sample,
        fitted.estimate,
        lambda group: refitted(group, fitted).estimate,
        repeats,
        generator(seed, "jackknife", "log-linear"),
        progress=progress,
        notes=notes,
        settings=settings,
    )


def _by_sizes(
    sample: CodedSample, estimator: str, repeats: int, seed: int, *, progress: bool, quick: bool
) -> Answer:
    model = SIZE_MODELS[estimator]
    found = model(sample.sizes())
    if quick or found.reason is not None:
        return Answer(found, settings=dict(found.parameters))
    return _jackknifed(
        sample,
        found,
        lambda group: model(group.sizes()),
        repeats,
        generator(seed, "jackknife", "sizes"),
        progress=progress,
        settings=dict(found.parameters),
    )


def _jackknifed(
    sample: CodedSample,
    found: Estimate,
    estimate: Callable[[CodedSample], Estimate],
    repeats: int,
    rng: np.random.Generator,
    *,
    progress: bool,
    notes: tuple[str, ...] = (),
    settings: Mapping[str, Any] | None = None,
) -> Answer:
    groups = sample.leave_out(repeats, rng)
    runs = [estimate(group) for group in track(groups, len(groups), "Refitting", progress=progress)]
    error = jackknife_error([run.risk for run in runs])
    if error is None:
        notes = (*notes, "No interval: the model could not be fitted to parts of the sample.")
    risk = float(found.risk or 0.0)
    low, high = interval(risk, error, *_limits(sample, risk))
    return Answer(found, low, high, notes, settings=settings)


def _limits(sample: CodedSample, risk: float) -> tuple[float, float]:
    """The population has the classes of the sample at least, and a new one for every other person at most.

    Models that do not count classes may stand outside of that; their interval then ends where they stand.
    """
    people = sample.population
    lowest, highest = sample.classes / people, (sample.classes + people - sample.records) / people
    return min(lowest, risk), max(highest, risk)


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2
