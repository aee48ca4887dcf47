"""Counts with noise of a known law, what they guarantee, and what an epsilon promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.arrays import Integers
from discreet.core.constraints import Above, Public, Share
from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy, rounded_up
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.tables import poisson
from discreet.tables.table_protection import (
    SEVERAL_DRAWS,
    TableChange,
    TableProtection,
    added_up,
    counts_of,
    neighbors_of,
    on_inner_cells,
    people_counted,
    why_not_claimed,
)

if TYPE_CHECKING:
    from discreet.tables.table import Table


Domain = Literal["public", "observed"]


@dataclass(frozen=True)
class NoisyCounts(TableProtection):
    """Add noise to every count, with differential privacy.

    It protects against learning whether any one person was counted.

    With ``margins="added"`` only the inner cells get noise and margins are sums: one person is in one inner cell, so
    the whole budget goes there. With ``margins="independent"`` every published cell gets noise of its own: totals are
    closer and do not add up, and the budget is shared among all cells that one person is part of.

    Also known as: geometric mechanism of tables; discrete Laplace counts.

    Parameters
    ----------
    epsilon
        The budget for the whole table, between 2^-30 and 2^10.
    mechanism
        ``geometric``: whole numbers, two-sided geometric. ``laplace``: Laplace noise, rounded to whole numbers.
    margins
        ``added`` or ``independent``.
    nonnegative
        Publish negative draws as 0. This makes small cells, and sums of many of them, larger on average.
    domain
        ``public``: codes and possible cells are public knowledge. Only then is there a guarantee, and only for a table
        that was given them: built with ``hierarchies`` that list the codes, and ``zeros="all"``.

    Notes
    -----
    The noise is drawn anew for every release, not kept for the same people as in `CellKey`: noise that comes back would
    tell whether two tables count the same people, which the guarantee forbids. So several releases add up: n of them
    spend n times epsilon, and their mean has noise smaller by the root of n. Enter every one into the ledger
    (`discreet.dp`), or publish one table and answer from it.

    Both mechanisms are drawn exactly, in whole numbers (`discreet.dp.samplers`). With a seed the law is the same, and
    nothing is guaranteed: see `discreet.core.guarantees`.

    What it costs
    -------------
    Every cell moves by about 1/epsilon, empty ones as well; sums of many cells move by the root of their number.

    When not to use it
    ------------------
    Do not use it where people have several records in the table: where a role ``person`` or ``contributor`` says so,
    nothing is claimed, and `discreet.dp.table` bounds what a person adds.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"place": ["a"] * 90 + ["b"] * 60})
    >>> codes = {"Total": ["a", "b", "c"]}
    >>> table = Table.from_microdata(people, "place", hierarchies={"place": codes}, zeros="all")
    >>> NoisyCounts(epsilon=1, domain="public").apply(table).guarantee.split(" against")[0]
    '1-differential privacy'
    """

    follow_from_parameters: ClassVar[frozenset[str]] = frozenset(
        {"epsilon", "cells_of_a_record", "epsilon_a_cell"}
    )

    epsilon: float
    mechanism: Literal["geometric", "laplace"] = "geometric"
    margins: Literal["added", "independent"] = "added"
    nonnegative: bool = True
    domain: Domain | None = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Add the noise."""
        published, inner = people_counted(table, self.name)
        claim = DifferentialPrivacy(
            self.epsilon,
            against=neighbors_of(table),
            covers=", for the published cells and everything made from them, where the codes of the table are public "
            "knowledge and no other table of these people is drawn",
        )
        why = why_not_claimed(table, self.domain)
        # One record is counted in every published cell that its inner cell is part of.
        added = self.margins == "added"
        shares = 1 if added or not table.x.nnz else int(table.x.sum(axis=1).max())
        each_cell = dp.rational_epsilon(self.epsilon, shares)
        stream.enter(None if why else claim, why, purpose=f"table by {', '.join(table.dimensions)}")
        if added:
            small = self._noisy(inner, each_cell, stream.words("inner"))
            cells = added_up(table, small)
        else:
            cells = self._noisy(published, each_cell, stream.words("cells"))
            small = on_inner_cells(table, cells, 0)
        each = self.epsilon / shares
        notes = [
            f"Noise of scale {1 / each:.3g} was added to {'inner cells' if self.margins == 'added' else 'every cell'}."
        ]
        if self.margins == "independent":
            notes.append(
                f"One person is part of up to {shares} published cells, which share the budget. Totals do not equal "
                f"the sum of "
                "their parts."
            )
        if self.nonnegative:
            notes.append("Negative draws are published as 0, which makes small cells larger on average.")
        notes.append(SEVERAL_DRAWS)
        return TableChange(
            cells={"count": cells},
            inner={"count": small},
            notes=tuple(notes),
            figures={"epsilon": self.epsilon, "cells_of_a_record": shares, "epsilon_a_cell": each},
            private=None if why else claim,
            why_none=why,
        )

    def _noisy(self, counts: Integers, epsilon: Fraction, words: dp.Words) -> Integers:
        draw = dp.discrete_laplace if self.mechanism == "geometric" else dp.rounded_laplace
        made = counts + draw(epsilon, len(counts), words)
        return np.maximum(made, 0) if self.nonnegative else made


