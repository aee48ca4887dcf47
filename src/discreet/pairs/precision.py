"""When do two files hold the same number? Their tables brought to the precision that both have, and what to say of it.

The arithmetic is the engine's (`discreet.engine.precision`); measures that count classes get it there. Measures that
hold whole tables in memory bring them to one precision here, once, and tell their readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, unknown_name
from discreet.engine.precision import (
    Grid,
    Setting,
    agreed_grid,
    equal_only_so,
    of_writing,
    on_grid,
    wanted_precision,
)
from discreet.microdata import Microdata

__all__ = ["Agreed", "Setting", "precise_alike"]


@dataclass(frozen=True)
class Agreed:
    """On which grid each rounded column was compared, and how many released values are equal only so."""

    grids: Mapping[str, Grid] = field(default_factory=dict)
    only_so: Mapping[str, int] = field(default_factory=dict)

    @property
    def caveats(self) -> list[str]:
        """One sentence that names the columns in which it mattered; none where it did not."""
        return rounding_caveats({name: (grid, self.only_so[name]) for name, grid in self.grids.items()})

    @property
    def parameters(self) -> dict[str, Any]:
        """The precision by column, for the parameters of a measure."""
        return {name: grid.words for name, grid in self.grids.items()}


def precise_alike(
    tables: Sequence[pl.DataFrame],
    *,
    precision: Setting = None,
    categorical: Sequence[str] = (),
    writing_only: bool = False,
) -> tuple[list[pl.DataFrame], Agreed]:
    """Bring the numbers of an original, a release and further files of the original's kind to one precision.

    The grid of a column is that of the first two tables; columns named as ``categorical`` are codes and stay.
    ``writing_only`` leaves grids alone that change numbers by more than a millionth, for measures with a tolerance of
    their own.

    Examples
    --------
    >>> ours, theirs = pl.DataFrame({"x": [1.26, 2.58]}), pl.DataFrame({"x": [1.3, 2.6, 9.9, 4.1, 7.7]})
    >>> tables, agreed = precise_alike([ours, theirs])
    >>> tables[0]["x"].to_list(), agreed.parameters
    ([1.3, 2.6], {'x': '1 decimal'})
    """
    ours, theirs = tables[0], tables[1]
    grids = {}
    for name in ours.columns:
        if name in categorical or name not in theirs.columns:
            continue
        grid = agreed_grid(ours[name], theirs[name], name, precision)
        if grid is not None and not (writing_only and not of_writing(grid, ours[name], theirs[name])):
            grids[name] = grid
    if not grids:
        return list(tables), Agreed()
    only_so = {name: equal_only_so(ours[name], theirs[name], grid) for name, grid in grids.items()}
    rounded = [
        table.with_columns(
            on_grid(table[name], grid) for name, grid in grids.items() if name in table.columns
        )
        for table in tables
    ]
    return rounded, Agreed(grids, only_so)


def files_alike(
    original: Microdata, released: Microdata, columns: Sequence[str], precision: Setting = None
) -> tuple[Microdata, Microdata, Agreed]:
    """Bring some columns of an original and a release to one precision, each in its own kind of frame."""
    check_precision(precision, original.columns)
    numbers = [
        name for name in columns if original.schema[name].is_numeric() and released.schema[name].is_numeric()
    ]
    tables, agreed = precise_alike(
        [engine.collect(data, numbers) for data in (original, released)], precision=_of(precision, numbers)
    )
    if not agreed.grids:
        return original, released, agreed
    found = [
        data.with_frame(engine.rebuilt(data, {name: table[name] for name in agreed.grids}))
        for data, table in zip((original, released), tables, strict=True)
    ]
    return found[0], found[1], agreed


def _of(precision: Setting, columns: Sequence[str]) -> Setting:
    if not isinstance(precision, Mapping):
        return precision
    return {name: wanted for name, wanted in precision.items() if name in columns}


def stated_precision(precision: Setting, rounded: Mapping[str, str]) -> Any:
    """Say for the parameters of a measure at which precision numbers were compared."""
    if isinstance(precision, Mapping):
        return {**precision, **rounded}
    return precision if precision is not None and precision != "detected" else dict(rounded)


def check_precision(precision: Setting, columns: Sequence[str]) -> None:
    """Refuse a precision that is none, or is given for a column that is not compared."""
    if isinstance(precision, Mapping):
        for name in precision:
            if name not in columns:
                raise ColumnError(f"{unknown_name(name, columns)} It was named under 'precision'.")
            wanted_precision(precision, name)
    else:
        wanted_precision(precision, "every column")


def rounding_caveats(rounded: Mapping[str, tuple[Grid, int]]) -> list[str]:
    """Say which columns were rounded before they were compared, where that made values equal."""
    told = [
        f"'{name}' ({grid.words}; {count:,} released {'value is' if count == 1 else 'values are'} equal only so)"
        for name, (grid, count) in rounded.items()
        if count
    ]
    if not told:
        return []
    return [
        f"Compared at the precision that both files have: {', '.join(told)}. precision='exact' compares to the last "
        "bit."
    ]
