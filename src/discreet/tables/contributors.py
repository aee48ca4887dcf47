"""Who is in a cell? The number of contributors and the largest contributions of every published cell.

Asked of the data only when a rule needs it, and then kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.wording import type_name
from discreet.microdata import Microdata
from discreet.numerics.dominance import Contributions, Negative, Weighting
from discreet.tables import table_counting
from discreet.tables.table_cells import published_cells

if TYPE_CHECKING:
    from discreet.tables.table import Table


_NOISE = 1e-9


@dataclass(frozen=True)
class Contributing:
    """The records behind a table, and whom they belong to."""

    data: Microdata
    contributor: str | None
    weight: str | None
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def by(self, contributor: str | None) -> Contributing:
        """The same records, counted by another column; as they are without one."""
        if contributor is None or contributor == self.contributor:
            return self
        table_counting.check_columns(self.data, [contributor], "contributor")
        made: Contributing = self.memory.setdefault(
            ("by", contributor), Contributing(self.data, contributor, self.weight)
        )
        return made

    def where(self, column: str, values: Sequence[Any], *, keep: bool = True) -> Contributing:
        """Only the records whose column has one of the values (or, with ``keep=False``, none of them)."""
        table_counting.check_columns(self.data, [column], "the rule")
        dtype = self.data.schema[column]
        # Polars compares numbers only with numbers of the same type.
        as_told = nw.col(column).cast(nw.Float64) if dtype.is_numeric() else nw.col(column)
        has = as_told.is_in(_like_column(self.data, column, values))
        chosen = has if keep else ~has | nw.col(column).is_null()
        frame = self.data.wrapped.filter(chosen).to_native()
        return Contributing(self.data.with_frame(frame), self.contributor, self.weight)

    def numbers(self, table: Table) -> Integers:
        """The number of distinct contributors of every published cell; records, where no column names them."""
        if self.contributor is None:
            raw = table_counting.inner_cells(self.data, table.dimensions, [], weight=None, count=None)
            sizes = _rolled(raw.rename({"count": "value"}), table, (), _added)
            return _aligned(sizes["cell"], sizes["value"], table.cells.height).astype(np.int64)
        if engine.is_lazy(self.data):
            counted = table_counting.contributors_by_cell(self.data, table, self.contributor)
        else:
            found = self._of_contributors(table, None)
            counted = found.group_by("cell").agg(pl.len().cast(pl.Int64).alias("many"))
        return _aligned(counted["cell"], counted["many"], table.cells.height).astype(np.int64)

    def largest(
        self,
        table: Table,
        n: int,
        measure: str,
        *,
        weighting: Weighting,
        negative: Negative,
        alone: bool = False,
    ) -> Contributions:
        """The n largest contributions of every cell and, as one entry after them, the rest.

        ``alone`` says that only the largest matter, not what is left of the total of the cell.
        """
        if self.contributor is not None and engine.is_lazy(self.data):
            return self._largest_in_place(table, n, measure, negative=negative)
        if self.contributor is not None:
            found = self._of_contributors(table, measure)
            return _sorted(found.with_columns(weight=pl.lit(1.0)), table, n, negative=negative)
        return self._of_records(table, n, measure, weighting=weighting, negative=negative, alone=alone)

    def _largest_in_place(self, table: Table, n: int, measure: str, *, negative: Negative) -> Contributions:
        at = ("in place", measure, table.formula, n)
        if at not in self.memory:
            assert self.contributor is not None
            self.memory[at] = table_counting.largest_by_cell(
                self.data, table, self.contributor, measure, weight=self.weight, n=n
            )
        kept, totals, below = self.memory[at]
        if negative == "refuse":
            refuse_negative(below)
        kept = kept.sort("cell", "value", descending=[False, True]).with_columns(weight=pl.lit(1.0))
        sums = _aligned(totals["cell"], totals["value"], table.cells.height)
        return _with_rest(kept, sums, table, whole=True)

    def _of_contributors(self, table: Table, measure: str | None) -> pl.DataFrame:
        at = ("contributors", measure, table.formula)
        if at not in self.memory:
            assert self.contributor is not None
            entries = table_counting.entries_by_contributor(
                self.data, table.dimensions, self.contributor, measure, weight=self.weight
            )
            who = entries["contributor"].rank("dense").cast(pl.Int64).fill_null(0)
            alone = np.arange(1, entries.height + 1, dtype=np.int64)
            who = pl.select(pl.when(who > 0).then(who).otherwise(-pl.Series(alone))).to_series()
            self.memory[at] = _rolled(entries.with_columns(who=who), table, ("who",), _added)
        return cast(pl.DataFrame, self.memory[at])

    def _of_records(
        self,
        table: Table,
        n: int,
        measure: str,
        *,
        weighting: Weighting,
        negative: Negative,
        alone: bool,
    ) -> Contributions:
        at = ("records", measure, table.formula, n, weighting, negative)
        if at not in self.memory:
            self._refuse_negative(measure, negative)
            data, weight = self.data, self.weight
            expand = weight is not None and weighting == "expand"
            most = table_counting.entries_needed(
                n, table_counting.smallest_weight(data, weight) if weight and expand else 1.0
            )
            entries = table_counting.largest_entries(
                data,
                table.dimensions,
                measure,
                weight=weight,
                multiply=weighting == "multiply",
                most=most,
                absolute=negative == "absolute",
            )
            kept = _rolled(entries, table, ("weight",), partial(_largest, n=n, expand=expand))
            totals = np.zeros(table.cells.height) if alone else self._totals(table, measure, negative)
            self.memory[at] = _with_rest(kept, totals, table, whole=not expand)
        return cast(Contributions, self.memory[at])

    def _totals(self, table: Table, measure: str, negative: Negative) -> Floats:
        if negative == "refuse":
            return table.cells[measure].cast(pl.Float64).to_numpy()
        raw = table_counting.inner_cells(
            self.data, table.dimensions, [measure], weight=self.weight, count=None, absolute=True
        ).rename({"m0": "value"})
        sizes = _rolled(
            raw.select(*(c for c in raw.columns if c.startswith("k")), "value"), table, (), _added
        )
        return _aligned(sizes["cell"], sizes["value"], table.cells.height)

    def _refuse_negative(self, measure: str, negative: Negative) -> None:
        if negative == "absolute":
            return
        below = (nw.col("v") < 0).cast(nw.Int64).sum()
        refuse_negative(int(engine.collect(engine.scan(self.data, {"v": measure}).select(below)).item() or 0))


def _like_column(data: Microdata, column: str, values: Sequence[Any]) -> list[Any]:
    """Write the values a rule looks for in the type of the column."""
    dtype = data.schema[column]
    refusal = f"Column '{column}' is {type_name(dtype)}; the rule looks for values of another type."
    try:
        if dtype == nw.Boolean:
            return [bool(value) for value in values]
        if dtype.is_numeric():
            return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise ParameterError(refusal) from error
    if dtype not in (nw.String, nw.Categorical, nw.Enum):
        raise ParameterError(refusal)
    return [str(value) for value in values]


def from_largest_columns(table: Table, n: int, measure: str, *, negative: Negative) -> Contributions:
    """Take the largest contributions from the columns ``largest_1``… of an aggregated file."""
    names = [f"largest_{i}" for i in range(1, n + 1)]
    lacking = [name for name in names if name not in table.cells.columns]
    if lacking or measure != table.measures[0]:
        raise ParameterError(
            f"This rule needs the {n} largest contributions of every cell of '{measure}', and a table made from cells "
            "knows only those it was given. Name their columns with largest=['max1', 'max2', …] in from_cells."
        )
    totals = table.cells[measure].cast(pl.Float64).to_numpy()
    wide = table.cells.select(pl.col(names).cast(pl.Float64).fill_null(0.0))
    below = int((wide.to_numpy() < 0).sum()) + int((totals < 0).sum())
    if negative == "refuse":
        refuse_negative(below)
    found = wide.select(pl.all().abs()).with_row_index("cell").unpivot(index="cell", on=names)
    kept = found.select(pl.col("cell").cast(pl.Int64), "value").with_columns(weight=pl.lit(1.0))
    return _with_rest(kept.sort("cell", "value", descending=[False, True]), np.abs(totals), table, whole=True)


def refuse_negative(below: int) -> None:
    """Refuse negative contributions, on which shares of a total have no meaning."""
    if below:
        raise ParameterError(
            f"{below:,} contributions are negative, and the rules on shares of a total have no meaning then. "
            "Use negative='absolute' to judge the cells by absolute values."
        )


def _rolled(entries: pl.DataFrame, table: Table, beside: tuple[str, ...], gather: Any) -> pl.DataFrame:
    """Carry entries of inner cells up to the published cells: ``cell``, ``value`` and what stands beside it."""
    leaves, known = _leaf_places(entries, table)
    kept = entries.filter(pl.Series(known))
    leaves = {name: places[known] for name, places in leaves.items()}
    rolled = published_cells(
        table.formula, table.hierarchy, leaves, kept.select("value", *beside), gather=gather
    )
    names = [f"d{i}" for i in range(len(table.dimensions))]
    cells = pl.DataFrame({f"d{i}": table.codes[name] for i, name in enumerate(table.dimensions)})
    placed = cells.with_row_index("cell").with_columns(pl.col("cell").cast(pl.Int64))
    return rolled.join(placed, on=names, how="inner").select("cell", "value", *beside).sort("cell")


def _leaf_places(entries: pl.DataFrame, table: Table) -> tuple[Mapping[str, Integers], Flags]:
    """Find the leaves of entries; those left out of the table (missing codes, dropped) are not known."""
    found = {}
    known = np.ones(entries.height, dtype=bool)
    for i, name in enumerate(table.dimensions):
        leaves = pl.Series(table.hierarchy[name].leaves, dtype=pl.String)
        places = table_counting.code_texts(entries[f"k{i}"]).replace_strict(
            leaves, pl.Series(np.arange(len(leaves)), dtype=pl.Int64), default=-1, return_dtype=pl.Int64
        )
        found[name] = places.to_numpy()
        known &= found[name] >= 0
    return found, known


def _largest(frame: pl.DataFrame, *, n: int, expand: bool) -> pl.DataFrame:
    """Keep of every key the largest entries that fill n respondents."""
    if n == 1 and not expand and (frame["weight"] == 1.0).all():
        return frame.group_by("key", maintain_order=True).agg(
            pl.col("value").max(), pl.lit(1.0).alias("weight")
        )
    ordered = frame.sort("key", "value", descending=[False, True])
    keys = ordered["key"].to_numpy()
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    respondents = ordered["weight"].to_numpy() if expand else np.ones(len(keys))
    before = np.cumsum(respondents) - respondents
    before -= np.repeat(before[first], np.diff(np.append(first, len(keys))))
    return ordered.filter(pl.Series(before < n))


def _added(frame: pl.DataFrame) -> pl.DataFrame:
    """Add up what one contributor has in a cell."""
    keys = [name for name in frame.columns if name != "value"]
    return frame.group_by(keys, maintain_order=True).agg(pl.col("value").sum())


def _sorted(found: pl.DataFrame, table: Table, n: int, *, negative: Negative) -> Contributions:
    """Sort complete contributions, keep the n largest of each cell and put the rest behind them."""
    if negative == "refuse":
        refuse_negative(int((found["value"] < 0).sum()))
    found = found.with_columns(pl.col("value").abs())
    totals = found.group_by("cell").agg(pl.col("value").sum())
    rank = pl.int_range(pl.len()).over("cell")
    kept = found.sort("cell", "value", descending=[False, True]).filter(rank < n)
    return _with_rest(kept, _aligned(totals["cell"], totals["value"], table.cells.height), table, whole=True)


def _with_rest(kept: pl.DataFrame, totals: Floats, table: Table, *, whole: bool) -> Contributions:
    """Put behind the kept contributions of each cell what is left of its total, as one entry."""
    cells = table.cells.height
    parts = kept.with_columns(part=pl.col("value") * pl.col("weight")).group_by("cell")
    sums = parts.agg(pl.col("part").sum(), pl.len().alias("many"))
    rest = totals - _aligned(sums["cell"], sums["part"], cells)
    many = _aligned(sums["cell"], sums["many"], cells)
    complete = table.cells["count"].to_numpy() <= many
    rest[complete | (np.abs(rest) <= _NOISE * np.abs(totals))] = 0.0
    cell = np.concatenate([kept["cell"].to_numpy(), np.arange(cells)])
    value = np.concatenate([kept["value"].to_numpy(), rest])
    weight = np.concatenate([kept["weight"].to_numpy(), np.ones(cells)])
    last = np.concatenate([np.zeros(kept.height), np.ones(cells)])
    order = np.lexsort((-value, last, cell))
    starts = np.searchsorted(cell[order], np.arange(cells + 1)).astype(np.int64)
    return Contributions(np.arange(cells), starts, value[order], weight[order], whole)


def _aligned(cell: pl.Series, value: pl.Series, cells: int) -> Floats:
    found = np.zeros(cells)
    found[cell.to_numpy()] = value.to_numpy()
    return found
