"""Which values may a field of a message hold? Each kind is a function that tells whether a value is of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Field = Callable[[Any], bool]
_LONGEST = 1_000


def text(value: Any) -> bool:
    """A text of moderate length."""
    return isinstance(value, str) and len(value) <= _LONGEST


def texts(value: Any) -> bool:
    """A list of texts."""
    return isinstance(value, list) and all(map(text, value))


def whole(value: Any) -> bool:
    """A whole number from 0 on that fits into a machine word."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def number(value: Any) -> bool:
    """A finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def flag(value: Any) -> bool:
    """Yes or no."""
    return isinstance(value, bool)


def numbers(value: Any, deep: int = 3) -> bool:
    """A list of finite numbers, or of lists of them, or of lists of these."""
    if not isinstance(value, list) or not deep:
        return False
    return all(numbers(one, deep - 1) if isinstance(one, list) else number(one) for one in value)


def wholes(value: Any) -> bool:
    """A list of whole numbers from 0 on."""
    return isinstance(value, list) and all(map(whole, value))


def floats(value: Any) -> bool:
    """An array of numbers; `Message.array` holds it against its shape, and refuses what is not finite."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def words(value: Any) -> bool:
    """An array of words of a ring."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint64


def hexadecimal(value: Any) -> bool:
    """A whole number, written in base 16."""
    return text(value) and bool(value) and set(value) <= set("0123456789abcdef")


def numbers_or_words(value: Any) -> bool:
    """What a sum travels as: an array, or texts in base 16."""
    return floats(value) or words(value) or (isinstance(value, list) and all(map(hexadecimal, value)))


def one_of(*choices: str) -> Field:
    """Take one of some texts."""
    return lambda value: isinstance(value, str) and value in choices


def mapping(value: Any) -> bool:
    """Fields of its own, which are read where they are used."""
    return isinstance(value, Mapping) and all(map(text, value))


def levels(value: Any) -> bool:
    """Texts by column."""
    return mapping(value) and all(map(texts, value.values()))


def lists(value: Any) -> bool:
    """A list of lists of texts."""
    return isinstance(value, list) and all(map(texts, value))


def optional(fits: Field) -> Field:
    """Let a field be left out."""

    def maybe(value: Any) -> bool:
        return fits(value)

    maybe.optional = True  # type: ignore[attr-defined]
    return maybe


def or_none(fits: Field) -> Field:
    """Let a field be empty."""
    return lambda value: value is None or fits(value)
