"""Private synthesis from noisy means and covariances of a normal model."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Above, AtLeast, HoldsValues, Public
from discreet.core.declared_types import in_type
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.costs import refuse_seeded
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import Range
from discreet.microdata import Microdata, require_microdata
from discreet.synth.binned_columns import pay_purely
from discreet.synth.column_forms import as_numbers, from_numbers, is_numeric
from discreet.synth.private_histograms import declared_columns
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

_SMALLEST_SHARE = 2.0**-24
_CAUTION = 2.0**-50  # of a width, or of two: more than means and covariances in double precision are off


@method(
    aim="guarantee",
    work="class-wise",
    references=(
        "Bowen, C. M. and Liu, F. (2020). Comparative study of differentially private data synthesis methods. "
        "Statistical Science 35(2), 280–307.",
    ),
)
@dataclass(frozen=True)
class NoisyBayes(Synthesizer):
    """Which records come from a normal model whose means and covariances carry noise?

    For every dataset the means, variances and covariances (divisor n - 1) get Laplace noise, each for an equal share of
    the budget; the covariances are made positive; mean and covariance of the model are drawn from their posterior given
    the noisy ones; and records are drawn from it (Bowen and Liu 2020). Neighbors are files of the same size that differ
    in one record; the number of records is public.

    Also known as: private Bayesian network; DataSynthesizer with differential privacy.

    Parameters
    ----------
    epsilon
        The privacy budget of all datasets.
    bounds
        ``{column: (low, high)}`` of every number; public. Values beyond are held to it. All columns come back as
        decimals.
    n_datasets
        How many pairs of means and covariances are drawn, each for an equal share of epsilon; a
        synthetic file uses one.
    floor
        Smallest eigenvalue of the covariances, in squared widths of the bounds; public.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Nearly always: the budget is divided by all statistics and datasets, and noise grows with the squared bounds. It is
    here because others are compared with it.

    Examples
    --------
    >>> NoisyBayes(1.0, bounds={"x": (-4, 4), "y": (-4, 4)}).share()
    0.02
    """

    epsilon: float
    bounds: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    n_datasets: Annotated[int, AtLeast(1)] = 10
    floor: Annotated[float, Above(0)] = 1e-4
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)

    def share(self) -> float:
        """The epsilon of one statistic: that of a dataset, divided by means, variances and covariances."""
        q = len(self.bounds or {})
        return float(Fraction(self.epsilon) / (self.n_datasets * (q + q * (q + 1) // 2)))

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedNormal:
        """Measure with noise and draw models; with a ledger the price is entered before."""
        require_microdata(data)
        refuse_seeded(ledger, seed)
        names, left_out = declared_columns(data, self.leave_out, domain=self.bounds)
        frame = engine.collect(data, names)
        # A normal model draws decimals, whatever type the numbers of the file have.
        numbers = [name for name in names if frame[name].dtype.is_numeric()]
        frame = frame.with_columns(in_type(frame[name], pl.Float64()) for name in numbers)
        ranges = [_range(frame[name], (self.bounds or {}).get(name)) for name in names]
        steps = np.column_stack([_steps(frame[each.column], each) for each in ranges])
        n, q = steps.shape
        if n <= q:
            raise ParameterError(f"A covariance of {q} columns needs more than {q} records.")
        parts = self.n_datasets * (q + q * (q + 1) // 2)
        share = float(dp.rational_epsilon(self.epsilon, parts))
        if share < _SMALLEST_SHARE:
            raise ParameterError(
                f"epsilon is shared by {parts:,} statistics, which leaves each too little to be drawn exactly. "
                "Raise it, or take fewer datasets or columns."
            )
        pay_purely(ledger, data, "noisy-bayes", self.epsilon, values=parts)
        widths = np.array([2 * each.most * each.step for each in ranges])
        reach = sensitivities(widths, n)
        if (np.sqrt(2) * np.diag(reach[1]) / share > widths**2).any():
            warnings.warn(
                "The noise on a variance is wider than any variance within the bounds: little of the data is left. "
                "Take a larger epsilon, fewer datasets, narrower bounds or fewer columns.",
                DiscreetWarning,
                stacklevel=3,
            )
        stream = Stream(seed_of(seed), "noisy-bayes", seeded=seed is not None)
        means, covariances = _statistics(steps, ranges)
        careful = reach[0] + _CAUTION * widths, reach[1] + _CAUTION * np.outer(widths, widths)
        models, repaired = [], 0
        for number in range(self.n_datasets):
            noisy = _noisy(means, covariances, careful, share, stream.child("dataset", str(number)))
            positive, changed = _positive(noisy[1], widths, self.floor)
            repaired += changed
            models.append(_drawn(noisy[0], positive, n, stream("posterior", str(number))))
        fitted = FittedNormal(
            empty_like(data, frame, dict.fromkeys(names)),
            n,
            names=names,
            centers=np.array([each.middle for each in ranges]),
            means=np.array([mean for mean, _ in models]),
            covariances=np.array([covariance for _, covariance in models]),
            repaired=int(repaired),
            left_out=left_out,
        )
        claim = DifferentialPrivacy(
            self.epsilon,
            against="replacing one record",
            adjacency="replace",
            covers=" for the models that were drawn, and so for any number of files drawn from them; the number of "
            "records and the bounds count as public",
        )
        return fitted.promise(claim, seeded=stream.seeded, ledger=ledger)


def sensitivities(widths: Floats, n: int) -> tuple[Floats, Floats]:
    """How far replacing one of ``n`` records can move means, and variances and covariances (divisor n - 1).

    Examples
    --------
    >>> mean, covariance = sensitivities(np.array([8.0, 8.0]), 5000)
    >>> float(mean[0]), float(covariance[0, 0]), float(covariance[0, 1])
    (0.0016, 0.0128, 0.0128)
    """
    return widths / n, np.outer(widths, widths) / n


def _range(series: pl.Series, bounds: Any) -> Range:
    if not is_numeric(series.dtype) or series.dtype.is_temporal():
        raise ColumnError(f"Column '{series.name}' is no number, and this is a normal model. Leave it out.")
    ends = list(bounds) if isinstance(bounds, list | tuple) else []
    if len(ends) != 2:
        raise ColumnError(
            f"Column '{series.name}' needs bounds that do not come from the data: bounds={{'{series.name}': (low, "
            "high)}}."
        )
    return Range(series.name, *ends)


def _steps(series: pl.Series, own: Range) -> Integers:
    """A column in whole steps from the middle of its bounds."""
    numbers = as_numbers(series)
    if numbers.null_count():
        raise ColumnError(
            f"Column '{series.name}' has missing values, and this is a normal model. Fill them, or leave it out."
        )
    held = np.clip(numbers.to_numpy().astype(np.float64), own.lower, own.upper)
    steps = np.clip(np.rint((held - own.middle) / own.step), -own.most, own.most)
    return np.asarray(steps, dtype=np.int64)


def _statistics(steps: Integers, ranges: list[Range]) -> tuple[Floats, Floats]:
    """Means from the middle, and covariances; sums are whole numbers, so that no order of records comes in."""
    n, q = steps.shape
    sums = [int(own.sum()) for own in steps.T]
    sizes = [Fraction(own.step) for own in ranges]
    means = np.array([float(Fraction(sums[j], n) * sizes[j]) for j in range(q)])
    covariances = np.empty((q, q))
    for i, j in itertools.combinations_with_replacement(range(q), 2):
        crossed = n * int((steps[:, i] * steps[:, j]).sum()) - sums[i] * sums[j]
        value = float(Fraction(crossed, n * (n - 1)) * sizes[i] * sizes[j])
        covariances[i, j] = covariances[j, i] = value
    return means, covariances


def _noisy(
    means: Floats, covariances: Floats, reach: tuple[Floats, Floats], share: float, stream: Stream
) -> tuple[Floats, Floats]:
    """Every statistic with noise of its own."""

    def noise(value: float, sensitivity: float, name: str) -> float:
        seed = int(stream(name).integers(2**62)) if stream.seeded else None
        made = dp.laplace(value, sensitivity=sensitivity, epsilon=share, adjacency="replace", seed=seed)
        return float(made.value)

    q = len(means)
    told = np.array([noise(float(means[j]), float(reach[0][j]), f"mean {j}") for j in range(q)])
    crossed = np.empty((q, q))
    for i, j in itertools.combinations_with_replacement(range(q), 2):
        made = noise(float(covariances[i, j]), float(reach[1][i, j]), f"covariance {i} {j}")
        crossed[i, j] = crossed[j, i] = made
    return told, crossed


def _positive(covariance: Floats, widths: Floats, floor: float) -> tuple[Floats, bool]:
    """The covariance with eigenvalues of at least the floor, in units of the widths."""
    scaled = covariance / np.outer(widths, widths)
    values, vectors = np.linalg.eigh(scaled)
    held = np.maximum(values, floor)
    made = (vectors * held) @ vectors.T * np.outer(widths, widths)
    return np.asarray((made + made.T) / 2), bool((values < floor).any())


def _drawn(mean: Floats, covariance: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A model from the posterior given the noisy statistics."""
    from scipy.stats import invwishart

    drawn = np.atleast_2d(invwishart.rvs(df=n - 1, scale=(n - 1) * covariance, random_state=rng))
    return np.asarray(rng.multivariate_normal(mean, drawn / n)), np.asarray(drawn)


@stored("fitted-normal")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedNormal(Fitted):
    """Means and covariances, one pair a dataset.

    Attributes
    ----------
    repaired
        How many noisy covariances had to be made positive.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    names: Sequence[str]
    centers: Floats
    means: Floats
    covariances: Floats
    repaired: int
    left_out: Mapping[str, str]

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a file from one of the models."""
        at = int(stream("which").integers(len(self.means)))
        values = self.centers + stream("records").multivariate_normal(
            self.means[at], self.covariances[at], size=n
        )
        none = np.zeros(n, dtype=bool)
        empty = engine.collect(self.like)
        made = []
        for j, name in enumerate(self.names):
            dtype = empty[name].dtype
            own = np.round(values[:, j]) if dtype.is_integer() else values[:, j]
            made.append(from_numbers(own, none, dtype, name))
        return pl.DataFrame(made)