@dataclass(frozen=True)
class MultinomialDirichletSynthesis(TableProtection):
    """Draw a table of the same total from a multinomial-Dirichlet law around its counts.

    It protects against learning which cell any one person is in; the total is published as it is.

    Shares of the cells are drawn from a Dirichlet law of count + alpha, and as many units as there were are dealt out
    by them.

    Also known as: Dirichlet-multinomial synthesis; OnTheMap.

    Parameters
    ----------
    alpha
        The pseudocount of every cell; without it the smallest that reaches ``epsilon``.
    epsilon
        The wanted guarantee.
    domain
        As in `NoisyCounts`.

    Notes
    -----
    The draws are in floating point, so that no guarantee is claimed; ``figures["epsilon"]`` is that of the law.

    What it costs
    -------------
    Much: epsilon 1 needs a pseudocount of 0.58 times the total in every cell, which makes all cells nearly alike.

    When not to use it
    ------------------
    Do not use it on tables with many cells; it is here to be compared with.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 90 + ["b"] * 60}), "place")
    >>> int(MultinomialDirichletSynthesis(epsilon=3, domain="public").apply(table, seed=1).table.values[0])
    150
    """

    alpha: Annotated[float, Above(0)] | None = None
    epsilon: Annotated[float, Above(0)] | None = None
    domain: Domain | None = None

    def __post_init__(self) -> None:
        if (self.alpha is None) == (self.epsilon is None):
            raise ParameterError("Give alpha or epsilon, one of the two.")

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Draw the shares, then the units."""
        _, counts = counts_of(table, self.name)
        if table.weight:
            raise ParameterError(f"{self.name} works on counts of people, and this table is weighted.")
        counts = poisson.checked_counts(counts)
        total = int(counts.sum())
        alpha = (
            self.alpha if self.alpha is not None else poisson.dirichlet_alpha(total, float(self.epsilon or 0))
        )
        if not math.isfinite(float(alpha) * len(counts)):
            raise ParameterError(
                "epsilon is too small for this table: the prior it asks for is no number any more."
            )
        epsilon = math.log1p(total / alpha)
        rng = stream("cells")
        drawn = rng.multinomial(total, rng.dirichlet(counts + alpha))
        return TableChange(
            cells={"count": added_up(table, drawn)},
            inner={"count": drawn},
            notes=(
                "The total is published as it is; margins are sums of the synthetic cells.",
                SEVERAL_DRAWS,
            ),
            figures={"alpha": alpha, "epsilon": epsilon},
            why_none=(
                "shares and units are drawn in floating point, for which nothing is proved. Drawn exactly, the law "
                f"would keep epsilon {rounded_up(epsilon, 4)} against replacing one record, where the total and the "
                "codes are public."
            ),
        )


@checked
def epsilon_meaning(
    epsilon: float | Annotated[Sequence[float], Public()],
    *,
    prior: Annotated[float, Share(above=True, below=True)] = 0.5,
) -> Measure:
    """What does a privacy loss of epsilon allow somebody to learn about one person?

    Under pure differential privacy no released number is more than e^epsilon times as likely with one person's record
    as with another in its place. Whoever held something about a person for true with the chance ``prior`` can be led
    by the release to hold it for true with at most ``p e^epsilon / (1 - p + p e^epsilon)``, and at least
    ``p / (p + (1 - p) e^epsilon)``.

    Parameters
    ----------
    epsilon
        One or several values; for several releases of the same people, their sum.
    prior
        How sure somebody was before, strictly between 0 and 1.

    Returns
    -------
    Measure
        ``value`` is the highest chance the largest epsilon allows, ``figures`` has ``epsilon``, ``odds`` (e^epsilon)
        and ``posterior``; ``detail["epsilons"]`` one row a value: ``epsilon``, ``odds``, ``posterior``, ``lowest``.

    How to read it
    --------------
    0.5 means nothing can be learned; 0.525 (epsilon 0.1 from a prior of a half) a little; 1.0 means the promise does
    not exclude certainty. The number bounds the worst case; what is learned in fact is usually less.

    When not to trust it
    --------------------
    It holds for pure differential privacy. A delta, or zero-concentrated privacy turned into one epsilon, leaves a
    small chance that the bound is broken. It says nothing about what follows from statistics of everybody else.

    Examples
    --------
    >>> found = epsilon_meaning([0.1, 4.2])
    >>> [round(odds, 4) for odds in found.detail["epsilons"]["odds"]]
    [1.1052, 66.6863]
    >>> round(found.value, 4)
    0.9852
    """
    values = [float(epsilon)] if isinstance(epsilon, int | float) else [float(value) for value in epsilon]
    if not values or any(math.isnan(value) or value < 0 for value in values):
        raise ParameterError("epsilon must be one or several numbers, none of them negative.")
    rows = [
        {
            "epsilon": value,
            "odds": _odds(value),
            "posterior": prior / (prior + (1 - prior) * math.exp(-value)),
            "lowest": prior * math.exp(-value) / (prior * math.exp(-value) + 1 - prior),
        }
        for value in values
    ]
    worst = max(rows, key=lambda row: row["epsilon"])
    return Measure(
        name="epsilon_meaning",
        value=worst["posterior"],
        figures={"epsilon": worst["epsilon"], "odds": worst["odds"], "posterior": worst["posterior"]},
        meaning=(
            f"With epsilon {worst['epsilon']:g} a released number may be {worst['odds']:,.5g} times as likely with one "
            f"record as with another in its place: somebody {percent(prior)} sure of something about a person may "
            f"become {percent(worst['posterior'])} sure."
        ),
        caveats=["This is what the promise does not rule out, not what happens."],
        parameters={"epsilon": values, "prior": prior},
        detail=Detail(epsilons=lambda: pl.DataFrame(rows)),
    )


def _odds(epsilon: float) -> float:
    try:
        return math.exp(epsilon)
    except OverflowError:
        return math.inf
