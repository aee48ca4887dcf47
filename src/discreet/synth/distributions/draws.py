"""What every sampler hands back: the values, and how they came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed, generator

#: A sampler is a function of a NumPy generator and a number of draws; a frozen scipy distribution does, too.
Sampler = Callable[[np.random.Generator, int], Any]
Size = int | tuple[int, ...]
Values_co = TypeVar("Values_co", covariant=True)


@dataclass(frozen=True)
class Draws(Generic[Values_co]):
    """Drawn values, and what the sampler can say about how it drew them.

    Attributes
    ----------
    values
        The draws: an array, or the kind of file that was given.
    diagnostics
        The method and its numbers: proposals, acceptance rate, comparisons, fitted parameters…

    Examples
    --------
    >>> draws = Draws(np.array([1.0, 2.0]), {"method": "by hand"})
    >>> float(np.mean(draws)), len(draws)
    (1.5, 2)
    """

    values: Values_co
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagnostics", MappingProxyType(dict(self.diagnostics)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=bool(copy)) if copy else np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)  # type: ignore[arg-type]


def shape_of(size: Size) -> tuple[int, ...]:
    """Read a size as a shape.

    Examples
    --------
    >>> shape_of(3), shape_of((2, 5))
    ((3,), (2, 5))
    """
    shape = tuple(size) if isinstance(size, tuple) else (size,)
    for part in shape:
        if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 0:
            raise ParameterError("size must be a whole number of zero or above, or a tuple of them.")
    return tuple(int(part) for part in shape)


def count_of(size: int) -> int:
    """Read a size that must be a single number."""
    shape = shape_of(size)
    if len(shape) != 1:
        raise ParameterError("size must be one whole number here.")
    return shape[0]


def uniforms(size: Size | None, given: npt.ArrayLike | None, seed: Seed) -> Floats:
    """Return the uniform numbers that were given, or draw as many as asked for, never 0 and never 1.

    Examples
    --------
    >>> uniforms(None, [0.1, 0.9], None).tolist()
    [0.1, 0.9]
    """
    if given is None:
        if size is None:
            raise ParameterError(
                "Say how many to draw with size=, or give the uniform numbers with uniform=."
            )
        # 0 comes up once in 2**53 draws and is the quantile minus infinity for many a family.
        return np.maximum(generator(seed).random(shape_of(size)), 2.0**-54)
    numbers = np.asarray(given, dtype=np.float64)
    if not np.all((numbers >= 0) & (numbers <= 1)):
        raise ParameterError("uniform must hold numbers from 0 to 1, without missing ones.")
    return numbers


def as_sampler(source: Any, what: str = "sampler") -> Sampler:
    """Read a function of a generator and a size, or a frozen scipy distribution, as a sampler.

    Examples
    --------
    >>> normal = as_sampler(lambda rng, n: rng.standard_normal(n))
    >>> normal(np.random.default_rng(1), 3).shape
    (3,)
    """
    if hasattr(source, "rvs"):
        return lambda rng, n: np.asarray(source.rvs(size=n, random_state=rng))
    if not callable(source):
        raise ParameterError(
            f"{what} must be a function of a NumPy generator and a number of draws, or a frozen scipy distribution."
        )

    def draw(rng: np.random.Generator, n: int) -> Array:
        drawn = np.asarray(source(rng, n))
        if drawn.ndim == 0 or len(drawn) != n:
            raise ParameterError(f"{what} must return as many draws as it is asked for, one a row.")
        return drawn

    return draw
