"""Codes and counts on which private margins stand: fast, and the same as the plain way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError
from discreet.synth.bin_kernels import bins_of, bins_of_whole
from discreet.synth.binned_columns import declared_attribute
from discreet.synth.graphical_model import counted, counted_pairs, drawn_columns

_NUMBERS = st.floats(-1e9, 1e9, allow_nan=False)


@settings(max_examples=200, deadline=None)
@given(
    ends=st.tuples(_NUMBERS, _NUMBERS).filter(lambda two: two[1] - two[0] > 1e-3),
    bins=st.integers(1, 300),
    data=st.data(),
)
def test_a_bin_found_by_its_place_is_the_bin_found_by_search(ends, bins, data) -> None:
    edges = np.linspace(*ends, bins + 1)
    on_borders = data.draw(st.lists(st.sampled_from(list(edges)), max_size=20))
    numbers = np.array(
        [*on_borders, *np.nextafter(on_borders, -np.inf), -np.inf, np.inf, *data.draw(st.lists(_NUMBERS))]
    )
    wanted = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, bins - 1)
    assert bins_of(numbers, edges, np.uint16).tolist() == wanted.tolist()


@settings(max_examples=60, deadline=None)
@given(
    low=st.integers(-50, 50),
    steps=st.lists(st.floats(0.25, 40), min_size=1, max_size=30),
    numbers=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 1500)),
)
def test_a_whole_number_that_is_looked_up_has_the_bin_that_is_searched(low, steps, numbers) -> None:
    edges = low + np.concatenate([[0.0], np.cumsum(steps)])
    whole = np.array(numbers, dtype=np.int64)
    found = bins_of_whole(whole, edges, np.uint8)
    assert found is not None
    assert found.tolist() == bins_of(whole.astype(np.float64), edges, np.uint8).tolist()


def test_a_table_of_too_many_whole_numbers_is_not_made() -> None:
    assert bins_of_whole(np.array([1]), np.array([0.0, 1e9]), np.uint8) is None
    assert bins_of_whole(np.array([1]), np.array([1e17, 1e17 + 64]), np.uint8) is None


def test_many_whole_numbers_get_the_codes_of_few() -> None:
    few = pl.Series("v", [-3, 0, 17, 18, 90, 400])
    attribute = declared_attribute(few, (17, 90), bins=8, never_missing=True)
    many = pl.concat([few] * 20_000)
    assert attribute.encode_small(many).tolist() == attribute.encode_small(few).tolist() * 20_000


def test_bins_that_are_not_even_are_found_too() -> None:
    edges = np.array([0.0, 1.0, 10.0, 100.0])
    assert bins_of(np.array([-1.0, 0.5, 9.9, 10.0, 1e6]), edges, np.uint8).tolist() == [0, 0, 1, 2, 2]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    rows=st.integers(0, 50),
    seed=st.integers(0, 9),
)
def test_tables_count_every_record_once_whatever_type_codes_have(sizes, rows, seed) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, rows).astype(np.uint8) for size in sizes]
    whole = np.zeros(rows, dtype=np.int64)
    for own, size in zip(codes, sizes, strict=True):
        whole = whole * size + own
    made = counted(range(len(sizes)), codes, sizes)
    assert made.tolist() == np.bincount(whole, minlength=math.prod(sizes)).tolist()


@pytest.mark.parametrize(
    ("series", "domain"),
    [
        (pl.Series("v", ["b", None, "x", "a"]), ["a", "b"]),
        (pl.Series("v", ["b", None, "x", "a"], dtype=pl.Categorical), ["a", "b"]),
        (pl.Series("v", ["b", None, "a", "a"], dtype=pl.Enum(["b", "a"])), ["a", "b"]),
        (pl.Series("v", [2, None, 9, 1]), [1, 2]),
    ],
)
def test_a_level_that_was_not_declared_counts_as_missing(series, domain) -> None:
    attribute = declared_attribute(series, domain, bins=4, never_missing=False)
    codes = attribute.encode_small(series)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [1, 2, 0 if series[2] == "a" else 2, 0]
    assert attribute.encode(series).dtype == np.int64


def test_drawn_columns_follow_the_law_of_their_row() -> None:
    laws = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    rows = np.repeat([0, 1, 2], 40_000)
    drawn = drawn_columns(laws, rows, np.random.default_rng(1))
    shares = [np.bincount(drawn[rows == row], minlength=3) / 40_000 for row in range(3)]
    assert np.allclose(shares, [[0.25, 0.75, 0], [1 / 3] * 3, [0, 0, 1]], atol=0.01)
    assert not shares[0][2]


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.sampled_from([1, 2, 5, 40]), min_size=2, max_size=6), seed=st.integers(0, 9))
def test_tables_of_pairs_counted_three_at_a_time_are_those_counted_alone(sizes, seed) -> None:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, 101).astype(np.uint8) for size in sizes]
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    found = list(counted_pairs(pairs, codes, sizes))
    assert sorted(pair for pair, _ in found) == pairs
    for pair, cells in found:
        assert cells.tolist() == counted(pair, codes, sizes).tolist()


@settings(max_examples=60, deadline=None)
@given(
    levels=st.lists(st.text(max_size=20), min_size=1, max_size=12, unique=True),
    values=st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=30),
    data=st.data(),
)
def test_texts_told_apart_by_their_hashes_have_the_codes_of_their_letters(levels, values, data) -> None:
    values = values + data.draw(st.lists(st.sampled_from(levels), max_size=30))
    series = pl.Series("x", values, dtype=pl.String)
    attribute = declared_attribute(series, levels, bins=2, never_missing=False)
    wanted = attribute.encode(series).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.synth.binned_columns._MANY", 0)
        assert attribute.encode(series).tolist() == wanted
        if any(value not in levels for value in values):
            never = declared_attribute(series, levels, bins=2, never_missing=True)
            with pytest.raises(ColumnError, match="'x' has missing or undeclared"):
                never.encode(series)
