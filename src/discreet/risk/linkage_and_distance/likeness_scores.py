"""How similar are two numbers, as record linkage scores them: one up to an offset, one half a scale further out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError

Kind = Literal["gauss", "linear", "exp", "squared", "step"]


def similarity(apart: Floats, *, kind: Kind = "gauss", offset: float, scale: float) -> Floats:
    """Score absolute differences between 0 and 1.

    Parameters
    ----------
    apart
        Absolute differences.
    kind
        How the score falls beyond the offset; ``step`` falls to zero at once.
    offset
        Difference up to which two numbers are as good as the same.
    scale
        How much further out the score is one half.

    Examples
    --------
    >>> similarity(np.array([5.0, 7.0, 10.0, 11.0]), offset=5, scale=5).round(4).tolist()
    [1.0, 0.895, 0.5, 0.3686]
    """
    _check(kind)
    if kind == "step":
        return np.asarray(apart <= offset, dtype=np.float64)
    beyond = np.maximum(apart - offset, 0.0)
    if scale <= 0:
        return np.asarray(beyond == 0, dtype=np.float64)
    steps = beyond / scale
    if kind == "gauss":
        return np.asarray(2.0 ** -(steps**2))
    if kind == "exp":
        return np.asarray(2.0**-steps)
    if kind == "linear":
        return np.maximum(0.0, 1 - steps / 2)
    return np.maximum(0.0, 1 - steps**2 / 2)


def reach_of(threshold: float, kind: Kind) -> float:
    """Say how many scales beyond the offset the score falls to a threshold.

    Examples
    --------
    >>> [reach_of(0.5, kind) for kind in ("gauss", "linear", "exp", "squared", "step")]
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    _check(kind)
    if kind == "step":
        return 0.0
    if kind == "gauss":
        return float(np.sqrt(-np.log2(threshold)))
    if kind == "exp":
        return float(-np.log2(threshold))
    if kind == "linear":
        return float(2 * (1 - threshold))
    return float(np.sqrt(2 * (1 - threshold)))


def _check(kind: str) -> None:
    if kind not in ("gauss", "linear", "exp", "squared", "step"):
        raise ParameterError("kind must be 'gauss', 'linear', 'exp', 'squared' or 'step'.")
