"""From the class sizes of a sample to those of the population: the coded sample, and models of its sizes.

Every model answers with an `Estimate`; one that cannot be fitted answers with a reason and no number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType

import narwhals as nw
import numpy as np
import polars as pl
from scipy.special import softmax

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.native_libraries import one_thread
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import refuse_nobody
from discreet.risk.negative_binomial_risk import mean_reciprocal


@dataclass(frozen=True)
class Sizes:
    """How many classes of each size a sample has, and how many people its population."""

    size: Floats
    classes: Floats
    population: int

    @classmethod
    def of(cls, class_sizes: Integers, population: int) -> Sizes:
        """Count the classes of each size; classes without records are no classes.

        Examples
        --------
        >>> sizes = Sizes.of(np.array([2, 1, 1]), 12)
        >>> sizes.records, sizes.total, sizes.uniques
        (4, 3, 2)
        """
        size, classes = np.unique(class_sizes[class_sizes > 0], return_counts=True)
        return cls(size.astype(float), classes.astype(float), population)

    @property
    def records(self) -> int:
        """Number of records, n."""
        return int((self.size * self.classes).sum())

    @property
    def total(self) -> int:
        """Number of classes, K."""
        return int(self.classes.sum())

    def of_size(self, size: int) -> int:
        """Number of classes of one size."""
        return int(self.classes[self.size == size].sum())

    @property
    def uniques(self) -> int:
        """Number of classes with one record."""
        return self.of_size(1)

    @property
    def fraction(self) -> float:
        """Sampling fraction, n / N."""
        return self.records / self.population


@dataclass(frozen=True)
class Estimate:
    """What a model says of the population; a number it does not give is None.

    ``risk`` is B, the mean of one over the population class of a record; ``classes`` and ``uniques`` count
    classes and one-person classes in the population; ``stays_unique`` counts the sample uniques that are
    population uniques (tau 1). Where nothing could be estimated, ``reason`` says why.
    """

    estimator: str
    risk: float | None = None
    classes: float | None = None
    uniques: float | None = None
    stays_unique: float | None = None
    reason: str | None = None
    parameters: Mapping[str, float | str] = field(default_factory=dict)


def pitman(sizes: Sizes) -> Estimate:
    """Pitman's sampling formula, fitted by maximum likelihood (Hoshino 2001).

    Classes and uniques are predicted given the sample (Favaro, Lijoi, Mena and Prünster 2009), so that they meet
    the sample's own where the sample is the population.
    """
    from scipy.optimize import minimize
    from scipy.special import expit, gammaln, logit

    n, k = sizes.records, sizes.total
    if k in (n, 1):
        return Estimate("pitman", reason=_ALL_ALIKE if k == 1 else _ALL_UNIQUE)

    def loss(point: Floats) -> float:
        theta, alpha = _pitman_parameters(point, expit)
        within = (sizes.classes * (gammaln(sizes.size - alpha) - gammaln(1 - alpha))).sum()
        between = (k - 1) * np.log(alpha) + gammaln(theta / alpha + k) - gammaln(theta / alpha + 1)
        return float(-(between + within - gammaln(theta + n) + gammaln(theta + 1)))

    starts = [np.array([logit(alpha), np.log(k)]) for alpha in (0.1, 0.5, 0.9)]
    bounds = [(logit(1e-7), logit(1 - 1e-7)), (np.log(1e-6), np.log(1e12))]
    # Steps so small are over before threads of linear algebra have met, which on a busy machine takes milliseconds.
    with one_thread():
        found = [minimize(loss, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = min((run for run in found if np.isfinite(run.fun)), key=lambda run: run.fun, default=None)
    if best is None:
        return Estimate("pitman", reason="the likelihood could not be maximized")
    theta, alpha = _pitman_parameters(best.x, expit)
    if not 1e-5 < alpha < 1 - 1e-5:
        return Estimate(
            "pitman",
            reason="the likelihood has its maximum at the edge of the model: the class sizes are more even, or more "
            "extreme, than Pitman's formula can be",
        )
    more = sizes.population - n

    def rising(start: float, steps: float) -> float:
        return float(gammaln(start + steps) - gammaln(start))

    growth = np.exp(rising(theta + n + alpha, more) - rising(theta + n, more))
    stays = sizes.uniques * np.exp(rising(theta + n - 1 + alpha, more) - rising(theta + n, more))
    new = 0.0
    if more:
        first = (theta + k * alpha) / (theta + n)
        new = more * first * np.exp(rising(theta + n + alpha, more - 1) - rising(theta + n + 1, more - 1))
    return _from_classes(
        "pitman",
        sizes,
        k + (k + theta / alpha) * (growth - 1),
        uniques=float(stays + new),
        stays_unique=float(stays),
        parameters={"theta": theta, "alpha": alpha},
    )


def ewens(sizes: Sizes) -> Estimate:
    """Ewens' sampling formula, fitted by maximum likelihood (Ewens 1972; Hoshino and Takemura 1998)."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    n, k = sizes.records, sizes.total
    if k in (n, 1):
        return Estimate("ewens", reason=_ALL_ALIKE if k == 1 else _ALL_UNIQUE)

    def expected(theta: float, people: int) -> float:
        return float(theta * (digamma(theta + people) - digamma(theta)))

    theta = float(np.exp(brentq(lambda t: expected(np.exp(t), n) - k, np.log(1e-8), np.log(1e13))))
    people = sizes.population
    stays = sizes.uniques * (theta + n - 1) / (theta + people - 1)
    return _from_classes(
        "ewens",
        sizes,
        expected(theta, people),
        uniques=stays + (people - n) * theta / (theta + people - 1),
        stays_unique=stays,
        parameters={"theta": theta},
    )


