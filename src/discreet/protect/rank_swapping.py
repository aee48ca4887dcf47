"""Swap values between records: neighbors in rank, or any two of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.citations import DALENIUS_REISS_1982
from discreet.core.constraints import Between, ColumnName, ColumnNames, Share
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units, crossed
from discreet.protect.treatment import Change, Treatment, existing


@method(
    aim="statistics",
    work="whole-file",
    references=(
        "Moore, R. A. (1996). Controlled data-swapping techniques for masking public use microdata sets. "
        "Statistical Research Division Report RR96-04, US Bureau of the Census.",
    ),
)
@dataclass(frozen=True)
class RankSwap(Treatment):
    """Swap each value with one close to it in rank.

    It protects against recognizing somebody by an exact number, because the number found belongs to someone
    of similar rank.

    The values of a column are put in order; each is swapped with one drawn evenly from the free ones at most
    ``p`` percent of the records away. Every column is swapped on its own. Margins stay exactly the same, the
    larger ``p`` the weaker the ties between columns.

    Also known as: rank swapping.

    Parameters
    ----------
    columns
        Numbers, dates or ordered categories; the numeric sensitive columns unless named.
    p
        How far apart in rank two swapped records may be, in percent of the records (of their stratum).
    strata
        Columns within whose groups values are swapped.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it.

    Notes
    -----
    Equal values are ranked at random. Missing values stay where they are. A record stays as it is where no free
    partner is left within reach, which only happens among the highest ranks.

    What it costs
    -------------
    Correlations, more with larger ``p``; every single value stays in the file, so means and quantiles are
    exact.

    When not to use it
    ------------------
    Do not use it without top-coding where one value gives its owner away by itself. Do not use it with a
    small ``p`` on columns with few outliers: their ranks are close, their values are not, and an intruder who
    knows the rank finds them.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"pay": [10, 20, 30, 40]}))
    >>> made = RankSwap(columns=["pay"], p=25).apply(people, seed=1).data.frame["pay"].to_list()
    >>> made
    [20, 10, 40, 30]
    """

    columns: ColumnName | ColumnNames | None = None
    p: Annotated[float, Between(0, 100, above=True)] = 5
    strata: ColumnName | ColumnNames | None = None
    by: ColumnName | None = None

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Swap the values of every column."""
        chosen = self.columns
        if chosen is None:
            chosen = [name for name in data.roles.sensitive if data.schema[name].is_numeric()]
        names = existing(data, chosen, treatment=self.name)
        table, units, strata = _gathered(self, data, names, self.strata, self.by)
        groups = crossed(table.select(strata))[0] if strata else np.zeros(table.height, dtype=np.int64)
        columns, reach = {}, 0
        for name in names:
            swapped, widest = self._swapped(table[name], groups, stream(name))
            columns[name] = swapped if self.by is None else swapped.gather(units.of_record)
            reach = max(reach, widest)
        if not reach:
            raise ParameterError(
                f"p={self.p:g} percent of the records is less than one: nothing can be swapped. Raise p, or use "
                "coarser strata."
            )
        return Change(
            columns=columns,
            notes=(
                f"Values were swapped with others at most {self.p:g} percent of the ranks away"
                + (f", within groups of {', '.join(strata)}." if strata else "."),
                "The values of every column are those of the file; only who has which has changed.",
            ),
        )

    def _swapped(
        self, values: pl.Series, groups: Integers, rng: np.random.Generator
    ) -> tuple[pl.Series, int]:
        from discreet.protect.swapping_kernels import rank_partners

        ranked = _sortable(values, self.name)
        there = np.flatnonzero(values.is_not_null().to_numpy())
        mixed = rng.permutation(there)
        order = mixed[np.argsort(ranked[mixed], kind="stable")]
        order = order[np.argsort(groups[order], kind="stable")]
        sizes = np.bincount(groups[order], minlength=1)
        # The small addition keeps 5 % of 60 from becoming 2 through rounding.
        windows = np.floor(self.p / 100 * sizes + 1e-9).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        partners = rank_partners(starts, windows, rng.random(len(order)))
        source = np.arange(len(values))
        source[order] = order[partners]
        return values.gather(source), int(windows.max(initial=0))


