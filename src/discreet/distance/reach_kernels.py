"""The compiled loop that finds the smallest tolerance at which a record matches some candidate."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _needed(one: float, other: float, unit: float) -> float:
    away = abs(one - other)
    if away == 0.0:
        return 0.0
    return away / unit if unit > 0.0 else np.inf


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def smallest_tolerances(  # noqa: PLR0917
    numbers: Floats,
    units: Floats,
    windows: Integers,
    others: Floats,
    limit: float,
    found: Floats,
    nearest: Integers,
) -> None:
    """Walk outwards from each record along the first column until no candidate can do better.

    The candidates of a record stand between the two positions of its window, sorted by their first number; ``units`` is
    what a difference is divided by, record by record and column by column.
    """
    width = numbers.shape[1]
    for i in range(len(numbers)):
        first, last = windows[i, 0], windows[i, 1]
        best, which = np.inf, -1
        if last <= first:
            found[i], nearest[i] = best, which
            continue
        if width == 0:
            found[i], nearest[i] = 0.0, first
            continue
        right = first + np.searchsorted(others[first:last, 0], numbers[i, 0], side="left")
        left = right - 1
        while left >= first or right < last:
            # The nearer of the two ends is looked at next, so the first column alone bounds what can still come.
            go_right = right < last and (
                left < first or others[right, 0] - numbers[i, 0] <= numbers[i, 0] - others[left, 0]
            )
            c = right if go_right else left
            if go_right:
                right += 1
            else:
                left -= 1
            needed = _needed(numbers[i, 0], others[c, 0], units[i, 0])
            if needed >= best or needed > limit:
                break
            for j in range(1, width):
                needed = max(needed, _needed(numbers[i, j], others[c, j], units[i, j]))
                if needed >= best:
                    break
            if needed < best:
                best, which = needed, c
                if best == 0.0:
                    break
        found[i], nearest[i] = best, which
