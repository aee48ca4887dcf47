"""Blank single key cells so that nobody stands out: local suppression.

`LocalSuppression` decides which cells go; the search for few of them is in `suppression_search` (gaps match
anything) and `suppression_merging` (a gap is a value).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Codes, Flags, Floats, Integers
from discreet.core.cards import Work
from discreet.core.citations import HUNDEPOOL_2012, SAMARATI_SWEENEY_1998
from discreet.core.constraints import Above, AtLeast, ColumnName, ColumnNames, HoldsValues, Public, Share
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment, existing

_NAME = "LocalSuppression"
_MOST_KEYS = 60  # sets of keys are the bits of a 64-bit number


@method(aim="company", work="class-wise", references=(SAMARATI_SWEENEY_1998, HUNDEPOOL_2012))
@dataclass(frozen=True)
class LocalSuppression(Treatment):
    """Set few key cells to missing so that every record has company enough.

    It protects against finding somebody by a rare combination of keys: the few cells that make a record rare
    are emptied.

    A record has *company* of s when s records, itself included, agree with it on the keys. Cells of records with
    too little company are suppressed (set to missing) until nobody is left alone; which cells, is chosen for the
    whole file at once, so that few are lost. What was reached is counted again on the treated columns before they
    are handed over.

    A record that is complete in its keys when it leaves has k complete equals, always: the gaps of others hide nobody.
    The two ways to count differ for records with gaps. With ``missing="category"`` a gap is a value: classes are a
    partition, each of at least k records with the same gaps. That is what `assess` and `risk.k_anonymity` count unless
    told otherwise, and who knows all about a person still finds k records that fit. With ``missing="wildcard"`` a gap
    matches anything, as in the literature on local suppression: a record with gaps agrees, wherever both show a value,
    with k records that show no fewer values than it does. That costs hardly more than one cell for each record
    in a group below k, and promises less: who knows a suppressed value may find the one record with a gap in its place.
    The log says for how many records that is so.

    A record of which every key is suppressed tells nothing and needs no company. Where the role ``person`` (else
    ``contributor``) says whose the records are, company is counted in people.

    Also known as: localSuppression; kAnon.

    Parameters
    ----------
    k
        The least company of every record on all keys together.
    importance
        The keys from the most to the least important: to suppress one costs as much as to suppress every key after
        it and one cell more. Or ``{key: cost}``, what one suppressed cell of the key costs; keys that are not named
        cost 1. All keys cost the same by default.
    subsets
        ``{size: k}``: on every set of so many keys the company is at least k, e.g. ``{3: 5, 4: 3}``.
    strata
        Columns within whose combinations company is counted, e.g. the region that is released beside the keys.
    risk_threshold
        Suppress until the individual risk (see `risk.individual`) of every record is at most this; needs weights.
    ghosts
        ``{key: [columns]}``: columns that tell the same as the key; they are blanked in the same records.
    household_keys
        Keys that describe the household (region, dwelling): suppressed for one member, suppressed for all.
    missing
        ``"category"`` or ``"wildcard"``: how gaps count, those of the original file and the new ones.
    keys, weight, household
        Columns; those of the data unless named.

    Notes
    -----
    A query (Polars lazy, DuckDB, Spark) is solved on its distinct key combinations, which alone are collected, and
    stays a query; where some records of a class lose cells, the first do (Spark needs ``record_key`` for that). The
    search meets records in the order of their keys then, and may settle ties otherwise than for the file in memory.
    ``missing="wildcard"``, ``risk_threshold``, ``household_keys``, ``ghosts`` and several records a person need the
    columns themselves, which are collected.

    Every record in a group below k loses at least one cell, so their number is the least that can be reached. With
    gaps as values, records in groups below k form groups that give up the same keys, the cheapest first, and then
    move between groups while that saves cells; a group that stays too small is filled up with records of large
    classes. With gaps as wildcards each takes the cheapest gap that brings company enough, and those who have several
    to choose from choose so that the others find company too. Both choices are good, not proved to be the least.

    What it costs
    -------------
    Few cells, but not at random: those of unusual people. Rare groups look rarer than they are, and users
    need methods for missing values.

    When not to use it
    ------------------
    Do not use it where many records are rare: coarsen the keys first and suppress what is left. It does not
    protect the sensitive value of a class in which all share it; check l-diversity afterwards. Do not use
    ``missing="wildcard"`` against somebody who may know all keys of a person.

    Examples
    --------
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "f", "m", "m"], "job": ["a", "a", "b", "c", "a", "a"]})
    >>> release = LocalSuppression(k=2).apply(Microdata(people, keys=["sex", "job"]))
    >>> release.data.frame["job"].to_list(), release.log[0].suppressed_cells
    (['a', 'a', None, None, 'a', 'a'], {'job': 2})
    """

    k: Annotated[int, AtLeast(2)] | None = None
    importance: ColumnNames | Annotated[Mapping[str, Annotated[float, Above(0)]], Public()] | None = None
    subsets: Mapping[Annotated[int, AtLeast(1)], Annotated[int, AtLeast(2)]] | None = None
    strata: ColumnName | ColumnNames | None = None
    risk_threshold: Annotated[float, Share(above=True, below=True)] | None = None
    ghosts: Annotated[Mapping[str, Sequence[str]], HoldsValues(by_column=True)] | None = None
    household_keys: ColumnName | ColumnNames | None = None
    missing: Literal["category", "wildcard"] = "category"
    keys: ColumnName | ColumnNames | None = None
    weight: ColumnName | None = None
    household: ColumnName | None = None

    def __post_init__(self) -> None:
        if self.k is None and not self.subsets and self.risk_threshold is None:
            raise ParameterError(f"{_NAME} needs an aim: k=3, subsets={{3: 5}} or risk_threshold=0.1.")
        if self.subsets is not None:
            object.__setattr__(self, "subsets", _subsets(self.subsets))
        if self.importance is not None and not isinstance(self.importance, Mapping):
            object.__setattr__(self, "importance", _listed(self.importance))
            if len(set(self.importance)) < len(self.importance):
                raise ParameterError(
                    "importance names a key twice. Name each key once, the most important first."
                )

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Choose the cells and blank them; nothing here is random."""
        from discreet.protect.suppression_solving import Problem, prove, solve
        from discreet.risk.equivalence_classes import heads_of

        keys = engine.resolve_keys(data, self.keys)
        if len(keys) > _MOST_KEYS:
            raise ParameterError(f"{_NAME} works on up to {_MOST_KEYS} keys, not {len(keys)}. Name fewer.")
        floats = [key for key in keys if data.schema[key].is_float()]
        household_keys, ghosts = _listed(self.household_keys), self._ghosts(data, keys)
        need_known(household_keys, keys, what="key", after=" It was named under 'household_keys'.")
        strata = existing(data, self.strata, treatment=_NAME) if self.strata else ()
        for column in strata:
            if column in keys:
                raise ColumnError(
                    f"Column '{column}' is both a key and a stratum. Take it out of one of the two."
                )
        if engine.is_lazy(data) and self.work == "class-wise" and engine.counted_unit(data) is None:
            return self._by_classes(data, keys, strata, floats)
        weight = engine.resolve_weight(data, self.weight, required=self.risk_threshold is not None)
        household = self._household(data) if household_keys else None
        others = [name for name in (*strata, weight, household) if name]
        followed = [column for columns in ghosts.values() for column in columns]
        table = engine.collect(data, list(dict.fromkeys([*keys, *others, *followed])))

        weights = table[weight].cast(pl.Float64).to_numpy() if weight else np.zeros(table.height)
        problem = Problem(
            codes=coded(table, keys, strata),
            weights=weights,
            costs=self._costs(keys),
            demands=self._demands(keys, table.height),
            risk_threshold=self.risk_threshold,
            wildcard=self.missing == "wildcard",
            tied=tuple(keys.index(key) for key in household_keys),
            household=_households(table[household]) if household else None,
            units=self._units(data),
        )
        problem.check()
        solved = solve(problem).codes
        gone = (problem.codes > 0) & (solved == 0)
        columns = {
            key: _blanked(data, table[key], gone[:, i]) for i, key in enumerate(keys) if gone[:, i].any()
        }
        treated = table.with_columns(series.alias(key) for key, series in columns.items())
        proof = prove(replace(problem, codes=coded(treated, keys, strata)), keys, gone, problem.codes)
        followers = _following(data, table, {keys.index(key): ghosts[key] for key in ghosts}, gone)
        aims = self._aims(keys, heads_of(data).many if problem.units is not None else "records")
        notes = (*proof.notes, *self._notes(len(followers), floats))
        change = _reached(data, proof.emptied, notes, proof.guarantee(aims, within=bool(strata)))
        return replace(change, columns={**columns, **followers})

    @property
    def work(self) -> Work:
        """Classes say all, unless neighborhoods, weights or households are looked at, or other columns follow a key."""
        more = (self.risk_threshold, self.household_keys, self.ghosts, self.missing == "wildcard")
        return "whole-file" if any(more) else "class-wise"

    def _by_classes(
        self, data: Microdata, keys: Sequence[str], strata: Sequence[str], floats: Sequence[str]
    ) -> Change:
        """Choose the cells of a query from its classes; its records stay where they are."""
        from discreet.protect.suppression_solving import Problem, solved_classes

        def problem(codes: Codes, many: Integers) -> Problem:
            demands = self._demands(keys, int(many.sum()))
            return Problem(codes, np.zeros(len(codes)), self._costs(keys), demands, wildcard=False, many=many)

        solved = solved_classes(data, keys, strata, problem)
        proof, aims = solved.proof, self._aims(keys, "records")
        notes = (*proof.notes, *self._notes(0, floats))
        change = _reached(data, proof.emptied, notes, proof.guarantee(aims, within=bool(strata)))
        return replace(change, of_records=solved.by_record(data) if len(solved.losing) else None)

    def _costs(self, keys: Sequence[str]) -> Floats:
        if self.importance is None:
            return np.ones(len(keys))
        need_known(self.importance, keys, what="key", after=" It was named under 'importance'.")
        if isinstance(self.importance, Mapping):
            return np.array([float(self.importance.get(key, 1.0)) for key in keys])
        ranked = [*self.importance, *(key for key in keys if key not in self.importance)]
        return np.array([2.0 ** (len(keys) - 1 - ranked.index(key)) for key in keys])

    def _demands(self, keys: Sequence[str], records: int) -> tuple[Any, ...]:
        """List what must hold; few keys first, because their gaps serve all larger sets."""
        from discreet.protect.suppression_counts import Demand

        stratum = len(keys)
        demands = []
        for size, k in sorted((self.subsets or {}).items()):
            if size > len(keys):
                raise ParameterError(
                    f"subsets asks for sets of {size} keys, but there are only {len(keys)} keys."
                )
            demands += [
                Demand(np.array([*chosen, stratum]), k) for chosen in combinations(range(len(keys)), size)
            ]
        if self.k is not None or self.risk_threshold is not None:
            risk = self.risk_threshold
            least = np.zeros(0) if risk is None else _least_weight(risk, records)
            demands.append(Demand(np.arange(len(keys) + 1), self.k or 1, least))
        return tuple(demands)

    def _household(self, data: Microdata) -> str:
        name = self.household or data.roles.household
        if name is None:
            raise ParameterError(
                "household_keys needs to know who lives together. Name the column: household='household_id'."
            )
        return existing(data, name, treatment=_NAME)[0]

    def _units(self, data: Microdata) -> Integers | None:
        """Number the people (or contributors) whose the records are, where somebody has several."""
        units: Integers | None = engine.unit_column(data)
        if units is not None and self.missing == "wildcard":
            raise ParameterError(
                f"'{engine.counted_unit(data)}' says that people have several records, and neighborhoods of records "
                "with gaps are not counted in people. Use missing='category'."
            )
        return units

    def _ghosts(self, data: Microdata, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found = {}
        for key, columns in (self.ghosts or {}).items():
            need_known([key], keys, what="key", after=" It was named under 'ghosts'.")
            found[key] = existing(data, columns, treatment=_NAME)
            for column in found[key]:
                if column in keys:
                    raise ColumnError(
                        f"Column '{column}' is a key and cannot also follow '{key}' as a ghost."
                    )
        return found

    def _notes(self, followers: int, floats: Sequence[str]) -> list[str]:
        notes = []
        if followers:
            notes.append(f"{followers} linked columns were blanked along with their key.")
        if floats:
            notes.append(engine.float_key_caveat(floats))
        return notes

    def _aims(self, keys: Sequence[str], heads: str) -> list[str]:
        """Word what company was asked for."""
        aims = [f"at least {k} {heads} on every set of {m} keys" for m, k in (self.subsets or {}).items()]
        if self.k is not None:
            aims.append(f"at least {self.k} {heads} on all {len(keys)} keys")
        if self.risk_threshold is not None:
            aims.append(f"as many as keep the individual risk at {self.risk_threshold:g} or below")
        return aims


def _reached(data: Microdata, emptied: Sequence[str], notes: tuple[str, ...], guarantee: str) -> Change:
    left = tuple(key for key in data.roles.keys if key not in emptied)
    # A key without any value is known to nobody; measures would take it for a column that was read wrongly.
    roles = {"keys": left} if left and emptied else {}
    return Change(roles=roles, notes=notes, guarantee=guarantee)


def coded(table: pl.DataFrame, keys: Sequence[str], strata: Sequence[str]) -> Codes:
    """Number the values of each key from 1 (0: missing), and in a last column the strata, missing being a value."""
    codes = np.ones((table.height, len(keys) + 1), dtype=np.int32)
    for i, key in enumerate(keys):
        values, numbers = distinct_values(table[key])
        known = values.is_not_null().to_numpy()
        codes[:, i] = np.where(known, np.cumsum(known), 0)[numbers]
    if strata:
        codes[:, -1] = table.select(pl.struct(*strata).rank("dense")).to_series().to_numpy()
    return codes


def _following(
    data: Microdata, table: pl.DataFrame, ghosts: Mapping[int, Sequence[str]], gone: Flags
) -> dict[str, pl.Series]:
    """Blank the linked columns where their key, or one of their keys, was suppressed."""
    blank: dict[str, Flags] = {}
    for key, columns in ghosts.items():
        for column in columns:
            blank[column] = blank.get(column, False) | gone[:, key]
    return {name: _blanked(data, table[name], cells) for name, cells in blank.items() if cells.any()}


def _blanked(data: Microdata, column: pl.Series, cells: Flags) -> pl.Series:
    series = column.zip_with(
        pl.Series(~cells), pl.Series([None], dtype=column.dtype).new_from_index(0, len(column))
    )
    return series.cast(pl.UInt32) if data.schema[column.name] == nw.UInt32 else series


def _households(column: pl.Series) -> Integers:
    """Number the households; a record without one stands alone."""
    values, numbers = distinct_values(column)
    missing = values.is_null().to_numpy()[numbers]
    alone = len(values) + np.cumsum(missing)
    return np.where(missing, alone, numbers)


def _least_weight(threshold: float, records: int) -> Floats:
    """Find for each number of records the least weight at which the individual risk is at most the threshold."""
    from discreet.risk.negative_binomial_risk import mean_reciprocal

    # From 1 / threshold records on any weight will do: the risk is at most one over their number.
    size = np.arange(1.0, math.ceil(min(1 / threshold, records)) + 1)
    low, high = size.copy(), np.full(len(size), 1e18)
    for _ in range(100):
        middle = np.sqrt(low * high)
        fine = mean_reciprocal(size, middle) <= threshold
        low, high = np.where(fine, low, middle), np.where(fine, middle, high)
    # A hair more than needed, so that the order in which weights are added up cannot matter.
    needed = high * (1 + 1e-9)
    needed[mean_reciprocal(size, size) <= threshold] = 0.0
    return np.append(np.inf, needed)


def _subsets(subsets: Mapping[Any, int]) -> dict[int, int]:
    try:
        return {int(size): k for size, k in subsets.items()}  # a plan file has texts for keys
    except ValueError:
        raise ParameterError("subsets must be {number of keys: k}, e.g. {3: 5, 4: 3}.") from None


def _listed(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)
