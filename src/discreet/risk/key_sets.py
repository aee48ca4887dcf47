"""Every set of keys up to a size, looked at from the class table, and the minimal sample uniques on them.

Key values become codes once; a set of keys is then one whole number for each row of the class table, and its
classes are counted by that number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Bytes, Flags, Integers
from discreet.core.errors import ParameterError
from discreet.core.progress import track
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import refuse_nobody

KeySet = tuple[int, ...]
MOST_SETS = 1_000_000
_DENSE = 4  # cells of a counting array for each row, up to which counting beats sorting


@dataclass(frozen=True)
class CodedKeys:
    """The distinct key combinations of a file, in codes.

    Attributes
    ----------
    table
        The combinations themselves: ``k0``…
    records
        How many records (persons, where a role names them) have each.
    codes
        One row a key, one column a combination; -1 where the key is missing and a wildcard.
    values
        The values of each key, by code; a missing one counts as a value unless it is a wildcard.
    holders
        Where some persons have several combinations: which combination (row) and which person go together. Such
        persons must not be counted twice when a set of keys joins their combinations.
    """

    table: pl.DataFrame
    records: Integers
    codes: Integers
    values: tuple[pl.Series, ...]
    holders: tuple[Integers, Integers] | None = None

    @property
    def wild(self) -> bool:
        """Whether some key is missing and matches anything."""
        return bool((self.codes < 0).any())

    def combined(self, keys: Sequence[int], rows: Integers | slice = slice(None)) -> Integers:
        """Return one number for each row that is the same only where all these keys are."""
        number = self.codes[keys[0], rows]
        span = len(self.values[keys[0]])
        for key in keys[1:]:
            levels = max(len(self.values[key]), 1)
            if span > 2**62 // levels:
                distinct, number = np.unique(number, return_inverse=True)
                span = len(distinct)
            number = number * levels + self.codes[key, rows]
            span *= levels
        return number

    def sizes(self, keys: Sequence[int], rows: Integers | slice = slice(None)) -> Integers:
        """Count, for each row, the records (or persons) in those of the rows that are the same on these keys."""
        numbers = self.combined(keys, rows)
        if self.holders is None:
            return class_sizes(numbers, self.records[rows], self.span(keys))
        row, person = self.holders
        place = np.full(len(self.records), -1, dtype=np.int64)
        place[rows] = np.arange(len(numbers))
        there = place[row] >= 0
        who = pl.DataFrame({"number": numbers[place[row[there]]], "person": person[there]}).unique()
        counted = who.group_by("number").agg(persons=pl.len().cast(pl.Int64))
        every = pl.DataFrame({"number": numbers})
        return every.join(counted, on="number", how="left", maintain_order="left")["persons"].to_numpy()

    def span(self, keys: Sequence[int]) -> int:
        """Return how many combinations of these keys are conceivable."""
        return math.prod(len(self.values[key]) for key in keys)


def coded_keys(data: Microdata, keys: Sequence[str], missing: engine.Missing) -> CodedKeys:
    """Read the class table of the file and code its keys."""
    table = engine.class_table(data, keys, "drop" if missing == "drop" else "category")
    refuse_nobody(table, "Use missing='category' or 'wildcard'")
    names = list(engine.key_names(keys))
    table = table.select(*names, "records").sort(names, nulls_last=True)
    holders = _holders(data, keys, missing, table)
    values, codes = [], []
    for name in names:
        distinct = table[name].unique().sort(nulls_last=True)
        if missing == "wildcard":
            distinct = distinct.drop_nulls()
        places = pl.DataFrame({name: distinct, "code": np.arange(len(distinct), dtype=np.int64)})
        found = table.select(name).join(places, on=name, how="left", nulls_equal=True, maintain_order="left")
        values.append(distinct)
        codes.append(found["code"].fill_null(-1).to_numpy())
    return CodedKeys(
        table.select(names), table["records"].to_numpy(), np.stack(codes), tuple(values), holders
    )


def _holders(
    data: Microdata, keys: Sequence[str], missing: engine.Missing, table: pl.DataFrame
) -> tuple[Integers, Integers] | None:
    """Say who has which row of the class table, where somebody has several; None where rows simply add up."""
    unit = engine.counted_unit(data)
    if unit is None:
        return None
    counted_as: engine.Missing = "drop" if missing == "drop" else "category"
    pairs = engine.unit_pairs(data, keys, engine.keyed_rows(data, keys, counted_as, {"u": unit}))
    if pairs["u"].n_unique() == pairs.height:
        return None
    names = list(engine.key_names(keys))
    places = table.select(names).with_row_index("row")
    found = pairs.join(places, on=names, how="left", nulls_equal=True)
    return found["row"].to_numpy().astype(np.int64), found["u"].to_numpy()


def class_sizes(numbers: Integers, records: Integers, span: int) -> Integers:
    """Return, for each row, how many records are in rows with the same number."""
    if span <= _DENSE * max(len(numbers), 1024):
        counts = np.bincount(numbers, weights=records, minlength=span)[numbers]
        return counts.astype(np.int64)
    rows = pl.DataFrame({"number": numbers, "records": records})
    return rows.select(pl.col("records").sum().over("number")).to_series().to_numpy()


def number_of_sets(keys: int, max_size: int) -> int:
    """Return how many sets of 1 up to ``max_size`` of so many keys there are."""
    return sum(math.comb(keys, size) for size in range(1, max_size + 1))


def checked_size(max_size: int, keys: int) -> int:
    """Check the size up to which sets of keys are looked at; more than there are keys means all of them."""
    max_size = min(max_size, keys)
    sets = number_of_sets(keys, max_size)
    if sets > MOST_SETS:
        raise ParameterError(
            f"With {keys} keys there are {sets:,} sets of up to {max_size}; more than {MOST_SETS:,} are not looked "
            "through. Lower max_size, or leave out keys."
        )
    return max_size


def sets_by_size(keys: int, max_size: int, description: str, *, progress: bool) -> Iterator[KeySet]:
    """Hand over all sets of up to ``max_size`` keys, smaller ones first, with a progress bar."""
    sets = (chosen for size in range(1, max_size + 1) for chosen in combinations(range(keys), size))
    return track(sets, number_of_sets(keys, max_size), description, progress=progress)


class Inherited:
    """Flags on rows that every larger set of keys inherits from its parts, for one size and the one before.

    They are kept as bits: with many keys there are many sets of a size.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._smaller: dict[KeySet, Bytes] = {(): np.packbits(np.zeros(rows, dtype=bool))}
        self._current: dict[KeySet, Bytes] = {}

    def from_parts(self, chosen: KeySet) -> Flags:
        """Return the rows flagged on some part of the set."""
        if self._current and len(chosen) > len(next(iter(self._current))):
            self._smaller, self._current = self._current, {}
        parts = [self._smaller[part] for part in combinations(chosen, len(chosen) - 1)]
        return np.unpackbits(np.bitwise_or.reduce(parts), count=self._rows).astype(bool)

    def keep(self, chosen: KeySet, flags: Flags) -> None:
        """Note the rows flagged on the set."""
        self._current[chosen] = np.packbits(flags)


# On which few keys is a record alone? The search for minimal sample uniques.
#
# A minimal sample unique (MSU) of a record is a set of keys on which it is the only one, while it is not the only
# one on any part of that set (Elliot, Manning and Ford 2002). Whoever is alone on a set is alone on every larger
# one, so the sets are walked by size, and a record that is alone on a part of the set needs no further look there:
# it shares its values with nobody, and its own minimal sets are known. That pruning is the idea of SUDA2 (Manning,
# Haglin and Keane 2008); here each set is one pass over arrays.


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
