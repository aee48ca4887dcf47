"""Which line lies nearest to the records in squares, under a privacy budget?

Least squares needs nothing of the records but sums of products. Brought to -1…1 by public bounds and rounded to whole
steps, a record moves each sum by a known number of steps; the sums get noise, and the line is worked out from them.
Methods: the functional mechanism (Zhang, Zhang, Xiao, Yang and Winslett 2012), which is Laplace noise on the
coefficients of the squared loss, and the K-norm mechanism in the norm of the largest entry (Awan and Slavković 2020),
which needs about half of that noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.guarantees import settled, stands
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.dp.calibration import noise_rate, rational_epsilon
from discreet.dp.costs import Adjacency, Spend
from discreet.dp.ledger import Ledger
from discreet.dp.queries import Ask
from discreet.dp.regression_records import Bounds, Design, Missing, Records, read_records
from discreet.dp.samplers import cube_noise, discrete_laplace
from discreet.engine import like
from discreet.microdata import Microdata

LinearMechanism = Literal["k-norm", "functional"]
_FINE = 16  # powers of two between a step and what one record can add to a sum
_ROOM = 28  # powers of two of noise that the samplers can draw


@checked
def linear_regression(
    data: Microdata,
    *,
    y: str,
    x: str | Sequence[str],
    epsilon: float,
    x_bounds: Bounds | Sequence[tuple[float, float]] | None = None,
    y_bounds: tuple[float, float] | None = None,
    mechanism: LinearMechanism = "k-norm",
    intercept: bool = True,
    adjacency: Adjacency = "add-remove",
    weight: str | None = None,
    max_weight: float | None = None,
    missing: Missing = "error",
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """Which line lies nearest to the records, about?

    Parameters
    ----------
    data, y, x, x_bounds, intercept, adjacency, weight, max_weight, missing, ledger, purpose, seed
        As in `quantile_regression`.
    epsilon
        The budget.
    y_bounds
        Public bounds of ``y``; values beyond them are held at them.
    mechanism
        ``"k-norm"`` or ``"functional"``: noise that fits sums of which each can move alike, or Laplace noise.

    Returns
    -------
    Measure
        ``detail["coefficients"]`` has a row a term. ``figures["ridge"]`` is what was added so that noise does not
        decide where the records say little.

    Notes
    -----
    The noise is drawn in whole steps from the operating system; the line is worked out from noisy sums, which costs
    nothing. As in the source, a ridge of four standard deviations of the noise is added where the noisy sums are no
    sums of squares, and directions that are still negative are left out.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [20.0 + i % 60 for i in range(6_000)]}).with_columns(
    ...     pay=pl.col("age") / 20 + 1))
    >>> line = linear_regression(people, y="pay", x="age", x_bounds={"age": (18, 80)}, y_bounds=(0, 10), epsilon=1.0)
    >>> line.guarantee, abs(line.value - 0.05) < 0.02
    ('1-differential privacy against adding or removing one record.', True)
    """
    rational_epsilon(epsilon)
    if y_bounds is None:
        raise ParameterError("y_bounds must give the public bounds of y. They are never read off the data.")
    design = read_records(
        data,
        y,
        x,
        x_bounds,
        intercept=intercept,
        standardize=True,
        missing=missing,
        weight=weight,
        max_weight=max_weight,
        y_bounds=y_bounds,
    )
    purpose = purpose or f"linear regression of {y}"
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose, adjacency=adjacency), seed)
    spend = ask.spend
    middle, half = (y_bounds[0] + y_bounds[1]) / 2, (y_bounds[1] - y_bounds[0]) / 2
    if not intercept:
        middle, half = 0.0, max(abs(y_bounds[0]), abs(y_bounds[1]))
    sums = _Sums.planned(design, mechanism, float(epsilon), replaced=adjacency == "replace")
    rate = noise_rate(epsilon, sums.moved)
    price = spend.cost(
        f"linear-regression, {mechanism}", sensitivity=sums.moved / sums.fine, values=sums.many
    )
    spend.enter(price, seed=seed, data=data)
    exact = sums.added_up(design, middle, half)
    noise = (cube_noise if mechanism == "k-norm" else discrete_laplace)(rate, sums.many, ask.words("linear"))
    squares, crosses = sums.unpacked((exact + noise) / sums.fine)
    theta, ridge = _solved(squares, crosses, sums.deviation(rate, mechanism))
    line = design.on_the_scale_of_the_data(theta * half)
    if intercept:
        line[0] += middle
    guarantee, why = settled(spend.claim, "", seeded=seed is not None)
    return Measure(
        "private_linear_regression",
        float(line[-1]),
        {"epsilon": float(epsilon), "coefficients": len(line), "ridge": ridge},
        f"'{y}' is about {design.in_words(line)} on average.",
        caveats=[*([] if weight else ask.unweighted()), *([] if guarantee else [f"No guarantee: {why}"])],
        parameters={
            "mechanism": mechanism,
            "adjacency": adjacency,
            "epsilon": epsilon,
            "unit": spend.unit,
            "purpose": spend.purpose,
        },
        detail={
            "coefficients": like(
                data, pl.DataFrame({"term": list(design.terms), "coefficient": line.tolist()})
            )
        },
        guarantee=guarantee,
        private=stands(spend.claim, seeded=seed is not None),
    )


class _Sums:
    """Sums of products in whole steps, and how many of them one record can move."""

    def __init__(self, terms: int, fine: int, moved: int) -> None:
        self.terms, self.fine, self.moved = terms, fine, moved
        self.pairs = [(j, k) for j in range(terms) for k in range(j, terms)]

    @property
    def many(self) -> int:
        return len(self.pairs) + self.terms

    @classmethod
    def planned(cls, design: Design | Records, mechanism: str, epsilon: float, *, replaced: bool) -> _Sums:
        """Choose steps that are as fine as the samplers can draw; by public numbers."""
        terms = len(design.terms)
        many = terms * (terms + 1) // 2 + terms
        times = (many if mechanism == "functional" else 1) * (2 if replaced else 1)
        powers = min(_FINE, _ROOM - math.ceil(math.log2(times / epsilon)))
        if powers < 4:
            raise ParameterError(
                "So little budget for so many terms cannot be drawn exactly. Use fewer, or raise epsilon."
            )
        return cls(terms, 2**powers, times * 2**powers)

    def added_up(self, design: Design | Records, middle: float, half: float) -> Integers:
        """The sums over all records, to each of which one gives at most ``fine`` steps; in pieces, without a copy."""
        from discreet.dp.regression_kernels import products_in_steps

        found = np.zeros(self.many, dtype=np.int64)
        for x, own, weights in design.pieces():
            y = np.clip((own - middle) / half, -1.0, 1.0)
            found += products_in_steps(x, y, weights / design.max_weight, float(self.fine))
        return found

    def deviation(self, rate: Fraction, mechanism: str) -> float:
        """The standard deviation of the noise of a sum, on the scale of the sums."""
        scale = 1 / (float(rate) * self.fine)
        if mechanism == "functional":
            return math.sqrt(2) * scale
        # A uniform number times one of gamma law with size + 1 as its shape.
        return scale * math.sqrt((self.many + 1) * (self.many + 2) / 3)

    def unpacked(self, sums: Floats) -> tuple[Floats, Floats]:
        squares = np.zeros((self.terms, self.terms))
        for (j, k), value in zip(self.pairs, sums, strict=False):
            squares[j, k] = squares[k, j] = value
        return squares, sums[len(self.pairs) :]


def _solved(squares: Floats, crosses: Floats, deviation: float) -> tuple[Floats, float]:
    """The line of noisy sums: with a ridge, and without directions of which only noise is known."""
    values, directions = np.linalg.eigh(squares)
    ridge = 0.0
    if values.min() <= deviation:
        ridge = 4 * deviation
        values = values + ridge
    kept = values > deviation
    if not kept.any():
        return np.zeros(len(crosses)), ridge
    along = directions[:, kept]
    return along @ ((along.T @ crosses) / values[kept]), ridge
