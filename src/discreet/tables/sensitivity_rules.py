"""Sensitivity rules: how much of a cell belongs to few (dominance, p%, p/q), and how many are in it (thresholds).

Percents are percents here, as in the offices' handbooks: ``PPercent(10)``, ``Dominance(1, 85)``. A rule is evaluated
on the largest contributions of every published cell; see `discreet.numerics.dominance` for the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.constraints import Above, AtLeast, Between, Entries, Percent
from discreet.core.errors import ParameterError, need_known
from discreet.numerics.dominance import Contributions, Negative, Weighting, dominated, prior_posterior
from discreet.tables.primary_rules import Rule
from discreet.tables.table_cells import steps_up

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from discreet.tables.table import Table


_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class _ShareRule(Rule):
    """What rules on shares have in common.

    Parameters
    ----------
    measure
        The measure that is judged; by default the first of the table.
    contributor
        The column that says whose a record is (a firm, a holding), where it is not that of the table.
    weighting
        What a sampling weight means, as in `numerics.dominance.contributions`: ``expand`` (tau-ARGUS: an entry of
        weight 4 is four respondents), ``multiply`` or ``own``.
    negative
        ``refuse`` negative contributions, or judge by ``absolute`` values.
    """

    measure: str | None = None
    contributor: str | None = None
    weighting: Weighting = "expand"
    negative: Negative = "refuse"

    def contributions(self, table: Table, n: int) -> Contributions:
        """The largest contributions of every cell."""
        return table.contributions(
            n, self.measure, contributor=self.contributor, weighting=self.weighting, negative=self.negative
        )


@dataclass(frozen=True)
class Dominance(_ShareRule):
    """(n, k): the n largest contributions make up more than k percent of the cell.

    Also known as: dominance rule; (n,k) rule; nk rule.

    Examples
    --------
    >>> from discreet.tables import Table, primary
    >>> import polars as pl
    >>> firms = pl.DataFrame({"sector": ["a"] * 3 + ["b"] * 3, "turnover": [90, 5, 5, 40, 30, 30]})
    >>> found = primary(Table.from_microdata(firms, "sector", measure="turnover"), Dominance(1, 85))
    >>> found.cells.filter("primary").select("sector", "rule").rows()
    [('a', 'dominance(1, 85%)')]
    """

    n: Annotated[int, AtLeast(1)] = 1
    k: Annotated[float, Percent()] = 85.0

    @property
    def name(self) -> str:
        """The rule and its parameters."""
        return f"dominance({self.n}, {self.k:g}%)"

    def sensitive(self, table: Table) -> Flags:
        """Flag the dominated cells."""
        return dominated(self.contributions(table, self.n), self.n, self.k / 100)

    def protection(self, table: Table) -> Floats:
        """What would have to be added to the total for the largest to fall to k percent."""
        cells = self.contributions(table, self.n)
        return np.maximum(cells.top(self.n) * 100 / self.k - cells.total, 0.0)


@dataclass(frozen=True)
class PQ(_ShareRule):
    """Prior-posterior: what everybody could estimate within q percent becomes known within p percent.

    ``coalition`` is how many contributors may join their knowledge against the largest one.

    Also known as: pq rule; prior-posterior rule.
    """

    p: Annotated[float, Percent()] = 10.0
    q: Annotated[float, Percent()] = 100.0
    coalition: Annotated[int, AtLeast(1)] = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.q < self.p:
            raise ParameterError(
                f"q ({self.q:g}%) is smaller than p ({self.p:g}%): what everybody could estimate beforehand would "
                "already be closer than what the rule protects. Choose p below q."
            )

    @property
    def name(self) -> str:
        """The rule and its parameters."""
        return f"pq({self.p:g}%, {self.q:g}%)"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells in which the largest contribution becomes known too closely."""
        cells = self.contributions(table, 1 + self.coalition)
        if self.coalition == 1:
            return prior_posterior(cells, self.p / 100, self.q / 100)
        largest = cells.top(1)
        rest = cells.rest(1 + self.coalition)
        return np.asarray(self.q * rest < self.p * largest - _ROUNDING * np.abs(largest))

    def protection(self, table: Table) -> Floats:
        """What is lacking in the remainder."""
        cells = self.contributions(table, 1 + self.coalition)
        return np.maximum(self.p / self.q * cells.top(1) - cells.rest(1 + self.coalition), 0.0)


