"""How much does a randomized value tell? Local epsilon of the invariant matrix that `protect.Pram` draws from."""

from __future__ import annotations

from typing import Any

from discreet.errors import ParameterError
from discreet.number_arrays import numbers_of
from discreet.parameters import checked
from discreet.protect.perturbing.transition_matrices import (
    local_epsilon,
    one_step_invariant,
    theta_for_epsilon,
)


@checked
def invariant_pram_epsilon(counts: Any, theta: float) -> float:
    """Which local epsilon has the invariant matrix P_ii = 1 - theta T_min / T_i of these counts?

    It is computed from the whole matrix. The closed form of the literature, by the two largest counts, is too small
    above theta = (c - 1) / c. At theta = 1 the rarest category is never kept, and epsilon is infinite. Categories
    that do not occur are left out: they would switch the randomization off.

    The matrix is made from counts. Where these are the site's own, epsilon is that of a fixed, public matrix; that the
    matrix depends on the data costs more, which it does not say.

    Parameters
    ----------
    counts
        How often each category occurs.
    theta
        Strength in [0, 1].

    Examples
    --------
    >>> round(invariant_pram_epsilon([50, 30, 20], 0.3), 6), round(invariant_pram_epsilon([1000, 10, 10], 0.9), 4)
    (2.590267, 4.6052)
    """
    known = _known(counts)
    if not 0 <= theta <= 1:
        raise ParameterError("theta must lie between 0 and 1.")
    if len(known) < 2:
        return 0.0
    return local_epsilon(one_step_invariant(known, theta))


@checked
def invariant_pram_theta(counts: Any, epsilon: float) -> float:
    """Which strength gives the invariant matrix of these counts this local epsilon?

    Examples
    --------
    >>> round(invariant_pram_theta([50, 30, 20], 3.0), 6)
    0.213503
    """
    if epsilon <= 0:
        raise ParameterError("epsilon must be above 0.")
    return theta_for_epsilon(_known(counts), epsilon)


def _known(counts: Any) -> Any:
    given = numbers_of(counts, "counts", least=0, empty=True).reshape(-1)
    return given[given > 0]
