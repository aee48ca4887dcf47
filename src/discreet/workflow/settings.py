"""Whether a value that somebody wrote down fits a parameter of a measure: for `--set` and for policies."""

from __future__ import annotations

import re
from typing import Any

from discreet.errors import ParameterError

_NUMBERS = {"int", "float"}


def check_setting(name: str, value: Any, annotation: str, *, where: str) -> None:
    """Refuse a text where a parameter takes numbers, and a number where it takes texts.

    Only clear cases are refused here; what else a value must be, the measure knows best.

    Examples
    --------
    >>> check_setting("threshold", 5, "float", where="In --set")
    >>> check_setting("threshold", "five", "float", where="In --set")
    Traceback (most recent call last):
    discreet.errors.ParameterError: In --set: 'threshold' must be a number.
    """
    takes = set(re.findall(r"\w+", annotation))
    if isinstance(value, str | bool) and takes & _NUMBERS and not takes & {"str", "Literal", "bool"}:
        raise ParameterError(f"{where}: '{name}' must be a number.")
    if isinstance(value, int | float) and "str" in takes and not takes & {*_NUMBERS, "bool", "Any"}:
        raise ParameterError(f"{where}: '{name}' must be a text or a list of texts, not a number.")
    if not isinstance(value, bool) and takes == {"bool"}:
        raise ParameterError(f"{where}: '{name}' must be true or false.")
