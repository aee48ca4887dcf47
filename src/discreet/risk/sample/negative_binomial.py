"""The chance to be found when a class of the sample stands for an unknown number of people.

Of a class with ``f`` records in the sample and, by its weights, about ``F`` people in the population, the
population count given f is taken as negative binomial with success probability ``p = f / F`` (Benedetti and
Franconi 1998; Polettini 2003). The individual risk is the mean of one over that count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.engine import Missing
from discreet.engine.wildcard import neighborhood_sizes

# From this class size on the series needs no more than `_TERMS` terms even where p is next to nothing:
# its k-th term is at most 1 / C(f + k, k).
_LARGE = 16
_TERMS = 110


def mean_reciprocal(class_size: npt.ArrayLike, population: npt.ArrayLike) -> Floats:
    """Return the individual risk, E[1 / people in the class], for every class.

    The published form is ``p**f / f * 2F1(f, f; f + 1; 1 - p)``, which overflows for large classes. By Euler's
    transformation it is ``p / f * 2F1(1, 1; f + 1; 1 - p)``, a series of positive terms (nothing cancels), used
    for p of a half and above and for large classes. For small p and small f it starts from the closed form of
    f = 1, ``p / (1 - p) * ln(1 / p)``, and steps up by ``r(f + 1) = p / (1 - p) * (1 / f - r(f))``, whose first
    steps are the closed forms of f = 2 and 3 and which damps rounding errors where p is below a half.

    Parameters
    ----------
    class_size
        Records of the class in the sample, f, whole numbers from 1 on.
    population
        Estimated people of the class, F. Where it is f or less, the class is taken as fully observed: 1 / f.

    Examples
    --------
    >>> mean_reciprocal([1, 2], [17, 84.5]).round(8).tolist()
    [0.17707583, 0.02204233]
    """
    f, people = np.broadcast_arrays(
        np.asarray(class_size, dtype=np.float64), np.asarray(population, dtype=np.float64)
    )
    p = np.minimum(f / people, 1.0)
    stepped = (p < 0.5) & (f < _LARGE)
    risk = np.empty(f.shape)
    risk[stepped] = _by_steps(f[stepped], p[stepped])
    risk[~stepped] = _by_series(f[~stepped], p[~stepped])
    return np.clip(risk, 0.0, 1.0 / f)


def class_risks(cells: pl.DataFrame, by: list[str], missing: Missing) -> pl.DataFrame:
    """Gather cells of ``records`` and ``weights`` into classes and give each its individual risk.

    Columns: those of ``by``, ``records`` with exactly that combination, and ``class_size``,
    ``population_estimate`` and ``risk``, which under ``wildcard`` speak of the whole neighborhood.
    """
    classes = cells.group_by(by, maintain_order=True).agg(pl.col("records", "weights").sum())
    size, people = classes["records"], classes["weights"]
    if missing == "wildcard" and any(classes[name].null_count() for name in by):
        size = neighborhood_sizes(classes, by)
        people = neighborhood_sizes(classes.select(*by, records="weights"), by)
    risk = mean_reciprocal(size.to_numpy(), people.to_numpy())
    return classes.select(*by, "records", class_size=size, population_estimate=people, risk=pl.Series(risk))


def _by_series(f: Floats, p: Floats) -> Floats:
    missed = 1.0 - p
    term = np.ones_like(f)
    total = np.ones_like(f)
    for k in range(1, _TERMS):
        term = term * (missed * (k / (f + k)))
        total += term
    risk: Floats = p / f * total
    return risk


def _by_steps(f: Floats, p: Floats) -> Floats:
    odds = p / (1.0 - p)
    risk = -odds * np.log(p)
    for step in range(1, int(f.max(initial=1.0))):
        risk = np.where(f > step, odds * (1.0 / step - risk), risk)
    return risk
