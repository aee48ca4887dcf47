"""How precisely are the numbers of a column held, and which numbers are equal at the precision of two files?

A number that has been through another program is seldom the same to the last bit: it was written with two decimals,
with fifteen digits, or kept in single precision. The grid of a file is found from its distinct values; where two files
have different grids, the values of both are brought to the coarser one before anybody asks whether they are equal.
Rounding is decided on the exact product of a value and a power of ten, so that it comes out as in decimal arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError

Setting = str | int | Mapping[str, int | str] | None
"""``"detected"`` (also None), ``"exact"``, a number of decimals, or one of these by column."""

_DIGITS = 15  # what a double holds of any decimal number
_POWER = 22  # the largest power of ten that a double holds exactly
_SURELY_FIXED = 3
_FEW_DECIMALS = 6
_LOOKED_AT = 4096
_ACCIDENT = 1e-3
_SINGLE = 2.0**22  # whole numbers up to which single precision still tells halves apart


@dataclass(frozen=True)
class Grid:
    """What the values of a column are multiples of: a number of decimals, of digits, or single precision.

    Nothing set means double precision, with no coarser grid to be seen.
    """

    decimals: int | None = None
    digits: int | None = None
    single: bool = False

    @property
    def words(self) -> str:
        """The grid for a reader."""
        if self.single:
            return "single precision"
        parts = []
        if self.digits is not None:
            parts.append(f"{self.digits} significant digits")
        if self.decimals is not None:
            parts.append(
                "whole numbers"
                if not self.decimals
                else f"{self.decimals} decimal{'s' if self.decimals > 1 else ''}"
            )
        return " and ".join(parts) or "double precision"

    def rounded(self, values: Floats) -> Floats:
        """Bring numbers to the grid; NaN and the infinite stay."""
        if self.single:
            with np.errstate(over="ignore"):
                return values.astype(np.float32).astype(np.float64)
        if self.digits is not None:
            values = _to_digits(values, self.digits)
        return values if self.decimals is None else _to_power(values, np.int64(self.decimals))


def grid_of(values: pl.Series) -> Grid:
    """Find the grid of a column of numbers.

    Examples
    --------
    >>> [grid_of(pl.Series(x)).words for x in ([1.25, 3.5, 100.75], [1, 2], [0.333333, 12.3456], [1 / 3, 2 / 7])]
    ['2 decimals', 'whole numbers', '6 decimals', 'double precision']
    """
    if not values.dtype.is_float():
        return Grid(decimals=0)
    known = _distinct_sizes(values)
    some = known[:: max(1, len(known) // _LOOKED_AT)]
    if (_to_digits(some, _DIGITS) != some).any():
        # Most files of measured numbers: one look at some of them says that no decimal grid holds them.
        single = (known < 3e38).all() and np.array_equal(known.astype(np.float32).astype(np.float64), known)
        return Grid(single=bool(single))
    decimals = _decimals(known)
    fixed = int(decimals.max(initial=0)) if (decimals >= 0).all() else None
    if fixed is not None and fixed <= _SURELY_FIXED:
        return Grid(decimals=fixed)
    digits = _digits(known)
    most = int(digits.max(initial=1))
    if (digits < 0).any():
        return Grid(decimals=fixed)
    if most in (8, 9) and _written_singles(known):
        return Grid(single=True)
    if fixed is not None and (fixed <= _FEW_DECIMALS or (decimals == fixed).mean() > (digits == most).mean()):
        return Grid(decimals=fixed)
    return Grid(digits=most)


def common_grid(ours: Grid, theirs: Grid, largest: float) -> Grid | None:
    """Give the grid on which two files can be equal, or None where nothing needs to be rounded.

    Examples
    --------
    >>> common_grid(Grid(), Grid(digits=15), 100.0), common_grid(Grid(decimals=2), Grid(decimals=0), 100.0)
    (Grid(decimals=None, digits=15, single=False), Grid(decimals=0, digits=None, single=False))
    """
    if ours == theirs:
        return None
    if ours.single or theirs.single:
        other = theirs if ours.single else ours
        if other.decimals is not None and largest * 10.0**other.decimals < _SINGLE:
            return other
        return Grid(single=True)
    return Grid(
        decimals=_coarser(ours.decimals, theirs.decimals), digits=_coarser(ours.digits, theirs.digits)
    )


def agreed_grid(ours: pl.Series, theirs: pl.Series, column: str, setting: Setting = None) -> Grid | None:
    """Find the grid on which a column of two files is compared; None where values are taken as they are."""
    wanted = wanted_precision(setting, column)
    if wanted == "exact" or not (ours.dtype.is_numeric() and theirs.dtype.is_numeric()):
        return None
    if isinstance(wanted, int):
        return Grid(decimals=wanted)
    if not (ours.dtype.is_float() or theirs.dtype.is_float()):
        return None
    largest = max(float(part.cast(pl.Float64).fill_nan(None).abs().max() or 0) for part in (ours, theirs))  # type: ignore[arg-type]
    grids = grid_of(ours), grid_of(theirs)
    grid = common_grid(*grids, largest)
    if grid is None or _by_accident(ours, theirs, grids, grid):
        return None
    return grid


def _by_accident(ours: pl.Series, theirs: pl.Series, grids: tuple[Grid, Grid], grid: Grid) -> bool:
    """Say whether the coarser file may just happen to hold few values, all of them on the grid.

    A file of halves and wholes from which the halves were dropped is no file of whole numbers.
    """
    fine, coarse = (ours, theirs) if grids[1] == grid else (theirs, ours)
    if grid not in grids:
        return False
    known, few = (_distinct_sizes(part) for part in (fine, coarse))
    on = int((grid.rounded(known) == known).sum())
    return bool(((on + 1) / (len(known) + 2)) ** len(few) > _ACCIDENT)


def _distinct_sizes(values: pl.Series) -> Floats:
    held: Floats = np.unique(np.abs(values.drop_nulls().cast(pl.Float64).to_numpy()))
    return held[np.isfinite(held) & (held > 0)]


def wanted_precision(setting: Setting, column: str) -> int | str:
    """Read the setting for one column: ``detected``, ``exact`` or a number of decimals."""
    wanted = setting.get(column, "detected") if isinstance(setting, Mapping) else setting
    if wanted is None:
        return "detected"
    if isinstance(wanted, bool) or (isinstance(wanted, int) and not 0 <= wanted <= _DIGITS):
        raise ParameterError(f"precision of '{column}' must be a number of decimals from 0 to {_DIGITS}.")
    if isinstance(wanted, str) and wanted not in ("detected", "exact"):
        raise ParameterError(
            "precision is 'detected' (what both files have), 'exact' (to the last bit), a number of decimals, or one "
            "of these by column."
        )
    return wanted


def on_grid(values: pl.Series, grid: Grid | None) -> pl.Series:
    """Bring a column of numbers to a grid; missing stays missing."""
    if grid is None:
        return values
    held = values.cast(pl.Float64)
    rounded = pl.Series(values.name, grid.rounded(held.fill_null(0.0).to_numpy()))
    return pl.select(pl.when(held.is_null()).then(None).otherwise(rounded).alias(values.name)).to_series()


def equal_only_so(ours: pl.Series, theirs: pl.Series, grid: Grid) -> int:
    """Count the distinct values of the second file that are some value of the first only on the grid."""
    left, right = (part.drop_nulls().cast(pl.Float64).unique() for part in (ours, theirs))
    found = on_grid(right, grid).is_in(on_grid(left, grid).unique().implode())
    return int((found & ~right.is_in(left.implode())).sum())


def rounding_note(column: str, grid: Grid, count: int) -> str:
    """Say at which precision a column was compared, and for how many distinct released values that mattered."""
    values = "value is" if count == 1 else "values are"
    return (
        f"'{column}' was compared at the precision that both files have ({grid.words}): {count:,} distinct released "
        f"{values} equal to one of the original only so. precision='exact' compares to the last bit."
    )


def stored_alike(ours: pl.Series, theirs: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Bring two columns of numbers to one precision where only the writing of a file can have changed them.

    That is a change of less than a millionth of what the numbers are; coarser ones are changes of the data.
    """
    grid = agreed_grid(ours, theirs, "", None)
    if grid is None or not of_writing(grid, ours, theirs):
        return ours, theirs
    return on_grid(ours, grid), on_grid(theirs, grid)