@dataclass(frozen=True)
class PPercent(_ShareRule):
    """p%: the second largest contributor can estimate the largest within p percent.

    ``coalition`` is how many contributors may join their knowledge against the largest one.

    Also known as: p% rule; p percent.

    Examples
    --------
    >>> PPercent(10).name, PPercent(10, coalition=2).coalition
    ('p%(10)', 2)
    """

    p: Annotated[float, Percent()] = 10.0
    coalition: Annotated[int, AtLeast(1)] = field(default=1, kw_only=True)

    @property
    def name(self) -> str:
        """The rule and its p."""
        return f"p%({self.p:g})"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells in which the largest contribution becomes known too closely."""
        return self._without_prior().sensitive(table)

    def protection(self, table: Table) -> Floats:
        """What is lacking in the remainder."""
        return self._without_prior().protection(table)

    def _without_prior(self) -> PQ:
        """The p% rule is the p/q rule for intruders who know nothing beforehand."""
        return PQ(
            self.p,
            100.0,
            coalition=self.coalition,
            measure=self.measure,
            contributor=self.contributor,
            weighting=self.weighting,
            negative=self.negative,
        )


@dataclass(frozen=True)
class RequestRule(_ShareRule):
    """Cells whose largest contributor has asked for protection and makes up more than so many percent.

    As in foreign trade statistics: cells are published unless a dominant trader asks that they are not.

    Parameters
    ----------
    column
        The column that says what a contributor asked for.
    percent
        By value of that column the percent of the total above which the request is granted; values that are not
        named asked for nothing. One number stands for the value 1.
    """

    column: str
    percent: Annotated[float, Percent()] | Annotated[Mapping[Any, Annotated[float, Percent()]], Entries(1)]

    @property
    def granted(self) -> Mapping[Any, float]:
        """The percent of every kind of request."""
        return self.percent if isinstance(self.percent, Mapping) else {1: float(self.percent)}

    @property
    def name(self) -> str:
        """The rule."""
        return f"request({self.column})"

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells whose largest contributor asked and is large enough."""
        overall = self.contributions(table, 1)
        largest, total = overall.top(1), overall.total
        found = np.zeros(table.cells.height, dtype=bool)
        measure = table.measure_named(self.measure)
        records = table.records("RequestRule").by(self.contributor)
        for code, percent in self.granted.items():
            asking = records.where(self.column, (code,)).largest(
                table, 1, measure, weighting=self.weighting, negative=self.negative, alone=True
            )
            own = asking.top(1)
            is_largest = (own > 0) & (own >= largest * (1 - _ROUNDING))
            found |= is_largest & (100 * own > percent * total * (1 + _ROUNDING))
        return found


@dataclass(frozen=True)
class Threshold(Rule):
    """Cells with fewer than so many in them; empty ones only where asked for.

    Also known as: minimum frequency rule.

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

    name = "zeros"

    def sensitive(self, table: Table) -> Flags:
        """Flag the empty cells."""
        return np.asarray(counted(table, "count") == 0)


@dataclass(frozen=True)
class Ones(Rule):
    """Cells with exactly one unit: one contributor where the table knows them, else one record."""

    name = "ones"

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

    Also known as: k-disclosure.

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
    need_known(chosen, table.dimensions, what="dimension")
    for name in chosen:
        dimension = table.hierarchy[name]
        sizes = np.asarray([len(dimension.leaf_sets[code]) for code in dimension.codes])[table.codes[name]]
        for cell, group in steps_up(table, name):
            larger = sizes[cell] < sizes[group]
            yield cell[larger], group[larger]
