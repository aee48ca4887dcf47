"""What may go out of a site: no cell of few records, and no total that is mostly one record's.

A site sees its own part of a joint number, and not the others'. It holds its own part against the limits: where every
part is large enough, the sum is. A quantity that would break them is refused, and not changed in silence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.federated.messages import ProtocolError

_NOTHING = 1e-6  # a record that weighs less than this share of the heaviest one does not hide it

_AT_A_TIME = 4_000_000  # products that are looked at together


class OwnerLimits:
    """The least count of a cell, and the largest share of a total that one record may have.

    Examples
    --------
    >>> limits = OwnerLimits("clinic", least_count=3, max_share=0.5)
    >>> limits.cells(np.array([0, 3, 40]))
    >>> limits.cells(np.array([0, 2, 40]))
    Traceback (most recent call last):
    discreet.federated.messages.ProtocolError: A cell holds fewer than 3 records of 'clinic'. Ask for ...
    """

    def __init__(self, name: str, *, least_count: int, max_share: float) -> None:
        if not 0 < max_share <= 1:
            raise ParameterError("max_share must be a share above 0 and at most 1.")
        self.name, self.least_count, self.max_share = name, least_count, max_share
        self._fine: set[tuple[str, tuple[str, ...]]] = set()

    def cells(self, counts: Array) -> None:
        """Refuse a table with a cell of few records; empty cells are allowed."""
        if ((counts > 0) & (counts < self.least_count)).any():
            raise ProtocolError(
                f"A cell holds fewer than {self.least_count} records of '{self.name}'. Ask for coarser levels, leave "
                "a column out, or ask for counts with noise (noisy-counts). The owner sets least_count."
            )

    def totals(self, parts: Floats) -> None:
        """Refuse totals, one a column, that few records make up, or one record for the most part."""
        sizes = np.abs(parts)
        largest = sizes.max(axis=0, initial=0.0)
        many = (sizes > _NOTHING * largest).sum(axis=0)
        if ((many > 0) & (many < self.least_count)).any():
            raise ProtocolError(
                f"A total is about fewer than {self.least_count} records of '{self.name}'. Leave out the column that "
                "few records have, or put categories together. The owner sets least_count."
            )
        if (largest > self.max_share * sizes.sum(axis=0) * (1 + 1e-12)).any():
            raise ProtocolError(
                f"One record makes up more than {self.max_share:.0%} of a total of '{self.name}'. Leave the column "
                "out, or cap its values at the site. The owner sets max_share."
            )

    def products(self, parts: Floats, weights: Floats | None = None) -> None:
        """Refuse products of columns, weighted where weights are given, that few records make up; some at a time."""
        step = max(1, _AT_A_TIME // max(len(parts), 1))
        for at in range(parts.shape[1]):
            one = parts[:, [at]] if weights is None else parts[:, [at]] * weights[:, None]
            for start in range(at, parts.shape[1], step):
                self.totals(one * parts[:, start : start + step])

    def moments(self, holder: Any, block: str, columns: tuple[str, ...]) -> None:
        """Refuse means and products of columns where one of the totals behind them breaks the limits; found once."""
        key = (block, columns)
        if key in self._fine:
            return
        rows = holder.matrix(columns, block)
        parts = np.concatenate([_parts(rows[:, at]) for at in range(rows.shape[1])], axis=1)
        self.totals(parts)
        self.products(parts)
        self._fine.add(key)


def _parts(values: Floats) -> Floats:
    """Return what each record contributes to totals of a column, however it is coded.

    A column of two values stands for both groups, and a column that is mostly one value for those that differ from it.
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) == 1:
        return np.ones((len(values), 1))
    if len(found) == 2:
        return np.stack([values == found[0], values == found[1]], axis=1).astype(np.float64)
    most = int(counts.argmax())
    usual = found[most] if 2 * counts[most] > len(values) else 0.0
    return (values - usual)[:, None]