def of_writing(grid: Grid, *parts: pl.Series) -> bool:
    """Say whether a grid is so fine that it changes no number by more than a millionth."""
    for part in parts:
        known = _distinct_sizes(part)
        if (np.abs(grid.rounded(known) - known) > 1e-6 * known).any():
            return False
    return True


def snapped(ours: pl.Series, theirs: pl.Series, grid: Grid) -> pl.Series:
    """Give the second column the values that the first has for them on the grid, and its own elsewhere.

    Where several values of the first are one on the grid, the smallest stands for them all.
    """
    known = pl.DataFrame({"value": ours.cast(pl.Float64).drop_nulls().unique().sort()})
    known = known.with_columns(at=on_grid(known["value"], grid)).unique(
        "at", keep="first", maintain_order=True
    )
    table = pl.DataFrame({"own": theirs.cast(pl.Float64), "at": on_grid(theirs, grid)})
    found = table.join(known, on="at", how="left", maintain_order="left")
    return found.select(pl.coalesce("value", "own").alias(theirs.name)).to_series()


def _coarser(ours: int | None, theirs: int | None) -> int | None:
    known = [part for part in (ours, theirs) if part is not None]
    return min(known) if known else None


def _decimals(values: Floats) -> Integers:
    """Count the decimals that each number needs; -1 where no double with so many digits is the number."""
    found = np.full(len(values), -1, dtype=np.int64)
    open_ = np.arange(len(values))
    for count in range(_DIGITS + 1):
        power = 10.0**count
        scaled = values[open_] * power
        fits = (scaled < 2.0**53) & (np.rint(scaled) / power == values[open_])
        found[open_[fits]] = count
        open_ = open_[~fits & (scaled < 2.0**53)]
        if not len(open_):
            break
    return found


