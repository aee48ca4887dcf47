"""Exact draws: their law, their limits, and that nothing depends on floating point."""

import math
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import dp
from discreet.core.errors import DiscreetError
from discreet.dp import samplers

MANY = 60_000


def words(seed):
    return dp.seeded_words(np.random.default_rng(seed))


def assert_law(drawn, chances):
    """Chi-square against exact chances of ``{value: chance}``; what is rarer than 8 expected draws is pooled."""
    values = [value for value, chance in chances.items() if chance * len(drawn) >= 8]
    seen = np.array([np.count_nonzero(drawn == value) for value in values])
    expected = np.array([chances[value] * len(drawn) for value in values])
    rest = len(drawn) - expected.sum()
    if rest >= 8:
        seen, expected = np.append(seen, len(drawn) - seen.sum()), np.append(expected, rest)
    off = ((seen - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(off, len(seen) - 1) > 1e-4


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_discrete_laplace_has_the_exact_chances(epsilon):
    drawn = dp.discrete_laplace(dp.rational_epsilon(epsilon), MANY, words(1))
    base = np.tanh(epsilon / 2)
    assert_law(drawn, {x: base * np.exp(-epsilon * abs(x)) for x in range(-400, 401)})


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_rounded_laplace_has_the_chances_of_laplace_between_halves(epsilon):
    drawn = dp.rounded_laplace(dp.rational_epsilon(epsilon), MANY, words(2))
    law = stats.laplace(scale=1 / epsilon)
    assert_law(drawn, {x: law.cdf(x + 0.5) - law.cdf(x - 0.5) for x in range(-200, 201)})


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(4), Fraction(2503, 10)])
def test_discrete_gaussian_has_the_exact_chances(variance):
    drawn = dp.discrete_gaussian(variance, MANY, words(3))
    weights = {x: np.exp(-(x**2) / (2 * float(variance))) for x in range(-200, 201)}
    total = sum(weights.values())
    assert_law(drawn, {x: weight / total for x, weight in weights.items()})


@pytest.mark.parametrize("mean", [Fraction(1, 50), Fraction(1), Fraction(37, 5)])
def test_poisson_has_the_exact_chances(mean):
    drawn = dp.poisson([mean], np.zeros(MANY, dtype=np.int64), words(4))
    assert_law(drawn, {x: stats.poisson.pmf(x, float(mean)) for x in range(40)})


def test_exponential_mechanism_has_the_exact_chances():
    source = words(5)
    drawn = np.array([dp.chosen_privately([0, 2, 5], Fraction(1), 2, source) for _ in range(3000)])
    weights = np.exp(np.array([0, 2, 5]) / 4)
    assert_law(drawn, dict(enumerate(weights / weights.sum())))


def test_weighted_rows_have_the_exact_chances():
    table = np.array([[2**60, 3 * 2**60, 0], [0, 2**61, 2**61]], dtype=np.uint64)
    drawn = dp.weighted_rows(table, np.arange(MANY) % 2, words(6))
    assert_law(drawn[::2], {0: 0.25, 1: 0.75})
    assert_law(drawn[1::2], {1: 0.5, 2: 0.5})


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 2**63), st.integers(0, 2**32))
def test_uniform_draws_stay_below_their_bound(bound, seed):
    drawn = dp.uniform_below(bound, 50, words(seed))
    assert (drawn >= 0).all()
    assert all(int(value) < bound for value in drawn)


