"""Perturbation tables of the cell-key method: for every true count, the noise with the largest entropy.

Among all laws of the noise with mean 0 and a given variance that never lead to a negative or too small a result, the
one that assumes least is the one of largest entropy. Its chances are exp(a + b v + c v²), and b and c follow from the
mean and the variance.

References
----------
Fraser and Wooton (2005), A proposed method for confidentialising tabular output to protect against differencing.
Giessing (2016), Computational issues in the design of transition probabilities and disclosure risk estimation for
additive noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

_ROUNDS = 200


@dataclass(frozen=True)
class PerturbationTable:
    """What becomes of each true count, by the key of its cell. Made by `perturbation_table`.

    Attributes
    ----------
    D, V, js
        The largest noise, its variance, and the largest result that must not occur.
    noise
        The possible noise, from -D to D.
    chances
        One row a true count 0, 1, …, one column a noise. Larger counts share the last row.
    """

    D: int
    V: float
    js: int
    noise: Integers = field(repr=False, compare=False)
    chances: Floats = field(repr=False, compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """In rows: ``count``, ``noise``, ``result``, ``chance``, and the keys ``from`` … ``to`` that lead there."""
        ends = np.cumsum(self.chances, axis=1)
        rows, columns = np.nonzero(self.chances)
        return pl.DataFrame(
            {
                "count": rows,
                "noise": self.noise[columns],
                "result": rows + self.noise[columns],
                "chance": self.chances[rows, columns],
                "from": (ends - self.chances)[rows, columns],
                "to": ends[rows, columns],
            }
        )

    def row(self, count: int) -> dict[int, float]:
        """The chance of every result of one true count.

        Examples
        --------
        >>> row = perturbation_table(5, 3, 2).row(1)
        >>> {result: round(chance, 7) for result, chance in row.items()}
        {0: 0.7344695, 3: 0.1367202, 4: 0.0727963, 5: 0.0374296, 6: 0.0185844}
        """
        chances = self.chances[min(count, len(self.chances) - 1)]
        kept = np.flatnonzero(chances)
        return {int(count + self.noise[at]): float(chances[at]) for at in kept}

    def look_up(self, counts: npt.ArrayLike, keys: npt.ArrayLike) -> Integers:
        """The noise of every cell, from its true count and its key in [0, 1).

        Examples
        --------
        >>> perturbation_table(5, 3, 2).look_up([0, 1, 1], [0.99, 0.1, 0.8]).tolist()
        [0, -1, 2]
        """
        true = np.asarray(counts, dtype=np.int64)
        drawn = np.asarray(keys, dtype=np.float64)
        rows = np.minimum(true, len(self.chances) - 1)
        ends = np.cumsum(self.chances, axis=1)
        # The last possible noise of each row takes whatever rounding leaves of the keys.
        last = len(self.noise) - 1 - np.argmax(self.chances[:, ::-1] > 0, axis=1)
        at = (drawn[:, None] >= ends[rows]).sum(axis=1) if len(true) else np.empty(0, dtype=np.int64)
        return np.asarray(self.noise[np.minimum(at, last[rows])], dtype=np.int64)


@checked
def perturbation_table(D: int = 5, V: float = 3.0, js: int = 2) -> PerturbationTable:
    """Design the noise of the cell-key method.

    Parameters
    ----------
    D
        The largest noise, up or down.
    V
        The variance of the noise, for every count but 0.
    js
        No result may be 1, …, js; 0 allows all.

    Returns
    -------
    PerturbationTable
        Zeros stay zeros; every other count gets noise of mean 0 and variance V, of the largest entropy.

    Examples
    --------
    >>> table = perturbation_table(D=5, V=3, js=2)
    >>> table.row(0)
    {0: 1.0}
    """
    return _designed(D, float(V), js)


@lru_cache(maxsize=64)
def _designed(D: int, V: float, js: int) -> PerturbationTable:
    if isinstance(D, bool) or int(D) != D or D < 1:
        raise ParameterError("D must be a whole number of at least 1.")
    if js != int(js) or js < 0:
        raise ParameterError("js must be a whole number of 0 or more.")
    if not V > 0:
        raise ParameterError("V must be more than 0.")
    noise = np.arange(-D, D + 1)
    chances = np.zeros((D + js + 2, len(noise)))
    chances[0, D] = 1.0
    for count in range(1, len(chances)):
        results = count + noise
        allowed = (results == 0) | (results > js)
        chances[count, allowed] = _largest_entropy(noise[allowed].astype(np.float64), V, count, js)
    chances.setflags(write=False)
    return PerturbationTable(D, V, js, noise, chances)


def _largest_entropy(support: Floats, variance: float, count: int, js: int) -> Floats:
    """The law of largest entropy with mean 0 on these values."""
    _check_feasible(support, variance, f"a true count of {count}", "D, V or js" if js else "D or V")
    return largest_entropy(support, variance)


def largest_entropy(support: Floats, variance: float) -> Floats:
    """The law of largest entropy with mean 0 and this variance on these values, by Newton's method.

    Examples
    --------
    >>> largest_entropy(np.array([-1.0, 0.0, 1.0]), 0.5).round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    scale = float(np.abs(support).max())
    v = support / scale
    features = np.stack([v, v**2 - variance / scale**2])
    slopes = np.zeros(2)
    chances = np.full(len(v), 1 / len(v))
    for _ in range(_ROUNDS):
        chances = _exponential(slopes @ features)
        off = features @ chances
        if np.abs(off).max() < 1e-14:
            break
        spread = (features * chances) @ features.T - np.outer(off, off)
        step = np.linalg.solve(spread + 1e-15 * np.eye(2), off).astype(np.float64)
        slopes = _walked(slopes, step, features)
    return chances


def _walked(slopes: Floats, step: Floats, features: Floats) -> Floats:
    """Go along Newton's step as far as it lowers the convex function whose minimum is sought."""
    now = _log_sum(slopes @ features)
    size = 1.0
    while size > 1e-12 and _log_sum((slopes - size * step) @ features) > now:
        size /= 2
    return np.asarray(slopes - size * step)


def _log_sum(exponents: Floats) -> float:
    top = exponents.max()
    return float(top + np.log(np.exp(exponents - top).sum()))


def _exponential(exponents: Floats) -> Floats:
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())


def _check_feasible(support: Floats, variance: float, what: str, way_out: str) -> None:
    """Mean 0 needs values on both sides; the variance lies between what the nearest and the farthest pairs give."""
    below, above = support[support < 0], support[support > 0]
    least = (
        0.0
        if (support == 0).any()
        else float(-below.max() * above.min())
        if len(below) and len(above)
        else np.inf
    )
    most = float(-below.min() * above.max()) if len(below) and len(above) else 0.0
    if not least < variance < most:
        raise ParameterError(
            f"Noise of mean 0 for {what} can have a variance between {least:g} and {most:g}, not {variance:g}. Choose "
            f"another {way_out}."
        )
