"""Seeds and streams: the same data, parameters and seed give the same bytes.

A seed opens a generator; a named child stream of it belongs to one step (``"noise/income"``), so that
adding a step or a column does not change the random numbers of the others.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from discreet.errors import ParameterError

Seed = int | np.random.Generator | None


def generator(seed: Seed = None, *path: str) -> np.random.Generator:
    """Open the random generator of a seed, or of a named child stream of it.

    Parameters
    ----------
    seed
        A non-negative integer, a NumPy generator (used as it is when no path is given), or None for
        fresh entropy from the operating system.
    path
        Names of the child stream, e.g. ``"pram", "region"``.

    Examples
    --------
    >>> float(generator(1, "a").random()) == float(generator(1, "a").random())
    True
    >>> float(generator(1, "a").random()) == float(generator(1, "b").random())
    False
    """
    if isinstance(seed, np.random.Generator):
        if not path:
            return seed
        seed = int(seed.integers(2**63))
    if seed is None:
        seed = fresh_seed()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError("seed must be a non-negative whole number, a NumPy Generator or None.")
    words = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") for name in path]
    return np.random.default_rng(np.random.SeedSequence([int(seed), *words]))


def fresh_seed() -> int:
    """Draw a seed from the operating system, to be noted in the internal log."""
    return secrets.randbits(63)
