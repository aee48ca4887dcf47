"""Synthetic tables of counts: inner cells are drawn anew around counts or a model of them."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast, Public
from discreet.core.errors import DiscreetWarning, ParameterError, need_known
from discreet.core.guarantees import DifferentialPrivacy, rounded_up
from discreet.core.parameters import checked
from discreet.dp.entropy import Stream
from discreet.formula import parsed
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins
from discreet.tables import poisson
from discreet.tables.table_cells import possible_cells
from discreet.tables.table_protection import (
    SEVERAL_DRAWS,
    TableChange,
    TableProtection,
    added_up,
    neighbors_of,
    people_counted,
    why_not_claimed,
)

if TYPE_CHECKING:
    from discreet.tables.table import Table


Domain = Literal["public", "observed"]
_INFLATED = 0.05
SMALL_DELTA = 1e-6


@dataclass(frozen=True)
class CountSynthesis(TableProtection, is_method=False):
    """What the syntheses of counts share: pseudocounts, the model of the means, copies, and honest words."""

    alpha: Annotated[float, AtLeast(0)] | None = None
    epsilon: float | None = None
    delta: float | None = None
    model: Annotated[str, Public()] = "saturated"
    domain: Domain | None = None
    copies: Annotated[int, AtLeast(1)] = 1
    total: Annotated[int, AtLeast(0)] | None = None
    accept_no_guarantee: bool = False

    def __post_init__(self) -> None:
        if self.alpha is None and (self.epsilon is None or self.delta is None):
            raise ParameterError("Give alpha, or the wanted epsilon and delta, from which it is worked out.")
        if self.alpha is not None and self.delta is not None and self.epsilon is not None:
            raise ParameterError("Give alpha, or the wanted epsilon and delta; not all three.")

    # What a law must say.

    drawn_exactly: ClassVar[bool] = False
    """Whether the draws have the very law that the account speaks of, not one of floating-point numbers."""

    @abstractmethod
    def drawn(self, means: Floats, alpha: float, stream: Stream) -> Integers:
        """Draw one count around every mean plus alpha."""

    @abstractmethod
    def variance(self, means: Floats) -> Floats:
        """The variance of the draws."""

    @abstractmethod
    def calibrated(self, epsilon: float, delta: float) -> float:
        """Work out the least pseudocount with this guarantee for one table."""

    @abstractmethod
    def least_epsilon(self, alpha: float, delta: float) -> float:
        """Work out the least epsilon with this delta."""

    @abstractmethod
    def deltas(self, alpha: float, epsilon: float) -> dict[str, float]:
        """Work out the delta, by every definition that is known of the law."""

    def pseudocount(self) -> float:
        """The alpha that was given, or that reaches the wanted guarantee."""
        if self.alpha is not None:
            return float(self.alpha)
        assert self.epsilon is not None
        assert self.delta is not None
        return self.calibrated(self.epsilon / self.copies, self.delta / self.copies)

    def accounted(self, alpha: float) -> dict[str, float]:
        """Epsilon and delta of one table: at the epsilon asked for, or at a small delta."""
        if self.epsilon is None:
            epsilon = self.least_epsilon(alpha, SMALL_DELTA)
        else:
            epsilon = self.epsilon / self.copies if self.alpha is None else self.epsilon
        return {"epsilon": epsilon, **self.deltas(alpha, epsilon)}

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Draw the inner cells and add them up."""
        _, counts = people_counted(table, self.name)
        alpha = self.pseudocount()
        self._check_zeros(counts, alpha)
        self._check_domain(table)
        means = counts.astype(np.float64)
        notes = []
        if self.model != "saturated":
            fit = fit_log_linear(table, self.model)
            means = fit.means
            notes.append(f"Cells were drawn around a log-linear model of the margins {self.model}.")
        added = alpha * len(counts)
        account = self.accounted(alpha) if alpha > 0 else {}
        claim, why = self._claim(table, alpha, account)
        if claim is None:
            _warn_of_inflation(added, counts)
        stream.enter(claim, why, purpose=f"table by {', '.join(table.dimensions)}")
        drawn = [self.drawn(means, alpha, stream.child("cells", str(i))) for i in range(self.copies)]
        if self.total is not None:
            drawn = [scaled_to(one, self.total) for one in drawn]
        made = [({"count": added_up(table, one)}, {"count": one}) for one in drawn]
        notes.append(
            "Margins are sums of the synthetic cells, so that the table is additive; no count in it is a real one."
        )
        notes.append(SEVERAL_DRAWS)
        figures = {
            "alpha": alpha,
            "inner_cells": len(counts),
            "expected_added": added,
            "copies": self.copies,
            **account,
        }
        return TableChange(
            cells=made[0][0],
            inner=made[0][1],
            notes=tuple(notes),
            figures=figures,
            private=claim,
            why_none=why,
            detail={"by_count": lambda: self._by_count(counts, drawn[0], alpha)},
            copies=tuple(made[1:]),
        )

    def _check_zeros(self, counts: Integers, alpha: float) -> None:
        if alpha > 0:
            return
        if (counts == 0).any() and self.model == "saturated":
            raise ParameterError(
                "alpha is 0 and the table has empty cells, which would stay empty for sure. Use an alpha above 0."
            )
        if not self.accept_no_guarantee:
            raise ParameterError(
                "With alpha=0 nothing is guaranteed. Use an alpha above 0, or say accept_no_guarantee=True."
            )

    def _check_domain(self, table: Table) -> None:
        whole = possible_cells([len(table.hierarchy[name].leaves) for name in table.dimensions])
        if table.inner.height < whole and self.domain is None:
            raise ParameterError(
                f"The table has {table.inner.height:,} of {whole:,} possible inner cells, so that empty ones show "
                "that nobody is in them. Build it with zeros='all', and with structural= for combinations that are "
                "known to be impossible; or say domain='observed' to go on without a guarantee."
            )

    def _claim(
        self, table: Table, alpha: float, account: dict[str, float]
    ) -> tuple[DifferentialPrivacy | None, str]:
        if alpha <= 0:
            return None, "without a pseudocount one person can change what is possible at all."
        if self.model != "saturated":
            return None, "the fitted model depends on everybody, and no bound on that is proved."
        if why := why_not_claimed(table, self.domain):
            return None, why
        epsilon, delta = self.copies * account["epsilon"], self.copies * account["delta"]
        if not self.drawn_exactly:
            return None, (
                "the counts are drawn in floating point, for which nothing is proved. Drawn exactly, the law would "
                f"keep ({rounded_up(epsilon, 6)}, {rounded_up(delta, 3)})-differential privacy against "
                f"{neighbors_of(table)}."
            )
        several = f" for all {self.copies} tables together (basic composition)" if self.copies > 1 else ""
        # Said whatever the number of people is: the guarantee must not speak of the data.
        warning = (
            ". Such a delta is not acceptable as a chance of failure by the usual standards, which ask for less than "
            "one in the number of people"
            if delta > SMALL_DELTA * 1.001
            else ""
        )
        covers = (
            f"{several}, for the synthetic cells and everything made from them, where the codes of the table are "
            f"public knowledge and no other table of these people is drawn{warning}"
        )
        return DifferentialPrivacy(epsilon, delta, against=neighbors_of(table), covers=covers), ""

    def _by_count(self, counts: Integers, drawn: Integers, alpha: float) -> pl.DataFrame:
        """By original count 1 to 10: how far synthetic cells lie from the originals in percent, expected and seen."""
        wanted = np.arange(1, 11)
        off = pl.DataFrame({"count": counts, "gap": 100.0 * (drawn - counts) / np.maximum(counts, 1)})
        seen = off.group_by("count").agg(
            cells=pl.len().cast(pl.Int64), mean_seen=pl.col("gap").mean(), sd_seen=pl.col("gap").std()
        )
        expected = pl.DataFrame(
            {
                "count": wanted,
                "mean_expected": 100.0 * alpha / wanted,
                "sd_expected": 100.0 * np.sqrt(self.variance(wanted.astype(np.float64) + alpha)) / wanted,
            }
        )
        return (
            expected.join(seen, on="count", how="left")
            .with_columns(pl.col("cells").fill_null(0))
            .sort("count")
        )


