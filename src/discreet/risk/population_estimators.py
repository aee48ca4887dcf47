"""Ask an estimator of population risk, and how far its answer could be off.

One function for all of them: a copula that simulates the population, a log-linear model of the key table, or a
model of the class sizes; each with a 95 % interval from leaving out random groups of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError
from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.risk.class_size_models import SIZE_MODELS, CodedSample, Estimate, interval, jackknife_error
from discreet.risk.log_linear_risk import fit_sample, model_caveats, model_terms, refitted

if TYPE_CHECKING:
    from discreet.numerics.copula import Copula


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
    refits = _Refits(repeats, seed, progress, quick)
    if sample.records == sample.population:
        return _everybody(sample, estimator)
    if estimator == "average":
        return _average(sample, refits)
    if estimator in ("gaussian", "d-vine"):
        return _by_copula(sample, estimator, refits)  # type: ignore[arg-type]
    if estimator == "log-linear":
        fitted = fit_sample(sample)
        notes = tuple(model_caveats(fitted)) if fitted.model else ()
        settings = {"model": model_terms(sample, fitted)}
        return _jackknifed(
            sample,
            fitted.estimate,
            lambda group: refitted(group, fitted).estimate,
            refits,
            settings,
            notes=notes,
        )
    model = SIZE_MODELS[estimator]
    found = model(sample.sizes())
    return _jackknifed(sample, found, lambda group: model(group.sizes()), refits, dict(found.parameters))


@dataclass(frozen=True)
class _Refits:
    """How often a model is fitted to parts of the sample, and with which random numbers; never if ``quick``."""

    times: int
    seed: int
    progress: bool
    quick: bool


def _everybody(sample: CodedSample, estimator: str) -> Answer:
    """The sample is the population: both risks are known."""
    unique, risk = float(sample.sizes().uniques), sample.classes / sample.population
    known = Estimate(estimator, risk, float(sample.classes), unique, unique)
    note = "The file is its whole population, so nothing had to be estimated."
    return Answer(known, risk, risk, (note,))


def _average(sample: CodedSample, refits: _Refits) -> Answer:
    kinds: tuple[Kind, ...] = ("gaussian", "d-vine")
    parts = tuple(_by_copula(sample, kind, refits) for kind in kinds)
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


def _by_copula(sample: CodedSample, kind: Kind, refits: _Refits) -> Answer:
    refuse_continuous(sample)
    seed = refits.seed
    populations = min(refits.times, max(2, _PEOPLE // sample.population))
    full = simulated(sample, kind, populations, seed)
    risk = float(full.estimate.risk or 0.0)
    if refits.quick:
        return Answer(full.estimate, notes=full.notes, sizes=full.sizes)
    people = min(sample.population, max(_LARGEST_REPEAT, sample.records))
    left = sample.leave_out(refits.times, generator(seed, "jackknife", kind))
    groups = [group.in_population(people) for group in left]
    # The same random numbers in every group: what differs between the answers is then the sample, not the draw.
    runs: list[Simulated] = [
        simulated(group, kind, 1, seed)
        for group in track(groups, len(groups), f"Refitting the {kind} copula", progress=refits.progress)
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


def _jackknifed(
    sample: CodedSample,
    found: Estimate,
    estimate: Callable[[CodedSample], Estimate],
    refits: _Refits,
    settings: Mapping[str, Any],
    *,
    notes: tuple[str, ...] = (),
) -> Answer:
    if refits.quick or found.reason is not None:
        return Answer(found, notes=notes, settings=settings)
    stream = "log-linear" if found.estimator == "log-linear" else "sizes"
    groups = sample.leave_out(refits.times, generator(refits.seed, "jackknife", stream))
    runs = [estimate(group) for group in track(groups, len(groups), "Refitting", progress=refits.progress)]
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


# A population made from a sample: fit a copula to the keys, simulate everybody, count the classes.
#
# Method: Jiang, Mosquera, Jiang, Kong and El Emam (2022). Under simple random sampling the expected B is the number
# of classes over the number of people, so the simulated population is counted and no sample is drawn from it.


Kind = Literal["gaussian", "d-vine"]

_CHUNK = 500_000


@dataclass(frozen=True)
class Simulated:
    """The estimate from simulated populations, with what its interval and its tables need.

    ``spread`` is the standard deviation of B over the populations, ``drawing`` the variance of B over the samples
    that could have been drawn from one; ``sizes`` has columns ``class_size`` and ``classes``, per population.
    """

    estimate: Estimate
    spread: float
    drawing: float
    sizes: pl.DataFrame
    notes: tuple[str, ...]


def simulated(sample: CodedSample, kind: Kind, populations: int, seed: int) -> Simulated:
    """Fit a copula to the keys of a sample and count the classes of populations drawn from it."""
    from discreet.numerics.copula import fit_d_vine, fit_gaussian

    varying = [i for i, codes in enumerate(sample.codes) if np.ptp(codes[sample.counts > 0]) > 0]
    notes = [
        f"The key '{key}' has only one value and says nothing."
        for i, key in enumerate(sample.keys)
        if i not in varying
    ]
    if not varying:
        sizes = pl.DataFrame({"class_size": [sample.population], "classes": [1.0]})
        alone = Estimate(kind, 1 / sample.population, 1.0, float(sample.population == 1))
        return Simulated(alone, 0.0, 0.0, sizes, tuple(notes))
    columns = [np.repeat(sample.codes[i], sample.counts) for i in varying]
    ordered, weights = [sample.ordered[i] for i in varying], sample.record_weights()
    fit = fit_gaussian if kind == "gaussian" else fit_d_vine
    copula = fit(columns, ordered=ordered, weights=weights, seed=seed)
    notes += _fit_notes(copula, [sample.keys[i] for i in varying])
    drawn = [
        class_sizes(copula, sample.population, generator(seed, "population", str(i)))
        for i in range(populations)
    ]
    return _read_off(sample, kind, drawn, notes)


def refuse_continuous(sample: CodedSample) -> None:
    """Refuse keys with nearly as many values as records, on which mutual information says nothing."""
    for codes, key in zip(sample.codes, sample.keys, strict=True):
        levels, n = len(np.unique(codes)), sample.records
        if levels > n / 2 and n > 1:
            raise ColumnError(
                f"The key '{key}' has {levels:,} different values in {n:,} records: it is continuous or an identifier, "
                "and a copula cannot tell how records would share its values. Round or band it to what an intruder "
                "would know, or leave it out."
            )


def class_sizes(copula: Copula, people: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw a population from a copula and count its classes by size: columns ``class_size`` and ``classes``."""
    from scipy.special import ndtri

    cuts = [ndtri(np.minimum(np.cumsum(margin.shares)[:-1], 1.0)) for margin in copula.margins]  # type: ignore[attr-defined]
    parts = []
    for start in range(0, people, _CHUNK):
        latent = copula.latent(min(_CHUNK, people - start), rng)
        keys = _class_keys([np.searchsorted(at, latent[:, i]) for i, at in enumerate(cuts)], cuts)
        parts.append(pl.DataFrame({"key": keys}).group_by("key").len("class_size"))
    counted = (
        parts[0] if len(parts) == 1 else pl.concat(parts).group_by("key").agg(pl.col("class_size").sum())
    )
    sizes = counted.group_by("class_size").len("classes").sort("class_size")
    return sizes.cast({"class_size": pl.Int64, "classes": pl.Float64})


