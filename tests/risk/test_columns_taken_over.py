"""Columns that were taken over record by record are found beside new ones, and never in new people."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.datasets import adult
from discreet.risk import near_copies
from discreet.risk.columns_taken_over import columns_taken_over

PEOPLE = adult().frame.drop("fnlwgt", "education-num").sample(fraction=1.0, shuffle=True, seed=1)
EVERY_OTHER = PEOPLE.columns[::2]


def partly_real(share: float, rows: int = 3_000) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The original, and new people of whom a share has every other column of somebody real; in another order."""
    original, new = PEOPLE[:rows], PEOPLE[rows : 2 * rows]
    real = int(share * rows)
    mixed = new[:real].with_columns(original[:real][name] for name in EVERY_OTHER)
    return original, pl.concat([mixed, new[real:]]).sample(fraction=1.0, shuffle=True, seed=2)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_half_a_record_that_is_real_is_found(share):
    found = columns_taken_over(*partly_real(share))
    assert len(found) >= 3
    assert set(found) <= set(EVERY_OTHER)


def test_people_come_back_in_the_columns_that_were_taken_over():
    original, released = partly_real(1.0)
    found = near_copies(Microdata(original), Microdata(released))
    assert found.value > 0.05
    assert any("People come back in the columns" in caveat for caveat in found.caveats)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(200, 4_000))
def test_new_people_have_no_columns_of_the_original(seed, rows):
    people = PEOPLE.sample(2 * rows, shuffle=True, seed=seed)
    assert columns_taken_over(people[:rows], people[rows:]) == []


def test_columns_that_were_shuffled_one_by_one_are_no_records_of_anybody():
    original = PEOPLE[:3_000]
    shuffled = original.select(pl.col(name).shuffle(seed=at) for at, name in enumerate(original.columns))
    assert columns_taken_over(original, shuffled) == []


def test_constant_columns_missing_values_and_few_records_say_nothing():
    frame = pl.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "x", "x"], "c": [None, None, None]})
    assert columns_taken_over(frame, frame) == []
    assert columns_taken_over(frame.head(0), frame.head(0)) == []
    assert np.isfinite(near_copies(Microdata(PEOPLE[:3]), Microdata(PEOPLE[3:6])).value)
