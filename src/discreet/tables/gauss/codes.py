"""Numbers by which the parts of the elimination speak to each other."""

from __future__ import annotations

# What a row is.
ORDINARY, SPECIAL, LABELED = 0, 1, 2

# What a candidate may meet.
PUBLISHED, DEPENDENT = 0, 1
PRIMARY, ZERO_SUM, ZERO_REUSED, CONTRIBUTOR, FEW_CONTRIBUTORS, ZERO_SPACE = 2, 3, 4, 5, 6, 7

# Why the sweep came back.
DONE, PAUSED, NEEDS_ROOM, OVERFLOW, REVEALED = 0, 1, 2, 3, 4

# Zero methods that change the sweep itself.
PLAIN, SUBSPACE, SUBSPACE_STRICT, ANY_SUM = 0, 1, 2, 3
