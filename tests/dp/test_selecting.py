from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import dp
from discreet.core.errors import DiscreetError, ParameterError

RUNS = 3_000


def shares(scores, **options):
    drawn = [dp.choose(scores, seed=seed, **options).place for seed in range(RUNS)]
    return np.bincount(drawn, minlength=len(scores)) / RUNS


def test_the_exponential_mechanism_has_its_law():
    law = np.exp(0.5 * np.array([0.0, 1.0, 3.0]))
    found = shares([0, 1, 3], sensitivity=1, epsilon=1, method="exponential")
    assert found == pytest.approx(law / law.sum(), abs=5 * 0.5 / math.sqrt(RUNS))


@pytest.mark.parametrize("method", ["permute-and-flip", "noisy-max"])
@pytest.mark.slow
def test_permute_and_flip_gives_the_lesser_of_two_half_its_coin(method):
    found = shares([2, 0], sensitivity=1, epsilon=1, method=method)
    assert found[1] == pytest.approx(math.exp(-1) / 2, abs=5 * 0.5 / math.sqrt(RUNS))


@pytest.mark.slow
def test_permute_and_flip_is_the_largest_score_under_exponential_noise():
    scores = np.array([0.0, 1.0, 2.5])
    noise = np.random.default_rng(1).exponential(2.0, (200_000, 3))
    wanted = np.bincount((scores + noise).argmax(axis=1), minlength=3) / 200_000
    found = shares(scores, sensitivity=1, epsilon=1)
    assert found == pytest.approx(wanted, abs=5 * 0.5 / math.sqrt(RUNS))


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
    st.sampled_from(["permute-and-flip", "exponential", "noisy-max"]),
    st.floats(0.01, 10),
)
def test_somebody_is_always_chosen(scores, method, epsilon):
    found = dp.choose(
        scores, sensitivity=1.0, epsilon=epsilon, method=method, candidates=list("abcdef")[: len(scores)]
    )
    assert found.value == "abcdef"[found.place]
    assert found.guarantee is not None
    assert found.cost.epsilon == epsilon


@pytest.mark.slow
def test_monotone_scores_are_chosen_twice_as_sharply():
    plain = shares([1, 0], sensitivity=1, epsilon=2)
    assert shares([1, 0], sensitivity=1, epsilon=1, monotone=True) == pytest.approx(plain)


def test_a_choice_enters_the_ledger_or_is_refused():
    ledger = dp.Ledger(epsilon=1.0)
    dp.choose([1, 2], sensitivity=1, epsilon=0.6, ledger=ledger)
    with pytest.raises(DiscreetError):
        dp.choose([1, 2], sensitivity=1, epsilon=0.6, ledger=ledger)
    with pytest.raises(DiscreetError):
        dp.SparseVector(10, sensitivity=1, epsilon=0.6, ledger=ledger)
    asked = dp.SparseVector(10, sensitivity=1, epsilon=0.4, ledger=ledger)
    for _ in range(50):
        asked.above(-1_000)
    assert ledger.spent.epsilon == pytest.approx(1.0)


def test_a_sparse_vector_ends_when_it_has_found_enough():
    # Far from the threshold: noise of the operating system passes it with a chance below exp(-200).
    asked = dp.SparseVector(1000.5, sensitivity=1.0, epsilon=2, max_found=2)
    assert [asked.above(answer) for answer in (0.25, 1e6, 3.5, 1e6)] == [False, True, False, True]
    assert asked.left == 0
    assert "2-differential privacy" in asked.guarantee
    with pytest.raises(ParameterError, match="new SparseVector"):
        asked.above(1.0)


def first_found(answers, runs, *, vector):
    places = np.full(runs, len(answers))
    for run in range(runs):
        asked = vector(run)
        for place, answer in enumerate(answers):
            if asked.above(answer):
                places[run] = place
                break
    return places


@pytest.mark.slow
def test_no_violation_is_found_in_a_sparse_vector():
    def draw(answers, runs):
        start = int(sum(answers)) * runs
        return first_found(
            answers, runs, vector=lambda run: dp.SparseVector(1, sensitivity=1, epsilon=1, seed=start + run)
        )

    found = dp.audit(draw, ((0, 0, 0, 1), (1, 1, 1, 0)), epsilon=1.0, runs=2_000)
    assert not found.figures["violated"]


def test_a_sparse_vector_that_draws_no_noise_for_answers_is_caught():
    """Some published variants do that (Lyu, Su and Li 2017, table 1)."""
    rng = np.random.default_rng(1)

    def draw(answers, runs):
        limits = 1 + rng.laplace(0, 2, runs)
        above = np.asarray(answers)[None, :] >= limits[:, None]
        return (above * 2 ** np.arange(len(answers))).sum(axis=1)

    assert dp.audit(draw, ((0, 1), (1, 0)), epsilon=1.0, runs=20_000).figures["violated"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dp.choose([], sensitivity=1, epsilon=1),
        lambda: dp.choose([1, math.nan], sensitivity=1, epsilon=1),
        lambda: dp.choose([[1, 2]], sensitivity=1, epsilon=1),
        lambda: dp.choose([1, 2], sensitivity=0, epsilon=1),
        lambda: dp.choose([1, 2], sensitivity=1, epsilon=0),
        lambda: dp.choose([1, 2], sensitivity=1, epsilon=1, candidates=["a"]),
        lambda: dp.choose([1, 2], sensitivity=1, epsilon=1, method="best"),
        lambda: dp.SparseVector("ten", sensitivity=1, epsilon=1),
        lambda: dp.SparseVector(10, sensitivity=0, epsilon=1),
        lambda: dp.SparseVector(10, sensitivity=1, epsilon=1, max_found=0),
        lambda: dp.SparseVector(10, sensitivity=1, epsilon=1).above(0.5),
        lambda: dp.SparseVector(10, sensitivity=1, epsilon=1).above([1, 2]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(DiscreetError):
        call()