def _warn_of_inflation(added: float, counts: Integers) -> None:
    """Say where pseudocounts swamp the table; beside a guarantee the total is not to be told."""
    if added > _INFLATED * max(int(counts.sum()), 1):
        warnings.warn(
            f"alpha adds {added:,.0f} units to the expected total over {len(counts):,} cells, more than 5 % of the "
            "table. Use a smaller alpha, fewer cells, or rescale to a public total with total=.",
            DiscreetWarning,
            stacklevel=5,
        )


# Counts of a table made whole again: scaled to a total, and written out as records.
def scaled_to(counts: Integers, total: int) -> Integers:
    """Scale counts to a total and keep them whole: the largest remainders are rounded up.

    Examples
    --------
    >>> scaled_to(np.array([1, 2, 3]), 4).tolist()
    [1, 1, 2]
    """
    now = int(counts.sum())
    if not now:
        return counts
    exact = counts * (total / now)
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return np.asarray(whole, dtype=np.int64)


# A log-linear model is named by the margins it keeps: ``"age*sex + region"`` lets age and sex depend on each other and
# region stand alone. Fitted counts have exactly these margins, and no further structure.


@dataclass(frozen=True)
class LogLinearFit:
    """Fitted counts of the inner cells of a table.

    Attributes
    ----------
    means
        One fitted count an inner cell.
    margins
        The margins that were kept.
    deviance
        Twice the log likelihood ratio against the saturated model.
    rounds
        How many rounds of fitting it took.
    gap
        How far the worst margin is off.
    """

    means: Floats
    margins: tuple[tuple[str, ...], ...]
    deviance: float
    rounds: int
    gap: float


