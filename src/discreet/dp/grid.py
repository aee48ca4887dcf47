"""Put real numbers on a grid of whole steps, so that noise can be drawn exactly, and count what that costs.

Noise added in floating point has gaps in its last digits that give the answer away (Mironov 2012). A number is
therefore rounded to a multiple of a step first, and the noise is a whole number of steps. Rounding moves two
neighboring answers apart by at most one step a number, which is added to the sensitivity; with a thousand steps in the
sensitivity that costs a thousandth of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import numbers_of

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
