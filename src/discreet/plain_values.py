"""Values that leave a result: NumPy numbers as Python ones, and everything as JSON can hold it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Turn a NumPy number into a Python one; NaN becomes None, which means "undefined"."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def jsonable(value: Any) -> Any:
    """Turn a value into what JSON can hold; an infinite number becomes the text ``"inf"``."""
    value = plain(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, Sequence | set | frozenset | np.ndarray):
        return [jsonable(item) for item in value]
    return str(value)
