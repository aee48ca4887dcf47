"""Rules on how much of a cell belongs to few: (n, k) dominance, p%, p/q, and contributors who ask for protection.

Percents are percents here, as in the offices' handbooks: ``PPercent(10)``, ``Dominance(1, 85)``. A rule is evaluated
on the largest contributions of every published cell; see `discreet.numerics.dominance` for the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.constraints import AtLeast, Entries, Percent
from discreet.core.errors import ParameterError
from discreet.numerics.dominance import Contributions, Negative, Weighting, dominated, prior_posterior
from discreet.tables.primary_rules import Rule

if TYPE_CHECKING:
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