def snb(sizes: Sizes) -> Estimate:
    """Slide negative binomial: class sizes are one plus a negative binomial (Chen and Keller-McNulty 1998).

    The number of classes L and the two parameters solve three equations: the people, the classes and the uniques
    of the sample equal what the model expects under Bernoulli sampling.
    """
    from scipy.optimize import brentq

    n, k, people = sizes.records, sizes.total, sizes.population
    if k in (n, 1):
        return Estimate("snb", reason=_ALL_ALIKE if k == 1 else _ALL_UNIQUE)
    if people == n:
        return _observed("snb", sizes)
    fraction = n / people

    def shape(classes: float) -> float | None:
        """Solve the equation of the sample classes for the shape, given the number of population classes."""
        mean, absent = people / classes - 1, 1 - k / classes

        def excess(log_shape: float) -> float:
            a = np.exp(log_shape)
            return float(np.log1p(-fraction) - a * np.log1p(mean * fraction / a) - np.log(absent))

        low, high = np.log(1e-8), np.log(1e8)
        if excess(low) <= 0 or excess(high) >= 0:
            return None
        return float(np.exp(brentq(excess, low, high)))

    def surplus(classes: float, a: float) -> float:
        mean, absent = people / classes - 1, 1 - k / classes
        once = absent / (1 - fraction) * (1 + (1 - fraction) * a * mean / (a + mean * fraction))
        return float(classes * fraction * once - sizes.uniques)

    highest = min(k / fraction, k + people - n) * (1 - 1e-9)
    grid = np.exp(np.linspace(np.log(k * (1 + 1e-9)), np.log(highest), 60))
    tried = [(float(c), surplus(float(c), a)) for c in grid if (a := shape(float(c))) is not None]
    crossings = [(low, high) for (low, left), (high, right) in pairwise(tried) if left * right <= 0]
    if not crossings:
        return Estimate("snb", reason="its three equations have no solution for these class sizes")
    low, high = crossings[0]
    classes = float(brentq(lambda c: surplus(c, shape(c) or 1e-8), low, high))
    a = shape(classes) or 1e-8
    unique = float(classes * np.exp(-a * np.log1p((people / classes - 1) / a)))
    return _from_classes(
        "snb",
        sizes,
        classes,
        uniques=unique,
        stays_unique=fraction * unique,
        parameters={"alpha": a, "beta": a / (a + people / classes - 1)},
    )


