"""The compiled walk of records down a tree."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from discreet.arrays import Codes, Flags, Floats


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def walk(  # noqa: PLR0917
    codes: npt.NDArray[np.int16],
    nodes: Codes,
    left_shares: Floats,
    members: Codes,
    by_level: Flags,
    leaf_numbers: Codes,
    seed: int,
) -> Codes:
    """Number the leaf of each row; a level that the node never saw goes to a child at random, by its share."""
    reached = np.empty(len(codes), np.int32)
    for i in range(len(codes)):
        here = 0
        while nodes[here, 0] >= 0:
            code = codes[i, nodes[here, 0]]
            side = -1
            if by_level[here]:
                low, high = nodes[here, 1], nodes[here, 2]
                if code >= 0:
                    while low < high:
                        middle = (low + high) // 2
                        if members[middle] >> 1 < code:
                            low = middle + 1
                        else:
                            high = middle
                    if low < nodes[here, 2] and members[low] >> 1 == code:
                        side = members[low] & 1
            elif code >= 0:
                side = 0 if code <= nodes[here, 1] else 1
            if side < 0:
                # A hash of seed, row and node: the same whatever the order or number of the rows before.
                z = np.uint64(seed) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
                z = z + np.uint64(here) * np.uint64(0xD1342543DE82EF95)
                z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                z = z ^ (z >> np.uint64(31))
                side = 0 if float(z >> np.uint64(11)) / 9007199254740992.0 < left_shares[here] else 1
            here = nodes[here, 3 + side]
        reached[i] = leaf_numbers[here]
    return reached
