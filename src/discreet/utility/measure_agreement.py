"""Does one measure stand in for another, and what does protection do to an analysis of your own?

A quick measure of the records beside the quality of tables made from them; how many times nearer to perfect one figure
is than another; bias, variance and mean squared error of an estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, called, need_pairs, numbers_of
from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata


@checked
def stands_in(
    quick: npt.ArrayLike,
    wanted: npt.ArrayLike,
    *,
    same_direction: bool = True,
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
) -> Measure:
    """Does a quick measure say the same as the one that is wanted?

    Both are known for several ways to protect one file (several settings of a synthesizer, say), each averaged over
    its copies. Their correlation over these says whether the quick one may be used instead (Kolb, Tang and Giessing).

    Parameters
    ----------
    quick, wanted
        The two measures, one value a way to protect, in the same order.
    same_direction
        False where a large value of one is good and a large value of the other is bad; 1 then still means that they
        agree.
    level
        Of the confidence interval, by Fisher's transformation.

    Returns
    -------
    Measure
        ``value`` is the correlation. ``figures``: ``r``, ``r_low``, ``r_high``, ``configurations``,
        ``best_improvement`` (of the wanted measure from the worst way to the best, over the worst) and
        ``best_improvement_over_smallest``. ``detail``: ``configurations``.

    How to read it
    --------------
    Near 1 the quick measure ranks the ways to protect as the wanted one does. Near 0 it says nothing about it, however
    good it is for other purposes. Look at the interval: with a handful of ways to protect it is wide.

    When not to trust it
    --------------------
    The answer holds for this file, these tables and this kind of protection, and is known to differ between tables of
    one file. One way to protect that is far off the others makes any two measures correlate. The interval supposes
    that the ways are independent of each other, which settings of one synthesizer are not quite.

    Examples
    --------
    >>> found = stands_in([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
    >>> found.value
    0.8
    """
    x, y = (
        numbers_of(values, name, empty=True).ravel()
        for values, name in ((quick, "quick"), (wanted, "wanted"))
    )
    need_pairs(x, y, ("quick", "wanted"))
    if len(x) < 4:
        raise ParameterError("Fewer than four ways to protect leave no interval. Compare more of them.")
    r = None
    if np.ptp(x) > 0 and np.ptp(y) > 0:
        r = min(1.0, max(-1.0, round(float(np.corrcoef(x, y)[0, 1]) * (1 if same_direction else -1), 15)))
    low, high = fisher_interval(r, len(x), level)
    largest, smallest = float(np.abs(y).max()), float(np.abs(y).min())
    spread = float(np.ptp(y))
    caveats = []
    if r is None:
        caveats.append(
            "One of the measures is the same for every way to protect, so there is no correlation."
        )
    elif abs(r) == 1:
        caveats.append("The correlation is perfect, and its interval has no width.")
    table = pl.DataFrame({"configuration": np.arange(1, len(x) + 1), "quick": x, "wanted": y})
    return Measure(
        name="stands_in",
        value=r,
        figures={
            "r": r,
            "r_low": low,
            "r_high": high,
            "configurations": len(x),
            "best_improvement": spread / largest if largest > 0 else None,
            "best_improvement_over_smallest": spread / smallest if smallest > 0 else None,
        },
        meaning=(
            f"Over {len(x)} ways to protect, the two measures correlate with {shown(r)}"
            + ("." if low is None else f" (between {shown(low)} and {shown(high)}).")
        ),
        caveats=caveats,
        parameters={
            "same_direction": same_direction,
            "level": level,
            "needs_alignment": False,
            "inference_valid": True,
        },
        detail=Detail(configurations=lambda: table),
    )


def fisher_interval(r: float | None, pairs: int, level: float = 0.95) -> tuple[Any, Any]:
    """Give the confidence interval of a correlation by Fisher's z; without width where the correlation is perfect.

    Examples
    --------
    >>> [round(end, 4) for end in fisher_interval(0.9, 21)]
    [0.7659, 0.9591]
    """
    if r is None or pairs < 4:
        return None, None
    if abs(r) == 1:
        return r, r
    reach = NormalDist().inv_cdf((1 + level) / 2) / math.sqrt(pairs - 3)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)


# How many times nearer to perfect is one figure than another?


@checked
def improvement_factor(a: float, b: float, *, perfect: float = 0.0) -> float:
    """How many times nearer to perfect is ``a`` than ``b``?

    Parameters
    ----------
    a, b
        The same figure of two releases.
    perfect
        What a perfect release would have: 0 for an error, 1,000 for a k-marginal score.

    Returns
    -------
    float
        At least 1 where ``a`` is nearer (or equally near), at most -1 where ``b`` is; infinite where one of them is
        perfect and the other is not.

    Examples
    --------
    >>> improvement_factor(956, 925, perfect=1000), improvement_factor(6.0, 3.0)
    (1.7045454545454546, -2.0)
    """
    near, far = abs(perfect - a), abs(perfect - b)
    if near == far:
        return 1.0
    if near < far:
        return far / near if near else math.inf
    return -near / far if far else -math.inf


# How good is an estimator on the release? Its bootstrap on both files.


Estimator = Callable[[Any], float]


@dataclass(frozen=True)
class _Drawn:
    estimate: float
    variance: float


@checked
def estimator_quality(
    estimator: Estimator,
    original: Microdata,
    released: Microdata,
    *,
    copies: Annotated[int, AtLeast(2)] = 200,
    seed: Seed = None,
) -> Measure:
    """How good is an estimate from the released file, compared with the original?

    Both files are resampled with replacement. Bias is the released estimate minus the original one, variance that of
    the estimate over the resamples, and the mean squared error is variance plus squared bias: what a user of the
    release must expect around the estimate of the original file.

    Parameters
    ----------
    estimator
        A function from a Polars frame to a number, e.g. ``lambda table: table["income"].median()``.
    original, released
        The files; their records need not be linked.
    copies
        Number of resamples.
    seed
        For the resamples; the same seed draws the same ones.

    Returns
    -------
    Measure
        ``value`` is the root of the released file's mean squared error. ``figures``: ``estimate_before``,
        ``estimate_after``, ``bias``, ``variance_before``, ``variance_after``, ``mse_before``, ``mse_after``.

    Examples
    --------
    >>> import polars as pl
    >>> before = Microdata(pl.DataFrame({"pay": [10.0, 20.0, 30.0, 40.0]}))
    >>> after = Microdata(pl.DataFrame({"pay": [11.0, 21.0, 31.0, 41.0]}))
    >>> found = estimator_quality(lambda table: table["pay"].mean(), before, after, copies=50, seed=1)
    >>> found.figures["bias"], found.figures["variance_before"] == found.figures["variance_after"]
    (1.0, True)
    """
    before, after = (
        _resampled(estimator, data, copies, generator(seed if seed is not None else 0, "bootstrap"))
        for data in (original, released)
    )
    bias = after.estimate - before.estimate
    error = after.variance + bias**2
    return Measure(
        name="estimator_quality",
        value=float(np.sqrt(error)),
        figures={
            "estimate_before": before.estimate,
            "estimate_after": after.estimate,
            "bias": bias,
            "variance_before": before.variance,
            "variance_after": after.variance,
            "mse_before": before.variance,
            "mse_after": error,
        },
        meaning=(
            f"The estimate is {shown(before.estimate)} on the original and {shown(after.estimate)} on the release; an "
            f"estimate from the release is off by about {shown(float(np.sqrt(error)))}, from the original by about "
            f"{shown(float(np.sqrt(before.variance)))}."
        ),
        caveats=[
            "The bootstrap takes records as drawn independently; for stratified or clustered samples it understates "
            "the variance.",
            "Bias is that of this one release; a random protection repeated would give another.",
        ],
        parameters={"copies": copies},
    )


def _resampled(estimator: Estimator, data: Microdata, copies: int, draw: np.random.Generator) -> _Drawn:
    table = engine.whole_frame(data)
    n = engine.overview(data, ()).rows
    estimates: Floats = np.array(
        [_number(called(estimator, "estimator", table[draw.integers(n, size=n)])) for _ in range(copies)]
    )
    return _Drawn(_number(called(estimator, "estimator", table)), float(estimates.var(ddof=1)))


def _number(found: Any) -> float:
    try:
        number = float(found)
    except (TypeError, ValueError) as error:
        raise ParameterError("The estimator must give one number; on this file it gave none.") from error
    if not np.isfinite(number):
        raise ParameterError(
            "The estimator gave a number that is not finite. Check how it treats missing values."
        )
    return number