def zayatz(sizes: Sizes) -> Estimate:
    """Equivalence-class model: Bayes' rule with the sample's own distribution of class sizes (Zayatz 1991).

    The chance that a class of f records stands for j people is proportional to the share of sample classes of
    size j times the hypergeometric chance to draw f of them. For f = 1 and j = 1 this is Zayatz' estimate of the
    sample uniques that are population uniques; B uses the same rule for every f.
    """
    from scipy.special import gammaln

    n, people = sizes.records, sizes.population
    if people == n:
        return _observed("zayatz", sizes)

    def choose(total: Floats, chosen: Floats) -> Floats:
        allowed = (chosen >= 0) & (chosen <= total)
        inside = np.where(allowed, chosen, 0.0)
        value = gammaln(total + 1) - gammaln(inside + 1) - gammaln(np.maximum(total - inside, 0.0) + 1)
        return np.where(allowed, value, -np.inf)

    f, j = sizes.size[:, None], sizes.size[None, :]
    logs = np.log(sizes.classes)[None, :] + choose(j, f) + choose(people - j, n - f)
    chance = softmax(logs, axis=1)
    risk = float((sizes.size * sizes.classes * (chance / j).sum(axis=1)).sum() / n)
    if not sizes.uniques:
        return Estimate("zayatz", risk=risk, stays_unique=0.0)
    stays = float(sizes.uniques * chance[0, 0])
    return Estimate("zayatz", risk=risk, uniques=stays / sizes.fraction, stays_unique=stays)


def chao(sizes: Sizes) -> Estimate:
    """Lower bound for the number of classes under sampling without replacement (Chao and Lin 2012)."""
    n, k = sizes.records, sizes.total
    if sizes.population == n:
        return _observed("chao", sizes)
    once, twice, q = sizes.uniques, sizes.of_size(2), sizes.fraction
    below = 2 * twice * n / max(n - 1, 1) + once * q / (1 - q)
    return _from_classes("chao", sizes, k + (once**2 / below if below else 0.0))


def mu_argus(sizes: Sizes) -> Estimate:
    """Negative binomial population counts given the sample (Benedetti and Franconi 1998), as in mu-Argus."""
    f, fraction = sizes.size, sizes.fraction
    risk = float((f * sizes.classes * mean_reciprocal(f, f / fraction)).sum() / sizes.records)
    # Under the model a sample unique is alone in the population with the sampling fraction as chance.
    return Estimate(
        "mu-argus", risk=risk, uniques=float(sizes.uniques), stays_unique=fraction * sizes.uniques
    )


def dankar(sizes: Sizes) -> Estimate:
    """Decision rule of Dankar, El Emam, Neisa and Roffey (2012).

    Up to a sampling fraction of 0.1: Pitman, or Zayatz where Pitman is not estimable. Above it: of the slide
    negative binomial and Zayatz the one with fewer population uniques.
    """
    if sizes.fraction <= 0.1:
        first = pitman(sizes)
        chosen = first if first.reason is None else zayatz(sizes)
    else:
        first, second = snb(sizes), zayatz(sizes)
        estimable = first.reason is None and first.uniques is not None and second.uniques is not None
        chosen = first if estimable and (first.uniques or 0) <= (second.uniques or 0) else second
    parameters = {"chosen": chosen.estimator, **chosen.parameters}
    return replace(chosen, estimator="dankar", reason=None, parameters=parameters)


_ALL_UNIQUE = "every record of the sample is unique, so nothing shows how fast classes fill up"
_ALL_ALIKE = "all records are in one class, so nothing shows how fast new classes appear"


def _pitman_parameters(point: Floats, expit: Callable[[float], float]) -> tuple[float, float]:
    alpha = float(expit(point[0]))
    return float(np.exp(point[1])) - alpha, alpha


def _observed(estimator: str, sizes: Sizes) -> Estimate:
    """The sample is the population: everything is counted."""
    unique = float(sizes.uniques)
    return _from_classes(estimator, sizes, float(sizes.total), uniques=unique, stays_unique=unique)


