"""Noise that keeps a promise: Laplace and Gaussian noise on an answer, and noise on single values.

Methods: Dwork, McSherry, Nissim and Smith (2006) for Laplace, Dwork and Roth (2014) and Balle and Wang (2018) for
Gaussian noise, Warner (1965) for randomized response. Noise is drawn in whole steps (`discreet.dp.samplers`), from the
operating system; a seed gives the same law and no guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers, numbers_of
from discreet.core.errors import ParameterError
from discreet.core.guarantees import SEEDED, DifferentialPrivacy, settled
from discreet.core.parameters import checked
from discreet.core.randomness import generator
from discreet.core.wording import shown
from discreet.dp.calibration import (
    Calibration,
    discrete_gaussian_delta,
    gaussian_sigma,
    largest_rho,
    noise_rate,
    rational_epsilon,
)
from discreet.dp.costs import Adjacency, Cost, Spend
from discreet.dp.entropy import Words, os_words, seeded_words, uniform_below
from discreet.dp.ledger import Ledger
from discreet.dp.samplers import check_variance, discrete_gaussian, discrete_laplace


@dataclass(frozen=True)
class Noisy:
    """A noisy answer, what it cost and how far off it may be.

    Attributes
    ----------
    value
        The number or array to publish.
    cost
        What it costs, for a ledger.
    scale
        The scale of the noise: b of Laplace noise, the standard deviation of Gaussian noise.
    guarantee
        What is proved, or None.
    why_none
        Why nothing is claimed, where nothing is.
    """

    value: Any
    cost: Cost
    scale: float
    guarantee: str | None
    why_none: str = field(default="", repr=False)

    def margin(self, level: float = 0.95) -> float:
        """How far the noise is off at most, with this chance.

        Examples
        --------
        >>> round(laplace(100, sensitivity=1, epsilon=0.5, seed=1).margin(), 2)
        5.99
        """
        if not 0 < level < 1:
            raise ParameterError("level must lie between 0 and 1.")
        if self.cost.mechanism.endswith("laplace"):
            return -self.scale * math.log(1 - level)
        from scipy.special import ndtri

        return float(self.scale * ndtri((1 + level) / 2))

    def __str__(self) -> str:
        answer = shown(float(self.value)) if np.ndim(self.value) == 0 else f"{np.size(self.value):,} numbers"
        claim = self.guarantee or f"No guarantee: {self.why_none}"
        return f"{answer}, about ± {shown(round(self.margin(), 2))} (95 %). {claim}"


@checked
def laplace(
    value: npt.ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    adjacency: Adjacency = "add-remove",
    purpose: str = "",
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Noisy:
    """Which number may be published instead of this answer, under epsilon?

    Also known as: Laplace mechanism.

    Parameters
    ----------
    value
        The true answer: a number, or an array that is published together.
    sensitivity
        How far one record can move it at most, summed over the array (L1 norm). It must follow from the question and
        public bounds, never from the data.
    epsilon
        The budget of this answer.
    adjacency
        Which files are neighbors.
    purpose
        What for; it goes into the ledger.
    ledger
        The budget of the data source: the release is entered before noise is drawn, or refused.
    seed
        For tests and teaching. Whoever knows it can take the noise off, so nothing is claimed.

    Returns
    -------
    Noisy

    Examples
    --------
    >>> answer = laplace(100, sensitivity=1, epsilon=0.5, seed=1)
    >>> answer.scale, answer.guarantee is None
    (2.0, True)
    >>> laplace(100, sensitivity=1, epsilon=0.5).guarantee
    '0.5-differential privacy against adding or removing one record.'
    """
    spend = Spend(epsilon, ledger=ledger, purpose=purpose, adjacency=adjacency)
    return with_laplace_noise(value, spend, sensitivity=sensitivity, seed=seed)


def with_laplace_noise(
    value: npt.ArrayLike, spend: Spend, *, sensitivity: float, seed: int | None = None
) -> Noisy:
    """Do what `laplace` does, for callers that have checked what they were given.

    Examples
    --------
    >>> with_laplace_noise(100, Spend(0.5), sensitivity=1).scale
    2.0
    """
    rational_epsilon(spend.epsilon)
    grid, numbers = grid_for(value, sensitivity, noise=1 / spend.epsilon)
    cost = spend.cost("laplace", sensitivity=float(sensitivity), values=grid.values)
    if not _is_private(grid, sensitivity):
        return _unchanged(numbers, grid, cost, seed)
    rate = noise_rate(spend.epsilon, grid.moved(sensitivity, 1))
    spend.enter(cost, seed=seed)
    noise = discrete_laplace(rate, grid.values, words_of(seed, "laplace")).reshape(grid.shape)
    return _published(grid.placed(numbers) + noise, grid, (spend, cost), float(grid.step / rate), seed)


@checked
def gaussian(
    value: npt.ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float,
    calibration: Calibration = "analytic",
    adjacency: Adjacency = "add-remove",
    purpose: str = "",
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Noisy:
    """Which number may be published instead of this answer, under epsilon and delta?

    The noise is discrete Gaussian. For one number its own exact curve is held against delta; for an array the proof
    goes by way of rho (zero-concentrated differential privacy), which costs a little more noise.

    Also known as: Gaussian mechanism; analytic Gaussian mechanism.

    Parameters
    ----------
    value
        The true answer: a number, or an array that is published together.
    sensitivity
        How far one record can move it at most, as a length (L2 norm).
    epsilon, delta
        The budget of this answer.
    calibration
        As in `gaussian_sigma`.
    adjacency, purpose, ledger, seed
        As in `laplace`.

    Examples
    --------
    >>> round(gaussian(100, sensitivity=1, epsilon=1, delta=1e-5, seed=1).scale, 2)
    3.74
    """
    rational_epsilon(epsilon)
    sigma = gaussian_sigma(1.0, epsilon, delta, calibration=calibration)
    grid, numbers = grid_for(value, sensitivity, norm=2, noise=sigma)
    spend = Spend(epsilon, delta, ledger, purpose, adjacency=adjacency)
    cost = spend.cost("gaussian", sensitivity=float(sensitivity), values=grid.values)
    if not _is_private(grid, sensitivity):
        return _unchanged(numbers, grid, cost, seed)
    variance = _variance(grid.values, grid.moved(sensitivity, 2), sigma, epsilon, delta)
    check_variance(variance)
    spend.enter(cost, seed=seed)
    noise = discrete_gaussian(variance, grid.values, words_of(seed, "gaussian")).reshape(grid.shape)
    scale = math.sqrt(variance) * float(grid.step)
    return _published(grid.placed(numbers) + noise, grid, (spend, cost), scale, seed)


@checked
def local_laplace(
    values: npt.ArrayLike,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    purpose: str = "",
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Noisy:
    """What may every person hand over instead of a number, before anybody collects it?

    Values are held within the bounds, and each gets Laplace noise for the whole range. Single values are then of little
    use; means of many are.

    Also known as: local differential privacy of numbers.

    Parameters
    ----------
    values
        One number a person.
    lower, upper
        Bounds that are public; never the smallest and largest of the data.
    epsilon
        The budget of each value.
    purpose, ledger, seed
        As in `laplace`.

    Examples
    --------
    >>> told = local_laplace([20.0, 60.0], lower=0, upper=100, epsilon=1, seed=1)
    >>> round(told.scale), told.cost.values
    (100, 2)
    """
    for bound, named in ((lower, "lower"), (upper, "upper")):
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
            raise ParameterError(f"{named} must be a number that is known without the data.")
    if not lower < upper:
        raise ParameterError("lower must be less than upper.")
    given = numbers_of(values, "values", empty=True)
    if given.ndim != 1:
        raise ParameterError("values must be a list or array of numbers, one a person.")
    rational_epsilon(epsilon)
    one, _ = grid_for(0.0, float(upper) - float(lower), noise=1 / epsilon)
    held = np.clip(given, lower, upper)
    spend = Spend(epsilon, ledger=ledger, purpose=purpose, adjacency="replace")
    cost = spend.cost("local-laplace", sensitivity=float(upper) - float(lower), values=len(held))
    rate = noise_rate(epsilon, one.moved(float(upper) - float(lower), 1))
    spend.enter(cost, seed=seed)
    steps = one.placed(held) + discrete_laplace(rate, len(held), words_of(seed, "local-laplace"))
    claim = DifferentialPrivacy(
        epsilon, against="another value of the same person", local=True, adjacency="replace", unit="person"
    )
    guarantee, why = settled(claim, "", seeded=seed is not None)
    return Noisy(one.read(steps), cost, float(one.step / rate), guarantee, why)


@checked
def randomized_response(
    codes: npt.ArrayLike, levels: int, *, epsilon: float, seed: int | None = None
) -> tuple[Integers, float]:
    """Which answer does every person give, so that each can be denied?

    The true code is kept with chance ``e^epsilon / (e^epsilon + levels - 1)``; otherwise one of the others is given,
    each with the same chance. The chance is rounded down to 62 binary digits.

    Also known as: randomized response; Warner; k-ary randomized response; local differential privacy.

    Parameters
    ----------
    codes
        Whole numbers from 0 to ``levels`` - 1.
    levels
        How many answers there are; public.
    epsilon
        The budget of each answer.
    seed
        As in `laplace`.

    Returns
    -------
    tuple
        The answers, and the chance with which the true one was kept (needed to estimate shares).

    Examples
    --------
    >>> answers, kept = randomized_response([0, 1, 1], 2, epsilon=math.log(3), seed=1)
    >>> round(kept, 9)
    0.75
    """
    exact = rational_epsilon(epsilon)
    numbers_of(codes, "codes", empty=True)
    given = np.asarray(codes)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise ParameterError("codes must be a list of whole numbers.")
    if levels < 2 or (len(given) and (given.min() < 0 or given.max() >= levels)):
        raise ParameterError("codes must lie between 0 and levels - 1, and levels must be 2 or more.")
    words = words_of(seed, "randomized-response")
    # The exponential is taken in double precision and lowered by more than its error: less is kept than allowed.
    weight = Fraction(math.exp(min(float(exact), 40.0)) * (1 - 2**-40))
    weight = max(weight, Fraction(1))
    kept = Fraction(math.floor(weight / (weight + levels - 1) * 2**62), 2**62)
    keep = uniform_below(2**62, len(given), words) < int(kept * 2**62)
    others = uniform_below(levels - 1, len(given), words)
    others = others + (others >= given)
    return np.where(keep, given, others).astype(np.int64), float(kept)


def _is_private(grid: Grid, sensitivity: float) -> bool:
    return sensitivity > 0 and grid.values > 0


def _variance(values: int, moved: Fraction, sigma: float, epsilon: float, delta: float) -> Fraction:
    """The variance in squared steps: by the exact curve for one number, by way of rho for several."""
    wide = (Fraction(sigma) * moved) ** 2
    if values > 1:
        wide = max(wide, moved**2 / (2 * Fraction(largest_rho(epsilon, delta))))
    variance = Fraction(math.ceil(wide * 2**20), 2**20)
    while values == 1 and discrete_gaussian_delta(float(variance), math.ceil(moved), epsilon) > delta:
        variance *= Fraction(65537, 65536)
    return variance


def words_of(seed: int | None, name: str) -> Words:
    """Where bits come from: the operating system, or a seed for tests and teaching."""
    return os_words if seed is None else seeded_words(generator(seed, "dp", name))


def _unchanged(numbers: Floats, grid: Grid, cost: Cost, seed: int | None) -> Noisy:
    why = "" if grid.values else "there was nothing to publish."
    told = (
        "no record can move the answer (sensitivity 0), so it was published as it is." if grid.values else why
    )
    free = replace(cost, epsilon=0.0, delta=0.0)
    return Noisy(_shaped(numbers, grid), free, 0.0, None, told if seed is None else SEEDED)


def _published(
    steps: Integers, grid: Grid, paid: tuple[Spend, Cost], scale: float, seed: int | None
) -> Noisy:
    spend, cost = paid
    guarantee, why = settled(spend.claim, "", seeded=seed is not None)
    return Noisy(_shaped(grid.read(steps), grid), cost, scale, guarantee, why)


def _shaped(numbers: Floats, grid: Grid) -> Any:
    whole = numbers.astype(np.int64) if grid.whole else numbers
    return whole.item() if not grid.shape else whole


# Put real numbers on a grid of whole steps, so that noise can be drawn exactly, and count what that costs.
#
# Noise added in floating point has gaps in its last digits that give the answer away (Mironov 2012). A number is
# therefore rounded to a multiple of a step first, and the noise is a whole number of steps. Rounding moves two
# neighboring answers apart by at most one step a number, which is added to the sensitivity; with a thousand steps in
# the sensitivity that costs a thousandth of the noise.


_FINE = 10  # powers of two between the step and the sensitivity, for one number
_ROOM = {1: 29, 2: 19}  # powers of two between the step and the noise that the samplers can draw, by norm
_LARGEST_SENSITIVITY = 1e300
_FARTHEST = 2**52  # steps from 0; a float holds every whole number up to there


@dataclass(frozen=True)
class Grid:
    """Steps of one size for an answer of so many numbers.

    Attributes
    ----------
    step
        The size of a step, a power of two; 1 for counts.
    shape
        The shape of the answer.
    exact
        Whether nothing is rounded.
    whole
        Whether the answer is a whole number.
    """

    step: Fraction
    shape: tuple[int, ...]
    exact: bool
    whole: bool

    @property
    def values(self) -> int:
        """How many numbers the answer has."""
        return math.prod(self.shape)

    def moved(self, sensitivity: float, norm: int) -> Fraction:
        """How many steps one unit can move the answer, in the norm given; rounding included."""
        steps = Fraction(sensitivity) / self.step
        if self.exact:
            return steps
        # Every number is off by half a step at most, in both files: one step apart, in every place.
        return steps + (self.values if norm == 1 else math.isqrt(self.values - 1) + 1)

    def placed(self, value: Floats) -> Integers:
        """The nearest whole numbers of steps; what lies too far off is held at the farthest."""
        steps = np.rint(value / float(self.step))
        return np.clip(steps, -_FARTHEST, _FARTHEST).astype(np.int64)

    def read(self, steps: Integers) -> Floats:
        """The numbers behind whole steps."""
        return np.asarray(steps, dtype=np.float64) * float(self.step)


def grid_for(
    value: npt.ArrayLike, sensitivity: float, *, norm: int = 1, noise: float = 1.0
) -> tuple[Grid, Floats]:
    """Choose a grid for an answer, by what is public about it, and give the answer as floats.

    Parameters
    ----------
    value
        The answer; only its type and shape are looked at.
    sensitivity, norm
        How far one unit can move it, and in which norm.
    noise
        The scale of the noise in units of the sensitivity.

    Examples
    --------
    >>> grid_for(100, 1)[0].step, grid_for(0.25, 1.0)[0].step
    (Fraction(1, 1), Fraction(1, 1024))
    """
    if not isinstance(sensitivity, int | float) or isinstance(sensitivity, bool):
        raise ParameterError("sensitivity must be a number: how far one record can move the answer.")
    if not 0 <= sensitivity <= _LARGEST_SENSITIVITY:
        raise ParameterError("sensitivity must be a number of 0 or more that a float can hold.")
    numbers = numbers_of(value, "value", empty=True)
    given = np.asarray(value)
    if given.dtype.kind not in "iuf":
        raise ParameterError("value must be a number or an array of numbers.")
    # The kind of number is public: it follows from the question, not from the data.
    whole = given.dtype.kind in "iu"
    if (whole and float(sensitivity).is_integer()) or sensitivity == 0:
        return Grid(Fraction(1), given.shape, exact=True, whole=whole), numbers
    spread = -(-max(given.size - 1, 0).bit_length() // norm)
    fineness = min(_FINE + spread, _ROOM[norm] - math.frexp(noise)[1])
    if fineness <= spread:
        raise ParameterError(
            "So many numbers with so little budget cannot be drawn exactly. Publish fewer numbers, or raise epsilon."
        )
    power = math.frexp(sensitivity)[1] - 1 - fineness
    return Grid(Fraction(2) ** power, given.shape, exact=False, whole=False), numbers
