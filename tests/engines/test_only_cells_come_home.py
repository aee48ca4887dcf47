"""Tables of queries: cells, rules, cell keys and rounding are worked out where the data is; only cells come home."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError
from discreet.tables import (
    CellKey,
    Dominance,
    MinimumContributors,
    PPercent,
    RandomRounding,
    Suppression,
    Table,
    Threshold,
    primary,
)
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import nothing_collected


def firms(rows: int = 1500) -> pl.DataFrame:
    """Make records of firms with gaps in codes, values and contributors."""
    rng = np.random.default_rng(4)
    gaps = rng.random((3, rows)) < 0.05
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "place": pl.Series(rng.choice(["a", "b", "c"], rows)).set(pl.Series(gaps[0]), None),
            "kind": rng.integers(0, 4, rows),
            "turnover": pl.Series(rng.integers(1, 1000, rows)).set(pl.Series(gaps[1]), None),
            "group": pl.Series(rng.integers(0, 300, rows).astype(str)).set(pl.Series(gaps[2]), None),
            "key": rng.random(rows),
        }
    )


def table_of(frame, **settings):
    return Table.from_microdata(Microdata(frame), "place*kind", **settings)


WORK = {
    "count": lambda frame: table_of(frame).cells,
    "sums": lambda frame: table_of(frame, measure="turnover").cells,
    "contributors": lambda frame: table_of(frame, measure="turnover", contributor="group").cells,
    "threshold": lambda frame: primary(table_of(frame), Threshold(3)).cells,
    "dominance": lambda frame: primary(table_of(frame, measure="turnover"), Dominance(2, 5)).cells,
    "dominance of contributors": lambda frame: (
        primary(table_of(frame, measure="turnover", contributor="group"), Dominance(2, 7)).cells
    ),
    "p of contributors": lambda frame: (
        primary(table_of(frame, measure="turnover", contributor="group"), PPercent(99.9)).cells
    ),
    "few contributors": lambda frame: (
        primary(table_of(frame), MinimumContributors(100, contributor="group")).cells
    ),
    "cell keys": lambda frame: CellKey(id="id").apply(table_of(frame)).published,
    "cell keys of sums": lambda frame: CellKey(id="id").apply(table_of(frame, measure="turnover")).published,
    "given cell keys": lambda frame: CellKey(key_column="key").apply(table_of(frame)).published,
    "rounding": lambda frame: RandomRounding(base=5, id="id").apply(table_of(frame)).published,
    "rounding without id": lambda frame: RandomRounding(base=5).apply(table_of(frame)).published,
    "suppression": lambda frame: (
        Suppression().apply(primary(table_of(frame, contributor="group"), MinimumContributors(80))).published
    ),
}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


def same(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Sums of an engine differ in the last digits by the order in which they were added."""
    numbers = pl.selectors.float()
    return ours.with_columns(numbers.round_sig_figs(9)).equals(theirs.with_columns(numbers.round_sig_figs(9)))


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize("name", WORK)
def test_only_cells_come_home_and_they_are_the_same(name, kind):
    expected = WORK[name](firms())
    with nothing_collected():
        found = WORK[name](in_kind(firms(), kind))
    assert same(found, expected)


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_identifiers_of_a_query_are_checked_where_it_is(kind):
    with nothing_collected(), pytest.raises(ColumnError, match="does not tell the records apart: 1,496"):
        CellKey(id="kind").apply(table_of(in_kind(firms(), kind)))
    with nothing_collected(), pytest.raises(ColumnError, match="is missing in"):
        CellKey(id="group").apply(table_of(in_kind(firms(), kind)))


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_only_cells_come_home_from_spark(name, spark_session):
    expected = WORK[name](firms())
    with nothing_collected():
        found = WORK[name](in_kind(firms(), "pyspark", spark_session).repartition(5))
    assert same(found, expected)
