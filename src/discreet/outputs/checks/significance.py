"""Statbarn h: may a test go out?

A test statistic is one number of many records; only tests on very few fail. Group counts printed beside it are
frequencies and checked as such.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.outputs.checks.frequencies import check_counts
from discreet.outputs.checks.models import check_dof
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy


def check_test(
    dof: float,
    policy: OutputPolicy | None = None,
    *,
    counts: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check a test by the degrees of freedom that the data leave it, and the counts printed beside it.

    Parameters
    ----------
    dof
        People minus estimated means or groups. For a test of independence it is the people behind the table, less
        its fitted margins: (r - 1)(c - 1) says how large the table is, not how many stand behind it.
    counts
        Group sizes or the table, where they are printed.
    groups
        Sizes of the groups that are compared: a test against a few is about those few.

    Examples
    --------
    >>> check_test(38).status, check_test(38, counts=[35, 5]).status, check_test(8).status
    ('pass', 'fail', 'fail')
    """
    found = CheckResult([check_dof(dof, policy, barn="h")])
    limit = (policy or OutputPolicy()).threshold
    if groups is not None and (np.asarray(groups, dtype=np.float64) < limit).any():
        reason = (
            f"A group of fewer than {limit} people is compared; a human looks whether it is about those few."
        )
        found = found.with_more([Finding("small group", "h", "review", reason)])
    return found if counts is None else found.with_more(check_counts(counts, policy).findings)
