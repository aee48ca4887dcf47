"""Local suppression of a query: solved on its classes, and looked up for its records.

The keys of a record say which class it is in, and all records of a class are alike to the search, which is told how
many there are. Which records of a class lose their cells is settled by their number (place, or record key): the first
ones do. Only classes come home, and the numbers of records that lose cells where others of their class do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Codes, Flags, Integers, Words
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.records_of_classes import changed
from discreet.protect.suppressing.demands_met import Problem, solve
from discreet.protect.suppressing.suppression_proof import Proof, prove

_CLASS, _LOSERS, _NUMBER = "discreet class", "discreet losers", "discreet number"


@dataclass(frozen=True, eq=False)
class SolvedClasses:
    """What becomes of every class.

    Attributes
    ----------
    classes, many
        The combinations of keys and strata, and how many records have each.
    proof
        What was counted on the treated classes.
    owner, bits, losing
        Of which class some records lose cells, which cells these are, as bits, and how many records lose them.
    """

    keys: tuple[str, ...]
    classes: pl.DataFrame
    many: Integers
    proof: Proof
    owner: Integers
    bits: Integers
    losing: Integers

    @property
    def keys_losing(self) -> list[str]:
        """The keys that lose cells."""
        lost = int(np.bitwise_or.reduce(self.bits, initial=0))
        return [key for place, key in enumerate(self.keys) if lost >> place & 1]

    def by_record(self, data: Microdata) -> Callable[[tuple[str, ...]], ByRecord]:
        """Say what becomes of a record, once it is known by what records are told apart."""
        return lambda record_key: self._by_record(data, record_key)

    def _by_record(self, data: Microdata, record_key: tuple[str, ...]) -> ByRecord:
        lost = pl.DataFrame({"class": self.owner, "bits": self.bits, "losers": self.losing})
        lost = lost.group_by("class", "bits").agg(pl.col("losers").sum()).sort("class", "bits")
        of_class = lost.group_by("class", maintain_order=True).agg(
            pl.col("losers").sum(), pl.len().alias("kinds"), pl.col("bits").first()
        )
        whole = (of_class["kinds"] == 1) & (of_class["losers"] == self.many[of_class["class"].to_numpy()])
        bits = np.zeros(len(self.many), dtype=np.int64)
        bits[of_class.filter(whole)["class"].to_numpy()] = of_class.filter(whole)["bits"].to_numpy()
        split = of_class.filter(~whole)
        places = engine.ClassPlaces(self.classes)
        numbers, marks = self._numbered(data, places, split, lost, record_key)
        some = np.zeros(len(self.many), dtype=np.bool_)
        some[split["class"].to_numpy()] = True
        work = _Blanked(self.keys, places, bits, some, numbers, marks, tuple(self.keys_losing))
        types = {key: self.classes.schema[key] for key in self.keys_losing}
        return ByRecord(tuple(self.classes.columns), types, work, draws=bool(len(split)))

    def _numbered(
        self,
        data: Microdata,
        places: engine.ClassPlaces,
        split: pl.DataFrame,
        lost: pl.DataFrame,
        record_key: tuple[str, ...],
    ) -> tuple[Words, Integers]:
        """Find the first records of each class of which some lose cells, and say which cells each loses."""
        if split.is_empty():
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        engine.need_record_key(data, record_key, "local-suppression")
        losers = np.zeros(len(self.many), dtype=np.int64)
        losers[split["class"].to_numpy()] = split["losers"].to_numpy()
        marked = {name: pl.Int64() for name in (_CLASS, _LOSERS, _NUMBER)}
        marking = ByRecord(tuple(self.classes.columns), marked, _Marking(places, losers), draws=True)
        frame = engine.made_lazily(
            data, marking, key=record_key, drop=data.columns, purpose="local-suppression"
        )
        taken = engine.lowest_numbers(frame, {"class": _CLASS, "most": _LOSERS, "number": _NUMBER}, losers)
        of_split = lost.filter(losers[lost["class"].to_numpy()] > 0)
        marks = np.repeat(of_split["bits"].to_numpy(), of_split["losers"].to_numpy())
        if taken is None:
            raise changed()
        order = np.argsort(numbers := taken.view(np.uint64))
        return numbers[order], marks[order]


def solved_classes(
    data: Microdata,
    keys: Sequence[str],
    strata: Sequence[str],
    problem: Callable[[Codes, Integers], Problem],
) -> SolvedClasses:
    """Count the classes of a query and choose the cells they lose.

    Parameters
    ----------
    data, keys, strata
        The query and its columns.
    problem
        Makes the problem of some codes and the number of records that each stands for.
    """
    from discreet.protect.suppressing.local_suppression import coded

    classes, many = engine.counted_combinations(data, [*keys, *strata])
    asked = problem(coded(classes, keys, strata), many)
    asked.check()
    solved = solve(asked)
    source = np.arange(len(many)) if solved.source is None else solved.source
    assert solved.many is not None
    gone = (asked.codes[source] > 0) & (solved.codes == 0)
    treated = replace(asked, codes=solved.codes, weights=solved.weights, many=solved.many)
    proof = prove(treated, keys, gone, asked.codes)
    bits = gone[:, : len(keys)] @ (np.int64(1) << np.arange(len(keys), dtype=np.int64))
    lost = np.flatnonzero(bits)
    return SolvedClasses(tuple(keys), classes, many, proof, source[lost], bits[lost], solved.many[lost])


@dataclass(frozen=True, eq=False)
class _Marking:
    """Gives the records of a batch their class, how many of it lose cells, and their number."""

    places: engine.ClassPlaces
    losers: Integers

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> Mapping[str, pl.Series]:
        place = _found(self.places, rows)
        made = {_CLASS: place, _LOSERS: self.losers[place], _NUMBER: numbers.view(np.int64)}
        return {name: pl.Series(name, values) for name, values in made.items()}


@dataclass(frozen=True, eq=False)
class _Blanked:
    """Blanks the cells of a batch of records: those of its class, or those that its number says."""

    keys: tuple[str, ...]
    places: engine.ClassPlaces
    bits: Integers
    some: Flags
    numbers: Words
    marks: Integers
    losing: tuple[str, ...]

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> Mapping[str, pl.Series]:
        place = _found(self.places, rows)
        bits = self.bits[place]
        asked = np.flatnonzero(self.some[place]) if len(self.numbers) else np.zeros(0, dtype=np.int64)
        if len(asked):
            sought = numbers[asked]
            at = np.minimum(np.searchsorted(self.numbers, sought), len(self.numbers) - 1)
            bits[asked] = np.where(self.numbers[at] == sought, self.marks[at], 0)
        made = {}
        for key in self.losing:
            stays = pl.Series((bits >> self.keys.index(key)) & 1 == 0)
            made[key] = pl.select(pl.when(stays).then(rows[key]).alias(key)).to_series()
        return made


def _found(places: engine.ClassPlaces, rows: pl.DataFrame) -> Integers:
    found = places.of(rows)
    if (found < 0).any():
        raise changed()
    return found
