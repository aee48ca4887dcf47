"""Arrays: the types that signatures speak of, and numbers of a caller read as arrays or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.errors import DiscreetError, InputError, ParameterError

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]


# Numbers that a caller gave as lists or arrays


def numbers_of(
    values: npt.ArrayLike,
    name: str,
    *,
    missing: bool = False,
    infinite: bool = False,
    empty: bool = False,
    least: float | None = None,
) -> Floats:
    """Read what was given for a parameter as numbers, in the shape it has, or refuse it by the parameter's name.

    Parameters
    ----------
    values, name
        What was given, and for which parameter. Texts are no numbers, also where they look like some.
    missing, infinite, empty
        Whether gaps (None, NaN), infinite numbers and nothing at all will do.
    least
        The smallest number that will do.

    Examples
    --------
    >>> numbers_of([1, None], "values", missing=True).tolist()
    [1.0, nan]
    >>> numbers_of([1, "2"], "weights")
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: weights must be numbers: a list or an array of them.
    """
    numbers = _as_numbers(values, name)
    if not empty and not numbers.size:
        raise InputError(f"{name} holds nothing. Give at least one number.")
    if not missing and np.isnan(numbers).any():
        raise ParameterError(f"{name} has missing numbers. Fill them, or leave them out first.")
    if not infinite and np.isinf(numbers).any():
        raise ParameterError(f"{name} has infinite numbers. Leave them out first.")
    if least is not None and (numbers < least).any():
        raise ParameterError(f"{name} has numbers below {least:g}.")
    return numbers


def need_pairs(first: Floats, second: Floats, names: tuple[str, str], *, what: str = "numbers") -> None:
    """Refuse two arrays that belong together and have not the same length."""
    if len(first) != len(second):
        raise ParameterError(
            f"{names[0]} has {len(first):,} {what} and {names[1]} {len(second):,}; give as many of both."
        )


def rows_of(values: npt.ArrayLike, name: str, *, empty: bool = False) -> npt.NDArray[Any]:
    """Read what was given for a parameter as records, of any kind, or refuse it by the parameter's name."""
    try:
        rows = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be a list or an array, its rows all of one length.") from error
    if not rows.ndim:
        raise ParameterError(f"{name} must be a list or an array, its rows all of one length.")
    if not empty and not len(rows):
        raise InputError(f"{name} holds nothing. Give at least one record.")
    return rows


def called(function: Callable[..., Any], name: str, *given: Any) -> Any:
    """Call a function that was given for a parameter; where it fails, say so by the parameter's name."""
    try:
        return function(*given)
    except DiscreetError:
        raise
    except Exception as error:
        raise ParameterError(f"{name} failed on what it was called with ({type(error).__name__}).") from error


def _as_numbers(values: npt.ArrayLike, name: str) -> Floats:
    refusal = f"{name} must be numbers: a list or an array of them."
    try:
        given = np.asarray(values)
        # Texts in a list of their own kind would be read as numbers.
        texts = given.dtype.kind == "O" and any(
            issubclass(kind, str | bytes) for kind in set(map(type, given.flat))
        )
        if given.dtype.kind not in "biufO" or texts or values is None:
            raise ParameterError(refusal)
        return np.asarray(values if given.dtype.kind == "O" else given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(refusal) from error