def _digits(values: Floats) -> Integers:
    """Count the significant digits that each number needs; -1 where it takes more than fifteen."""
    found = np.full(len(values), -1, dtype=np.int64)
    open_ = np.arange(len(values))
    for count in range(1, _DIGITS + 1):
        fits = _to_digits(values[open_], count) == values[open_]
        found[open_[fits]] = count
        open_ = open_[~fits]
        if not len(open_):
            break
    return found


def _written_singles(values: Floats) -> bool:
    """Say whether each number is the shortest text of some single-precision number."""
    if not len(values) or values.max() > 3e38:
        return False
    texts = values.astype(np.float32).astype(str)
    return bool((texts.astype(np.float64) == values).all())


def _to_digits(values: Floats, digits: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.floor(np.log10(np.abs(values)))
    usable = np.isfinite(order)
    powers = np.where(usable, digits - 1 - np.where(usable, order, 0), 0).astype(np.int64)
    return np.where(usable, _to_power(np.where(usable, values, 0.0), powers), values)


def _to_power(values: Floats, powers: Integers | np.int64) -> Floats:
    """Round to the nearest multiple of ten to the minus power, a half to the even one, on the exact product."""
    powers = np.broadcast_to(powers, values.shape)
    usable = np.isfinite(values) & (np.abs(values) < 1e200)
    plain = np.where(usable, values, 0.0)
    up: Floats = np.power(10.0, np.clip(powers, 0, 300)).astype(np.float64)
    down: Floats = np.power(10.0, np.clip(-powers, 0, 300)).astype(np.float64)
    high, low = _product(plain, up)
    high, low = np.where(powers < 0, plain / down, high), np.where((powers < 0) | (powers > _POWER), 0.0, low)
    whole = np.rint(high)
    rest = high - whole
    whole = whole + ((rest == 0.5) & (low > 0)) - ((rest == -0.5) & (low < 0))
    # A number with more digits than a double holds has no more of them to lose.
    return np.where(usable & (np.abs(high) < 2.0**53), whole / up * down, values)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Multiply exactly: the product and what it lost by rounding (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = (_halves(part) for part in (a, b))
    parts = (a_high * b_high - product, a_high * b_low, a_low * b_high, a_low * b_low)
    return product, reduce(lambda total, part: total + part, parts)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    shifted = values * 134_217_729.0
    high = shifted - (shifted - values)
    return high, values - high
