"""How far can one person move an answer? Counts and sums by cell, after each person was held to a bound, and the pMSE.

Sums are added up in whole steps of a public grid: floating-point sums depend on the order of the records, and by more
than one record should move them (Casacuberta, Shoemate, Vadhan and Wagaman 2022). Where a column says whose the
records are, each person keeps a few of their cells, chosen at random, and a few records in each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import narwhals as nw
import polars as pl

from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.dp.costs import Unit
from discreet.dp.entropy import Words
from discreet.dp.samplers import shuffled
from discreet.engine import collect, counted_role, counted_unit, scan
from discreet.microdata import Microdata, require_microdata

_NARROWEST, _WIDEST = 1e-150, 1e150  # so that squares and steps are numbers of the machine
_STEPS = 16  # powers of two into which the range of a column is divided
_KEPT_CELLS = 1 << 16  # a table of more cells is counted anew rather than kept in memory


@dataclass(frozen=True)
class Range:
    """A column of numbers with its public bounds, on a grid of whole steps around its middle.

    Examples
    --------
    >>> Range("age", 0, 100).most
    51200
    """

    column: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise ParameterError(
                    f"{name} of column '{self.column}' must be a number that is known without the data."
                )
        if not self.lower < self.upper:
            raise ParameterError(f"lower of column '{self.column}' must be less than upper.")
        if (
            not _NARROWEST < self.upper - self.lower < _WIDEST
            or max(abs(self.lower), abs(self.upper)) > _WIDEST
        ):
            raise ParameterError(
                f"lower and upper of column '{self.column}' must lie between -1e150 and 1e150 and more than 1e-150 "
                "apart. Take another unit of measurement."
            )

    @property
    def step(self) -> float:
        """The size of a step, a power of two."""
        return math.ldexp(1.0, math.frexp(self.upper - self.lower)[1] - _STEPS - 1)

    @property
    def middle(self) -> float:
        """What is taken off every value, so that one record moves a sum as little as possible."""
        return math.floor((self.lower + self.upper) / 2 / self.step) * self.step

    @property
    def most(self) -> int:
        """How many steps a value can be from the middle."""
        return math.ceil(max(self.upper - self.middle, self.middle - self.lower) / self.step)

    def steps(self) -> nw.Expr:
        """The column ``x`` of a query, held to the bounds, in steps from the middle."""
        held = nw.col("x").cast(nw.Float64).clip(self.lower, self.upper)
        return ((held - self.middle) / self.step).round().clip(-self.most, self.most).cast(nw.Int64)


@dataclass(frozen=True)
class Bounded:
    """Counts and sums by cell, and how far one unit can move them.

    Attributes
    ----------
    cells
        One row a cell that occurs: the columns of ``by`` under ``k0``…, ``count`` and, with a range, ``sum`` in steps.
    records
        How many records one unit has in a cell at most.
    groups
        In how many cells one unit is at most.
    """

    cells: pl.DataFrame
    records: int
    groups: int


def bounded_cells(
    data: Microdata,
    by: Sequence[str],
    number: Range | None,
    *,
    max_records: int,
    max_groups: int,
    words: Words,
) -> Bounded:
    """Count and sum by cell where the data is; records without a number are left out of both.

    Without a column of persons every record is a unit of its own. With one, records that do not say whose they are
    count nowhere: several people may stand behind them, who could not be held to a bound one by one.
    """
    for name, bound in (("max_records", max_records), ("max_groups", max_groups)):
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
            raise ParameterError(f"{name} must be a whole number of 1 or more.")
    require_microdata(data)
    need_known([*by, *([number.column] if number else [])], data.columns)
    if number is not None:
        check_number(data, number.column)
    if counted_unit(data) is None:
        return _counted_once(data, (tuple(by), number), lambda: _every_record(data, by, number))
    keys, rows, _ = _asked(data, by, number)
    known = rows.filter(~nw.col("u").is_null())
    own = collect(known.select(*keys, "u", *(["x"] if number else [])))
    return Bounded(_held(own, keys, max_records, max_groups, words), max_records, max_groups)


def _counted_once(data: Microdata, at: Hashable, make: Callable[[], Bounded]) -> Bounded:
    """Count a file, which does not change, once: who asks again gets new noise on the same counts, and no new pass."""
    kept = data.memory.setdefault("private cells", {})
    if at in kept:
        return cast(Bounded, kept[at])
    found = make()
    if found.cells.height <= _KEPT_CELLS:
        kept[at] = found
    return found


def _asked(
    data: Microdata, by: Sequence[str], number: Range | None
) -> tuple[list[str], nw.LazyFrame[Any], list[nw.Expr]]:
    """The query: the names of its keys, its rows, and what is added up of them."""
    keys = [f"k{i}" for i in range(len(by))]
    columns = dict(zip(keys, by, strict=True))
    unit = counted_unit(data)
    if number is not None:
        columns["x"] = number.column
    if unit is not None:
        columns["u"] = unit
    rows = scan(data, columns or {"any": data.columns[0]})
    sums = [nw.len().cast(nw.Int64).alias("count")]
    if number is not None:
        rows = rows.filter(~nw.col("x").is_null()).with_columns(number.steps().alias("x"))
        sums.append(nw.col("x").sum().cast(nw.Int64).alias("sum"))
    return keys, rows, sums


def _every_record(data: Microdata, by: Sequence[str], number: Range | None) -> Bounded:
    keys, rows, sums = _asked(data, by, number)
    found = collect(rows.group_by(*keys).agg(*sums) if keys else rows.select(*sums))
    # The sum of no records is missing on some engines.
    return Bounded(found.with_columns(pl.col("count", *(["sum"] if number else [])).fill_null(0)), 1, 1)


def unit_of(data: Microdata) -> Unit:
    """Whose privacy is counted: that of a record, or of the person or contributor who has several."""
    return cast(Unit, counted_role(data) or "record")


def refuse_several_records(data: Microdata) -> None:
    """Refuse a file that says that a person may have several records, where the guarantee is one for records."""
    if data.roles.person or data.roles.contributor:
        raise ParameterError(
            "The guarantee is one for records, and the file says that a person may have several. Keep one record a "
            "person and leave out the role, or use AIM, which bounds them."
        )


def _held(
    rows: pl.DataFrame, keys: list[str], max_records: int, max_groups: int, words: Words
) -> pl.DataFrame:
    """Keep a few cells of every unit and a few records in each, all at random."""
    rows = rows[shuffled(rows.height, words)]
    place = pl.int_range(pl.len(), dtype=pl.Int64)
    kept = rows.filter(place.over([*keys, "u"]) < max_records)
    if keys:
        cells = kept.select(*keys, "u").unique(maintain_order=True)
        cells = cells[shuffled(cells.height, words)].filter(place.over("u") < max_groups)
        kept = kept.join(cells, on=[*keys, "u"], how="semi", nulls_equal=True)
    sums = [pl.len().cast(pl.Int64).alias("count")]
    if "x" in rows.columns:
        sums.append(pl.col("x").sum().alias("sum"))
    return kept.group_by(keys).agg(sums) if keys else kept.select(sums)


def check_number(data: Microdata, column: str) -> None:
    """Refuse a column that holds no numbers."""
    if not data.schema[column].is_numeric():
        raise ColumnError(f"Column '{column}' is no number. Name a column of numbers.")


# How far can one record move the propensity mean squared error between a file and a synthetic one?


SensitivityKind = Literal["published", "tight"]


@checked
def pmse_sensitivity(n: Annotated[int, AtLeast(2)], *, kind: SensitivityKind = "published") -> float:
    """How far replacing one of ``n`` records can move the pMSE of the best tree, against a file of the same size.

    A tree whose leaves hold a synthetic and b original records each has pMSE = 1/4 - GI/(2n) with GI the sum of
    a b / (a + b). Moving one original record between two leaves changes GI by two terms of opposite sign, each at most
    n/(n + 1); so does the best of any family of partitions that does not depend on the original.

    Also known as: sensitivity of the pMSE.

    Parameters
    ----------
    n
        Number of records of each file.
    kind
        ``"published"``: 1/n (Snoke and Slavković 2018), which adds the two terms as if they had one sign. ``"tight"``:
        1/(2(n + 1)), which is attained.

    Examples
    --------
    >>> pmse_sensitivity(10), round(pmse_sensitivity(10, kind="tight"), 6)
    (0.1, 0.045455)
    """
    return 1 / n if kind == "published" else 1 / (2 * (n + 1))
