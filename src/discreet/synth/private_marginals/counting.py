"""How many records has every cell of a table? Exact counts, before any noise: they never leave the rounds.

Every column is coded once, in the smallest whole numbers that hold its codes, so that a table of a million records is
counted in about a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Integers
from discreet.engine.counting_kernels import count_one, count_pair, count_triple

Small = npt.NDArray[np.integer[Any]]

_SIDE_BY_SIDE = 2**16  # cells up to which several tallies fit into the nearer memory
_IN_REACH = 2**14  # cells up to which a table of three columns costs little more than one of two


def counted(columns: Sequence[int], codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """The table of these columns, cell by cell; the last column moves fastest.

    Examples
    --------
    >>> codes = [np.array([0, 1, 1], dtype=np.uint8), np.array([2, 0, 0], dtype=np.uint8)]
    >>> counted((0, 1), codes, [2, 3]).tolist(), counted((1,), codes, [2, 3]).tolist()
    ([0, 0, 1, 2, 0, 0], [2, 0, 1])
    """
    own = [codes[column] for column in columns]
    shape = [sizes[column] for column in columns]
    cells = math.prod(shape)
    if cells > _SIDE_BY_SIDE:
        return np.bincount(_joined(own, shape), minlength=cells)
    if len(own) == 1:
        return np.asarray(count_one(own[0], cells))
    first = own[0] if len(own) == 2 else _joined(own[:-1], shape[:-1])
    return np.asarray(count_pair(first, own[-1], shape[-1], cells))


def counted_pairs(
    pairs: Sequence[tuple[int, int]], codes: Sequence[Small], sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, int], Integers]]:
    """The tables of many pairs of columns, each once: three at a time where a third column ties them together.

    Examples
    --------
    >>> codes = [np.array(own, dtype=np.uint8) for own in ([0, 1, 1], [2, 0, 0], [1, 1, 0])]
    >>> {pair: cells.tolist() for pair, cells in counted_pairs([(0, 1), (0, 2), (1, 2)], codes, [2, 3, 2])}[0, 2]
    [0, 1, 1, 1]
    """
    left = dict.fromkeys(pairs)
    while left:
        a, b = next(iter(left))
        del left[a, b]
        third = next(
            (
                c
                for c in range(b + 1, len(codes))
                if (a, c) in left and (b, c) in left and sizes[a] * sizes[b] * sizes[c] <= _IN_REACH
            ),
            None,
        )
        if third is None:
            yield (a, b), counted((a, b), codes, sizes)
            continue
        del left[a, third], left[b, third]
        shape = (sizes[a], sizes[b], sizes[third])
        joint = count_triple(codes[a], codes[b], codes[third], shape[1:], math.prod(shape)).reshape(shape)
        yield (a, b), joint.sum(axis=2).ravel()
        yield (a, third), joint.sum(axis=1).ravel()
        yield (b, third), joint.sum(axis=0).ravel()


def _joined(codes: Sequence[Small], sizes: Sequence[int]) -> Integers:
    """One number for the codes of several columns."""
    made = codes[0].astype(np.int64)
    for own, size in zip(codes[1:], sizes[1:], strict=True):
        made *= size
        made += own
    return made