@checked
def fit_log_linear(
    table: Table, model: str, *, tolerance: float = 1e-8, max_rounds: int = 1000
) -> LogLinearFit:
    """Fit a log-linear model to the inner cells of a table.

    Also known as: log-linear model; iterative proportional fitting of tables.

    Parameters
    ----------
    table
        The table. Inner cells it does not have are impossible; build it with ``zeros="all"`` so that empty cells can
        have fitted counts.
    model
        The margins to keep, as a formula over the dimensions of the table: ``"age*sex + region"``.
    tolerance
        How far a fitted margin may be off, relative to the total.
    max_rounds
        When to give up.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["n", "y", "n", "n"]})
    >>> table = Table.from_microdata(people, "sex*ill", zeros="all")
    >>> fit_log_linear(table, "sex + ill").means.tolist()
    [1.5, 0.5, 1.5, 0.5]
    """
    margins = tuple(term.columns for term in parsed(model).terms)
    for margin in margins:
        need_known(margin, table.dimensions, what="dimension")
    counts = table.inner["count"].to_numpy().astype(np.float64)
    sides = [_margin(table, margin, counts) for margin in margins]
    level = np.full(len(counts), counts.sum() / max(len(counts), 1))
    total = max(float(counts.sum()), 1.0)
    fit = fit_margins(level, sides, tolerance=tolerance * total, rounds=max_rounds)
    if not fit.settled:
        raise ParameterError(
            f"The log-linear model did not settle in {max_rounds} rounds (the worst margin is off by {fit.gap:.2g}). "
            "Keep fewer margins, or raise the tolerance."
        )
    means = fit.cells
    seen = counts > 0
    deviance = 2 * float(
        (counts[seen] * np.log(counts[seen] / means[seen])).sum() - counts.sum() + means.sum()
    )
    return LogLinearFit(means, margins, max(0.0, deviance), fit.rounds, fit.gap)


def _margin(table: Table, margin: Sequence[str], counts: Floats) -> GroupMargin:
    packed = np.zeros(table.inner.height, dtype=np.int64)
    for name in margin:
        packed = packed * len(table.hierarchy[name].leaves) + table.leaves[name]
    groups = np.unique(packed, return_inverse=True)[1].astype(np.int64)
    return GroupMargin(groups, np.bincount(groups, counts).astype(np.float64, copy=False))


