"""From demands on a file to the cells that are suppressed, and what that has reached: in memory, or class by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Codes, Flags, Floats, Integers, Words
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.wording import percent
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.records_of_classes import changed
from discreet.protect.suppression_counts import Alike, CountedRows, Demand
from discreet.protect.suppression_merging import merge_until_met, restore_whole_classes
from discreet.protect.suppression_search import give_back_unneeded, suppress_until_met


@dataclass(frozen=True)
class Problem:
    """A file in codes, and what is asked of it.

    Attributes
    ----------
    codes
        One row a record, one column a key, the stratum last; 0 is a gap.
    weights, costs
        Survey weight of each record; what a suppressed cell of each key costs.
    demands
        What must hold in the end.
    wildcard
        Whether a gap matches anything; otherwise it is a value.
    tied, household
        Keys that are suppressed for a whole household, and the household of each record.
    risk_threshold
        The individual risk from which the demanded weights were computed.
    units
        Whose each record is, where company is counted in people.
    many
        How many records a row of the codes stands for, where that is not one.
    """

    codes: Codes
    weights: Floats
    costs: Floats
    demands: Sequence[Demand]
    wildcard: bool
    tied: Sequence[int] = ()
    household: Integers | None = None
    risk_threshold: float | None = None
    units: Integers | None = None
    many: Integers | None = None

    def check(self) -> None:
        """Refuse what cannot be reached even with every key blank."""
        blank = replace(self, wildcard=False).counted(np.array([self.codes.shape[1] - 1]))
        if not all(demand.met(blank.records, blank.weights).all() for demand in self.demands):
            where = "a stratum" if len(blank.records) > 1 else "the file"
            heads = "records" if self.units is None else "people"
            raise ParameterError(
                f"The aim cannot be reached: {where} has only {int(blank.records.min()):,} {heads}, too few even with "
                "every key blank. Lower k (or raise risk_threshold), or merge small strata."
            )

    def counted(self, columns: Integers) -> CountedRows:
        """Count the combinations of some columns of the codes."""
        part = np.ascontiguousarray(self.codes[:, columns])
        return CountedRows(part, self.weights, wildcard=self.wildcard, units=self.units, many=self.many)


def solve(problem: Problem) -> Alike:
    """Return the records with the suppressed cells set to 0.

    Gaps are only ever added until all demands hold at once, so this ends; a file of gaps meets every demand.
    """
    alike = Alike(problem.codes, problem.weights, problem.many)
    while True:
        for demand in problem.demands:
            if problem.wildcard:
                codes = suppress_until_met(alike.codes, problem.weights, problem.costs, demand)
                alike = replace(alike, codes=codes)
            else:
                alike = merge_until_met(alike, problem.costs, demand, problem.units)
        alike = replace(alike, codes=_same_in_household(problem, alike.codes))
        if all_met(problem, alike):
            break
    if problem.wildcard:
        back = give_back_unneeded(
            problem.codes,
            alike.codes,
            weights=problem.weights,
            costs=problem.costs,
            demands=problem.demands,
            tied=problem.tied,
        )
        return replace(alike, codes=back)
    if len(problem.demands) == 1 and problem.household is None and problem.units is None:
        return restore_whole_classes(problem.codes, alike, problem.costs, problem.demands[0])
    return alike


def all_met(problem: Problem, alike: Alike) -> bool:
    """Say whether every demand holds for these records."""
    reached = replace(problem, codes=alike.codes, weights=alike.weights, many=alike.many)
    return not any(reached.counted(demand.columns).lacking(demand).any() for demand in problem.demands)


def _same_in_household(problem: Problem, codes: Codes) -> Codes:
    """Suppress the tied keys for everybody in a household in which one member lost them."""
    if problem.household is None:
        return codes
    codes = codes.copy()
    for key in problem.tied:
        lost = (problem.codes[:, key] > 0) & (codes[:, key] == 0)
        touched = np.zeros(int(problem.household.max()) + 1, dtype=np.bool_)
        touched[problem.household[lost]] = True
        codes[touched[problem.household], key] = 0
    return codes


# What was reached? Counted again on the treated columns, and put into words.
@dataclass(frozen=True)
class Proof:
    """What was counted on a treated file of which every demand holds.

    Attributes
    ----------
    records, cells, touched
        The records of the file, the key cells that are gone, and the records they are gone from.
    key_cells
        All key cells of the file.
    silent
        Records that show no key value; they need no company.
    wildcard, k
        Whether gaps match anything, and the company asked for on all keys.
    leaning
        Records with gaps that have their company only because the others do not show where they differ.
    findable
        Records that lost cells and whose values, as they were, fit fewer than k treated records.
    emptied
        Keys of which no value is left.
    """

    records: int
    cells: int
    touched: int
    key_cells: int
    silent: int
    wildcard: bool
    k: int | None = None
    leaning: int = 0
    findable: int = 0
    emptied: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Say what was done, and what the promise leaves open."""
        said = [
            f"{self.cells:,} key cells ({percent(self.cells / max(self.key_cells, 1))}) were suppressed, in "
            f"{self.touched:,} of {self.records:,} records."
        ]
        if self.emptied:
            said.append(
                f"Suppressed in every record, and no key any more: {', '.join(map(repr, self.emptied))}. Coarser keys "
                "would keep more."
            )
        if self.silent:
            said.append(
                f"{self.silent:,} records show no key value at all; they tell nothing and were not asked for company."
            )
        if self.wildcard and self.leaning:
            said.append(
                f"{self.leaning:,} records with gaps agree with enough records only because these have gaps as well; "
                "missing='category' does not count on that."
            )
        if self.wildcard and self.k is not None and self.touched:
            said.append(
                f"For {self.findable:,} of the {self.touched:,} records with suppressed cells fewer than {self.k} "
                "records fit the values they had: whoever knows those can still single them out. "
                "missing='category' rules that out."
            )
        return said

    def guarantee(self, aims: Sequence[str], *, within: bool) -> str:
        """Say what holds for every record; ``aims`` are the numbers of records asked for, and on what."""
        where = " within its stratum" if within else ""
        silent = " that shows a key value" if self.silent else ""
        if not self.wildcard:
            return (
                f"k-anonymity, counted on the treated file: every record{silent} has the same key values as "
                f"{' and '.join(aims)}{where}, itself counted, a gap being a value."
            )
        return (
            "k-anonymity of complete records, counted on the treated file: every record has company of "
            f"{' and '.join(aims)}{where}, itself counted. Company of a complete record are its complete equals; of a "
            "record with gaps, the records that agree with it wherever both show a value and that show no fewer "
            "values. No k is promised against somebody who knows a suppressed value."
        )


