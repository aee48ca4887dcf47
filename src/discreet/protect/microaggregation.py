"""Show groups of similar records instead of records: microaggregation of numbers, mixed columns and series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.distance.space import MixedSpace, Points
from discreet.protect.microaggregation_groups import (
    ONE_BY_ONE,
    Axis,
    Categories,
    Measure,
    Method,
    Partition,
    as_released,
    best_of_one_column,
    by_pattern,
    category_of_group,
    check_order,
    curves,
    fewest_people,
    filled,
    lost_shares,
    members,
    nearest_members,
    number_of_group,
    numbered,
    one_row_each,
    ranks_of_one_column,
    squares_lost,
    without_thin_cells,
)
from discreet.protect.treatment import Change, Treatment, existing, group_column, numeric

if TYPE_CHECKING:
    from discreet.numerics.distance.distance_kernels import Metric


Missing = Literal["apart", "observed"]


@method(
    aim="company",
    work="whole-file",
    references=(
        "Domingo-Ferrer, J. and Mateo-Sanz, J. M. (2002). Practical data-oriented microaggregation for "
        "statistical disclosure control. IEEE Transactions on Knowledge and Data Engineering 14(1), "
        "189–201.",
        "Domingo-Ferrer, J. and Torra, V. (2005). Ordinal, continuous and heterogeneous k-anonymity "
        "through microaggregation. Data Mining and Knowledge Discovery 11(2), 195–212.",
    ),
    tells=("sse_share_by_column",),
)
@dataclass(frozen=True)
class Microaggregate(Treatment):
    """Replace the values of each record by those of a group of at least k similar records.

    It protects against recognizing somebody by their exact numbers: every combination of them is shared by at
    least k records (methods that group on all columns together).

    Similar records are put into groups, and each group shows one value a column: its mean. Means and totals of
    every column stay exact; variances and correlations shrink by what differs within the groups, which the log
    reports as ``sse_share`` (sum of squares within groups over total, all columns in standard deviations: 0 nothing
    lost, 1 all). Methods that group on all columns together make the file k-anonymous on these columns, and on
    these only. The methods of one column at a time (``"univariate"``, ``"ranking"``) lose far less, and do *not*:
    combinations of values stay rare, and a value is known to lie between its neighbors.

    Whole numbers become floats, because a mean is seldom whole; with ``round=True`` they stay whole, and totals
    are then kept only up to rounding.

    Also known as: MDAV; microaggregation; V-MDAV.

    Parameters
    ----------
    k
        The smallest size of a group, 2 or more; in people, where the data has the role ``person`` (else
        ``contributor``).
    method
        - ``"mdav"``: maximum distance to average vector (Domingo-Ferrer and Torra 2005); groups of k to 2k-1,
          exactly as a comparison of all pairs would find them, ties by position;
        - ``"v-mdav"``: groups of variable size that follow clusters (Solanas and Martínez-Ballesté 2006);
        - ``"projection"``: records ordered along one ``axis``, the order cut where it costs least; k to 2k-1;
        - ``"clustering"``: k-means clusters first, MDAV inside each; for very large files;
        - ``"univariate"``: each column on its own, in the best possible groups of k to 2k-1 (Hansen and Mukherjee
          2003);
        - ``"ranking"``: each column on its own, in runs of k of the sorted values (individual ranking);
        - ``"random"``: groups at random, as a yardstick;
        - ``"labels"``: the groups that the column ``labels`` names (street, transformer).
    columns
        The columns to treat: numbers, dates or categories. Every numeric sensitive column unless named.
    strata
        Columns whose combinations are never mixed in a group. Each must have k records.
    measure
        What stands for the numbers of a group: ``"mean"`` or ``"median"`` (robust, but totals change). Or
        ``"member"``: all columns are those of one record of the group, the one nearest to the others, so that types
        stay and no combination is shown that nobody has; totals change.
    categories
        What stands for its categories: the ``"mode"``, or the (lower) ``"median"`` of ordered levels; with
        ``measure="member"`` those of the member.
    distance
        ``"euclidean"`` or ``"gower"``; unless given, Gower as soon as a column is categorical.
    standardize
        Whether Euclidean distances are in standard deviations of each column. Unless given: yes, but not for
        series, whose slots share one unit. What is released is never standardized.
    gamma
        For ``"v-mdav"``: how willingly groups grow; 0.2 suits scattered, 1.1 clustered data.
    axis
        For ``"projection"``: the first principal component (``"pca"``), or the ``"sum"`` of the standardized columns.
    clusters
        For ``"clustering"``: how many; the root of n/(2k) unless given.
    labels
        For ``"labels"``: the column that names the groups.
    series
        For a file with one row a reading (a load curve, a panel): the column that names the meter or person. Whole
        series are grouped and each reading becomes the mean of its group at that time. Strata, labels and weights
        must be the same in all rows of a series. A file with one column a time slot needs no such thing: name
        the slots as ``columns`` and set ``standardize=False``.
    time
        For series: the column with the time slot; the role ``time`` unless named.
    weight
        Column with weights for means and modes, so that weighted totals are kept; none unless named. Distances
        are not weighted.
    missing
        Missing values stay missing, and a group's value is made of the values there are. ``"apart"``: records are
        grouped with those that lack the same columns (patterns of fewer than k records are pooled).
        ``"observed"``: all are grouped together, what is missing standing at the mean for distances; always so for
        series. Either way a value that fewer than k records would make up is not released: those cells become
        missing, and the log says how many. With ``measure="member"`` the gaps are those of the member.
    round
        Whether whole numbers stay whole.

    What it costs
    -------------
    Differences within the groups: variances and correlations shrink by ``sse_share``. Means and totals stay
    exact.

    When not to use it
    ------------------
    Do not use it one column at a time (``"univariate"``, ``"ranking"``) when k-anonymity is wanted. Do not
    use it where a group may share one sensitive value, nor on few records with many columns: groups get wide
    and little is left.

    Examples
    --------
    >>> firms = Microdata(pl.DataFrame({"sales": [1.0, 2.0, 3.0, 90.0, 95.0, 100.0]}), sensitive="sales")
    >>> release = Microaggregate(k=3).apply(firms)
    >>> release.data.frame["sales"].to_list()
    [2.0, 2.0, 2.0, 95.0, 95.0, 95.0]
    >>> round(release.log[0].parameters["sse_share"], 4)
    0.004
    """

    k: Annotated[int, AtLeast(2)] = 3
    method: Method = "mdav"
    columns: ColumnNames | None = None
    strata: ColumnName | ColumnNames | None = None
    measure: Measure = "mean"
    categories: Categories = "mode"
    distance: Literal["euclidean", "gower"] | None = None
    standardize: bool | None = None
    gamma: Annotated[float, AtLeast(0)] = 0.2
    axis: Axis = "pca"
    clusters: Annotated[int, AtLeast(1)] | None = None
    labels: ColumnName | None = None
    series: ColumnName | None = None
    time: ColumnName | None = None
    weight: ColumnName | None = None
    missing: Missing = "apart"
    round: bool = False

    def __post_init__(self) -> None:
        if (self.method == "labels") != (self.labels is not None):
            raise ParameterError("labels= names the column of given groups and goes with method='labels'.")
        if self.time is not None and self.series is None:
            raise ParameterError("time= goes with series=, the column that names the meter or person.")
        if self.series is not None and self.distance == "gower":
            raise ParameterError("Series are compared by Euclidean distances; leave distance= out.")
        if self.measure == "member" and (self.series is not None or self.method in ONE_BY_ONE):
            raise ParameterError(
                "measure='member' shows whole records: group on all columns, without series."
            )
        if self.series is not None and self.method in ONE_BY_ONE:
            raise ParameterError(f"method='{self.method}' looks at one column at a time; a series is many.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Form the groups and show their values."""
        units = engine.unit_column(data) if self.series is None else None
        return self._grouped(data, stream) if units is None else self._of_people(data, stream, units)

    def _of_people(self, data: Microdata, stream: Stream, units: Integers) -> Change:
        """Make groups of so many records that k people stand behind each value.

        Groups of k times the most records that anybody has hold k people for certain; smaller ones are tried first.
        """
        most = self.k * int(np.bincount(units).max())
        size, people = self.k, 0
        while True:
            change = replace(self, k=size)._grouped(data, stream)
            people = fewest_people(change.columns, units, together=self.method not in ONE_BY_ONE)
            if self.labels is not None and people < self.k:
                raise ParameterError(
                    f"Some groups of '{self.labels}' have fewer than k = {self.k} people. Merge groups, or lower k."
                )
            if people >= self.k or size >= most:
                break
            size = min(2 * size, most)
        names = ", ".join(change.columns)
        promised = self.method not in ONE_BY_ONE and people >= self.k
        return replace(
            change,
            notes=(
                *change.notes,
                f"Groups were made of at least {size:,} records, so that at least {people:,} people "
                f"('{engine.unit_in_words(data)}') stand behind every value.",
            ),
            guarantee=f"Every combination of {names} is shared by at least {self.k} people."
            if promised
            else None,
        )

    def _grouped(self, data: Microdata, stream: Stream) -> Change:
        strata = () if self.strata is None else existing(data, self.strata, treatment=self.name)
        names = self._treated(data, strata)
        weights = () if self.weight is None else numeric(data, [self.weight], treatment=self.name)
        about = [*strata, *self._single(data, self.labels), *weights]
        time = self._time(data)
        index = [] if self.series is None else [*self._single(data, self.series), time]
        table = engine.collect(data, list(dict.fromkeys([*names, *about, *index])))
        if table.height < self.k:
            raise ParameterError(f"The file has {table.height:,} records, which is fewer than k = {self.k}.")
        if self.method in ONE_BY_ONE:
            cells = {name: self._column_by_column(table, name, strata) for name in names}
        elif self.series is None:
            parts = table.select(names)
            lacking = parts.select(pl.all().is_null()) if self.missing == "apart" else None
            groups = self._groups(table, strata, lambda: self._placed(parts), lacking, stream)
            if self.measure == "member":
                return self._as_members(table, names, groups)
            cells = dict.fromkeys(names, pl.DataFrame({"group": groups}))
        else:
            cells = dict.fromkeys(names, self._series(table, names, strata, time, stream))
        return self._shown(table, names, cells)

    def _treated(self, data: Microdata, strata: Sequence[str]) -> tuple[str, ...]:
        if self.columns is None or self.method in ONE_BY_ONE or self.series is not None:
            names = numeric(data, self.columns, treatment=self.name)
        else:
            names = existing(data, self.columns, treatment=self.name)
        for name in names:
            if name in (self.series, self.time, self.labels, self.weight, *strata):
                raise ParameterError(
                    f"'{name}' says which records belong together, when, or how much they count; "
                    "it cannot be treated as well."
                )
        return names

    def _single(self, data: Microdata, name: str | None) -> tuple[str, ...]:
        return () if name is None else existing(data, name, treatment=self.name)

    def _time(self, data: Microdata) -> str:
        if self.series is None:
            return ""
        time = group_column(data, self.time, ("time",), treatment=self.name)
        if time is None:
            raise ParameterError(
                "series= needs to know the time of each reading. Name its column with time=."
            )
        return time

    def _column_by_column(self, table: pl.DataFrame, name: str, strata: Sequence[str]) -> pl.DataFrame:
        """Group the known values of one column, stratum by stratum; where fewer than k are known they are one group."""
        find = best_of_one_column if self.method == "univariate" else ranks_of_one_column
        values = table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        known, blocks = ~np.isnan(values), self._large_enough(numbered(table, strata), "strata")
        groups, formed = np.full(table.height, -1, dtype=np.int64), 0
        for rows in members(blocks[known]):
            inside = np.flatnonzero(known)[rows]
            found = find(values[inside], self.k)
            groups[inside] = found + formed
            formed += int(found.max()) + 1
        return pl.DataFrame({"group": groups})

    def _groups(
        self,
        table: pl.DataFrame,
        strata: Sequence[str],
        placed: Callable[[], tuple[Points, Metric]],
        lacking: pl.DataFrame | None,
        stream: Stream,
    ) -> Integers:
        """Group records (or series) on all columns together, stratum by stratum and, if asked, by what they lack."""
        if self.labels is not None:
            if table[self.labels].null_count():
                raise ColumnError(
                    f"Column '{self.labels}' names the groups and must not have missing values."
                )
            return self._large_enough(numbered(table, [self.labels, *strata]), "groups")
        blocks = self._large_enough(numbered(table, strata), "strata")
        if lacking is not None:
            blocks = by_pattern(blocks, lacking, self.k)
        points, metric = placed()
        way = Partition(self.method, self.k, self.gamma, self.axis, self.clusters)
        rng = stream("groups")
        groups, formed = np.empty(table.height, dtype=np.int64), 0
        for rows in members(blocks):
            found = way.groups(points.take(rows), metric, rng)
            groups[rows] = found + formed
            formed += int(found.max()) + 1
        return groups

    def _large_enough(self, blocks: Integers, what: str) -> Integers:
        small = int((np.bincount(blocks) < self.k).sum())
        if small:
            raise ParameterError(
                f"{small:,} of the {what} have fewer than k = {self.k} records and cannot be grouped. Merge {what}, "
                "or lower k."
            )
        return blocks

    def _placed(self, parts: pl.DataFrame) -> tuple[Points, Metric]:
        mixed = any(not (kind.is_numeric() or kind.is_temporal()) for kind in parts.dtypes)
        distance = self.distance or ("gower" if mixed else "euclidean")
        raw = distance == "euclidean" and self.standardize is False
        space = MixedSpace.fit(parts, distance=distance, scale="none" if raw else None)
        return filled(space.place(parts)), space.metric

    def _series(
        self, table: pl.DataFrame, names: Sequence[str], strata: Sequence[str], time: str, stream: Stream
    ) -> pl.DataFrame:
        """Group whole series; a cell is a group at a time."""
        who = str(self.series)
        about = [name for name in (*strata, self.labels, self.weight) if name is not None]
        once = one_row_each(table, who, time, about)
        series = numbered(table, [who])
        groups = self._groups(
            once,
            strata,
            lambda: curves(table, names, series, time, standardize=self.standardize),
            None,
            stream,
        )
        return table.select(group=pl.Series(groups[series]), time=pl.col(time))

    def _shown(self, table: pl.DataFrame, names: Sequence[str], cells: dict[str, pl.DataFrame]) -> Change:
        weights = None if self.weight is None else table[self.weight].cast(pl.Float64)
        if weights is not None and (weights.null_count() or (weights < 0).any()):
            raise ColumnError(
                f"The weights in '{self.weight}' must be numbers of zero or above, none missing."
            )
        columns, losses, thin = {}, {}, 0
        for name in names:
            old = table[name]
            if old.dtype.is_numeric() or old.dtype.is_temporal():
                exact = (
                    old.to_physical().cast(pl.Float64) if old.dtype.is_temporal() else old.cast(pl.Float64)
                )
                shown, hidden = without_thin_cells(
                    number_of_group(exact, cells[name], self.measure, weights), cells[name], self.k
                )
                losses[name] = squares_lost(exact, shown)
                columns[name] = as_released(shown, old.dtype, whole=self.round)
            else:
                check_order(old, self.categories)
                columns[name], hidden = without_thin_cells(
                    category_of_group(old, cells[name], self.categories, weights), cells[name], self.k
                )
            thin += hidden
        sizes = {name: self._sizes(table, cells[name]) for name in names}
        return Change(
            columns=columns,
            notes=self._notes(sizes, thin),
            parameters=lost_shares(losses, scaled=self.series is None and self.standardize is not False),
            guarantee=self._guarantee(columns),
        )

    def _as_members(self, table: pl.DataFrame, names: Sequence[str], groups: Integers) -> Change:
        """Show every record of a group as the one that is nearest to the others."""
        source = nearest_members(*self._placed(table.select(names)), groups)
        columns = {name: table[name].gather(source) for name in names}
        numbers = [
            name for name in names if table[name].dtype.is_numeric() or table[name].dtype.is_temporal()
        ]
        losses = {
            name: squares_lost(*(x.to_physical().cast(pl.Float64) for x in (table[name], columns[name])))
            for name in numbers
        }
        return Change(
            columns=columns,
            notes=self._notes({"": np.bincount(groups)}, 0),
            parameters=lost_shares(losses, scaled=self.standardize is not False),
            guarantee=self._guarantee(columns),
        )

    def _sizes(self, table: pl.DataFrame, cells: pl.DataFrame) -> Integers:
        if self.series is not None:
            cells = cells.filter(table[self.series].is_first_distinct())
        groups = cells["group"].to_numpy()
        return np.bincount(groups[groups >= 0])

    def _notes(self, sizes: dict[str, Integers], thin: int) -> tuple[str, ...]:
        notes = []
        if self.method in ONE_BY_ONE:
            many = ", ".join(f"{name} {len(size):,}" for name, size in sizes.items())
            notes.append(f"Groups of at least {self.k} values, column by column: {many}.")
        else:
            size = next(iter(sizes.values()))
            unit = "records" if self.series is None else "series"
            notes.append(f"{len(size):,} groups of {size.min():,} to {size.max():,} {unit} ({self.method}).")
        if thin:
            notes.append(
                f"{thin:,} cells became missing: fewer than {self.k} values would have made them up."
            )
        return tuple(notes)

    def _guarantee(self, columns: dict[str, pl.Series]) -> str | None:
        """Promise k-anonymity only where a count of the released combinations confirms it."""
        if self.method in ONE_BY_ONE or self.series is not None:
            return None
        smallest = pl.DataFrame(columns).group_by(pl.all()).agg(pl.len().alias("·many"))["·many"].min()
        if not isinstance(smallest, int) or smallest < self.k:
            return None
        return f"Every combination of {', '.join(columns)} is shared by at least {self.k} records."
