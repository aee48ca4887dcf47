from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import dp
from discreet.core.errors import DiscreetError, ParameterError
from discreet.dp.calibration import discrete_gaussian_delta
from discreet.dp.mechanisms import grid_for


@given(
    st.floats(1e-6, 1e6),
    st.integers(1, 3000),
    st.lists(st.floats(-1, 1), min_size=2, max_size=2),
)
def test_rounding_to_the_grid_never_moves_neighbors_farther_than_was_paid_for(sensitivity, size, shares):
    here = np.zeros(size)
    there = here.copy()
    there[0] += shares[0] * sensitivity / 2
    there[-1] += shares[1] * sensitivity / 2
    grid, _ = grid_for(here, sensitivity)
    apart = np.abs(grid.placed(there + 0.3 * sensitivity) - grid.placed(here + 0.3 * sensitivity)).sum()
    assert apart <= grid.moved(sensitivity, 1)


@given(st.floats(1e-3, 5.0), st.floats(1e-9, 0.1))
def test_analytic_noise_keeps_its_promise_and_is_never_wider_than_the_textbook(epsilon, delta):
    sigma = dp.gaussian_sigma(1, epsilon, delta)
    assert dp.gaussian_delta(sigma, 1, epsilon) <= delta
    assert dp.gaussian_delta(sigma * 0.999, 1, epsilon) > delta
    if epsilon < 1:
        assert sigma <= dp.gaussian_sigma(1, epsilon, delta, calibration="classical")


@given(st.floats(1e-6, 10.0), st.floats(1e-12, 0.1))
def test_the_tight_conversion_is_never_worse_than_the_textbook(rho, delta):
    assert dp.epsilon_from_zcdp(rho, delta) <= dp.epsilon_from_zcdp(rho, delta, tight=False)


def test_the_discrete_curve_agrees_with_a_direct_sum():
    variance, epsilon = 9.0, 0.5
    places = np.arange(-200, 201)
    here = np.exp(-(places**2) / (2 * variance))
    there = np.exp(-((places - 1) ** 2) / (2 * variance))
    here, there = here / here.sum(), there / there.sum()
    direct = np.clip(here - math.exp(epsilon) * there, 0, None).sum()
    assert discrete_gaussian_delta(variance, 1, epsilon) == pytest.approx(direct, rel=1e-8)


def test_gaussian_noise_of_an_array_is_paid_by_way_of_rho():
    answer = dp.gaussian(np.zeros(4), sensitivity=1.0, epsilon=1, delta=1e-5)
    assert dp.epsilon_from_zcdp(1 / (2 * answer.scale**2), 1e-5) <= 1
    assert answer.guarantee == "(1, 1e-05)-differential privacy against adding or removing one record."


def test_noise_has_the_spread_it_says():
    counts = dp.laplace(np.zeros(40_000, dtype=int), sensitivity=1, epsilon=0.5, seed=3)
    assert counts.value.dtype == np.int64
    assert counts.value.std() == pytest.approx(math.sqrt(2) * 2, rel=0.05)
    numbers = dp.laplace(np.full(20_000, 7.25), sensitivity=0.5, epsilon=1.0, seed=3)
    assert numbers.value.mean() == pytest.approx(7.25, abs=0.03)


def test_the_same_seed_gives_the_same_noise_and_no_claim():
    one, two = (dp.laplace(10, sensitivity=1, epsilon=1, seed=5) for _ in range(2))
    assert one.value == two.value
    assert one.guarantee is None
    assert "seed" in str(one)


def test_an_answer_that_nobody_can_move_costs_nothing():
    answer = dp.laplace(5.5, sensitivity=0, epsilon=1)
    assert answer.value == 5.5
    assert answer.cost.epsilon == 0
    assert dp.laplace(np.empty(0), sensitivity=1, epsilon=1).cost.epsilon == 0


def test_randomized_response_keeps_as_often_as_allowed():
    answers, kept = dp.randomized_response(np.zeros(50_000, dtype=int), 4, epsilon=math.log(3), seed=2)
    assert kept == pytest.approx(0.5, abs=1e-9)
    assert Fraction(kept) <= Fraction(1, 2)
    assert (answers == 0).mean() == pytest.approx(0.5, abs=0.012)
    assert np.bincount(answers, minlength=4)[1:] == pytest.approx(50_000 / 6, rel=0.06)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dp.laplace(1, sensitivity=1, epsilon=0),
        lambda: dp.laplace(1, sensitivity=-1, epsilon=1),
        lambda: dp.laplace(1, sensitivity=math.nan, epsilon=1),
        lambda: dp.laplace(math.nan, sensitivity=1, epsilon=1),
        lambda: dp.laplace("a", sensitivity=1, epsilon=1),
        lambda: dp.laplace(1, sensitivity=True, epsilon=1),
        lambda: dp.laplace(1, sensitivity=1, epsilon=1e-20),
        lambda: dp.laplace(1, sensitivity=1, epsilon=1, adjacency="both"),
        lambda: dp.gaussian(1, sensitivity=1, epsilon=1, delta=0),
        lambda: dp.gaussian(1, sensitivity=1, epsilon=1, delta=1),
        lambda: dp.gaussian(1, sensitivity=1, epsilon=1, delta=1e-5, calibration="classical"),
        lambda: dp.gaussian(1, sensitivity=1, epsilon=1, delta=1e-5, calibration="best"),
        lambda: dp.local_laplace([1.0], lower=2, upper=1, epsilon=1),
        lambda: dp.local_laplace([1.0], lower=None, upper=1, epsilon=1),
        lambda: dp.local_laplace([math.inf], lower=0, upper=1, epsilon=1),
        lambda: dp.randomized_response([3], 2, epsilon=1),
        lambda: dp.laplace(1, sensitivity=1, epsilon=1, ledger=dp.Ledger(1), seed=1),
    ],
)
def test_what_cannot_be_promised_is_refused(call):
    with pytest.raises(DiscreetError):
        call()


def test_a_refused_release_draws_no_noise(monkeypatch):
    ledger = dp.Ledger(0.5)
    monkeypatch.setattr(dp.mechanisms, "discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(ParameterError, match="budget"):
        dp.laplace(1, sensitivity=1, epsilon=1, ledger=ledger)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-20, 800.0, 1e300])
def test_an_epsilon_that_cannot_be_honored_is_refused_by_every_mechanism(epsilon):
    asked = (
        lambda: dp.laplace(3, sensitivity=1, epsilon=epsilon),
        lambda: dp.gaussian(3.0, sensitivity=1.0, epsilon=epsilon, delta=1e-6),
        lambda: dp.gaussian_sigma(1.0, epsilon, 1e-6),
    )
    for ask in asked:
        with pytest.raises(ParameterError, match="epsilon"):
            ask()
