"""Mending a table: suppress, round, merge levels. A mitigation is offered only where the statbarn lists it.

Every function works on counts alone and says which cells it hid or which levels it merged; the session computes the
table again and checks it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.outputs.check_results import CheckResult, barns
from discreet.outputs.checks.frequencies import check_margins, determined
from discreet.outputs.output import text
from discreet.outputs.output_policy import OutputPolicy


def require_mitigation(how: str | None, barn_ids: Sequence[str], offered: Sequence[str]) -> None:
    """Refuse a mitigation that the statbarns do not list, or that this analysis cannot do."""
    listed = dict.fromkeys(name for barn in barn_ids for name in barns()[barn].mitigations if name in offered)
    if how is not None and how not in listed:
        raise ParameterError(unknown_name(how, listed, what="mitigation for this output"))


def primary_cells(checked: CheckResult, shape: tuple[int, ...]) -> Flags:
    """Flag the cells to hide: all that fail, except that a full line is mended by hiding its empty cells."""
    flags = np.zeros(shape, dtype=bool)
    for finding in checked.findings:
        if finding.status != "fail" or finding.check in ("full line", "differencing"):
            continue
        for cell in finding.cells:
            if len(cell) == len(shape):
                flags[cell] = True
    return flags


def secondary_cells(counts: Floats, primary: Flags, policy: OutputPolicy) -> Flags:
    """Hide further cells until none can be worked out from the true margins.

    Gaussian elimination (`discreet.tables.gauss`) finds them; where the hidden cells of a line still add up to fewer
    people than the threshold, the smallest cells beside them follow, one a step.

    Examples
    --------
    >>> counts = np.array([[4.0, 20, 30], [25, 35, 40], [50, 60, 70]])
    >>> hide = np.array([[True, False, False], [False] * 3, [False] * 3])
    >>> secondary_cells(counts, hide, OutputPolicy()).astype(int).tolist()
    [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    if not primary.any():
        return np.zeros(primary.shape, dtype=bool)
    hidden = primary | _eliminated(counts, primary)
    while True:
        open_cells = np.argwhere(_given_away(counts, hidden, policy))
        partners = [_cheapest_partner(counts, hidden, tuple(int(i) for i in cell)) for cell in open_cells]
        found = [partner for partner in partners if partner is not None]
        if not found:
            return hidden & ~primary
        hidden[min(found)[1]] = True


def rounded(counts: Floats, base: int) -> Floats:
    """Round counts to a base, halves up.

    Examples
    --------
    >>> rounded(np.array([2.0, 3.0, 12.0, 13.0]), 5).tolist()
    [0.0, 5.0, 10.0, 15.0]
    """
    return np.floor(counts / base + 0.5) * base


def too_small(counts: Floats, policy: OutputPolicy) -> Flags:
    """Flag the counts that are below the threshold, and empty ones where these tell something."""
    low = (counts > 0) & (counts < policy.threshold)
    return low | (counts == 0) if policy.zeros_are_disclosive else low


def merged_levels(
    counts: Floats,
    levels: Sequence[Sequence[Any]],
    is_wrong: Callable[[Floats], Flags],
) -> list[dict[Any, str]]:
    """Merge adjacent levels, one pair a step, until every cell is fine; return the new name of each old level.

    The worst cell is merged with its smaller neighbor, on the dimension that has most levels left.

    Parameters
    ----------
    is_wrong
        Flags the cells that are not fine yet.

    Examples
    --------
    >>> merged_levels(np.array([30.0, 4, 20, 3]), [["a", "b", "c", "d"]], lambda t: t < 10)
    [{'a': 'a', 'b': 'b + c + d', 'c': 'b + c + d', 'd': 'b + c + d'}]
    """
    groups = [[[level] for level in known] for known in levels]
    table = counts.astype(np.float64)
    while True:
        wrong = np.argwhere(is_wrong(table))
        choices = [axis for axis in range(counts.ndim) if len(groups[axis]) > 1]
        if not len(wrong) or not choices:
            break
        worst = min((tuple(int(i) for i in cell) for cell in wrong), key=lambda cell: float(table[cell]))
        axis = max(choices, key=lambda a: len(groups[a]))
        sums = table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
        at = worst[axis]
        beside = [i for i in (at - 1, at + 1) if 0 <= i < len(sums)]
        other = min(beside, key=lambda i: float(sums[i]))
        first, second = sorted((at, other))
        groups[axis][first] += groups[axis].pop(second)
        table = np.add.reduceat(table, np.delete(np.arange(len(sums)), second), axis=axis)
    return [{level: " + ".join(map(text, group)) for group in axis for level in group} for axis in groups]


def _eliminated(counts: Floats, primary: Flags) -> Flags:
    """Find the further cells by Gaussian elimination; the totals of all lines are published."""
    from scipy import sparse

    from discreet.tables import gauss

    number = counts.size
    index = np.arange(number).reshape(counts.shape)
    lines = [sparse.identity(number, dtype=np.int64, format="csc")]
    for axis in range(counts.ndim):
        members = np.moveaxis(index, axis, -1).reshape(-1, counts.shape[axis])
        column = np.repeat(np.arange(len(members)), members.shape[1])
        ones = np.ones(members.size, dtype=np.int64)
        lines.append(sparse.csc_matrix((ones, (members.ravel(), column)), shape=(number, len(members))))
    matrix = sparse.hstack(lines, format="csc")
    values = np.asarray(counts.ravel() @ matrix)
    found = gauss.secondary(
        matrix,
        np.flatnonzero(primary.ravel()),
        values=values,
        forced=np.arange(number, matrix.shape[1]),
    )
    chosen = np.zeros(number, dtype=bool)
    chosen[[place for place in found.secondary if place < number]] = True
    return chosen.reshape(counts.shape)


def _given_away(counts: Floats, hidden: Flags, policy: OutputPolicy) -> Flags:
    found = np.zeros(hidden.shape, dtype=bool)
    for cell in check_margins(counts, hidden, policy).cells():
        found[cell] = True
    return found | determined(hidden)


def _cheapest_partner(
    counts: Floats, hidden: Flags, cell: tuple[int, ...]
) -> tuple[tuple[int, float], tuple[int, ...]] | None:
    """Choose the smallest cell still shown in a line of this one, lines with fewest hidden cells first."""
    best: tuple[tuple[int, float], tuple[int, ...]] | None = None
    for axis in range(hidden.ndim):
        line = [slice(i, i + 1) for i in cell]
        line[axis] = slice(None)
        crowd = int(hidden[tuple(line)].sum())
        for i in np.flatnonzero(~hidden[tuple(line)].ravel()):
            place = (*cell[:axis], int(i), *cell[axis + 1 :])
            # An empty cell says too little to hide another behind it.
            price = (crowd, float(counts[place]) if counts[place] > 0 else np.inf)
            if best is None or (price, place) < best:
                best = (price, place)
    return best
