"""How near are estimated tables to those of a population that is known?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.errors import ParameterError
from discreet.core.number_arrays import need_pairs, numbers_of
from discreet.core.parameters import checked

_HALF = 0.5


@checked
def aitchison(a: npt.ArrayLike, t: npt.ArrayLike) -> float:
    """How far apart are two tables if only the ratios between their cells count?

    The distance of the centered logarithms of the cells. Empty cells are taken for half a person (in the smaller of the
    two totals).

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Examples
    --------
    >>> round(aitchison([110, 190, 280, 420], [100, 200, 300, 400]), 6)
    0.136798
    """
    return float(table_accuracy(a, t)["aitchison"])


@checked
def table_accuracy(a: npt.ArrayLike, t: npt.ArrayLike) -> dict[str, float]:
    """How far are estimated counts from true ones?

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Returns
    -------
    dict
        ``mae``, ``rmse``, ``mape`` (in percent, over cells that are not empty in truth), ``aitchison``, ``empty_truth``
        and ``replaced`` (numbers of cells that are empty in truth, and of zeros that were replaced for the distance).

    Examples
    --------
    >>> found = table_accuracy([110, 190, 280, 420], [100, 200, 300, 400])
    >>> found["mae"], round(found["rmse"], 4), round(found["mape"], 4)
    (15.0, 15.8114, 6.6667)
    """
    here, there = np.atleast_1d(numbers_of(a, "a")), np.atleast_1d(numbers_of(t, "t"))
    need_pairs(here, there, ("a", "t"))
    if not len(here) or (here < 0).any() or (there < 0).any() or not here.sum() or not there.sum():
        raise ParameterError("a and t must be counts that are not negative and not all zero.")
    off = np.abs(here - there)
    known = there > 0
    least = min(float(here.sum()), float(there.sum()))
    zeros = int((here == 0).sum() + (there == 0).sum())
    logs = []
    for counts in (here, there):
        filled = np.where(counts == 0, _HALF * counts.sum() / least, counts)
        own = np.log(filled)
        logs.append(own - own.mean())
    return {
        "mae": float(off.mean()),
        "rmse": float(np.sqrt((off**2).mean())),
        "mape": float(100 * (off[known] / there[known]).mean()),
        "aitchison": float(np.linalg.norm(logs[0] - logs[1])),
        "empty_truth": float((~known).sum()),
        "replaced": float(zeros),
    }
