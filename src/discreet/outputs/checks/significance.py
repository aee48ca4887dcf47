"""Statbarn h: may a test go out?

A test statistic is one number of many records; only tests on very few fail. Group counts printed beside it are
frequencies and checked as such.
"""

from __future__ import annotations

import numpy.typing as npt

from discreet.outputs.checks.frequencies import check_counts
from discreet.outputs.checks.models import check_dof
from discreet.outputs.findings import CheckResult
from discreet.outputs.settings import OutputPolicy


def check_test(
    dof: float, policy: OutputPolicy | None = None, *, counts: npt.ArrayLike | None = None
) -> CheckResult:
    """Check a test by the degrees of freedom that the data leave it, and the counts printed beside it.

    Parameters
    ----------
    dof
        People minus estimated means or groups. For a test of independence it is the people behind the table, less
        its fitted margins: (r - 1)(c - 1) says how large the table is, not how many stand behind it.
    counts
        Group sizes or the table, where they are printed.

    Examples
    --------
    >>> check_test(38).status, check_test(38, counts=[35, 5]).status, check_test(8).status
    ('pass', 'fail', 'fail')
    """
    found = CheckResult([check_dof(dof, policy, barn="h")])
    return found if counts is None else found.with_more(check_counts(counts, policy).findings)