def _class_keys(codes: Sequence[npt.NDArray[np.intp]], cuts: Sequence[Floats]) -> npt.NDArray[np.uint64]:
    """Give every combination of codes one 64-bit number: exact where the combinations fit, else a hash.

    Two of ten million different combinations share a hash with a chance of about 3 in a million.
    """
    levels = [len(at) + 1 for at in cuts]
    exact = sum(np.log2(level) for level in levels) < 63
    keys = np.zeros(len(codes[0]), dtype=np.uint64)
    for column, level in zip(codes, levels, strict=True):
        code = column.astype(np.uint64)
        keys = keys * np.uint64(level) + code if exact else _mixed(keys ^ code)
    return keys


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble 64-bit numbers one to one (the finalizer of SplitMix64; Steele, Lea and Flood 2014)."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _read_off(sample: CodedSample, kind: str, drawn: Sequence[pl.DataFrame], notes: list[str]) -> Simulated:
    people, n = sample.population, sample.records
    classes = np.array([float(table["classes"].sum()) for table in drawn])
    uniques = np.array([float(table.filter(pl.col("class_size") == 1)["classes"].sum()) for table in drawn])
    lowest, highest = sample.classes, sample.classes + people - n
    if not lowest <= classes.mean() <= highest:
        notes.append(
            "The simulated population had fewer classes than the sample itself shows; the sample's own number was used."
        )
    bounded = float(np.clip(classes.mean(), lowest, highest))
    squares = np.mean([float((table["classes"] / table["class_size"]).sum()) for table in drawn]) / people
    mean = float(classes.mean()) / people
    table = (
        pl.concat(drawn).group_by("class_size").agg(pl.col("classes").sum() / len(drawn)).sort("class_size")
    )
    return Simulated(
        estimate=Estimate(kind, bounded / people, bounded, float(uniques.mean())),
        spread=float(classes.std(ddof=1) / people) if len(drawn) > 1 else 0.0,
        drawing=max(float(squares) - mean**2, 0.0) / n * (1 - n / people),
        sizes=table,
        notes=tuple(notes),
    )


def _fit_notes(copula: Copula, keys: Sequence[str]) -> list[str]:
    notes = []
    if copula.unreached:
        pairs = ", ".join(f"'{keys[i]}' and '{keys[j]}'" for i, j in copula.unreached[:3])
        more = f" and {len(copula.unreached) - 3} more pairs" if len(copula.unreached) > 3 else ""
        notes.append(
            f"{pairs}{more} depend on each other more than a Gaussian copula can show, so the population has too "
            "many classes."
        )
    if copula.repaired > 0.05:
        notes.append(
            f"The pairwise correlations contradict each other; one was changed by {copula.repaired:.2f} to make them "
            "fit together."
        )
    return notes
