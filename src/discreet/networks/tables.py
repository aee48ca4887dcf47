"""A table as networks see it: scaled numbers and codes of categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers, Singles


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Records as arrays.

    Attributes
    ----------
    numbers
        One column a number, scaled as the model wants it.
    codes
        One column a category: codes from 0 on.
    sizes
        How many codes each category has.
    conditions
        Which columns of ``codes`` are categories of the file, on which a generator may be conditioned; the others are
        modes of numbers.
    weights
        What each record counts, or None where all count alike.

    Examples
    --------
    >>> table = CodedTable(np.zeros((2, 1), "f4"), np.array([[0, 1], [1, 2]], "i4"), (2, 3), (0, 1))
    >>> table.width, len(table), table.shares(1).tolist()
    (6, 2, [0.0, 0.5, 0.5])
    """

    numbers: Singles
    codes: Codes
    sizes: tuple[int, ...]
    conditions: tuple[int, ...] = ()
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def width(self) -> int:
        """How many inputs a record has when codes are written one-hot."""
        return int(self.numbers.shape[1]) + sum(self.sizes)

    @property
    def starts(self) -> Integers:
        """Where the codes of each category begin among the one-hot inputs of all categories, and one end more."""
        return np.append(0, np.cumsum(self.sizes)).astype(np.int64)

    def shares(self, column: int) -> Floats:
        """Return the (weighted) share of each code of a category."""
        counts = np.bincount(self.codes[:, column], self.weights, minlength=self.sizes[column])
        return np.asarray(counts / counts.sum(), dtype=np.float64)

    def take(self, rows: Integers) -> CodedTable:
        """Return some of the records."""
        weights = None if self.weights is None else self.weights[rows]
        return CodedTable(self.numbers[rows], self.codes[rows], self.sizes, self.conditions, weights)

    def split(self, share: float, rng: np.random.Generator) -> tuple[CodedTable, CodedTable]:
        """Hold a share of the records out; both parts have at least one record."""
        order = rng.permutation(len(self))
        held = min(max(round(share * len(self)), 1), len(self) - 1)
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Give the table as plain arrays, to be written to an npz file."""
        arrays: dict[str, np.ndarray[Any, Any]] = {
            "numbers": self.numbers,
            "codes": self.codes,
            "sizes": np.asarray(self.sizes, dtype=np.int64),
            "conditions": np.asarray(self.conditions, dtype=np.int64),
        }
        return arrays if self.weights is None else arrays | {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> CodedTable:
        """Read the table back from the arrays of `to_arrays`."""
        sizes = tuple(int(size) for size in arrays["sizes"])
        conditions = tuple(int(column) for column in arrays["conditions"])
        return cls(
            arrays["numbers"],
            arrays["codes"],
            sizes,
            conditions,
            arrays.get("weights"),
        )


def log_frequencies(shares: Floats, rows: int) -> Floats:
    """Return the chances with which levels are asked for in training: by the logarithm of their frequency.

    Examples
    --------
    >>> log_frequencies(np.array([0.9, 0.1]), 100).round(3).tolist()
    [0.653, 0.347]
    """
    logs = np.log1p(shares * rows)
    total = logs.sum()
    return np.asarray(logs / total if total > 0 else np.full(len(shares), 1 / len(shares)))


def rows_by_code(codes: Codes, size: int) -> tuple[Integers, Integers]:
    """Return the rows grouped by code, and where each group starts, with one end more.

    Examples
    --------
    >>> rows, starts = rows_by_code(np.array([1, 0, 1], "i4"), 3)
    >>> rows.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3, 3])
    """
    order = np.argsort(codes, kind="stable").astype(np.int64)
    starts = np.append(0, np.cumsum(np.bincount(codes, minlength=size))).astype(np.int64)
    return order, starts
