"""Rules on how many are in a cell: thresholds, zeros and ones, contributors, and what groups give away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.constraints import Above, AtLeast, Between
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.tables.primary_rules import Rule
from discreet.tables.table_cells import steps_up

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from discreet.tables.table import Table


@dataclass(frozen=True)
class Threshold(Rule):
    """Cells with fewer than so many in them; empty ones only where asked for.

    Parameters
    ----------
    minimum
        The smallest number that may be published.
    zeros
        Whether empty cells are sensitive too.
    of
        What is counted: ``count`` (records), ``weighted`` or ``contributors``; unless named, contributors where the
        table knows them (a firm or person with several records is one), else records.
    safety
        Percent of its value within which a cell must not be estimated; 0 protects against exact disclosure.

    Examples
    --------
    >>> Threshold(3).name, Threshold.up_to(3).minimum
    ('threshold(3)', 4)
    """

    minimum: Annotated[float, Above(0)]
    zeros: bool = False
    of: str | None = None
    safety: Annotated[float, AtLeast(0)] = 0.0

    @classmethod
    def up_to(cls, most: int, *, zeros: bool = False, of: str | None = None) -> Threshold:
        """The rule that hits counts up to and including ``most``."""
        return cls(most + 1, zeros=zeros, of=of)

    @property
    def name(self) -> str:
        """The rule and its minimum."""
        return f"threshold({self.minimum:g})"

    def sensitive(self, table: Table) -> Flags:
        """Flag the small cells."""
        numbers = heads(table) if self.of is None else counted(table, self.of)
        small = (numbers < self.minimum) & ((numbers > 0) | self.zeros)
        return np.asarray(small)

    def protection(self, table: Table) -> Floats:
        """A share of the value."""
        return np.abs(table.values.astype(np.float64)) * self.safety / 100


@dataclass(frozen=True)
class Zeros(Rule):
    """Empty cells: they tell of everybody that they are not there."""

    @property
    def name(self) -> str:
        """The rule."""
        return "zeros"

    def sensitive(self, table: Table) -> Flags:
        """Flag the empty cells."""
        return np.asarray(counted(table, "count") == 0)


@dataclass(frozen=True)
class Ones(Rule):
    """Cells with exactly one unit: one contributor where the table knows them, else one record."""

    @property
    def name(self) -> str:
        """The rule."""
        return "ones"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells of one."""
        return np.asarray(heads(table) == 1)


@dataclass(frozen=True)
class MinimumContributors(Rule):
    """Cells with fewer than so many distinct contributors.

    Parameters
    ----------
    minimum
        The smallest number of contributors that may be published.
    contributor
        The column that says who contributes (firm, holding); by default that of the table, else every record is one.
    weighted
        Count the respondents a record stands for (the sum of weights) instead; not with a contributor column.
    waiver
        A column that is true (or ``waived``) for contributors who agreed to be published: a cell in which all have
        agreed is not sensitive. Others in the cell are not protected by somebody's waiver.
    waived
        The values of ``waiver`` that mean agreement.
    """

    minimum: Annotated[int, Above(0)]
    contributor: str | None = None
    weighted: bool = False
    waiver: str | None = None
    waived: tuple[Any, ...] = (True,)

    def __post_init__(self) -> None:
        if self.weighted and self.contributor:
            raise ParameterError(
                "weighted counts respondents and cannot be combined with a contributor column."
            )

    @property
    def name(self) -> str:
        """The rule and its minimum."""
        return f"contributors({self.minimum:g})"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells with too few contributors."""
        if self.weighted:
            numbers: Any = counted(table, "weighted")
        elif self.contributor is None and (
            "contributors" in table.cells.columns or not table.knows_contributors
        ):
            numbers = heads(table)
        else:
            numbers = table.records("MinimumContributors").by(self.contributor).numbers(table)
        few = (numbers < self.minimum) & (numbers > 0)
        if self.waiver is not None:
            records = table.records("MinimumContributors with a waiver").by(self.contributor)
            few &= records.where(self.waiver, self.waived, keep=False).numbers(table) > 0
        return np.asarray(few)


@dataclass(frozen=True)
class GroupDisclosure(Rule):
    """Cells that hold (nearly) everybody of their group, so that membership tells the attribute.

    If all 12 old people of a village are in one category, the table tells the category of each. Parents with a
    single category are left alone: nothing is learned there. Contributors are counted where the table knows them.

    Parameters
    ----------
    dimensions
        The dimensions whose categories are learned; by default all.
    share
        Percent of the group that must be in the cell; 100 is everybody.
    largest
        Groups above this size are no concern.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table, primary
    >>> people = pl.DataFrame({"place": ["a", "a", "b", "b"], "ill": ["yes", "yes", "yes", "no"]})
    >>> found = primary(Table.from_microdata(people, "place*ill"), GroupDisclosure(["ill"]))
    >>> found.cells.filter("primary").select("place", "ill", "count").rows()
    [('a', 'yes', 2)]
    """

    dimensions: Sequence[str] | None = None
    share: Annotated[float, Between(1, 100, above=True)] = 100.0
    largest: float | None = None

    @property
    def name(self) -> str:
        """The rule, and its share where it is not the whole group."""
        return "group" if self.share == 100 else f"group({self.share:g}%)"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells that hold their group."""
        numbers = heads(table)
        found = np.zeros(len(numbers), dtype=bool)
        for cell, group in within_groups(table, self.dimensions):
            whole = (numbers[cell] > 0) & (100 * numbers[cell] >= self.share * numbers[group])
            if self.largest is not None:
                whole &= numbers[group] <= self.largest
            found[cell[whole]] = True
        return found


