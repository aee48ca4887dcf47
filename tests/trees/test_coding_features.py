"""Columns become codes that keep their order, whatever the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode


@given(st.lists(st.floats(allow_nan=False, allow_infinity=True), min_size=1, max_size=60))
def test_codes_keep_order_and_tell_all_values_apart_when_they_are_few(values):
    column = np.array(values)
    codes = Feature.numeric(column).encode(column)
    _, expected = np.unique(column, return_inverse=True)
    assert codes.tolist() == expected.tolist()


def test_many_values_are_cut_at_quantiles_and_heaps_stand_alone():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(5000), rng.lognormal(size=5000)])
    feature = Feature.numeric(values, max_bins=64)
    codes = feature.encode(values)
    assert 30 < feature.levels <= 66
    assert (codes == 0).sum() == 5000
    assert np.bincount(codes)[1:].max() < 400
    assert feature.scores[0] == 0
    assert (np.diff(feature.scores) > 0).all()


def test_missing_numbers_have_a_code_of_their_own_when_training_had_some():
    feature = Feature.numeric([1.0, np.nan, 3.0])
    assert feature.encode([np.nan, 0.0, 9.0]).tolist() == [0, 1, 2]
    assert Feature.numeric([1.0, 3.0]).encode([np.nan, 0.0, 9.0]).tolist() == [-1, 0, 1]
    assert Feature.numeric([np.nan, np.nan]).encode([np.nan, 1.0]).tolist() == [0, 1]


def test_columns_and_features_must_match():
    with pytest.raises(ParameterError, match="one for each"):
        encode([Feature.category(2)], [])
    with pytest.raises(ParameterError, match="max_bins"):
        Feature.numeric([1.0], max_bins=1)
