"""How many times nearer to perfect is one figure than another?"""

from __future__ import annotations

import math

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked


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
    if not all(math.isfinite(number) for number in (a, b, perfect)):
        raise ParameterError("a, b and perfect must be finite numbers.")
    near, far = abs(perfect - a), abs(perfect - b)
    if near == far:
        return 1.0
    if near < far:
        return far / near if near else math.inf
    return -near / far if far else -math.inf
