"""How numbers and names are written for people who are no statisticians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_HUGE = 1e12


def shown(figure: Any) -> str:
    """Write a number as a person reads it: thousands marked, four significant digits.

    Examples
    --------
    >>> shown(48842), shown(0.123456), shown(None), shown(float("inf")), shown(2.0), shown(1e20)
    ('48,842', '0.1235', 'undefined', 'unbounded', '2', '1e+20')
    """
    if figure is None or (isinstance(figure, float) and math.isnan(figure)):
        return "undefined"
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    if isinstance(figure, int):
        return f"{figure:,}"
    if isinstance(figure, float):
        if math.isinf(figure):
            return "unbounded"
        if abs(figure) >= _HUGE:
            return f"{figure:.3g}"
        if figure.is_integer():
            return f"{int(figure):,}"
        return f"{figure:,.1f}" if abs(figure) >= 1000 else f"{figure:.4g}"
    return str(figure)


def percent(share: float | None) -> str:
    """Write a share as a percentage a person reads, never rounding something to nothing.

    Examples
    --------
    >>> percent(0.1234), percent(0.00001), percent(0.2), percent(0.99999), percent(1)
    ('12.3 %', 'under 0.01 %', '20 %', 'over 99.99 %', '100 %')
    """
    if share is None or math.isnan(share):
        return "an undefined share"
    if 0 < share < 1e-4:
        return "under 0.01 %"
    if 0.9999 < share < 1:
        return "over 99.99 %"
    digits = 2 if share < 0.01 or 0.99 < share < 1 else 1
    text = f"{share * 100:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def columns_not_judged(names: Sequence[str], most: int = 12) -> str:
    """Say which columns have no role, and what nobody has asked about them; nothing where all have one.

    Examples
    --------
    >>> columns_not_judged(["shoe size"])
    "1 column has no role and was not judged: 'shoe size'. Nobody asked whether people can be found by it ..."
    """
    if not names:
        return ""
    one = len(names) == 1
    it, was = (
        ("it", "1 column has no role and was")
        if one
        else ("them", f"{len(names):,} columns have no role and were")
    )
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (
        f"{was} not judged: {', '.join(map(repr, names[:most]))}{more}. Nobody asked whether people can be found by "
        f"{it} (name {it} as {'a key' if one else 'keys'}) or what can be learned from {it} (name {it} as sensitive)."
    )


def type_name(dtype: Any) -> str:
    """Name the type of a column without what its values may be: the levels of a category are data.

    Examples
    --------
    >>> import polars as pl
    >>> type_name(pl.Enum(["Smith", "Jones"])), type_name(pl.Int64())
    ('Enum', 'Int64')
    """
    return str(dtype).partition("(")[0]
