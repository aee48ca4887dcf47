"""Table: what is to be published, cell by cell, with the inner cells it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ParameterError, need_known, unknown_name
from discreet.formula import Formula
from discreet.tables.dimension import TOTAL, Dimension, code_frame, described, places_of
from discreet.tables.table_cells import cell_matrix

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from discreet.numerics.dominance import Contributions, Negative, Weighting
    from discreet.tables.contributors import Contributing
    from discreet.tables.table_linking import Joined


@dataclass(frozen=True, repr=False)
class Table:
    """A table, or several linked ones, with hierarchies, margins and the inner cells behind them.

    Build it with `from_microdata` or `from_cells`. It never changes: `primary` and the protections give a new one.

    Attributes
    ----------
    inner
        One row an inner cell (a combination of lowest codes): the dimension columns, ``count``, ``weighted`` where
        there are weights, and one column a measure.
    cells
        One row a published cell: the dimension columns (codes, at their total ``"Total"``), ``count``, ``weighted``,
        measures, ``contributors`` where they were named, ``table`` (the first term of the formula it belongs to),
        ``level`` (how far below the grand total, added over the dimensions), ``inner_cells`` (how many it is made
        of); after `primary` also ``primary`` and ``rule``.
    value
        The column that is published: a measure, ``weighted`` or ``count``.
    measures
        All columns that are summed.
    formula
        Which tables are published.
    hierarchy
        The `Dimension` of every column.
    rules
        The names of the rules by which cells were found sensitive, those that hit none too.
    notes
        What the reader should know: missing codes, records without a value, cells that do not add up.
    counted
        The column that said how many units a row stood for, where rows were counted before.

    Examples
    --------
    >>> people = pl.DataFrame({"place": ["a", "a", "b"], "sex": ["f", "m", "f"]})
    >>> table = Table.from_microdata(people, "place*sex")
    >>> table.wide(rows="place", columns="sex")
    shape: (3, 4)
    ┌───────┬───────┬─────┬──────┐
    │ place ┆ Total ┆ f   ┆ m    │
    │ ---   ┆ ---   ┆ --- ┆ ---  │
    │ str   ┆ i64   ┆ i64 ┆ i64  │
    ╞═══════╪═══════╪═════╪══════╡
    │ Total ┆ 3     ┆ 2   ┆ 1    │
    │ a     ┆ 2     ┆ 1   ┆ 1    │
    │ b     ┆ 1     ┆ 1   ┆ null │
    └───────┴───────┴─────┴──────┘
    >>> (table.x.T @ table.inner["count"].to_numpy() == table.cells["count"].to_numpy()).all()
    np.True_
    """

    inner: pl.DataFrame
    cells: pl.DataFrame
    value: str
    measures: tuple[str, ...]
    formula: Formula
    hierarchy: Mapping[str, Dimension]
    notes: tuple[str, ...] = ()
    weight: str | None = None
    contributing: Contributing | None = field(default=None, compare=False)
    joined: Joined | None = field(default=None, compare=False)
    counted: str | None = None
    rules: tuple[str, ...] = ()

    @staticmethod
    def from_microdata(
        data: Any,
        tables: str | Sequence[str] | Sequence[Sequence[str]],
        *,
        measure: str | Sequence[str] | None = None,
        weight: str | None = None,
        count: str | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        contributor: str | None = None,
        margins: bool = True,
        zeros: str = "observed",
        structural: Any = None,
        missing: str = "category",
        total: str | Mapping[str, str] = TOTAL,
    ) -> Table:
        """Count and sum records into tables, in the engine that holds them.

        Parameters
        ----------
        data
            A `Microdata` or any frame it takes. Its roles ``weight`` and ``contributor`` (else ``person``) are used
            unless named here.
        tables
            A formula such as ``"region*age + region*sex"``, or a list of lists of columns.
        measure
            The columns to sum; the first is the value of the cells. Without one the records are counted.
        weight
            The column of sampling weights: sums and counts are weighted, ``count`` stays the number of records.
        count
            A column that says how many units a record stands for, where records were counted before.
        hierarchies
            By column: a `Hierarchy`, a tree, a tuple of coarser columns, a code list (a frame with ``child`` and
            ``parent``), the path of a ``.hrc`` file, or a list of these where hierarchies overlap.
        contributor
            The column that says whom a record belongs to (a firm, a holding, a person): rules count and add up by it.
        margins
            False publishes the crossings alone.
        zeros
            ``observed`` keeps the combinations that occur; ``all`` also those that could (sampling zeros).
        structural
            Combinations that cannot occur, left out under ``zeros="all"``: a frame with some of the dimensions.
        missing
            A missing code is a ``category`` of its own (``"Missing"``), is left out (``drop``) or is refused
            (``refuse``).
        total
            The code of the totals, for all columns or by column.
        """
        from discreet.tables.table_from_records import table_from_microdata

        return table_from_microdata(
            data,
            tables,
            measure=measure,
            weight=weight,
            count=count,
            hierarchies=hierarchies or {},
            contributor=contributor,
            margins=margins,
            zeros=zeros,
            structural=structural,
            missing=missing,
            total=total,
        )

    @staticmethod
    def from_cells(
        frame: Any,
        dimensions: Sequence[str] | str,
        *,
        count: str | None = None,
        measure: str | Sequence[str] | None = None,
        largest: str | Sequence[str] | None = None,
        contributors: str | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        margins: bool = True,
        zeros: str = "observed",
        structural: Any = None,
        total: str | Mapping[str, str] = TOTAL,
        tolerance: float | None = None,
    ) -> Table:
        """Take a table that was aggregated before: its inner cells only, or all cells with totals and subtotals.

        Where the file has totals, exactly its cells are published, with its values; those that are not the sum of
        their inner cells are flagged (``additive`` in the cells) and reported.

        Parameters
        ----------
        frame
            One row a cell.
        dimensions
            The dimension columns, or a formula where inner cells are to be published as several tables.
        count, measure
            The columns of counts and of sums. Without ``count`` every inner cell counts as one.
        largest
            Columns with the largest contributions to each cell, largest first, for dominance and p% rules.
        contributors
            The column with the number of contributors.
        hierarchies, margins, zeros, structural
            As in `from_microdata`.
        total
            The code of the totals in the file, for all columns or by column.
        tolerance
            How far a cell may lie from the sum of its inner cells; by default rounding error only.

        Examples
        --------
        >>> rows = {"place": ["a", "b", "Total"], "n": [3, 4, 7], "turnover": [10.0, 20.0, 30.0]}
        >>> table = Table.from_cells(pl.DataFrame(rows), ["place"], count="n", measure="turnover")
        >>> table.inner.height, table.cells["additive"].all()
        (2, True)
        """
        from discreet.tables.table_from_cells import table_from_cells

        return table_from_cells(
            frame,
            dimensions,
            count=count,
            measure=measure,
            largest=largest,
            contributors=contributors,
            hierarchies=hierarchies or {},
            margins=margins,
            zeros=zeros,
            structural=structural,
            total=total,
            tolerance=tolerance,
        )

    @staticmethod
    def link(
        tables: Sequence[Table],
        *,
        total: Mapping[str, str] | None = None,
        tolerance: float | None = None,
    ) -> Table:
        """Put tables together that were made apart and are published together, to protect them as one.

        A cell that several tables have (a total, a margin, a region in two files) occurs once, so that it is left out
        of all of them or of none. The tables may have different dimensions, stop at different levels or cover a part
        of the codes; a dimension that a table does not have is at its total there. Where you have the records, one
        formula (``"a*b + a*c"``) does the same and knows more.

        The linked table can be judged, suppressed and audited; give `primary` before or after. Its ``inner`` has the
        inner cells of all tables, since their crossing is not known.

        Parameters
        ----------
        tables
            The tables, all of the same value.
        total
            By column the code that stands for everything, where all tables that have the column cover a part of it: a
            table of the East alone (total ``"East"``) beside one of the whole country needs ``{"place": "Total"}``.
        tolerance
            How far tables may lie apart on a cell they share; by default rounding error only. Cells further apart are
            flagged (``agree`` in the cells) and reported.

        Examples
        --------
        >>> by_place = pl.DataFrame({"place": ["a", "b", "Total"], "n": [3, 9, 12]})
        >>> by_sex = pl.DataFrame({"sex": ["f", "m", "Total"], "n": [5, 7, 12]})
        >>> table = Table.link(
        ...     [Table.from_cells(by_place, ["place"], count="n"), Table.from_cells(by_sex, ["sex"], count="n")]
        ... )
        >>> table.cells.height, table.tables, table.notes
        (5, ('place', 'sex'), ('1 cells are shared by several tables and occur once.',))
        """
        from discreet.tables.table_linking import linked

        return linked(tables, total=total, tolerance=tolerance)

    # The views everybody works with.

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimension columns."""
        return self.formula.columns

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that are published together."""
        return tuple(term.name for term in self.formula.terms)

    @property
    def values(self) -> npt.NDArray[np.generic]:
        """The published value of every cell."""
        return self.cells[self.value].to_numpy()

    @cached_property
    def codes(self) -> Mapping[str, Integers]:
        """By column the place of every cell's code in its dimension; the total is 0."""
        return {name: places_of(self.cells[name], self.hierarchy[name].codes) for name in self.dimensions}

    @cached_property
    def leaves(self) -> Mapping[str, Integers]:
        """By column the place of every inner cell's leaf in its dimension."""
        self.need_crossing("This")
        return {name: places_of(self.inner[name], self.hierarchy[name].leaves) for name in self.dimensions}

    @cached_property
    def x(self) -> csc_array:
        """Which inner cell (row) is part of which published cell (column): a sparse matrix of 0 and 1."""
        if self.joined is not None:
            return self.joined.x
        terms = {term.name: number for number, term in enumerate(self.formula.terms)}
        places = {f"d{i}": self.codes[name] for i, name in enumerate(self.dimensions)}
        numbers = self.cells["table"].replace_strict(terms, return_dtype=pl.Int64)
        placed = pl.DataFrame(places).with_columns(term=numbers)
        return cell_matrix(self.formula, self.hierarchy, self.leaves, placed)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The codes of every cell, in the order of the dimensions."""
        return self.cells.select(self.dimensions).rows()

    def find(self, **codes: str) -> int:
        """The position of one cell; dimensions that are not named are at their total.

        Examples
        --------
        >>> people = pl.DataFrame({"place": ["a", "a", "b"], "sex": ["f", "m", "f"]})
        >>> Table.from_microdata(people, "place*sex").find(place="a")
        3
        """
        need_known(codes, self.dimensions, what="dimension")
        wanted = {name: str(codes.get(name, self.hierarchy[name].total)) for name in self.dimensions}
        hit = np.logical_and.reduce([self.cells[name].to_numpy() == code for name, code in wanted.items()])
        places = np.flatnonzero(hit)
        if not len(places):
            raise ParameterError("The table has no such cell; see table.cells for those it has.")
        return int(places[0])

    def contributions(
        self,
        n: int = 2,
        measure: str | None = None,
        *,
        contributor: str | None = None,
        weighting: Weighting = "expand",
        negative: Negative = "refuse",
    ) -> Contributions:
        """The n largest contributions of every published cell, ready for the rules of `discreet.numerics.dominance`.

        Contributions are those of the contributor column, else of single records. Where the table was made from
        cells, they are its columns ``largest_1``, ``largest_2``….

        Parameters
        ----------
        n
            How many are wanted.
        measure
            Of which measure; by default the first of the table.
        contributor
            The column that says whose a record is, where it is not that of the table.
        weighting, negative
            What weights mean and what becomes of negative contributions, as in `numerics.dominance.contributions`.
            With a contributor column the contributions are always weight times value.
        """
        from discreet.tables.contributors import from_largest_columns

        measure = self.measure_named(measure)
        if self.contributing is None and contributor is None:
            return from_largest_columns(self, n, measure, negative=negative)
        records = self.records("A rule on the shares of contributors").by(contributor)
        return records.largest(self, n, measure, weighting=weighting, negative=negative)

    def measure_named(self, measure: str | None) -> str:
        """The measure a rule works on: the one named, else the first; refuse a table that only counts."""
        if not self.measures:
            raise ParameterError(
                "Shares of a total need a measure, and the table only counts. Name one with measure= when the table "
                "is built."
            )
        if measure is not None and measure not in self.measures:
            raise ParameterError(unknown_name(measure, self.measures, what="measure"))
        return measure or self.measures[0]

    def records(self, purpose: str) -> Contributing:
        """The records behind the table; refuse where it was made from cells."""
        if self.contributing is None:
            raise ParameterError(
                f"{purpose} needs the records behind the table, and this one was made from cells. Build it with "
                "Table.from_microdata."
            )
        return self.contributing

    def need_crossing(self, purpose: str) -> None:
        """Refuse linked tables of which the crossing of all dimensions is not known."""
        if self.joined is not None:
            raise ParameterError(
                f"{purpose} needs the crossing of all dimensions, which is not known of tables linked from cells. Take "
                "each table by itself, or build them from the records with one formula, such as 'a*b + a*c'."
            )

    @property
    def knows_contributors(self) -> bool:
        """Whether it is known whom the records belong to."""
        return self.contributing is not None and self.contributing.contributor is not None

    def in_table(self, name: str) -> Flags:
        """Flag the cells that belong to one of the linked tables; a shared margin belongs to several."""
        if name not in self.tables:
            raise ParameterError(unknown_name(name, self.tables, what="table"))
        if self.joined is not None:
            return self.joined.members[name]
        term = self.formula.terms[self.tables.index(name)]
        margins = self.formula.published(term)
        pattern = sum(
            (self.codes[column] > 0).astype(np.int64) << i for i, column in enumerate(self.dimensions)
        )
        wanted = [sum(1 << self.dimensions.index(column) for column in margin) for margin in margins]
        return np.isin(np.asarray(pattern), wanted)

    def codes_of(self, dimension: str) -> pl.DataFrame:
        """List the codes of a dimension: ``code``, ``depth`` below the total, number of ``leaves``."""
        need_known([dimension], self.dimensions, what="dimension")
        return code_frame(self.hierarchy[dimension])

    def wide(
        self,
        rows: str | Sequence[str] | None = None,
        columns: str | None = None,
        *,
        value: str | None = None,
        table: str | None = None,
    ) -> pl.DataFrame:
        """Lay the table out with one dimension across.

        Parameters
        ----------
        rows
            The dimensions down; by default all but the one across. Those not named are taken at their total.
        columns
            The dimension across; by default the last.
        value
            What stands in the cells; by default the published value.
        table
            One of the linked tables; by default all cells that fit.
        """
        from discreet.tables.table_display import laid_out

        return laid_out(self, rows, columns, value=value or self.value, table_name=table)

    def with_cells(self, **columns: Any) -> Table:
        """Give the cells further columns (or new values for old ones), one entry a cell."""
        series = [pl.Series(name, values) for name, values in columns.items()]
        for column in series:
            if len(column) != self.cells.height:
                raise ParameterError(
                    f"{column.name} has {len(column):,} entries; the table has {self.cells.height:,} cells."
                )
        return self.carried(replace(self, cells=self.cells.with_columns(series)))

    def with_rules(self, names: Sequence[str]) -> Table:
        """Note by which rules cells were found sensitive."""
        return self.carried(replace(self, rules=tuple(dict.fromkeys((*self.rules, *names)))))

    def carried(self, made: Table) -> Table:
        """Hand on what was computed for the same cells."""
        for kept in ("x", "codes", "leaves"):
            if kept in self.__dict__:
                made.__dict__[kept] = self.__dict__[kept]
        return made

    def to_dict(self) -> dict[str, Any]:
        """Describe the table and list its published cells, ready for JSON."""
        return {
            "tables": list(self.tables),
            "formula": self.formula.text,
            "value": self.value,
            "dimensions": [described(self.hierarchy[name]) for name in self.dimensions],
            "cells": self.cells.to_dicts(),
            "notes": list(self.notes),
            "rules": list(self.rules),
        }

    def __repr__(self) -> str:
        from discreet.tables.table_display import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from discreet.tables.table_display import as_html

        return as_html(self)
