"""On which few keys is a record alone? The search for minimal sample uniques.

A minimal sample unique (MSU) of a record is a set of keys on which it is the only one, while it is not the only
one on any part of that set (Elliot, Manning and Ford 2002). Whoever is alone on a set is alone on every larger
one, so the sets are walked by size, and a record that is alone on a part of the set needs no further look there:
it shares its values with nobody, and its own minimal sets are known. That pruning is the idea of SUDA2 (Manning,
Haglin and Keane 2008); here each set is one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.core.arrays import Flags, Integers
from discreet.risk.sample.key_sets import CodedKeys, Inherited, KeySet, sets_by_size


def minimal_uniques(
    keys: CodedKeys, max_size: int, *, progress: bool = True
) -> Iterator[tuple[KeySet, Integers]]:
    """Find the minimal sample uniques of up to ``max_size`` keys, one set of keys at a time.

    Yields the positions of the keys of the set and the rows of the class table (each one record) for which that
    set is minimal; sets without any are left out.
    """
    wild = keys.wild
    known = Inherited(len(keys.records))
    for chosen in sets_by_size(len(keys.codes), max_size, "Special uniques", progress=progress):
        alone = known.from_parts(chosen)
        rows = np.flatnonzero(~alone)
        found = rows[_alone(keys, chosen, rows, wild=wild)]
        alone[found] = True
        known.keep(chosen, alone)
        if len(found):
            yield chosen, found


def _alone(keys: CodedKeys, chosen: KeySet, rows: Integers, *, wild: bool) -> Flags:
    """Say which of the rows agree with no other of them on the chosen keys."""
    known = keys.codes[list(chosen)][:, rows] >= 0 if wild else np.ones((len(chosen), 1), dtype=bool)
    if known.all():
        alone: Flags = keys.sizes(chosen, rows) == 1
        return alone
    # A record with a missing key is compared on its other keys alone; whether it is alone on those was settled
    # with the smaller set. Left are the records that know all keys, and whether an incomplete one agrees.
    pattern = (1 << np.arange(len(chosen))) @ known
    candidates = np.flatnonzero(known.all(axis=0))
    candidates = candidates[keys.sizes(chosen, rows[candidates]) == 1]
    for bits in np.unique(pattern[~known.all(axis=0)]):
        shared = [key for place, key in enumerate(chosen) if bits >> place & 1]
        if not shared:
            candidates = candidates[:0]
            break
        others = rows[pattern == bits]
        numbers = keys.combined(shared, np.concatenate([rows[candidates], others]))
        candidates = candidates[~np.isin(numbers[: len(candidates)], numbers[len(candidates) :])]
    found = np.zeros(len(rows), dtype=bool)
    found[candidates] = True
    return found
