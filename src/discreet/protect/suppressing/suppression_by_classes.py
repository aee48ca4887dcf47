"""Local suppression of a query: solved on its classes, and looked up for its records.

The keys of a record say which class it is in, and all records of a class are alike to the search. Of a large class
only so many are set before the search as it may borrow: the others keep the company they have. Which records of a class
lose their cells is settled by their number (place, or record key): the first ones do. Only classes come home, and the
numbers of records that lose cells where others of their class do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.arrays import Codes, Flags, Integers, Words
from discreet.engine import ByRecord
from discreet.errors import ParameterError
from discreet.microdata import Microdata
from discreet.protect.drawn_records import changed
from discreet.protect.suppressing.demands_met import Problem, solve
from discreet.protect.suppressing.suppression_proof import Proof, prove

_NUMBER = "discreet number"
_AT_LEAST, _TIMES_K = 200, 20
_LEAST_TIMES_K = 4
_EASILY_HELD, _MOST_ROWS = 10_000_000, 50_000_000


@dataclass(frozen=True, eq=False)
class SolvedClasses:
    """What becomes of every class.

    Attributes
    ----------
    classes, many
        The combinations of keys and strata, and how many records have each.
    proof
        What was counted on the treated classes.
    gone
        Key cells that are lost, by record set before the search.
    owner
        The class of each of those records.
    """

    keys: tuple[str, ...]
    classes: pl.DataFrame
    many: Integers
    proof: Proof
    gone: Flags
    owner: Integers

    @property
    def losing(self) -> list[str]:
        """The keys that lose cells."""
        return [key for place, key in enumerate(self.keys) if self.gone[:, place].any()]

    def by_record(self, data: Microdata) -> Callable[[tuple[str, ...]], ByRecord]:
        """Say what becomes of a record, once it is known by what records are told apart."""
        return lambda record_key: self._by_record(data, record_key)

    def _by_record(self, data: Microdata, record_key: tuple[str, ...]) -> ByRecord:
        bits = self.gone.astype(np.int64) @ (np.int64(1) << np.arange(len(self.keys), dtype=np.int64))
        lost = pl.DataFrame({"class": self.owner, "bits": bits}).filter(pl.col("bits") > 0)
        lost = lost.sort("class", "bits")
        of_class = lost.group_by("class", maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias("losers"),
            pl.col("bits").n_unique().alias("kinds"),
            pl.col("bits").first(),
        )
        size = pl.Series(self.many).gather(of_class["class"])
        whole = (of_class["kinds"] == 1) & (of_class["losers"] == size)
        masks = pl.DataFrame(
            [*self.classes[of_class["class"].to_list()], of_class["bits"], whole.alias("whole")]
        )
        split = of_class.filter(~whole)
        numbers, marks = self._numbered(data, split, lost, record_key)
        work = _Blanked(self.keys, tuple(self.classes.columns), masks, numbers, marks, tuple(self.losing))
        types = {key: self.classes.schema[key] for key in self.losing}
        return ByRecord(tuple(self.classes.columns), types, work, draws=bool(len(split)))

    def _numbered(
        self, data: Microdata, split: pl.DataFrame, lost: pl.DataFrame, record_key: tuple[str, ...]
    ) -> tuple[Words, Integers]:
        """Find the first records of each class of which some lose cells, and say which cells each loses."""
        if split.is_empty():
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        engine.need_record_key(data, record_key, "local-suppression")
        names = {f"k{place}": name for place, name in enumerate(self.classes.columns)}
        plain = ByRecord(tuple(names.values()), {_NUMBER: pl.Int64()}, _as_it_is, draws=True)
        drop = [name for name in data.columns if name not in names.values()]
        frame = engine.made_lazily(data, plain, key=record_key, drop=drop, purpose="local-suppression")
        rows = engine.scan(Microdata(frame), {**names, "number": _NUMBER})
        chosen = self.classes[split["class"].to_list()].rename({name: at for at, name in names.items()})
        chosen = chosen.with_columns(split["class"], split["losers"])
        found = engine.beside_classes(data, rows, chosen, names).filter(~nw.col("class").is_null())
        rank = nw.col("number").rank("ordinal").over("class")
        first = found.with_columns(rank.alias("rank")).filter(nw.col("rank") <= nw.col("losers"))
        taken = engine.collect(first.select("class", "number")).sort("class", "number")
        of_split = lost.filter(pl.col("class").is_in(split["class"].implode()))
        if taken.height != of_split.height:
            raise changed()
        order = np.argsort(numbers := taken["number"].to_numpy().view(np.uint64))
        return numbers[order], of_split["bits"].to_numpy()[order]


def solved_classes(
    data: Microdata, keys: Sequence[str], strata: Sequence[str], problem: Callable[[Codes, int], Problem]
) -> SolvedClasses:
    """Count the classes of a query and choose the cells they lose.

    Parameters
    ----------
    data, keys, strata
        The query and its columns.
    problem
        Makes the problem of some codes and a number of records.
    """
    from discreet.protect.suppressing.local_suppression import coded

    classes, many = engine.counted_combinations(data, [*keys, *strata])
    records = int(many.sum())
    asked = problem(np.zeros((0, len(keys) + 1), dtype=np.int32), records)
    shown = _set_before_the_search(many, max(demand.k for demand in asked.demands))
    if int(shown.sum()) > _MOST_ROWS:
        raise ParameterError(
            f"The keys leave {len(many):,} classes with {int(shown.sum()):,} records that would have to be held at "
            f"once, more than {_MOST_ROWS:,}. Coarsen the keys first, and suppress what is left."
        )
    owner = np.repeat(np.arange(len(many)), shown)
    of_class = coded(classes, keys, strata)
    codes = np.ascontiguousarray(of_class[owner])
    asked = replace(asked, codes=codes, weights=np.zeros(len(codes)))
    asked.check()
    solved = solve(asked)
    gone = (codes > 0) & (solved == 0)
    proof = prove(replace(asked, codes=np.where(gone, 0, codes).astype(codes.dtype)), keys, gone, codes)
    aside = many - shown
    silent = (of_class[:, : len(keys)] == 0).all(axis=1)
    proof = replace(
        proof,
        records=records,
        key_cells=records * len(keys),
        silent=proof.silent + int(aside[silent].sum()),
        emptied=tuple(
            key for key in proof.emptied if not aside[of_class[:, list(keys).index(key)] > 0].any()
        ),
    )
    return SolvedClasses(tuple(keys), classes, many, proof, gone[:, : len(keys)], owner)


def _set_before_the_search(many: Integers, k: int) -> Integers:
    """Say how many records of each class the search may borrow from: fewer where there are very many classes."""
    most = max(_AT_LEAST, _TIMES_K * k)
    shown: Integers = np.minimum(many, most)
    while int(shown.sum()) > _EASILY_HELD and most > _LEAST_TIMES_K * k:
        most = max(most // 2, _LEAST_TIMES_K * k)
        shown = np.minimum(many, most)
    return shown


def _as_it_is(rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
    return {_NUMBER: pl.Series(_NUMBER, numbers.view(np.int64))}


@dataclass(frozen=True, eq=False)
class _Blanked:
    """Blanks the cells of a batch of records: those of its class, or those that its number says."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    masks: pl.DataFrame
    numbers: Words
    marks: Integers
    losing: tuple[str, ...]

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> Mapping[str, pl.Series]:
        known = rows.select(pl.col(name).cast(self.masks.schema[name]) for name in self.columns)
        found = known.join(
            self.masks, on=list(self.columns), how="left", nulls_equal=True, maintain_order="left"
        )
        of_class = found.select(pl.when("whole").then("bits").otherwise(0).fill_null(0)).to_series()
        bits = of_class.to_numpy()
        if len(self.numbers):
            touched = found["whole"].not_().fill_null(False).to_numpy()
            at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
            named = touched & (self.numbers[at] == numbers)
            bits = np.where(named, self.marks[at], bits)
        made = {}
        for key in self.losing:
            stays = pl.Series((bits >> self.keys.index(key)) & 1 == 0)
            made[key] = pl.select(pl.when(stays).then(rows[key]).alias(key)).to_series()
        return made