@dataclass(frozen=True)
class PoissonSynthesis(CountSynthesis):
    """Draw every cell of a table of counts from a Poisson law around its count.

    It protects against learning any single count: every published number is a random draw.

    Every inner cell becomes a draw from Poisson(count + alpha), and margins are added up from the draws: counts stay
    whole and not negative, the table stays additive. The pseudocount alpha is the dial between risk and use.

    Also known as: Poisson synthesis; saturated count model.

    Parameters
    ----------
    alpha
        The pseudocount added to every cell. Without it, ``epsilon`` and ``delta`` say what is wanted and the
        smallest alpha that reaches it is worked out.
    epsilon
        With ``alpha``: the epsilon at which delta is stated; by default that for a delta of one in a million.
    delta
        With ``epsilon``: the wanted delta.
    model
        ``saturated`` draws around the counts; a formula such as ``"age*sex + region"`` around the counts of a
        log-linear model with these margins, for which no guarantee is proved.
    domain
        ``public``: the codes and the possible cells are public knowledge. Only then is there a guarantee, and only for
        a table that was given them: built with ``hierarchies`` that list the codes, and ``zeros="all"``.
        ``observed``: go on with the cells that occur, without one.
    copies
        How many tables are drawn. Each spends the budget again.
    total
        A public total to which the draws are scaled.
    accept_no_guarantee
        Allow alpha = 0.

    Notes
    -----
    The stated delta is that of (epsilon, delta)-differential privacy (tight), from `discreet.tables.poisson`. It is
    much larger than with Laplace noise of the same epsilon: values such as 0.05 are not acceptable as chances of
    failure. The counts are drawn exactly, in whole numbers (`discreet.dp.samplers`); with a seed nothing is guaranteed,
    see `discreet.core.guarantees`.

    What it costs
    -------------
    A cell of count v moves by the root of v + alpha; alpha adds one unit in 1/alpha cells, empty ones included.

    When not to use it
    ------------------
    Do not use it on tables with many more cells than people, where pseudocounts swamp the data, nor on sums.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"place": ["a"] * 90 + ["b"] * 60})
    >>> codes = {"Total": ["a", "b", "c"]}
    >>> table = Table.from_microdata(people, "place", hierarchies={"place": codes}, zeros="all")
    >>> result = PoissonSynthesis(alpha=1, epsilon=2, domain="public").apply(table)
    >>> result.guarantee.split(" against")[0]
    '(2, 0.0257)-differential privacy'
    """

    drawn_exactly: ClassVar[bool] = True
    follow_from_parameters: ClassVar[frozenset[str]] = frozenset(
        {"alpha", "inner_cells", "expected_added", "copies", "epsilon", "delta", "delta_probabilistic"}
    )

    def drawn(self, means: Floats, alpha: float, stream: Stream) -> Integers:
        """Draw Poisson counts, exactly."""
        distinct, which = np.unique(means, return_inverse=True)
        # Added as fractions: the sum of two floats is rounded, and neighbors would no longer differ by one.
        exact = [Fraction(float(mean)) + Fraction(alpha) for mean in distinct]
        return dp.poisson(exact, which.astype(np.int64), stream.words())

    def variance(self, means: Floats) -> Floats:
        """A Poisson count has its mean as variance."""
        return means

    def calibrated(self, epsilon: float, delta: float) -> float:
        """The smallest alpha that is tight enough."""
        return poisson.calibrate(epsilon, delta, guarantee="tight")

    def least_epsilon(self, alpha: float, delta: float) -> float:
        """By the tight delta."""
        return poisson.epsilon(alpha, delta)

    def deltas(self, alpha: float, epsilon: float) -> dict[str, float]:
        """Both definitions."""
        return {
            "delta": poisson.delta(alpha, epsilon, guarantee="tight"),
            "delta_probabilistic": poisson.delta(alpha, epsilon),
        }


@checked
def expanded(table: Table, counts: Any = None) -> pl.DataFrame:
    """Write a table of counts as records, one a unit: the dimension columns of its inner cells, repeated.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["b", "a", "b"]}), "place")
    >>> expanded(table)["place"].to_list()
    ['a', 'b', 'b']
    """
    table.need_crossing("Writing out records")
    many = table.inner["count"].to_numpy() if counts is None else np.asarray(counts)
    return table.inner.select(table.dimensions)[np.repeat(np.arange(table.inner.height), many)]