def prove(treated: Problem, keys: Sequence[str], gone: Flags, original: Codes) -> Proof:
    """Count everything again on the treated columns; refuse to go on where a record lacks what was asked for."""
    failing = sum(_failing(treated, demand) for demand in treated.demands)
    if failing:
        raise DiscreetError(
            f"Internal error in LocalSuppression: {failing} records would be released without the company that was "
            "asked for, so nothing was released. Please report this with the parameters that were used."
        )
    touched, shown = gone.any(axis=1), treated.codes[:, : len(keys)] > 0
    many = np.ones(len(gone), dtype=np.int64) if treated.many is None else treated.many
    proof = Proof(
        records=int(many.sum()),
        cells=int((many @ gone).sum()),
        touched=int(many[touched].sum()),
        key_cells=int(many.sum()) * len(keys),
        silent=int(many[(~shown).all(axis=1)].sum()),
        wildcard=treated.wildcard,
        emptied=tuple(key for i, key in enumerate(keys) if gone[:, i].any() and not shown[:, i].any()),
    )
    whole = [demand for demand in treated.demands if len(demand.columns) == len(keys) + 1 and demand.k > 1]
    if not treated.wildcard or not whole:
        return proof
    rows = CountedRows(treated.codes, treated.weights, wildcard=True)
    k = max(demand.k for demand in whole)
    gaps = (rows.codes == 0).any(axis=1)
    leaning = gaps & (rows.company(among="showing all of it")[0] < k)
    # The treated columns are numbered anew: a value that is gone everywhere has no number there.
    left = CountedRows(np.where(gone, 0, original).astype(np.int32), treated.weights, wildcard=True)
    fitting, _ = left.company(original[touched], among="all")
    return replace(proof, k=k, leaning=int(rows.records[leaning].sum()), findable=int((fitting < k).sum()))


def _failing(treated: Problem, demand: Demand) -> int:
    rows = treated.counted(demand.columns)
    size, weight = rows.company()
    short = size < demand.k
    if len(demand.least) and treated.risk_threshold is not None:
        from discreet.risk.negative_binomial_risk import mean_reciprocal

        short |= mean_reciprocal(size, weight) > treated.risk_threshold
    telling = (rows.codes[:, :-1] > 0).any(axis=1)
    return int(rows.records[short & telling].sum())


# A query: solved on its classes, and looked up for its records.
#
# The keys of a record say which class it is in, and all records of a class are alike to the search, which is told how
# many there are. Which records of a class lose their cells is settled by their number (place, or record key): the first
# ones do. Only classes come home, and the numbers of records that lose cells where others of their class do not.
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
    data: Microdata, keys: Sequence[str], strata: Sequence[str], problem: Callable[[Codes, Integers], Problem]
) -> SolvedClasses:
    """Count the classes of a query and choose the cells they lose.

    Parameters
    ----------
    data, keys, strata
        The query and its columns.
    problem
        Makes the problem of some codes and the number of records that each stands for.
    """
    from discreet.protect.local_suppression import coded

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
