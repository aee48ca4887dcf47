"""Log-linear models of a table of counts, fitted by iterative proportional fitting.

A model is named by the margins it keeps: ``"age*sex + region"`` lets age and sex depend on each other and region stand
alone. Fitted counts have exactly these margins, and no further structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.formula import parsed
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins

if TYPE_CHECKING:
    from discreet.tables.table import Table


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
        for name in margin:
            if name not in table.dimensions:
                raise ColumnError(unknown_name(name, table.dimensions, what="dimension"))
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
