"""Log-linear models of a table of counts, fitted by iterative proportional fitting.

A model is named by the margins it keeps: ``"age*sex + region"`` lets age and sex depend on each other and region stand
alone. Fitted counts have exactly these margins, and no further structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.parameters import checked
from discreet.tables.building.formula import parsed

if TYPE_CHECKING:
    from discreet.tables.building.table import Table


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
    table: Table, model: str, *, tolerance: float = 1e-8, most_rounds: int = 1000
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
    most_rounds
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
    groups = [_groups(table, margin) for margin in margins]
    means, rounds, gap = _proportional(counts, groups, tolerance, most_rounds)
    seen = counts > 0
    deviance = 2 * float(
        (counts[seen] * np.log(counts[seen] / means[seen])).sum() - counts.sum() + means.sum()
    )
    return LogLinearFit(means, margins, max(0.0, deviance), rounds, gap)


def _groups(table: Table, margin: Sequence[str]) -> Integers:
    packed = np.zeros(table.inner.height, dtype=np.int64)
    for name in margin:
        packed = packed * len(table.hierarchy[name].leaves) + table.leaves[name]
    return np.unique(packed, return_inverse=True)[1].astype(np.int64)


def _proportional(
    counts: Floats, groups: Sequence[Integers], tolerance: float, most_rounds: int
) -> tuple[Floats, int, float]:
    total = max(float(counts.sum()), 1.0)
    wanted = [np.bincount(group, counts) for group in groups]
    means = np.full(len(counts), counts.sum() / max(len(counts), 1))
    gap = np.inf
    for done in range(1, most_rounds + 1):
        for group, target in zip(groups, wanted, strict=True):
            now = np.bincount(group, means)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = means * np.where(now > 0, target / now, 0.0)[group]
        gap = max(
            float(np.abs(np.bincount(group, means) - target).max(initial=0.0))
            for group, target in zip(groups, wanted, strict=True)
        )
        if gap <= tolerance * total:
            return means, done, gap
    raise ParameterError(
        f"The log-linear model did not settle in {most_rounds} rounds (the worst margin is off by {gap:.2g}). Keep "
        "fewer margins, or raise the tolerance."
    )