def _from_classes(
    estimator: str,
    sizes: Sizes,
    classes: float,
    *,
    uniques: float | None = None,
    stays_unique: float | None = None,
    parameters: Mapping[str, float | str] | None = None,
) -> Estimate:
    """Read B off the number of classes, which is never below the sample's nor above it by more than N - n."""
    if not np.isfinite(classes):
        return Estimate(estimator, reason="the fit gives no finite number of classes")
    bounded = float(np.clip(classes, sizes.total, sizes.total + sizes.population - sizes.records))
    return Estimate(
        estimator, bounded / sizes.population, bounded, uniques, stays_unique, parameters=parameters or {}
    )


SIZE_MODELS: Mapping[str, Callable[[Sizes], Estimate]] = MappingProxyType(
    {
        "pitman": pitman,
        "ewens": ewens,
        "snb": snb,
        "zayatz": zayatz,
        "chao": chao,
        "mu-argus": mu_argus,
        "dankar": dankar,
    }
)


# A sample as population models see it: coded key combinations, their counts, and the size of the population.
#
# How far an estimate could be off because another sample had been drawn is told by leaving out groups of its records.


_MOST_PEOPLE = 10**15
"""Counts of people stay exact up to there, and no population is larger."""


@dataclass(frozen=True)
class CodedSample:
    """The classes of a sample: codes by key, records and sum of weights by class, and the people they stand for.

    ``counts`` may hold zeros, where records were left out for a jackknife.
    """

    keys: tuple[str, ...]
    codes: tuple[Integers, ...]
    ordered: tuple[bool, ...]
    counts: Integers
    weights: Floats | None
    population: int
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Number of records, n."""
        return int(self.counts.sum())

    @property
    def classes(self) -> int:
        """Number of classes that have a record, K."""
        return int((self.counts > 0).sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of every key."""
        return tuple(int(codes.max()) + 1 for codes in self.codes)

    def sizes(self) -> Sizes:
        """Count the classes of each size."""
        return Sizes.of(self.counts, self.population)

    def columns(self) -> list[Integers]:
        """Return the codes of every key, one entry a record."""
        return [np.repeat(codes, self.counts) for codes in self.codes]

    def record_weights(self) -> Floats | None:
        """Return the mean weight of the class of every record, or None without weights."""
        if self.weights is None:
            return None
        there = self.counts > 0
        return np.repeat(self.weights[there] / self.counts[there], self.counts[there])

    def in_population(self, population: int) -> CodedSample:
        """Return the same sample of a population of another size."""
        return replace(self, population=population)

    def leave_out(self, groups: int, rng: np.random.Generator) -> list[CodedSample]:
        """Deal the records into groups at random and return the samples without one group each."""
        dealt = rng.multinomial(self.counts, np.full(groups, 1 / groups))
        left = self.counts[:, None] - dealt
        share = None if self.weights is None else self.weights / np.maximum(self.counts, 1)
        return [
            replace(self, counts=column, weights=None if share is None else share * column)
            for column in left.T
            if column.sum() > 0
        ]


def coded_sample(
    data: Microdata,
    keys: Sequence[str],
    missing: engine.Missing,
    *,
    population_size: int | None,
    sampling_fraction: float | None,
) -> CodedSample:
    """Count the classes of a file, code their keys, and find out how many people they were drawn from."""
    weight, names = engine.resolve_weight(data), list(engine.key_names(keys))
    if weight:
        rows = engine.weighted_rows(data, keys, missing, weight)
        sums = (nw.len().cast(nw.Int64).alias("records"), nw.col("w").cast(nw.Float64).sum().alias("weights"))
        table = engine.collect(rows.group_by(*names).agg(*sums))
    else:
        table = engine.class_table(data, keys, missing)
    refuse_nobody(table, "Use missing='category'")
    table = table.with_columns(
        engine.in_declared_order(table[name], data.schema[key]) for name, key in zip(names, keys, strict=True)
    )
    coded = code_table(table, names).sort(names)
    records = int(coded["records"].sum())
    weights = coded["weights"].to_numpy().astype(float) if weight else None
    # Everybody of the file, also who is in no class: the population is taken smaller in that proportion.
    everybody = records + engine.left_out(data, keys, missing)
    people, notes = _population(population_size, sampling_fraction, weights, records, everybody)
    return CodedSample(
        keys=tuple(keys),
        codes=tuple(coded[name].to_numpy().astype(np.int64) for name in names),
        ordered=tuple(_ordered(table.schema[name]) for name in names),
        counts=coded["records"].to_numpy().astype(np.int64),
        weights=weights,
        population=people,
        notes=tuple(notes),
    )


