from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import dp
from discreet.core.errors import DiscreetError

RUNS = 40_000


def whole_numbers(answer, runs):
    return answer + dp.discrete_laplace(Fraction(1), runs, dp.seeded_words(np.random.default_rng(answer)))


def floating_point(answer, runs):
    return answer + np.random.default_rng(int(answer)).laplace(0.0, 1.0, runs)


def gaussian(share):
    sigma = share * dp.gaussian_sigma(1, 1, 1e-3)

    def draw(answer, runs):
        # Rounded, because the last digits of floating-point noise are another fault.
        return answer + np.rint(np.random.default_rng(int(answer)).normal(0.0, sigma, runs) * 64) / 64

    return draw


def test_exact_draws_are_not_refuted():
    assert not dp.audit(whole_numbers, (0, 1), epsilon=1.0, runs=RUNS).figures["violated"]


def test_half_of_the_noise_is_found():
    found = dp.audit(whole_numbers, (0, 2), epsilon=1.0, runs=RUNS)
    assert found.figures["violated"]
    assert 1.5 < found.value <= 2.0


def test_the_last_digits_of_floating_point_noise_give_it_away():
    found = dp.audit(floating_point, (0.0, 1.0), epsilon=1.0, runs=RUNS)
    assert found.figures["violated"]
    assert "multiple of" in found.parameters["event"]


def test_gaussian_noise_is_refuted_only_where_it_is_too_small():
    assert not dp.audit(gaussian(1.0), (0, 1), epsilon=1.0, delta=1e-3, runs=RUNS).figures["violated"]
    assert dp.audit(gaussian(0.5), (0, 1), epsilon=1.0, delta=1e-3, runs=RUNS).figures["violated"]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_shown_is_never_below_zero(seed):
    rng = np.random.default_rng(seed)
    found = dp.audit(
        lambda _, runs: rng.normal(size=(runs, 2)), (0, 1), epsilon=1.0, runs=1000, level=1 - 1e-9
    )
    assert 0 <= found.value < 1


def test_what_several_outputs_tell_together_is_found():
    """Each of eight numbers keeps an epsilon of 0.5 by far; taken together they do not."""

    def shared(shift, runs):
        return np.random.default_rng([3, shift]).normal(0.15 * shift, 1.0, (runs, 8))

    alone = dp.audit(lambda shift, runs: shared(shift, runs)[:, 0], (0, 1), epsilon=0.5, runs=RUNS)
    assert not alone.figures["violated"]
    found = dp.audit(shared, (0, 1), epsilon=0.5, runs=RUNS)
    assert found.figures["violated"]
    assert "weighed together" in found.parameters["event"]


def test_outputs_with_noise_of_their_own_are_weighed_by_what_each_says():
    """Laplace noise says no more beyond its center: the sum over the outputs of what each says comes near 3 x 0.5."""

    def drawn(shift, runs):
        rng = np.random.default_rng([4, shift])
        return np.rint(16 * (0.5 * shift + rng.laplace(0.0, 1.0, (runs, 3)))) / 16

    found = dp.audit(drawn, (0, 1), epsilon=1.5, runs=RUNS, level=0.9)
    assert not found.figures["violated"]
    assert found.value > 1.1


def test_missing_answers_are_weighed_with_the_others():
    def told(shift, runs):
        rng = np.random.default_rng([5, shift])
        made = rng.normal(0.0, 1.0, (runs, 2))
        made[rng.random(runs) < 0.1 + 0.5 * shift, 1] = np.nan
        return made

    assert dp.audit(told, (0, 1), epsilon=1.0, runs=RUNS).figures["violated"]


def test_a_mechanism_without_noise_is_refuted_by_its_value():
    found = dp.audit(lambda answer, runs: np.full(runs, answer), (3.0, 4.0), epsilon=5.0, runs=RUNS)
    assert found.figures["violated"]
    assert found.value > 5


@pytest.mark.parametrize("seed", range(5))
def test_the_same_law_is_hardly_ever_refuted(seed):
    rng = np.random.default_rng(seed)
    found = dp.audit(lambda _, runs: rng.normal(size=(runs, 3)), (0, 1), epsilon=0.2, runs=RUNS)
    assert not found.figures["violated"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": 10},
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"level": 2},
        {"neighbors": (1, 2, 3)},
        {"draw": lambda answer, runs: [1.0]},
        {"draw": lambda answer, runs: ["a"] * runs},
        {"draw": int},
    ],
)
def test_what_cannot_be_audited_is_refused(wrong):
    asked = {"draw": whole_numbers, "neighbors": (0, 1), "epsilon": 1.0, "runs": 1000} | wrong
    with pytest.raises(DiscreetError):
        dp.audit(asked.pop("draw"), asked.pop("neighbors"), **asked)
