import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.risk.class_size_models import (
    SIZE_MODELS,
    Sizes,
    chao,
    dankar,
    ewens,
    mu_argus,
    pitman,
    snb,
    zayatz,
)


def chinese_restaurant(n, theta, alpha, rng):
    """Seat n people one after the other: class sizes of Pitman's sampling formula (Ewens' for alpha = 0)."""
    sizes = []
    for seated in range(n):
        new = rng.random() * (theta + seated) < theta + alpha * len(sizes)
        if new:
            sizes.append(1)
        else:
            chances = np.array(sizes) - alpha
            sizes[rng.choice(len(sizes), p=chances / chances.sum())] += 1
    return np.array(sizes)


def sampled(population_sizes, n, rng):
    people = np.repeat(np.arange(len(population_sizes)), population_sizes)
    drawn = rng.choice(people, n, replace=False)
    return Sizes.of(np.bincount(drawn), len(people))


@pytest.fixture(scope="module")
def restaurant():
    return chinese_restaurant(4000, 40.0, 0.5, np.random.default_rng(1))


def test_pitman_finds_the_parameters_and_the_classes_of_its_own_population(restaurant):
    found = pitman(sampled(restaurant, 1500, np.random.default_rng(2)))
    assert found.parameters["alpha"] == pytest.approx(0.5, abs=0.1)
    assert found.classes == pytest.approx(len(restaurant), rel=0.1)
    assert found.uniques == pytest.approx((restaurant == 1).sum(), rel=0.15)


def test_ewens_solves_its_likelihood_equation():
    sizes = chinese_restaurant(3000, 50.0, 0.0, np.random.default_rng(3))
    sample = sampled(sizes, 1000, np.random.default_rng(4))
    found = ewens(sample)
    theta = found.parameters["theta"]
    assert (theta / (theta + np.arange(1000))).sum() == pytest.approx(sample.total, rel=1e-6)
    assert found.classes == pytest.approx(len(sizes), rel=0.1)


def test_snb_finds_the_classes_of_its_own_population():
    rng = np.random.default_rng(5)
    sizes = 1 + rng.negative_binomial(0.5, 0.1, 3000)
    found = snb(sampled(sizes, int(sizes.sum() * 0.3), rng))
    assert found.classes == pytest.approx(3000, rel=0.1)
    assert found.uniques == pytest.approx((sizes == 1).sum(), rel=0.2)


def test_the_snb_equations_hold_at_the_solution():
    sizes = Sizes.of(np.repeat([1, 2, 3, 8, 20], [300, 90, 40, 10, 5]), 4000)
    found = snb(sizes)
    a, b = found.parameters["alpha"], found.parameters["beta"]
    q = 1 - sizes.fraction
    ratio = (b / (1 - (1 - b) * q)) ** a
    assert found.classes * (1 + a * (1 - b) / b) == pytest.approx(4000, rel=1e-6)
    assert found.classes * (1 - q * ratio) == pytest.approx(sizes.total, rel=1e-6)
    once = sizes.fraction * ratio * (1 + q * a * (1 - b) / (1 - (1 - b) * q))
    assert found.classes * once == pytest.approx(sizes.uniques, rel=1e-6)


def test_zayatz_agrees_with_bayes_rule_by_hand():
    # Two sample classes of one and one of two; four of N = 8 were drawn.
    found = zayatz(Sizes.of(np.array([1, 1, 2]), 8))
    # P(f=1 | F=1) = 4/8; P(f=1 | F=2) = 2 * C(6,3) / C(8,4) = 40/70; shares of sizes 2/3 and 1/3.
    chance = (2 / 3 * 0.5) / (2 / 3 * 0.5 + 1 / 3 * 40 / 70)
    assert found.stays_unique == pytest.approx(2 * chance)
    assert found.uniques == pytest.approx(4 * chance)


def test_zayatz_is_not_undone_by_no_uniques_at_all():
    found = zayatz(Sizes.of(np.array([2, 2, 3]), 100))
    assert found.uniques is None
    assert 0 < found.risk < 1


def test_chao_and_lin_by_hand():
    # K + s1^2 / (2 s2 n / (n - 1) + s1 q / (1 - q)), s1 = 10, s2 = 5, n = 20, q = 0.2
    found = chao(Sizes.of(np.repeat([1, 2], [10, 5]), 100))
    assert found.classes == pytest.approx(15 + 100 / (10 * 20 / 19 + 10 * 0.25))


def test_mu_argus_of_uniques_is_its_closed_form():
    found = mu_argus(Sizes.of(np.ones(10, dtype=np.int64), 100))
    assert found.risk == pytest.approx(0.1 / 0.9 * np.log(10))


def test_dankar_takes_pitman_for_small_fractions_and_the_smaller_of_two_above(restaurant):
    small = sampled(restaurant, 300, np.random.default_rng(6))
    assert dankar(small).parameters["chosen"] == "pitman"
    large = sampled(restaurant, 2000, np.random.default_rng(7))
    both = {model.__name__: model(large).uniques for model in (snb, zayatz)}
    assert dankar(large).parameters["chosen"] == min(both, key=both.get)
    assert dankar(large).uniques == min(both.values())


def test_dankar_falls_back_on_zayatz_where_pitman_cannot_be_fitted():
    found = dankar(Sizes.of(np.ones(20, dtype=np.int64), 1000))
    assert found.parameters["chosen"] == "zayatz"


@pytest.mark.parametrize("model", [pitman, ewens, snb])
def test_a_sample_of_uniques_or_of_one_class_is_not_estimable_and_not_zero(model):
    for sizes in (np.ones(50, dtype=np.int64), np.array([50])):
        found = model(Sizes.of(sizes, 1000))
        assert found.risk is None
        assert found.reason


def test_even_classes_are_beyond_pitman():
    found = pitman(Sizes.of(np.full(40, 25), 5000))
    assert found.risk is None
    assert "edge" in found.reason


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=40),
    st.floats(1.0, 50.0),
    st.sampled_from(sorted(SIZE_MODELS)),
)
def test_every_model_gives_a_risk_between_0_and_1_or_a_reason(classes, factor, name):
    sizes = np.array(classes)
    sample = Sizes.of(sizes, int(np.ceil(sizes.sum() * factor)))
    found = SIZE_MODELS[name](sample)
    assert (found.risk is None) == (found.reason is not None)
    if found.risk is not None:
        assert 0 < found.risk <= 1 + 1e-12
    if found.classes is not None:
        assert sample.total <= found.classes <= sample.total + sample.population - sample.records + 1e-6