def code_table(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace the key values of a class table by their numbers, in the order of the values.

    Examples
    --------
    >>> code_table(pl.DataFrame({"k0": ["b", None, "a"]}), ["k0"])["k0"].to_list()
    [2, 0, 1]
    """
    return table.with_columns(_coded(table[name]) for name in names)


def _coded(values: pl.Series) -> pl.Series:
    """Number the values in their order, a missing one first."""
    if isinstance(values.dtype, pl.Categorical):
        values = values.cast(pl.String)
    elif isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    offset = 0 if values.null_count() else 1
    return (values.rank("dense").fill_null(0).cast(pl.Int64) - offset).alias(values.name)


def _ordered(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, pl.Enum)


def _countable(people: float, cause: str) -> int:
    if people > _MOST_PEOPLE:
        raise ParameterError(f"{cause} would make the population larger than {_MOST_PEOPLE:,} people.")
    return round(people)


def _population(
    size: int | None, fraction: float | None, weights: Floats | None, records: int, rows: int
) -> tuple[int, list[str]]:
    if size is not None and fraction is not None:
        raise ParameterError("Give population_size or sampling_fraction, not both.")
    notes = []
    if fraction is not None:
        people = _countable(records / fraction, "sampling_fraction")
    elif size is not None:
        if size < rows:
            raise ParameterError(
                f"population_size ({size:,}) is smaller than the file ({rows:,} records). "
                "Give the size of the population the file was drawn from."
            )
        people = max(round(size * records / rows), records)
        if records < rows:
            notes.append(
                f"{rows - records:,} records with a missing key were left out, and the population was taken smaller "
                "in proportion."
            )
    elif weights is not None:
        people = max(_countable(float(weights.sum()), "The weights"), records)
        notes.append(f"The population was taken as the sum of the survey weights, {people:,} people.")
    else:
        raise ParameterError(
            "How large is the population? Give population_size=… or sampling_fraction=…, or name the survey weight "
            "of the file (weight='column'), whose sum is used otherwise."
        )
    if weights is not None:
        notes.append(
            "The formulas assume that everybody was equally likely to be drawn; survey weights shape no more than the "
            "margins of the copulas."
        )
    return people, notes


# How far could an estimate be off because another sample had been drawn? The delete-a-group jackknife.


#: Standard errors on either side of an estimate for an interval of 95 %.
WIDTH = 1.96


def jackknife_error(left_out: Sequence[float | None]) -> float | None:
    """Return the standard error from estimates that each leave one random group of records out (Wolter 2007).

    Groups for which nothing could be estimated are passed over; with fewer than three the answer is None.

    Examples
    --------
    >>> round(jackknife_error([0.9, 1.0, 1.1]), 4)
    0.1155
    >>> jackknife_error([0.9, None, 1.1]) is None
    True
    """
    known = np.array([value for value in left_out if value is not None], dtype=float)
    if len(known) < 3:
        return None
    return float(np.sqrt((len(known) - 1) / len(known) * ((known - known.mean()) ** 2).sum()))


def interval(
    value: float, error: float | None, lowest: float, highest: float
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a value, within the limits it cannot leave.

    Examples
    --------
    >>> interval(0.5, 0.1, 0.4, 1.0)
    (0.4, 0.696)
    """
    if error is None:
        return None, None
    return max(value - WIDTH * error, lowest), min(value + WIDTH * error, highest)