@dataclass(frozen=True)
class KDisclosure(Rule):
    """Cells that hold all of their group but at most k others, who together know about everybody else.

    With k = 0 it is group disclosure. Those k see themselves outside the cell and conclude that all the rest are
    inside (Statistics Norway's k-disclosure).

    Parameters
    ----------
    k
        How many may join their knowledge.
    dimensions
        The dimensions whose categories are learned; by default all.
    largest
        Cells above this count are no concern.
    """

    k: Annotated[int, AtLeast(0)]
    dimensions: Sequence[str] | None = None
    largest: float | None = None

    @property
    def name(self) -> str:
        """The rule and its k."""
        return f"k-disclosure({self.k})"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells that are disclosed."""
        found = np.zeros(table.cells.height, dtype=bool)
        for cell, _ in self._pairs(table):
            found[cell] = True
        return found

    def differences(self, table: Table) -> csc_array:
        """What must not be learned either: group minus cell, one column each, over the inner cells.

        For use as additional sensitive columns in secondary suppression.
        """
        pairs = list(self._pairs(table))
        cell = np.concatenate([one for one, _ in pairs]) if pairs else np.empty(0, dtype=np.int64)
        group = np.concatenate([other for _, other in pairs]) if pairs else np.empty(0, dtype=np.int64)
        left = table.x[:, group] - table.x[:, cell]
        left.eliminate_zeros()
        return left.tocsc()

    def _pairs(self, table: Table) -> Iterator[tuple[Integers, Integers]]:
        numbers = heads(table)
        for cell, group in within_groups(table, self.dimensions):
            hit = (numbers[cell] > 0) & (numbers[group] - numbers[cell] <= self.k)
            if self.largest is not None:
                hit &= numbers[cell] <= self.largest
            yield cell[hit], group[hit]


def heads(table: Table) -> Array:
    """How many are in each cell: contributors where the table knows them, else records."""
    return counted(table, "contributors" if "contributors" in table.cells.columns else "count")


def counted(table: Table, of: str) -> Array:
    """The column of counts that a rule works on."""
    if of not in ("count", "weighted", "contributors") or of not in table.cells.columns:
        there = [name for name in ("count", "weighted", "contributors") if name in table.cells.columns]
        raise ParameterError(f"The cells have no '{of}' to count by; there is {', '.join(there) or 'none'}.")
    return table.cells[of].to_numpy()


def within_groups(table: Table, dimensions: Sequence[str] | None) -> Iterator[tuple[Integers, Integers]]:
    """Pair every cell with each published cell right above it along one dimension, where that is a larger group.

    Yields positions of cells and of the cells above, dimension by dimension and hierarchy by hierarchy.
    """
    chosen = table.dimensions if dimensions is None else tuple(dimensions)
    for name in chosen:
        if name not in table.dimensions:
            raise ColumnError(unknown_name(name, table.dimensions, what="dimension"))
    for name in chosen:
        dimension = table.hierarchy[name]
        sizes = np.asarray([len(dimension.leaf_sets[code]) for code in dimension.codes])[table.codes[name]]
        for cell, group in steps_up(table, name):
            larger = sizes[cell] < sizes[group]
            yield cell[larger], group[larger]
