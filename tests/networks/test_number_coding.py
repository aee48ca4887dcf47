"""Normal scores: every value comes back, and ties do not bend the law of the scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.networks.tables import ModeCoding, ScoreCoding


@pytest.mark.parametrize("high", [3, 40, 900])
def test_whole_numbers_come_back_as_they_were(high):
    rng = np.random.default_rng(high)
    values = np.floor(high * rng.random(3_000) ** 3)
    coding = ScoreCoding.of(values)
    assert np.rint(coding.decode(coding.encode(values, rng))).tolist() == values.tolist()


def test_scores_follow_the_normal_law_however_many_are_tied():
    rng = np.random.default_rng(5)
    values = np.where(rng.random(20_000) < 0.6, 40.0, rng.integers(1, 99, 20_000))
    ranks = np.sort(ndtr(ScoreCoding.of(values).encode(values, rng)))
    # The largest distance of a sample of this size from the law is below 0.0212 but once in ten million times.
    assert np.abs(ranks - (np.arange(20_000) + 0.5) / 20_000).max() < 0.0212


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_whose_squares_no_float_holds_have_modes():
    rng = np.random.default_rng(7)
    values = np.concatenate([[1e300, -1e300, 0.0, 5.0] * 20, np.arange(30.0)])
    coding = ModeCoding.of(values, rng, 10)
    places, modes = coding.encode(values, rng)
    assert np.isfinite(places).all()
    back = coding.decode(places, modes)
    assert np.isfinite(back).all()
    assert np.abs(back - values).max() < 1e299


def test_many_distinct_values_keep_their_order_and_their_range():
    values = np.random.default_rng(6).normal(size=30_000)
    coding = ScoreCoding.of(values)
    back = coding.decode(coding.encode(values, np.random.default_rng(1)))
    assert len(coding.values) < 3_000
    # The farthest scores are cut, so that the last few in either tail come nearer.
    middle = np.abs(values) < 3
    assert np.abs(back - values)[middle].max() < 0.02
    assert back.min() >= values.min()
    assert back.max() <= values.max()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.lists(st.floats(-9, 9), min_size=1, max_size=9),
)
def test_no_score_leads_out_of_the_range(values, scores):
    coding = ScoreCoding.of(np.array(values))
    made = coding.decode(np.array(scores, dtype=np.float32))
    assert made.min() >= min(values)
    assert made.max() <= max(values)