@method(aim="doubt", work="whole-file", references=(DALENIUS_REISS_1982,))
@dataclass(frozen=True)
class RandomSwap(Treatment):
    """Swap the values of some columns between randomly drawn records.

    It protects against being sure that the values found with a record belong to that person.

    Records are drawn and paired at random, within groups if you say so; each pair exchanges its values of all the
    columns together. Counts of every column, and of all columns within a group, stay the same.

    Also known as: data swapping.

    Parameters
    ----------
    columns
        The columns to swap, together.
    share
        The share of the records that take part.
    within
        Columns that both records of a pair have in common.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it. Then whole
        groups of records are paired.

    Notes
    -----
    A record with a missing value in one of the columns takes no part. In each group the number of pairs is rounded
    at random, so that the share is right on average.

    What it costs
    -------------
    The relation of the swapped columns with all others shrinks by about the swapped share, except with the
    columns in ``within``. All counts of the swapped columns stay exact.

    When not to use it
    ------------------
    Do not use it to protect the few who stand out: a random draw misses most of them, `RecordSwap` looks for
    them. Do not swap a large share of columns that analyses relate to others.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "f", "m", "m"], "job": ["cook", "nurse", "clerk", "judge"]}))
    >>> RandomSwap(columns=["job"], share=1, within=["sex"]).apply(people, seed=1).data.frame["job"].to_list()
    ['nurse', 'cook', 'judge', 'clerk']
    """

    columns: ColumnName | ColumnNames
    share: Annotated[float, Share(above=True)] = 0.1
    within: ColumnName | ColumnNames | None = None
    by: ColumnName | None = None

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Pair records and exchange their values."""
        names = existing(data, self.columns, treatment=self.name)
        table, units, within = _gathered(self, data, names, self.within, self.by)
        whole = table.select(pl.all_horizontal(pl.col(names).is_not_null())).to_series().to_numpy()
        groups = crossed(table.select(within))[0] if within else np.zeros(table.height, dtype=np.int64)
        source = _paired(np.flatnonzero(whole), groups, self.share, stream("pairs"))
        spread = source if self.by is None else source[units.of_record]
        moved = int((source != np.arange(table.height)).sum())
        return Change(
            columns={name: table[name].gather(spread) for name in names},
            notes=(
                f"{moved:,} of {table.height:,} {'records' if self.by is None else 'groups of records'} exchanged "
                f"their values of {', '.join(names)} with another"
                + (f" of the same {', '.join(within)}." if within else "."),
            ),
        )


def _gathered(
    treatment: RankSwap | RandomSwap,
    data: Microdata,
    names: Sequence[str],
    groups: str | Sequence[str] | None,
    by: str | None,
) -> tuple[pl.DataFrame, Units, tuple[str, ...]]:
    """Collect the columns, one row for each unit, and name those that form groups."""
    within = () if groups is None else existing(data, groups, treatment=treatment.name)
    both = set(within) & set(names)
    if both:
        raise ParameterError(f"'{min(both)}' cannot be swapped and form the groups within which is swapped.")
    held = () if by is None else existing(data, by, treatment=treatment.name)
    table = engine.collect(data, list(dict.fromkeys([*names, *within, *held])))
    units = Units.of(table[by] if by else None, table.height)
    if by is not None:
        units.check_same(table, [*names, *within], by)
        table = table[units.first]
    return table, units, within


def _paired(taking_part: Integers, groups: Integers, share: float, rng: np.random.Generator) -> Integers:
    """Pair a share of the records of each group; the result says from where each record gets its values."""
    mixed = rng.permutation(taking_part)
    order = mixed[np.argsort(groups[mixed], kind="stable")]
    sizes = np.bincount(groups[order], minlength=1)
    pairs = np.minimum(np.floor(share * sizes / 2 + rng.random(len(sizes))), sizes // 2).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - starts[groups[order]]
    first = order[(place < 2 * pairs[groups[order]]) & (place % 2 == 0)]
    second = order[(place < 2 * pairs[groups[order]]) & (place % 2 == 1)]
    source = np.arange(len(groups))
    source[first], source[second] = second, first
    return source


def _sortable(values: pl.Series, treatment: str) -> npt.NDArray[np.generic]:
    """Give numbers in the order of the values."""
    kind = values.dtype
    ordered = kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean or isinstance(kind, pl.Enum)
    if not ordered:
        raise ColumnError(
            f"{treatment} needs an order, and column '{values.name}' is {kind}. Make it an ordered category "
            "(Enum, or ordered categories in pandas), or use random-swap."
        )
    numbers = values.cast(pl.UInt8) if kind == pl.Boolean else values.to_physical()
    if isinstance(numbers.dtype, pl.Decimal):
        numbers = numbers.cast(pl.Float64)
    return numbers.fill_null(0).to_numpy()
