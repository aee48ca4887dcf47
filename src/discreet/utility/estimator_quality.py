"""What does protection do to an analysis of your own? Bias, variance and mean squared error of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from discreet import engine
from discreet.core.arrays import Floats, called
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata

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
