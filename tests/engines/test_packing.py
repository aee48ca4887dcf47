from datetime import date, datetime

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from discreet.engine.packing import packed_classes, packing_of

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
