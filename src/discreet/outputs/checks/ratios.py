"""Statbarn e: may an odds or risk ratio that was computed from counts go out?

The ratio itself is not assessed. With one count known beside it the ratio is the table again, so the table is what is
checked, as frequencies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.outputs.checks.frequencies import as_counts, check_counts
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


def check_ratio(counts: npt.ArrayLike | None, policy: OutputPolicy | None = None) -> CheckResult:
    """Check the table behind a ratio.

    Examples
    --------
    >>> check_ratio([[12, 40], [8, 60]]).reasons
    ('1 cell is below the threshold of 10 people.',)
    >>> check_ratio(None).reasons
    ('Supply the table of counts behind the ratio: the ratio alone cannot be assessed.',)
    """
    if counts is None:
        reason = "Supply the table of counts behind the ratio: the ratio alone cannot be assessed."
        return CheckResult([Finding("table behind it", "e", "fail", reason)])
    table = as_counts(counts)
    if table.ndim != 2:
        raise ParameterError("The table behind a ratio has rows and columns: [[a, b], [c, d]].")
    return check_counts(table, policy, barn="e")


def odds_ratio_of(counts: npt.ArrayLike) -> float:
    """Compute the odds ratio of a two-by-two table.

    Examples
    --------
    >>> odds_ratio_of([[12, 40], [8, 60]])
    2.25
    """
    (a, b), (c, d) = _two_by_two(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(a * d) / np.float64(b * c))


def risk_ratio_of(counts: npt.ArrayLike) -> float:
    """Compute the risk ratio of a two-by-two table: the risk of the first column, first row over second.

    Examples
    --------
    >>> risk_ratio_of([[20, 80], [10, 90]])
    2.0
    """
    (a, b), (c, d) = _two_by_two(counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(a) / np.float64(a + b) / (np.float64(c) / np.float64(c + d)))


def _two_by_two(counts: npt.ArrayLike) -> Floats:
    table = as_counts(counts)
    if table.shape != (2, 2):
        raise ParameterError(f"A ratio of counts needs two rows and two columns, not {table.shape}.")
    return table
