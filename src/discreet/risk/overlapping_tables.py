"""Can whole records be rebuilt from published cross-tables that overlap?

A cell with count 1 singles out a record; the tables that add one more attribute to that cell then tell, attribute
by attribute, the rest of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, measure
from discreet.core.charts import Bars, row_bars, rows_of
from discreet.core.citations import COHEN_NISSIM_2020
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.errors import need_known
from discreet.core.progress import track
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import Partition
from discreet.risk.k_anonymity import key_caveats

_MOST_ROWS = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    attributes = rows_of(found, "attributes", "attribute", "records")[:_MOST_ROWS]
    if attributes:
        axis = "Number of records whose smallest set of telling columns holds this one"
        title = "Which columns single records out in tables"
        yield row_bars(title, attributes, "attribute", "records", axis, as_share=False)


@measure(
    room="risk",
    work="class-wise",
    question="Can records be rebuilt from tables that overlap?",
    headline="of the records rebuilt",
    chapter="found",
    place=13,
    references=(COHEN_NISSIM_2020,),
    figures={
        "value": Figure(unit="share", better="lower"),
        "share_recovered": Figure("Share of records rebuilt completely", unit="share"),
        "records_recovered": Figure("Records rebuilt completely"),
        "records_isolated": Figure("Records singled out by some cell"),
        "isolating_cells": Figure("Cells that single out a record"),
    },
    columns={"attribute": Figure("Column"), "attributes": Figure("Columns of the table")},
    pictures=_pictures,
)
def overlapping_tables(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_order: Annotated[int, AtLeast(1)] = 5,
    tables: Annotated[Sequence[Sequence[str]], Public()] | None = None,
    minimum: Annotated[int, AtLeast(1)] = 1,
    missing: Partition = "category",
    progress: bool = False,
) -> Measure:
    """How many whole records can be rebuilt from the cross-tables of this file?

    Published is every cross-table of at most ``max_order`` of the keys, or the named ``tables`` with all their
    margins. Where a set S of attributes has a cell of count 1, every table that contains S tells the values of
    its other attributes for that one record. A record is *recovered* when one such set tells all its attributes
    (two sets may belong to two records, so what they tell is not put together). With all
    tables up to order t, these are exactly the records unique on at most t-1 attributes; where t is the number of
    attributes the last table is the file itself, and all unique records are recovered.

    Parameters
    ----------
    data
        The file behind the tables.
    keys
        The attributes that are crossed; the keys of the data unless named.
    max_order
        The largest number of attributes in one table.
    tables
        The tables that are published, instead of all up to ``max_order``.
    minimum
        The smallest count that is published; smaller ones are suppressed and count as unknown, so from 2 on no
        record can be read off a cell of its own.
    missing
        ``category`` or ``drop``; see `k_anonymity`.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Measure
        ``value`` is ``share_recovered``. ``figures``: ``share_recovered``, ``records_recovered``,
        ``records_isolated`` (by a published cell), ``isolating_cells`` (of tables that can be extended by a
        further attribute), ``tables``, ``records``. ``detail``: ``records`` (those recovered, with ``order``, the
        fewest attributes that isolate, and ``isolated_by``, the first such set), ``tables`` (isolating cells for
        each set of attributes), ``attributes`` (how often each takes part in the smallest isolating sets).

    How to read it
    --------------
    Small tables look harmless one by one. ``share_recovered`` is the share of records that can be put
    together completely from tables that overlap; ``records_isolated`` counts those that some cell singles
    out. ``detail["attributes"]`` says which columns take part most often: leave one of them out of the
    tables, or coarsen it. Lower ``max_order`` to see from which size of table on it begins.

    When not to trust it
    --------------------
    It assumes that the counts are published exactly; rounding, noise or suppression of small cells changes
    everything and is not modelled. With ``max_order`` equal to the number of columns the last table is the
    file itself, and the result is just its uniques. It is an attack that works for certain; statistical
    reconstruction from many tables can find more. In a sample, a record that is rebuilt still has to be found
    in the population.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m", "m"], "age": [1, 1, 1, 1, 2], "job": list("aabbb")})
    >>> found = overlapping_tables(Microdata(people, keys=["sex", "age", "job"]), max_order=2)
    >>> found.figures["records_recovered"], found.figures["isolating_cells"]
    (1, 1)
    """
    keys = engine.resolve_keys(data, keys)
    published = _published(keys, max_order, tables)
    classes = engine.class_table(data, keys, missing)
    records = int(classes["records"].sum())
    attack = _Attack(classes, len(keys), _people(data, keys, missing, classes))
    if minimum == 1:
        reach = _reach(published)
        by_order = sorted(reach, key=lambda columns: (len(columns), columns))
        for columns in track(by_order, len(reach), "Reading tables", progress=progress):
            attack.read(columns, reach[columns])
    recovered, isolated = int(attack.recovered.sum()), int((attack.order > 0).sum())
    cells = sum(count for _, count in attack.cells)
    return Measure(
        name="overlapping_tables",
        value=recovered / records,
        figures={
            "share_recovered": recovered / records,
            "records_recovered": recovered,
            "records_isolated": isolated,
            "isolating_cells": cells,
            "tables": len(published),
            "records": records,
        },
        meaning=(
            f"From {len(published):,} published tables, {recovered:,} of {records:,} records "
            f"({percent(recovered / records)}) can be rebuilt completely: {cells:,} cells of count 1 "
            "single out a record, and further tables tell the rest of it."
        ),
        caveats=[
            *key_caveats(data, keys),
            "Only counts of 1 are read directly. Differences of published cells, or solving for all tables at once, "
            "can recover more records.",
            *(["Counts below the published minimum were taken as unknown."] if minimum > 1 else []),
        ],
        parameters={
            "keys": list(keys),
            "max_order": max_order if tables is None else None,
            "tables": [list(table) for table in tables] if tables is not None else None,
            "minimum": minimum,
            "missing": missing,
        },
        detail=engine.tables_like(
            data,
            records=lambda: attack.rebuilt(keys),
            tables=lambda: attack.by_table(keys),
            attributes=lambda: attack.by_attribute(keys),
        ),
    )


class _Attack:
    """What the intruder has read so far, one entry a distinct key combination."""

    def __init__(self, classes: pl.DataFrame, attributes: int, people: pl.DataFrame | None) -> None:
        self.classes = classes.with_row_index("row")
        self.people = people
        self.attributes = attributes
        self.recovered = np.zeros(classes.height, dtype=bool)
        self.order = np.zeros(classes.height, dtype=np.int64)
        self.by = np.full(classes.height, -1, dtype=np.int64)
        self.cells: list[tuple[tuple[int, ...], int]] = []

    def read(self, columns: tuple[int, ...], told: frozenset[int]) -> None:
        """Find the cells of count 1 on some attributes and note what the larger tables tell of their records."""
        names = [f"k{i}" for i in columns]
        source = self.classes if self.people is None else self.people
        counted = pl.col("records").sum() if self.people is None else pl.col("u").n_unique().alias("records")
        alone = (
            source.lazy()
            .group_by(names)
            .agg(counted, pl.col("row").first())
            .filter(pl.col("records") == 1)
            .select("row")
            .collect()["row"]
            .to_numpy()
        )
        self.recovered[alone] |= len(told) == self.attributes
        first = alone[self.order[alone] == 0]
        self.order[first], self.by[first] = len(columns), len(self.cells)
        # A set that no table extends isolates its records but tells nothing new.
        self.cells.append((columns, len(alone) if len(told) > len(columns) else 0))

    def rebuilt(self, keys: Sequence[str]) -> pl.DataFrame:
        sets = pl.Series(
            [None, *(", ".join(keys[i] for i in columns) for columns, _ in self.cells)], dtype=pl.String
        )
        found = self.classes.drop("row", "records", "class_size")
        found = found.with_columns(order=self.order, isolated_by=sets.gather(self.by + 1))
        found = found.filter(pl.Series(self.recovered)).sort("order", *found.columns)
        return engine.named_classes(keys, found)

    def by_table(self, keys: Sequence[str]) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "attributes": [", ".join(keys[i] for i in columns) for columns, _ in self.cells],
                "order": [len(columns) for columns, _ in self.cells],
                "isolating_cells": [count for _, count in self.cells],
            },
            schema={"attributes": pl.String, "order": pl.Int64, "isolating_cells": pl.Int64},
        )

    def by_attribute(self, keys: Sequence[str]) -> pl.DataFrame:
        used = np.bincount(self.by[self.by >= 0], minlength=len(self.cells))
        takes_part = [
            sum(int(used[j]) for j, (c, _) in enumerate(self.cells) if i in c) for i in range(len(keys))
        ]
        return pl.DataFrame({"attribute": list(keys), "records": takes_part}).sort("records", descending=True)


def _people(
    data: Microdata, keys: Sequence[str], missing: engine.Missing, classes: pl.DataFrame
) -> pl.DataFrame | None:
    """Say who has which combination, where the file says whose its records are: tables then count people."""
    unit = engine.counted_unit(data)
    if unit is None:
        return None
    pairs = engine.unit_pairs(data, keys, engine.keyed_rows(data, keys, missing, {"u": unit}))
    names = list(engine.key_names(keys))
    rows = classes.select(names).with_row_index("row")
    return pairs.join(rows, on=names, how="left", nulls_equal=True).sort("row", "u")


def _published(
    keys: Sequence[str], max_order: int, tables: Sequence[Sequence[str]] | None
) -> set[tuple[int, ...]]:
    """List the published tables as sets of positions; the margins of a table are published with it."""
    if tables is None:
        largest = list(combinations(range(len(keys)), min(max_order, len(keys))))
    else:
        largest = []
        for table in tables:
            need_known(table, keys, "It was named under 'tables'.", what="key")
            largest.append(tuple(sorted({keys.index(name) for name in table})))
    return {
        part for table in largest for order in range(1, len(table) + 1) for part in combinations(table, order)
    }


def _reach(published: set[tuple[int, ...]]) -> dict[tuple[int, ...], frozenset[int]]:
    """For each set of attributes, all that the published tables containing it speak of."""
    told: dict[tuple[int, ...], set[int]] = {columns: set(columns) for columns in published}
    for table in published:
        for order in range(1, len(table)):
            for part in combinations(table, order):
                told[part].update(table)
    return {columns: frozenset(attributes) for columns, attributes in told.items()}
