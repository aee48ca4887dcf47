"""Which records belong together: the members of a household, the entries of one person?

A role says so. Where none does, a number that several records in a row share, and that another column counts (how many
live in the household), gives it away.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from discreet.core.errors import ColumnError, DiscreetWarning, unknown_name
from discreet.microdata import Microdata

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


_FEWEST_RECORDS = 50
_FEWEST_GROUPS = 10
_SMALLEST_SHARE, _LARGEST_SHARE = 0.05, 0.9
_LARGEST_UNIT = 100
_BY_CHANCE = 0.5


@dataclass(frozen=True)
class Unit:
    """A column that says which records belong together.

    Attributes
    ----------
    column
        Its name.
    told_by
        Whether the user said so (a role, or the option ``together``), or the data.
    counted_by
        Columns that hold the number of its records.
    same
        Other columns that all records of a unit share, more than chance would make them.
    """

    column: str
    told_by: Literal["user", "data"]
    counted_by: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def unit_of(options: Sequential, data: Microdata, frame: pl.DataFrame) -> Unit | None:
    """Return the unit that records are drawn by: named by the option, by a role, or given away by the data.

    A column that was given a method of its own, or is left out, is none.
    """
    if options.together == "no":
        return None
    columns = candidates(options, data)
    if options.together != "auto":
        if options.together not in columns:
            raise ColumnError(
                f"{unknown_name(options.together, columns)} It was named under together; columns that are left out, "
                "or have a method of their own, cannot be."
            )
        return Unit(options.together, "user")
    for role in (data.roles.household, data.roles.person):
        if role is not None and role in columns:
            return Unit(role, "user")
    if data.roles.household or data.roles.person:
        return None
    return next((unit for unit in units_seen(frame, columns) if unit.counted_by), None)


def units_left_out(data: Microdata, frame: pl.DataFrame | None, without: Collection[str]) -> dict[str, str]:
    """Return what a synthesizer that draws records one by one leaves out, and why; a warning says so.

    ``frame`` is the file in memory, None where nothing may be read off it; ``without`` are columns that are out anyway.
    """
    declared = [name for name in (data.roles.household, data.roles.person) if name is not None]
    names = [name for name in declared if name not in without]
    if not declared and frame is not None:
        free = [name for name in frame.columns if name not in without]
        names = [unit.column for unit in units_seen(frame, free) if unit.counted_by]
    for name in names:
        warnings.warn(
            f"Records that share '{name}' belong together, and this synthesizer draws records one by one: the column "
            "is left out, and what its records had to do with each other is lost. Sequential draws them together.",
            DiscreetWarning,
            stacklevel=5,
        )
    return dict.fromkeys(names, "it says which records belong together, and they are drawn one by one")


def candidates(options: Sequential, data: Microdata) -> list[str]:
    """Name the columns that may say which records belong together."""
    gone = (options.leave_out,) if isinstance(options.leave_out, str) else tuple(options.leave_out or ())
    named = options.method if isinstance(options.method, Mapping) else ()
    out = {*gone, *named, *data.roles.identifiers, data.roles.weight}
    return [name for name in data.columns if name not in out]


def units_seen(frame: pl.DataFrame, columns: Sequence[str]) -> list[Unit]:
    """Find columns that number groups of records which stand together and share values, surest first.

    A column counts that is whole or text, has each of its values in one run of records, neither nearly as many values
    as records nor very few, and beside which others are the same within every run though they change between runs. It
    is sure where another column says how many records a run has.

    Examples
    --------
    >>> home = [number // 2 for number in range(100)]
    >>> size, age = [2] * 100, list(range(100))
    >>> area = [number % 7 for number in home]
    >>> file = pl.DataFrame({"home": home, "size": size, "area": area, "age": age})
    >>> [(unit.column, unit.counted_by, unit.same) for unit in units_seen(file, file.columns)]
    [('home', ('size',), ('area',))]
    """
    if frame.height < _FEWEST_RECORDS:
        return []
    found = [unit for name in columns if (unit := _as_unit(frame, name, columns)) is not None]
    return sorted(
        found, key=lambda unit: (-len(unit.counted_by), -len(unit.same), columns.index(unit.column))
    )


def same_within(frame: pl.DataFrame, unit: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that have one value in all records of each unit, missing being one."""
    others = [name for name in columns if name != unit]
    table = pl.DataFrame({"unit": frame[unit]} | {f"c{at}": frame[name] for at, name in enumerate(others)})
    many = table.group_by("unit").agg(pl.exclude("unit").n_unique()).drop("unit").max()
    return [name for at, name in enumerate(others) if many[f"c{at}"].item() == 1]


def copies_of(frame: pl.DataFrame, unit: str) -> list[str]:
    """Return the columns that repeat the numbers of the units."""
    same = frame[unit].rename("v")
    return [
        name
        for name in frame.columns
        if name != unit and frame[name].dtype == same.dtype and frame[name].rename("v").eq_missing(same).all()
    ]


def _as_unit(frame: pl.DataFrame, name: str, columns: Sequence[str]) -> Unit | None:
    series = frame[name].rename("unit")
    if not (series.dtype.is_integer() or series.dtype == pl.String) or series.null_count():
        return None
    distinct = series.n_unique()
    if not _SMALLEST_SHARE * len(series) <= distinct <= _LARGEST_SHARE * len(series):
        return None
    runs = series.rle()
    if len(runs) != distinct:
        return None
    sizes = runs.struct.field("len")
    if int((sizes > 1).sum()) < _FEWEST_GROUPS or int(sizes.max()) > _LARGEST_UNIT:  # type: ignore[arg-type]
        return None
    alike = same_within(frame, name, columns)
    first = pl.Series(sizes.cum_sum() - sizes)
    number = pl.Series("n", sizes)
    counted = [
        other
        for other in alike
        if frame[other].dtype.is_integer() and (frame[other].gather(first).rename("n") == number).all()
    ]
    changing = [other for other in alike if other not in counted and _changes(frame[other].gather(first))]
    if not counted and not changing:
        return None
    return Unit(name, "data", tuple(counted), tuple(changing))


def _changes(of_units: pl.Series) -> bool:
    """Whether neighbors mostly differ, so that to be the same within all units is no chance."""
    plain = of_units.rename("v")
    same = plain.slice(1).eq_missing(plain.slice(0, len(plain) - 1))
    return bool(same.mean() <= _BY_CHANCE)  # type: ignore[operator]