@settings(max_examples=examples(40), deadline=None)
@given(st.fractions(0, 1, max_denominator=10**30), st.integers(0, 2**32))
def test_a_word_equal_to_the_first_digits_is_decided_by_the_rest(chance, seed):
    """The one case in 2^64, forced: the exact remainder decides, and a chance without one says no."""
    head = 0 if chance == 1 else chance.numerator * 2**64 // chance.denominator
    rest = chance * 2**64 - head
    follow = words(seed)
    forced = [np.array([head], dtype=np.uint64)]

    def tied(size):
        return forced.pop() if forced else follow(size)

    said = bool(dp.bernoulli([chance], np.zeros(1, dtype=np.int64), tied)[0])
    if chance == 1:
        assert said
    elif rest == 0:
        assert not said
    else:
        next_word = int(words(seed)(1)[0])
        assert said == (next_word < rest.numerator * 2**64 // rest.denominator)


@settings(max_examples=examples(80), deadline=None)
@given(st.floats(2**-30, 2**9), st.integers(1, 50))
def test_what_is_spent_is_never_more_than_was_asked_for(epsilon, parts):
    try:
        share = dp.rational_epsilon(epsilon, parts)
    except DiscreetError:
        assert epsilon / parts < 2**-29
        return
    assert 0 < share * parts <= Fraction(epsilon)
    assert share * parts > Fraction(epsilon) * (1 - Fraction(1, 2**15))
    drawn = dp.discrete_laplace(share, 20, words(1))
    assert drawn.dtype == np.int64
    assert np.abs(drawn).max() < 2**50


@pytest.mark.parametrize("epsilon", [0, -1, 1e-20, 1e-10, 1e6, float("inf"), float("nan"), True, "1", None])
def test_an_epsilon_that_cannot_be_drawn_exactly_is_refused(epsilon):
    with pytest.raises(DiscreetError, match="epsilon"):
        dp.rational_epsilon(epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: dp.uniform_below(0, 1, dp.os_words),
        lambda: dp.bernoulli([Fraction(3, 2)], np.zeros(1, dtype=np.int64), dp.os_words),
        lambda: dp.bernoulli_exp([Fraction(-1)], np.zeros(1, dtype=np.int64), dp.os_words),
        lambda: dp.discrete_laplace(Fraction(1, 2**60), 1, dp.os_words),
        lambda: dp.discrete_gaussian(Fraction(2**50), 1, dp.os_words),
        lambda: dp.poisson([Fraction(-1)], np.zeros(1, dtype=np.int64), dp.os_words),
        lambda: dp.weighted_rows(np.ones((1, 2), dtype=np.uint64), np.zeros(1, dtype=np.int64), dp.os_words),
        lambda: dp.chosen_privately([], Fraction(1), 1, dp.os_words),
        lambda: dp.chosen_privately([1], Fraction(1), 0, dp.os_words),
    ],
)
def test_what_has_no_exact_law_is_refused(wrong):
    with pytest.raises(DiscreetError):
        wrong()


def test_the_operating_system_never_gives_the_same_noise_twice():
    one, other = (dp.discrete_laplace(Fraction(1, 100), 200, dp.os_words) for _ in range(2))
    assert (one != other).any()
    assert len(dp.os_words(0)) == 0
    assert len(dp.os_words((1 << 22) + 3)) == (1 << 22) + 3


def test_an_order_is_drawn_anew_where_two_words_are_equal():
    given = [np.array([5, 5, 1], dtype=np.uint64), np.array([7, 2, 9], dtype=np.uint64)]
    assert dp.shuffled(3, lambda size: given.pop(0)).tolist() == [1, 0, 2]


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_bounds_on_an_exponential_close_in_on_it(rate):
    for terms in (2, 8, 16):
        low, high = samplers._exp_between(rate, terms)
        assert float(low) <= math.exp(-rate) * (1 + 1e-15)
        assert float(high) >= math.exp(-rate) * (1 - 1e-15)
    assert float(high - low) <= 1e-12 * math.exp(-rate)


def test_gaussian_noise_worked_out_exactly_is_that_of_the_quick_comparison(monkeypatch):
    def draw():
        return dp.discrete_gaussian(Fraction(50), 300, dp.seeded_words(np.random.default_rng(4)))

    quick = draw()
    monkeypatch.setattr(samplers, "_DOUBT", 2.0)
    assert (draw() == quick).all()


class _Counted:
    """Words that say how many were taken."""

    def __init__(self, seed):
        self.source, self.taken = words(seed), 0

    def __call__(self, size):
        self.taken += size
        return self.source(size)


@settings(max_examples=examples(200), deadline=None)
@given(epsilon=st.floats(2**-30, 500.0), seed=st.integers(0, 2**32))
def test_one_draw_is_that_of_many_of_which_there_is_one(epsilon, seed):
    rate = dp.rational_epsilon(epsilon)
    alone, among = _Counted(seed), _Counted(seed)
    one = dp.discrete_laplace(rate, 1, alone)
    many = samplers._many_discrete_laplace(rate, 1, among)
    assert one.tolist() == many.tolist()
    assert one.dtype == many.dtype
    assert alone.taken == among.taken


def test_a_run_that_cannot_occur_is_refused_for_one_draw_too(monkeypatch):
    monkeypatch.setattr(samplers, "_stops_at_odd", lambda *_: True)
    with pytest.raises(DiscreetError, match="broken"):
        dp.discrete_laplace(Fraction(1), 1, words(1))
