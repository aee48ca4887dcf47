"""Do columns still rise and fall together? Kendall's rank correlation of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.small_tables.table_codes import Released, as_numbers


@measure(
    title="Rank correlations",
    question="Do columns still rise and fall together?",
    headline="median change of a rank correlation (Kendall)",
    chapter="pairs",
    place=40,
    work="whole-file",
    references=(
        "Kendall, M. G. (1938). A new measure of rank correlation. Biometrika 30, 81–93.",
        FRANCIS_2024,
    ),
    figures={
        "value": Figure("Median change of a rank correlation", better="lower", summary=True),
        "mean_change": Figure("Mean change of a rank correlation", better="lower"),
        "highest_change": Figure("Largest change of a rank correlation", better="lower"),
        "pairs": Figure("Pairs of columns compared"),
    },
)
@checked
def rank_correlations(
    original: Microdata, released: Any, *, columns: str | Sequence[str] | None = None
) -> Measure:
    """Do columns still rise and fall together?

    Kendall's tau-b of every pair of columns, before and after. Texts are taken in alphabetical order and missing
    values as smaller than all others, which makes the correlation of categories a mere fingerprint: it must be the
    same, whatever it means.

    Parameters
    ----------
    original, released
        The file before and after. The release may also be one of many tables, whose ``table_for`` gives the table of
        two columns.
    columns
        The columns; all that both files have unless named.

    Returns
    -------
    Measure
        ``value`` is the median absolute change. ``figures``: ``mean_change``, ``highest_change``, ``pairs``.
        ``detail``: ``pairs``, the worst first.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"age": [20, 30, 40, 50], "pay": [1, 2, 3, 4]}))
    >>> made = Microdata(pl.DataFrame({"age": [20, 30, 40, 50], "pay": [4, 3, 2, 1]}))
    >>> rank_correlations(real, made).value
    2.0
    """
    files = Released(original, released)
    names = files.named(columns)
    if len(names) < 2:
        raise ParameterError("Two columns are needed.")
    rows = []
    for one, other in combinations(names, 2):
        table = files.table([one, other])
        sides = [as_numbers(files.real[name], table[name]) for name in (one, other)]
        before, after = (tau(sides[0][which], sides[1][which]) for which in (0, 1))
        rows.append((one, other, before, after, abs(before - after)))
    schema = ["column", "other", "tau_original", "tau_released", "change"]
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("change", descending=True)
    change = table["change"].to_numpy()
    value = float(np.median(change))
    return Measure(
        "rank_correlations",
        value,
        {"mean_change": float(change.mean()), "highest_change": float(change.max()), "pairs": len(rows)},
        f"Half of {len(rows):,} rank correlations changed by at most {value:.2g}.",
        detail={"pairs": table},
    )


def tau(one: Floats, other: Floats) -> float:
    """Return Kendall's tau-b; 0 where a column does not vary."""
    from scipy.stats import kendalltau

    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return 0.0
    return float(kendalltau(one, other).statistic)
