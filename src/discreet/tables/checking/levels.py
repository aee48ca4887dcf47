"""How wide must the interval of a primary cell be?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import ParameterError
from discreet.tables.building.cells import cell_numbers

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


@dataclass(frozen=True)
class Protection:
    """How wide the interval of a primary cell must be: below its value, above it, and in all.

    Each level is a share of the value of the cell, or the name of a column of levels.

    Examples
    --------
    >>> Protection(lower=0.1, upper=0.2).upper
    0.2
    """

    lower: float | str = 0.0
    upper: float | str = 0.0
    sliding: float | str = 0.0


def levels(
    table: Table, secret: Integers, protection: float | str | Protection | None
) -> tuple[Floats, Floats, Floats]:
    """How far the interval of each primary cell must reach below its value, above it, and in all.

    Without any wish the column ``protection`` counts, where the rules left one.
    """
    if protection is None:
        protection = "protection" if "protection" in table.cells.columns else 0.0
    if not isinstance(protection, Protection):
        protection = Protection(protection, protection)
    return (
        _level(table, secret, protection.lower),
        _level(table, secret, protection.upper),
        _level(table, secret, protection.sliding),
    )


def _level(table: Table, secret: Integers, level: float | str) -> Floats:
    if isinstance(level, str):
        return cell_numbers(table, level, "protection")[secret]
    if level < 0:
        raise ParameterError("protection must not be negative: it is a share of the value of a cell.")
    return np.asarray(level * np.abs(np.asarray(table.values, dtype=float)[secret]))
