"""Which columns a treatment works on, and whether they are of the kind it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Words
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.wording import type_name
from discreet.microdata import Microdata


def existing(data: Microdata, columns: str | Iterable[str], *, treatment: str) -> tuple[str, ...]:
    """Return the named columns, each of which must be there."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise ParameterError(f"{treatment} needs at least one column. Name it in its parameters.")
    for name in names:
        if name not in data.schema:
            raise ColumnError(f"{unknown_name(name, data.columns)} It was named for {treatment}.")
    if len(set(names)) < len(names):
        raise ParameterError(f"A column is named twice for {treatment}. Name each once.")
    return names


def numeric(data: Microdata, columns: str | Iterable[str] | None, *, treatment: str) -> tuple[str, ...]:
    """Return the named columns, which must hold numbers; without a name, every numeric sensitive column."""
    if columns is None:
        columns = [name for name in data.roles.sensitive if data.schema[name].is_numeric()]
        if not columns:
            raise ParameterError(
                f"{treatment} was given no columns, and the file has no numeric sensitive column. "
                "Name the columns: columns=['income', …]."
            )
    names = existing(data, columns, treatment=treatment)
    for name in names:
        if not data.schema[name].is_numeric():
            raise ColumnError(
                f"{treatment} is for numbers, and column '{name}' is {type_name(data.schema[name])}. "
                "Leave it out, or convert it first."
            )
    return names


def group_column(data: Microdata, named: str | None, roles: Sequence[str], *, treatment: str) -> str | None:
    """Return the column that groups records (a person, a household): the named one, else the first such role."""
    if named is not None:
        return existing(data, named, treatment=treatment)[0]
    for role in roles:
        column: str | None = getattr(data.roles, role)
        if column:
            return column
    return None


def grouped_numbers(table: pl.DataFrame, by: str | None, records: Words) -> Words:
    """Give records that belong together one number by which they draw: that of their unit, else their own.

    Examples
    --------
    >>> numbers = grouped_numbers(pl.DataFrame({"who": ["a", "a", None]}), "who", np.arange(3, dtype=np.uint64))
    >>> bool(numbers[0] == numbers[1]), bool(numbers[1] == numbers[2])
    (True, False)
    """
    if by is None:
        return records
    units = engine.record_numbers(table, [by])
    gone = table[by].is_null().to_numpy()
    # A record of nobody draws for itself; the bit keeps it apart from a unit of the same number.
    return np.where(gone, records | np.uint64(1 << 63), units) if gone.any() else units
