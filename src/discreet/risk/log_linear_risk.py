"""How many sample uniques are population uniques, by a log-linear model of the key table?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.charts import Dots, Row, number, rows_of
from discreet.core.constraints import AtLeast, ColumnNames, Public, Share
from discreet.core.errors import ParameterError, need_known
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.formula import parsed
from discreet.microdata import Microdata
from discreet.numerics.codes import CodedColumns
from discreet.numerics.proportional_fitting import AxisMargin, fit_margins
from discreet.risk.class_size_models import (
    CodedSample,
    Estimate,
    code_table,
    coded_sample,
    interval,
    jackknife_error,
)
from discreet.risk.equivalence_classes import Partition
from discreet.risk.k_anonymity import key_caveats

#: The largest key table that is fitted cell by cell.
LARGEST_TABLE = 3_000_000
_SIGNIFICANT = 1.96


@dataclass(frozen=True)
class Fitted:
    """A chosen model, the way to it, and the risk that follows; ``reason`` where there is none."""

    estimate: Estimate
    tau2: float | None = None
    model: Model | None = None
    path: tuple[Model, ...] = ()
    expected_others: Floats | None = None


_MOST_MODELS = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Dots]:
    rows = rows_of(found, "models", "added", "error_tau2", "chosen")
    if len(rows) < 2:
        return
    kept = rows[:_MOST_MODELS]
    yield Dots(
        title="How far each model is from the counts of the file",
        series=("Unique in the population (tau1)", "Right matches (tau2)"),
        rows=tuple(
            Row(
                f"{'+ ' if place else ''}{row['added']}{' (chosen)' if row['chosen'] else ''}",
                (number(row.get("error_tau1")), number(row["error_tau2"])),
            )
            for place, row in enumerate(kept)
        ),
        axis="Test of over- or underfit of each step; the closer to 0, the better the model fits",
        as_share=False,
        mark=0.0,
    )


@measure(
    room="risk",
    work="class-wise",
    title="Log-linear risk",
    question="How many of those alone in the file are alone in the population?",
    headline="right matches on unique records (tau2)",
    chapter="population",
    place=4,
    references=(
        "Skinner, C. and Shlomo, N. (2008). Assessing identification risk in survey microdata using "
        "log-linear models. Journal of the American Statistical Association 103(483), 989–1001.",
    ),
    figures={
        "value": Figure(better="lower"),
        "tau1_low": Figure("Lowest plausible tau1"),
        "tau1_high": Figure("Highest plausible tau1"),
        "tau2_low": Figure("Lowest plausible tau2"),
        "tau2_high": Figure("Highest plausible tau2"),
        "tau1_share": Figure("tau1 as a share of the unique records", unit="share"),
        "tau2_share": Figure("tau2 as a share of the unique records", unit="share"),
        "error_tau1": Figure("Misfit for tau1, in standard errors"),
        "error_tau2": Figure("Misfit for tau2, in standard errors"),
        "interactions": Figure("Interactions in the model"),
    },
    columns={"added": Figure("Added to the model"), "step": Figure("Step")},
    assess=OfFile(9, population_size=True, slow=True),
    pictures=_pictures,
)
def log_linear(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    population_size: Annotated[int, AtLeast(1)] | None = None,
    sampling_fraction: Annotated[float, Share(above=True)] | None = None,
    model: Annotated[str, Public()] | None = None,
    missing: Partition = "category",
    repeats: Annotated[int, AtLeast(3)] = 10,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """How many of the records that are unique in the file are unique in the population as well?

    The counts of all combinations of key values are Poisson with means given by a log-linear model (Skinner and
    Shlomo 2008). With lambda people expected in a combination and pi the sampling fraction, a sample unique is a
    population unique with chance ``exp(-m)``, ``m = lambda (1 - pi)``, and is found with chance
    ``(1 - exp(-m)) / m``. ``tau1`` and ``tau2`` are the sums of the two over the sample uniques.

    The model is grown from independence, interaction by interaction, and chosen by the minimum-error criterion of
    that paper: the smallest estimated error of tau2 in standard errors, not the best fit. The intervals (95 %) cover
    the sampling and the estimated error of the chosen model.

    Also known as: Poisson log-linear risk; Skinner-Shlomo; global risk tau1 and tau2.

    Parameters
    ----------
    data
        The file: a sample.
    keys
        Key columns; those of the data unless named.
    population_size, sampling_fraction
        People in the population, or the share of them in the file. Without either the survey weights are summed.
    model
        The margins that the model keeps, as a formula over the keys: ``"age*sex + region"``. Keys that it leaves out
        come in by themselves. Chosen by the criterion above unless given.
    missing
        ``category``: missing is a value of its own. ``drop``: records with a missing key are left out.
    repeats
        Groups of the jackknife behind the intervals.
    progress
        Show a progress bar.
    seed
        For dealing records into groups; the estimates themselves do not depend on it.

    Returns
    -------
    Measure
        ``value`` is ``tau2`` (None where the model cannot be fitted). ``figures``: ``tau1``, ``tau1_low``,
        ``tau1_high``, ``tau2``, ``tau2_low``, ``tau2_high``, ``tau1_share`` and ``tau2_share`` (of the sample
        uniques), ``B`` (mean chance to be found, all records), ``error_tau1`` and ``error_tau2`` (estimated
        error of the model in standard errors), ``sample_uniques``, ``population_uniques``, ``cells``,
        ``interactions``, ``records``, ``population_size``, ``sampling_fraction``. ``detail``: ``models``, the
        way of the search; ``records``, each record's ``class_size`` and ``risk``.

    How to read it
    --------------
    ``tau1`` is the number of records that are alone both in the file and in the population; those people can
    be found for certain. ``tau2`` is the number of right matches if an intruder links every record that is
    alone to somebody who fits. Divide by ``sample_uniques`` (``tau1_share``, ``tau2_share``) to see how far
    being alone in the file overstates the risk. ``error_tau2`` near 0 says that the model neither over- nor
    underfits; beyond about 2 in either direction look for better keys or another method.

    When not to trust it
    --------------------
    It assumes simple random (Poisson) sampling: with strongly uneven weights it is off. The intervals are
    wide for small sampling fractions and can reach zero; the point estimate alone is then no evidence of
    safety. With many keys of many values the table has more cells than can be fitted, and the measure says
    so. Cells that cannot occur (married children) are given people by the model all the same, which lowers
    the estimate for those that can.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 50, "age": [a % 9 for a in range(99)] + [70]})
    >>> found = log_linear(Microdata(people, keys=["sex", "age"]), population_size=1000, seed=1)
    >>> found.figures["sample_uniques"], round(found.figures["tau2"], 2)
    (1, 0.22)
    """
    keys = engine.resolve_keys(data, keys)
    caveats = key_caveats(data, keys)
    sample = coded_sample(
        data, keys, missing, population_size=population_size, sampling_fraction=sampling_fraction
    )
    fitted = fit_sample(sample, None if model is None else _terms_of(model, keys))
    uniques = sample.sizes().uniques
    parameters = {
        "keys": list(keys),
        "missing": missing,
        "repeats": repeats,
        "model": model_terms(sample, fitted),
    }
    if fitted.model is None:
        return Measure(
            name="log_linear",
            value=None,
            figures={"tau1": None, "tau2": None, "B": None, "sample_uniques": uniques},
            meaning=f"Not estimable: {fitted.estimate.reason}.",
            caveats=[*caveats, f"Not estimable: {fitted.estimate.reason}."],
            parameters=parameters,
        )
    errors = _errors(sample, fitted, repeats, progress, seed)
    tau1, tau2 = float(fitted.estimate.stays_unique or 0.0), float(fitted.tau2 or 0.0)
    ends = {
        name: _ends(value, errors[i], fitted.model.errors[i], uniques)
        for i, (name, value) in enumerate((("tau1", tau1), ("tau2", tau2)))
    }
    return Measure(
        name="log_linear",
        value=tau2,
        figures={
            "tau1": tau1,
            "tau1_low": ends["tau1"][0],
            "tau1_high": ends["tau1"][1],
            "tau2": tau2,
            "tau2_low": ends["tau2"][0],
            "tau2_high": ends["tau2"][1],
            "tau1_share": tau1 / uniques if uniques else None,
            "tau2_share": tau2 / uniques if uniques else None,
            "B": fitted.estimate.risk,
            "error_tau1": fitted.model.standardized[0],
            "error_tau2": fitted.model.standardized[1],
            "sample_uniques": uniques,
            "population_uniques": fitted.estimate.uniques,
            "cells": int(fitted.model.means.size),
            "interactions": sum(len(term) > 1 for term in fitted.model.terms),
            "records": sample.records,
            "population_size": sample.population,
            "sampling_fraction": sample.records / sample.population,
        },
        meaning=_meaning(uniques, sample.population, tau1, tau2),
        caveats=[*caveats, *sample.notes, *model_caveats(fitted)],
        parameters=parameters,
        detail=engine.tables_like(
            data,
            models=lambda: _way(sample, fitted),
            records=lambda: _records(data, keys, missing, sample, fitted),
        ),
    )


def _terms_of(model: str, keys: Sequence[str]) -> tuple[Term, ...]:
    """Read the margins of a model off its formula, as places of the keys."""
    named = [term.columns for term in parsed(model).terms]
    need_known((name for columns in named for name in columns), keys, "It was named in model.", what="key")
    if any(set(columns) == set(keys) for columns in named):
        raise ParameterError(
            "The model of all keys together repeats the table and says nothing of the population. Leave an interaction "
            "out of model."
        )
    wanted = [tuple(sorted({keys.index(name) for name in columns})) for columns in named]
    alone = [(place,) for place in range(len(keys)) if not any(place in term for term in wanted)]
    return tuple(dict.fromkeys([*alone, *wanted]))


def fit_sample(sample: CodedSample, terms: tuple[Term, ...] | None = None) -> Fitted:
    """Fit a log-linear model to the key table of a sample, chosen unless its terms are given, and read the risk off."""
    cells = float(np.prod([float(levels) for levels in sample.shape]))
    if cells > LARGEST_TABLE:
        reason = (
            f"the keys span {cells:,.0f} combinations, more than the {LARGEST_TABLE:,} that a log-linear "
            "model is fitted to; use fewer or coarser keys, or a copula estimator"
        )
        return Fitted(Estimate("log-linear", reason=reason))
    if len(sample.keys) == 1:
        reason = "with one key the model repeats the counts and says nothing of the population; use another estimator"
        return Fitted(Estimate("log-linear", reason=reason))
    counts = _table(sample)
    fraction = sample.records / sample.population
    path = (
        (fitted_model(counts, terms, fraction),)
        if terms is not None
        else tuple(search(counts, fraction))
        if fraction < 1
        else (Model(independence(counts), tuple((i,) for i in range(counts.ndim)), (0.0, 0.0), (0.0, 0.0)),)
    )
    chosen = min(path, key=lambda model: model.wrongness)
    return read_off(sample, counts, chosen, path)


def read_off(sample: CodedSample, counts: Floats, model: Model, path: tuple[Model, ...]) -> Fitted:
    """Turn cell means into tau1, tau2, B and the classes and uniques of the population."""
    fraction = sample.records / sample.population
    others = model.means * ((1 - fraction) / fraction)
    seen, beside = counts[counts > 0], others[counts > 0]
    found = mean_reciprocal_poisson(seen, beside)
    alone = seen == 1
    absent = others[counts == 0]
    tau1 = float(stays_alone(beside[alone]).sum())
    estimate = Estimate(
        "log-linear",
        risk=float((seen * found).sum() / sample.records),
        classes=sample.classes + float(-np.expm1(-absent).sum()),
        uniques=tau1 + float((absent * np.exp(-absent)).sum()),
        stays_unique=tau1,
    )
    return Fitted(estimate, float(found[alone].sum()), model, path, others)


def refitted(sample: CodedSample, fitted: Fitted) -> Fitted:
    """Fit the model that was chosen already to another sample with the same key table."""
    if fitted.model is None:
        return fitted
    counts = _table(sample, fitted.model.means.shape)
    terms = fitted.model.terms
    start = fitted.model.means * (counts.sum() / fitted.model.means.sum())
    means = fitted_means(counts, terms, start)
    return read_off(sample, counts, Model(means, terms, (0.0, 0.0), (0.0, 0.0)), ())


def model_terms(sample: CodedSample, fitted: Fitted) -> list[str]:
    """Name the interactions of the chosen model: ``age * sex``."""
    if fitted.model is None:
        return []
    return [_term(sample, term) for term in fitted.model.terms if len(term) > 1]


def model_caveats(fitted: Fitted) -> list[str]:
    """Word what the reader must know about the chosen model."""
    caveats = ["The model assumes that everybody was equally likely to be drawn and that counts are Poisson."]
    error = fitted.model.standardized[1] if fitted.model else 0.0
    if abs(error) > _SIGNIFICANT:
        too = "too high" if error > 0 else "too low"
        caveats.append(
            f"No model on the way was free of error: the one chosen is {abs(error):.1f} standard errors off, and its "
            f"risk is probably {too}."
        )
        if fitted.model and len(fitted.path) > most_steps(fitted.model.means.size):
            caveats.append(
                "The search ended before it had tried all interactions, because the table is large."
            )
    return caveats


def _ends(value: float, error: float | None, bias: float, uniques: int) -> tuple[float | None, float | None]:
    """Return the interval, stretched to hold the value without the estimated error of the model as well."""
    around = [interval(float(np.clip(v, 0.0, uniques)), error, 0.0, uniques) for v in (value, value - bias)]
    lows, highs = ([end for end in ends if end is not None] for ends in zip(*around, strict=True))
    return min(lows, default=None), max(highs, default=None)


def _errors(
    sample: CodedSample, fitted: Fitted, repeats: int, progress: bool, seed: Seed
) -> tuple[float | None, float | None]:
    """Return standard errors of tau1 and tau2: of the means, by jackknife, and of the people given the means."""
    if sample.records == sample.population or fitted.expected_others is None:
        return 0.0, 0.0
    groups = sample.leave_out(repeats, generator(seed, "log_linear"))
    runs = [refitted(group, fitted) for group in track(groups, len(groups), "Refitting", progress=progress)]
    scale = sample.sizes().uniques
    found = (
        (fitted.estimate.stays_unique, [run.estimate.stays_unique for run in runs]),
        (fitted.tau2, [run.tau2 for run in runs]),
    )
    errors = []
    for value, values in found:
        # Leaving records out changes how many are unique; the share of them is what the model speaks of.
        shares = [
            None if v is None or not (u := group.sizes().uniques) else v / u * scale
            for v, group in zip(values, groups, strict=True)
        ]
        fit = jackknife_error(shares)
        share = (value or 0.0) / scale if scale else 0.0
        # Each chance is between 0 and 1, so that its variance is at most that of a coin with the same mean.
        people = scale * share * (1 - share)
        errors.append(None if fit is None else float(np.sqrt(fit**2 + people)))
    return errors[0], errors[1]


def _table(sample: CodedSample, shape: tuple[int, ...] | None = None) -> Floats:
    return CodedColumns(sample.codes, shape or sample.shape).counted(sample.counts.astype(float))


def _term(sample: CodedSample, term: tuple[int, ...]) -> str:
    return " * ".join(sample.keys[axis] for axis in term)


def _way(sample: CodedSample, fitted: Fitted) -> pl.DataFrame:
    steps = ["independence", *(_term(sample, model.terms[-1]) for model in fitted.path[1:])]
    return pl.DataFrame(
        {
            "step": range(len(steps)),
            "added": steps,
            "error_tau1": [model.standardized[0] for model in fitted.path],
            "error_tau2": [model.standardized[1] for model in fitted.path],
            "chosen": [model is fitted.model for model in fitted.path],
        }
    )


def _records(
    data: Microdata, keys: Sequence[str], missing: engine.Missing, sample: CodedSample, fitted: Fitted
) -> object:
    """Carry the risk of every class back to its records, by the order in which the classes were coded."""
    table = engine.class_table(data, keys, missing).drop("class_size")
    return engine.carry_back(data, keys, missing, with_risk(table, sample, fitted))


def with_risk(table: pl.DataFrame, sample: CodedSample, fitted: Fitted) -> pl.DataFrame:
    """Set the risk of a record beside every class of a class table."""
    names = [name for name in table.columns if name.startswith("k")]
    assert fitted.expected_others is not None
    coded = code_table(table, names)
    at = tuple(coded[name].to_numpy() for name in names)
    found = mean_reciprocal_poisson(table["records"].to_numpy().astype(float), fitted.expected_others[at])
    return table.select(*names, class_size="records", risk=pl.Series(found))


def _meaning(uniques: int, people: int, tau1: float, tau2: float) -> str:
    if not uniques:
        return "No record is unique in the file, so there is none that could be unique in the population."
    return (
        f"Of the {uniques:,} records that are unique in the file, about {tau1:,.0f} ({percent(tau1 / uniques)}) are "
        f"unique among the {people:,} people of the population too; an intruder who links each to somebody with the "
        f"same key values is right in {percent(tau2 / uniques)} of the cases (about {shown(round(tau2, 1))})."
    )


# Poisson log-linear models of a table of class counts, and how wrong they make the risk of sample uniques.
#
# The counts of the cells are ``f ~ Poisson(mu)`` with ``mu = pi * lambda``; what is not in the sample adds
# ``Poisson((1 - pi) * lambda)`` people to a cell. A model is the list of the margins it reproduces.


Term = tuple[int, ...]

#: How many interactions are tried at each step of the search: those whose margins the model misses most.
_SHORTLIST = 3
_CELLS_IN_ALL = 2_000_000
#: An estimated error within this many standard errors of zero is no sign of a wrong model.
_CLOSE = 1.0


@dataclass(frozen=True)
class Model:
    """Fitted cell means, the margins that were fitted, and the standardized errors of tau 1 and tau 2."""

    means: Floats
    terms: tuple[Term, ...]
    errors: tuple[float, float]
    standardized: tuple[float, float]

    @property
    def wrongness(self) -> float:
        """The size of the standardized error of tau 2, which the search makes small."""
        return abs(self.standardized[1])


def independence(counts: Floats) -> Floats:
    """Return the cell means if every key were independent of the others.

    Examples
    --------
    >>> independence(np.array([[1.0, 3.0], [1.0, 3.0]])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """
    total = counts.sum()
    means = np.full(counts.shape, total)
    for axis in range(counts.ndim):
        means = means * (AxisMargin.of(counts, (axis,)).wanted / total)
    return means


def fitted_means(
    counts: Floats, terms: Iterable[Term], start: Floats, *, tolerance: float = 0.05, rounds: int = 60
) -> Floats:
    """Fit the means of a model to the margins of its terms; ``start`` must itself be of the model.

    The means of a smaller model are such a start.
    """
    margins = [AxisMargin.of(counts, term) for term in terms]
    return fit_margins(start, margins, tolerance=tolerance, rounds=rounds).cells


def risk_errors(
    counts: Floats, means: Floats, fraction: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Estimate the error a model makes in tau 1 and tau 2, and the same in standard errors.

    The criterion of Skinner and Shlomo (2008): a second-order expansion of the difference between the risk at
    the fitted and at the true cell means, in which the unknown difference of the means is replaced by the residual
    ``f - mu`` and its square by ``(f - mu)**2 - f``. Positive: the model leaves out interactions and the risk is too
    high; negative: it has too many.
    """
    missed = 1 - fraction
    weight = means * np.exp(-means)
    residual = counts - means
    square = residual**2 - counts
    errors, standardized = [], []
    for slope, bend in _derivatives(missed * means / fraction):
        first = -weight * missed * slope / fraction
        second = weight * missed**2 * bend / (2 * fraction**2)
        error = float((first * residual + second * square).sum())
        # Under a Poisson count the two parts are uncorrelated, with variances mu and 2 mu squared.
        variance = float((first**2 * means + 2 * second**2 * means**2).sum())
        errors.append(error)
        standardized.append(error / np.sqrt(variance) if variance > 0 else 0.0)
    return (errors[0], errors[1]), (standardized[0], standardized[1])


def fitted_model(counts: Floats, terms: tuple[Term, ...], fraction: float) -> Model:
    """Fit the model that keeps these margins, starting from equal cells."""
    start = np.full(counts.shape, counts.sum() / counts.size)
    means = fitted_means(counts, terms, start, tolerance=1e-6, rounds=500)
    return (
        _model(counts, means, terms, fraction)
        if fraction < 1
        else Model(means, terms, (0.0, 0.0), (0.0, 0.0))
    )


def search(counts: Floats, fraction: float) -> Iterator[Model]:
    """Grow a model from independence by the interactions that leave the smallest error, pairs before triples.

    At each step the interactions whose margins the model misses most are fitted, and the one with the smallest
    standardized error is kept. Triples are tried only when all pairs leave a significant positive error. The
    search ends when the error is near zero or negative, or has stopped falling, or has taken as many steps as a table
    of this size is worth. Every model is handed over. The model of all keys together is never tried: it repeats the
    table and says nothing of the population.
    """
    axes = range(counts.ndim)
    steps = most_steps(counts.size)
    means = independence(counts)
    model = _model(counts, means, tuple((axis,) for axis in axes), fraction)
    yield model
    for order in (order for order in (2, 3) if order < counts.ndim):
        left = list(combinations(axes, order))
        stalled = 0
        while left and stalled < 2 and steps > 0 and model.standardized[1] > _CLOSE:
            steps -= 1
            shortlist = sorted(left, key=lambda term: -_missed(counts, model.means, term))[:_SHORTLIST]
            grown = [_with_term(counts, model, term, fraction) for term in shortlist]
            best = min(grown, key=lambda candidate: candidate.wrongness)
            stalled = 0 if best.wrongness < model.wrongness else stalled + 1
            left.remove(best.terms[-1])
            model = best
            yield model
        if model.standardized[1] <= _SIGNIFICANT:
            return


def most_steps(cells: int) -> int:
    """How many interactions are tried one after the other: each costs some fits of the whole table.

    Examples
    --------
    >>> most_steps(3_000), most_steps(500_000), most_steps(8_000_000)
    (666, 4, 1)
    """
    return max(1, _CELLS_IN_ALL // cells)


def stays_alone(more: Floats) -> Floats:
    """Chance that a sample unique is a population unique when ``more`` people are expected beside it."""
    return np.exp(-more)


def mean_reciprocal_poisson(class_size: Floats, more: Floats) -> Floats:
    """Return E[1 / (f + X)] for a Poisson X with mean ``more``: the risk of a record in a class of f.

    Examples
    --------
    >>> mean_reciprocal_poisson(np.array([1.0, 2.0]), np.array([0.0, 0.0])).tolist()
    [1.0, 0.5]
    """
    from scipy.special import hyp1f1

    total = class_size + more
    # Two terms of the expansion about the mean are exact to six digits where classes are large.
    far = (1 + more / total**2) / total
    near = total < 150
    exact = hyp1f1(1.0, np.where(near, class_size, 1.0) + 1, -np.where(near, more, 0.0))
    return np.where(near, exact / np.where(near, class_size, 1.0), far)


def _derivatives(more: Floats) -> Iterator[tuple[Floats, Floats]]:
    """First and second derivative of the two risks by the expected number of others."""
    gone = np.exp(-more)
    yield -gone, gone
    small = more < 0.02
    x = np.where(small, 1.0, more)
    slope = np.where(small, -1 / 2 + more / 3 - more**2 / 8, (gone * (1 + x) - 1) / x**2)
    bend = np.where(small, 1 / 3 - more / 4 + more**2 / 10, (2 - gone * (x**2 + 2 * x + 2)) / x**3)
    yield slope, bend


def _model(counts: Floats, means: Floats, terms: tuple[Term, ...], fraction: float) -> Model:
    errors, standardized = risk_errors(counts, means, fraction)
    return Model(means, terms, errors, standardized)


def _with_term(counts: Floats, model: Model, term: Term, fraction: float) -> Model:
    kept = tuple(old for old in model.terms if not set(old) < set(term))
    terms = (*kept, term)
    return _model(counts, fitted_means(counts, terms, model.means), terms, fraction)


def _missed(counts: Floats, means: Floats, term: Term) -> float:
    """How badly the means miss a margin: its deviance less its degrees of freedom."""
    seen, modelled = AxisMargin.of(counts, term).wanted, AxisMargin.of(means, term).wanted
    there = seen > 0
    freedom = float(np.prod([counts.shape[axis] - 1 for axis in term]))
    return float(2 * (seen[there] * np.log(seen[there] / modelled[there])).sum()) - freedom
