from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, mannwhitneyu

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.utility import ecdf_interval, estimator_quality, ks_two_sample, paired_t, rank_sum

SAMPLES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@given(SAMPLES, SAMPLES)
def test_distances_of_two_samples_agree_with_scipy(x, y):
    assert ks_two_sample(x, y)["ks"] == pytest.approx(ks_2samp(x, y, method="asymp").statistic)
    assert rank_sum(x, y) == pytest.approx(mannwhitneyu(x, y).statistic)


@given(SAMPLES, st.floats(-6, 6))
def test_the_interval_of_a_share_stays_between_zero_and_one_and_holds_the_share(x, at):
    share, low, high = ecdf_interval(x, at)
    assert 0 <= low <= share <= high <= 1


def test_weights_count_a_value_as_often_as_they_say():
    assert (
        ks_two_sample([1, 2], [1, 2], weights=([3, 1], None))["ks"]
        == ks_two_sample([1, 1, 1, 2], [1, 2])["ks"]
    )


def test_noise_adds_its_variance_to_that_of_the_mean():
    draw = np.random.default_rng(5)
    x = draw.normal(0, 2, 2000)
    before, after = (Microdata(pl.DataFrame({"x": v})) for v in (x, x + draw.normal(0, 3, 2000)))
    found = estimator_quality(lambda table: table["x"].mean(), before, after, copies=400, seed=1)
    assert found.figures["variance_before"] == pytest.approx(4 / 2000, rel=0.2)
    assert found.figures["variance_after"] == pytest.approx(13 / 2000, rel=0.2)
    assert found.figures["mse_after"] == pytest.approx(
        found.figures["variance_after"] + found.figures["bias"] ** 2
    )


def test_the_same_seed_gives_the_same_quality():
    data = Microdata(pl.DataFrame({"x": [1.0, 5.0, 9.0]}))
    values = [
        estimator_quality(lambda t: t["x"].median(), data, data, copies=20, seed=3).value for _ in range(2)
    ]
    assert values[0] == values[1]


def test_bad_samples_and_estimators_are_refused():
    data = Microdata(pl.DataFrame({"x": [1.0, None]}))
    with pytest.raises(ParameterError, match="one number"):
        estimator_quality(lambda t: t["x"], data, data)
    with pytest.raises(InputError, match="no known values"):
        ks_two_sample([], [1])
    with pytest.raises(ParameterError, match="weighted"):
        ks_two_sample([1], [1], weights=([1], [1]), assume_independent=True)
    with pytest.raises(ParameterError, match="as many of both"):
        paired_t([1, 2], [1])
    assert paired_t([1, 2], [2, 3])["p_value"] is None
