from datetime import date, datetime

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engine.packing import packed_by_engine, packed_classes, packing_of

COLUMNS = {
    "whole": (pl.Int64, st.integers(-3, 3)),
    "wide": (pl.Int64, st.sampled_from([-(2**62), 0, 2**62])),
    "unsigned": (pl.UInt64, st.sampled_from([0, 2**64 - 1])),
    "text": (pl.String, st.sampled_from(["", "a", "b"])),
    "flag": (pl.Boolean, st.booleans()),
    "day": (pl.Date, st.dates(date(1950, 1, 1), date(1950, 1, 9))),
    "moment": (pl.Datetime("us"), st.sampled_from([datetime(1960, 1, 1), datetime(2020, 5, 5, 1, 2, 3)])),
    "number": (pl.Float64, st.sampled_from([-1.5, 0.0, 2.5])),
    "level": (pl.Enum(["high", "low"]), st.sampled_from(["low", "high"])),
    "kind": (pl.Categorical, st.sampled_from(["x", "y"])),
}


@st.composite
def frames(draw):
    chosen = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(1, 12))
    return pl.DataFrame(
        {
            name: pl.Series(
                draw(st.lists(st.none() | COLUMNS[name][1], min_size=n, max_size=n)), dtype=COLUMNS[name][0]
            )
            for name in chosen
        }
    )


@given(frames())
def test_what_is_packed_comes_back_with_its_types_and_counts(frame):
    packed = packed_classes(frame.lazy(), frame.columns)
    found = packed.packing.decode(packed.numbers).with_columns(records=packed.records)
    expected = frame.group_by(frame.columns).agg(records=pl.len().cast(pl.Int64))
    assert found.schema == expected.schema
    assert sorted(map(str, found.rows())) == sorted(map(str, expected.rows()))


@given(frames(), st.data())
def test_the_sizes_of_some_columns_are_those_of_a_direct_count(frame, data):
    some = data.draw(st.lists(st.sampled_from(frame.columns), min_size=1, unique=True))
    packed = packed_classes(frame.lazy(), frame.columns)
    known = frame.filter(pl.any_horizontal(pl.col(some).is_not_null()))
    direct = known.group_by(some).len()["len"].to_list()
    assert sorted(packed.sizes(some)) == sorted(direct)


@given(frames())
def test_numbers_rise_with_the_values_and_missing_comes_last(frame):
    first = frame.columns[0]
    packed = packed_classes(frame.lazy(), [first])
    in_order = packed.packing.decode(packed.numbers).to_series()
    known = frame[first].cast(pl.String) if frame[first].dtype == pl.Categorical else frame[first]
    expected = known.unique().sort(nulls_last=True)
    assert in_order.cast(expected.dtype).to_list() == expected.to_list()


def test_combinations_that_do_not_fit_are_left_to_the_engine():
    wide = pl.DataFrame({f"c{i}": np.arange(1000) for i in range(8)})
    assert packing_of(wide.lazy(), wide.columns) is None


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-3, 3)),
            st.one_of(st.none(), st.integers(0, 2)),
            st.integers(5, 7),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_an_engine_that_packs_by_itself_counts_the_same_classes(rows):
    duckdb = pytest.importorskip("duckdb")
    table = pl.DataFrame(rows, schema={"k0": pl.Int32, "k1": pl.Int8, "s": pl.Int64}, orient="row")
    arrow = table.to_arrow()
    found = packed_by_engine(nw.from_native(duckdb.connect().from_arrow(arrow)), ["k0", "k1", "s"])
    expected = packed_classes(table.lazy(), ["k0", "k1", "s"])
    assert found.numbers.tolist() == expected.numbers.tolist()
    assert found.records.tolist() == expected.records.tolist()
    assert found.packing.decode(found.numbers).equals(expected.packing.decode(expected.numbers))
    known = table.filter(pl.col("k0").is_not_null() | pl.col("k1").is_not_null())
    if known.height:
        without = packed_classes(known.lazy(), ["k0", "k1"])
        rolled = found.without_last()
        ours, theirs = (part.packing.decode(part.numbers) for part in (rolled, without))
        assert ours.equals(theirs)
        assert rolled.records.tolist() == without.records.tolist()


def test_columns_that_are_no_whole_numbers_are_not_packed_by_an_engine():
    duckdb = pytest.importorskip("duckdb")
    arrow = pl.DataFrame({"a": ["x"], "b": [1.5]}).to_arrow()
    rows = nw.from_native(duckdb.connect().from_arrow(arrow))
    assert packed_by_engine(rows, ["a"]) is None
    assert packed_by_engine(rows, ["b"]) is None
    wide = pl.DataFrame({"a": [-(2**62), 2**62]}).to_arrow()
    assert packed_by_engine(nw.from_native(duckdb.connect().from_arrow(wide)), ["a"]) is None
