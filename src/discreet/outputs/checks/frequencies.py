"""Statbarns a and e: may these counts go out, and a ratio that was computed from counts?

A count is the number of *distinct people* in a cell, unweighted. A cell with few of them is low; an empty cell says
that nobody is like that; a line whose whole total lies in one cell says that everybody is; a suppressed cell must
not follow from published margins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.outputs.check_results import CheckResult, Finding, Position, Status
from discreet.outputs.output_policy import OutputPolicy

MOST_UNKNOWNS = 1500
_ARE = ("cell is", "cells are")


def check_counts(
    counts: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    structural: npt.ArrayLike | None = None,
    trivial: npt.ArrayLike | None = None,
    hidden: npt.ArrayLike | None = None,
    barn: str = "a",
) -> CheckResult:
    """Check a table of counts: low counts, empty cells, full lines.

    Parameters
    ----------
    counts
        Distinct people by cell, one axis a dimension; without margins.
    policy
        The thresholds; the defaults unless given.
    structural
        Flags of the cells that are impossible combinations: an empty one says nothing.
    trivial
        Flags of the cells in which a whole line lies by definition.
    hidden
        Flags of the cells that are suppressed.

    Examples
    --------
    >>> found = check_counts([[12, 9], [0, 30]])
    >>> found.status, found.cells("low count"), found.cells("empty cell"), found.cells("full line")
    ('fail', ((0, 1),), ((1, 0),), ((0, 0), (1, 1)))
    """
    policy = policy or OutputPolicy()
    table = as_counts(counts)
    impossible, by_definition = as_flags(structural, table), as_flags(trivial, table)
    unseen = as_flags(hidden, table)
    shown = np.where(unseen, 0.0, table)
    if table.size == 0 or not (shown > 0).any():
        what = "is suppressed altogether" if unseen.any() else "is empty"
        return CheckResult(
            [Finding("empty table", barn, "review", f"The table {what}: nothing was checked.")]
        )
    low = (shown > 0) & (shown < policy.threshold)
    findings = [
        flagged(
            "low count",
            barn,
            low,
            f"{{}} below the threshold of {policy.threshold} people.",
            f"Every count shown is {policy.threshold} or more.",
            of=_ARE,
            figures={"smallest": int(shown[shown > 0].min())},
        )
    ]
    odd = impossible & (table > 0)
    if odd.any():
        wrong = "{} declared impossible, and yet somebody is in them."
        findings.append(flagged("structural zero", barn, odd, wrong, "", of=_ARE, status="review"))
    if not policy.zeros_are_disclosive:
        findings.append(
            Finding("empty cell", barn, "pass", "under this policy empty cells and full lines tell nothing.")
        )
        return CheckResult(findings)
    empty = (table == 0) & ~impossible & ~unseen
    wrong = "{} empty, which says that nobody is like that."
    findings.append(flagged("empty cell", barn, empty, wrong, "No cell is empty.", of=_ARE))
    full = full_cells(table, possible=~impossible, hidden=unseen) & ~by_definition
    wrong = "{} the whole of their line, which says something about everybody in it."
    findings.append(flagged("full line", barn, full, wrong, "No line lies in one cell.", of=_ARE))
    return CheckResult(findings)


def check_proportions(
    counts: npt.ArrayLike, totals: npt.ArrayLike, policy: OutputPolicy | None = None, *, barn: str = "a"
) -> CheckResult:
    """Check proportions by what stands above and below the line, and what is left out.

    Examples
    --------
    >>> found = check_proportions([95, 40], [100, 100])
    >>> found.status, found.cells("complement")
    ('fail', ((0,),))
    """
    policy = policy or OutputPolicy()
    above, below = as_counts(counts), as_counts(totals)
    below = np.broadcast_to(below, above.shape)
    if (above > below).any():
        raise ParameterError(
            "A proportion has a numerator above its denominator. Give counts and their totals."
        )

    return CheckResult(
        flagged(
            name,
            barn,
            (numbers > 0) & (numbers < policy.threshold),
            f"{{}} with {name}s below the threshold of {policy.threshold} people.",
            f"None is below {policy.threshold}.",
        )
        for name, numbers in (("numerator", above), ("denominator", below), ("complement", below - above))
    )


def check_margins(
    counts: npt.ArrayLike,
    hidden: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    barn: str = "a",
) -> CheckResult:
    """Check that suppressed cells cannot be worked out from the true margins published with the table.

    A cell is given away when the equations of the lines determine it, and when the hidden cells of a line add up to
    less than the threshold.

    Examples
    --------
    >>> hide = [[True, False], [False, False]]
    >>> check_margins([[4, 20], [30, 40]], hide).reasons
    ('1 suppressed cell can be worked out from the published margins.', ...)
    """
    policy = policy or OutputPolicy()
    table = as_counts(counts)
    unseen = as_flags(hidden, table)
    small = _small_remainders(table, unseen, policy)
    return CheckResult(given_away(determined(unseen), small, "published margins", barn))


def given_away(found: Flags, small: Flags, totals: str, barn: str) -> list[Finding]:
    """Judge suppressed cells: those that the totals determine, and those whose lines leave too few people."""
    return [
        flagged(
            "margins",
            barn,
            found,
            f"{{}} can be worked out from the {totals}.",
            f"No suppressed cell follows from the {totals}.",
            of="suppressed cell",
        ),
        flagged(
            "line remainder",
            barn,
            small,
            "{} in lines whose suppressed cells add up to too few people.",
            "What is suppressed in a line adds up to enough people.",
            of="suppressed cell",
        ),
    ]


def determined(hidden: npt.ArrayLike) -> Flags:
    """Flag the hidden cells that the line totals of a table determine.

    Examples
    --------
    >>> determined([[True, True, False], [True, True, False], [False, False, True]]).tolist()
    [[False, False, False], [False, False, False], [False, False, True]]
    """
    unseen = np.asarray(hidden, dtype=bool)
    number = int(unseen.sum())
    if number == 0:
        return unseen
    if number > MOST_UNKNOWNS:
        return unseen & ~_peeled(unseen)
    index = np.full(unseen.shape, -1)
    index[unseen] = np.arange(number)
    rows = []
    for axis in range(unseen.ndim):
        lines = np.moveaxis(index, axis, -1).reshape(-1, unseen.shape[axis])
        lines = lines[(lines >= 0).any(axis=1)]
        equations = np.zeros((len(lines), number + 1))
        np.put_along_axis(equations, np.where(lines >= 0, lines, number), 1.0, axis=1)
        rows.append(equations[:, :number])
    found = np.zeros(unseen.shape, dtype=bool)
    found[unseen] = fixed_by(np.vstack(rows))
    return found


def fixed_by(equations: Floats) -> Flags:
    """Flag the unknowns that linear equations, one a row, determine."""
    from scipy.linalg import null_space

    free = null_space(equations)
    return ~(np.abs(free) > 1e-9).any(axis=1) if free.size else np.ones(equations.shape[1], dtype=bool)


def full_cells(table: Floats, *, possible: Flags, hidden: Flags) -> Flags:
    """Flag the cells that hold the whole total of a line in which somebody could be elsewhere."""
    found = np.zeros(table.shape, dtype=bool)
    for axis in range(table.ndim):
        choice = possible.sum(axis=axis, keepdims=True) > 1
        taken = (table > 0).sum(axis=axis, keepdims=True) == 1
        secret = hidden.any(axis=axis, keepdims=True)
        found |= (table > 0) & choice & taken & ~secret
    return found


def as_counts(counts: npt.ArrayLike) -> Floats:
    """Take counts as they come; refuse what no count can be."""
    table = np.asarray(counts, dtype=np.float64)
    table = table.reshape(1) if table.ndim == 0 else table
    if not np.isfinite(table).all():
        raise ParameterError(
            "Counts must not be missing. Give 0 where nobody is, and flag suppressed cells as hidden."
        )
    if (table < 0).any():
        raise ParameterError("Counts cannot be negative. Give the number of distinct people in each cell.")
    if (np.abs(table - np.round(table)) > 1e-9).any():
        raise ParameterError(
            "Counts must be whole numbers of people; these have fractions, so they are weighted or shares. "
            "Give the unweighted counts: the threshold is held against people."
        )
    return np.round(table)


def as_flags(given: npt.ArrayLike | None, table: Array) -> Flags:
    """Take flags in the shape of a table; none where not given."""
    if given is None:
        return np.zeros(table.shape, dtype=bool)
    flags = np.asarray(given, dtype=bool)
    if flags.shape != table.shape:
        raise ParameterError(f"The flags have the shape {flags.shape}, the table has {table.shape}.")
    return flags


def low_count(
    numbers: Floats | Integers, policy: OutputPolicy, *, barn: str, where: str, whom: str
) -> Finding:
    """Judge how many units stand behind each group or cell; those without any are not shown."""
    return flagged(
        "low count",
        barn,
        (numbers > 0) & (numbers < policy.threshold),
        f"{{}} below the threshold of {policy.threshold} {whom}.",
        f"Every {where} has {policy.threshold} {whom} or more.",
        of=where,
    )


def positions(flags: Flags) -> tuple[Position, ...]:
    """List where flags are raised."""
    return tuple(tuple(int(i) for i in place) for place in np.argwhere(flags))


def counted(number: int, thing: str) -> str:
    """Say a number of things.

    Examples
    --------
    >>> counted(1, "cell"), counted(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def flagged(
    check: str,
    barn: str,
    flags: Flags,
    wrong: str,
    fine: str,
    *,
    of: str | tuple[str, str] = "cell",
    status: Status = "fail",
    figures: Mapping[str, Any] | None = None,
) -> Finding:
    """Judge flagged cells: what is ``wrong`` with so many of them (``{}``), or that all is ``fine``.

    Examples
    --------
    >>> flagged("one value", "i", np.array([True, False]), "{} without spread.", "All differ.", of="group").reason
    '1 group without spread.'
    """
    number = int(flags.sum())
    if not number:
        return Finding(check, barn, "pass", fine, (), figures or {})
    many = counted(number, of) if isinstance(of, str) else f"{number:,} {of[number > 1]}"
    return Finding(check, barn, status, wrong.format(many), positions(flags), figures or {})


def _peeled(hidden: Flags) -> Flags:
    """Return what stays hidden when lines with one unknown are solved, again and again."""
    left = hidden.copy()
    while True:
        alone = np.zeros(left.shape, dtype=bool)
        for axis in range(left.ndim):
            alone |= left & (left.sum(axis=axis, keepdims=True) == 1)
        if not alone.any():
            return left
        left &= ~alone


def _small_remainders(table: Floats, hidden: Flags, policy: OutputPolicy) -> Flags:
    found = np.zeros(table.shape, dtype=bool)
    for axis in range(table.ndim):
        remainder = np.where(hidden, table, 0.0).sum(axis=axis, keepdims=True)
        fewest = 0.0 if policy.zeros_are_disclosive else 0.5
        found |= hidden & (remainder >= fewest) & (remainder < policy.threshold)
    return found


# Statbarn e: may an odds or risk ratio that was computed from counts go out?
#
# The ratio itself is not assessed. With one count known beside it the ratio is the table again, so the table is what is
# checked, as frequencies.


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
