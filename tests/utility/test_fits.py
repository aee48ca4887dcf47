"""Do analyses of a release give the original's answers? Fits, comparisons, prediction."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.utility import (
    ModelFit,
    combine,
    compare_fits,
    compare_model,
    ellipsoid_overlap,
    fit,
    interval_overlap,
    train_on_synthetic,
)


def workers(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    sex = rng.choice(["f", "m"], n)
    chance = 1 / (1 + np.exp(-(age - 40) / 10))
    return pl.DataFrame(
        {
            "age": age,
            "sex": sex,
            "town": rng.choice(["a", "b", "c"], n),
            "pay": 1000 + 20 * age + 100 * (sex == "m") + rng.normal(0, 100, n),
            "owns": np.where(rng.random(n) < chance, "yes", "no"),
            "children": rng.poisson(np.exp(0.02 * age - 0.5)),
        }
    )


A, B = Microdata(workers(600, 1)), Microdata(workers(600, 2))
ends = st.tuples(st.floats(-5, 5), st.floats(0.1, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(deadline=None)
@given(ends, ends)
def test_overlap_is_symmetric_and_at_most_one(a, b):
    found = interval_overlap(a, b)
    assert found == pytest.approx(interval_overlap(b, a))
    assert found <= 1 + 1e-12
    assert interval_overlap(a, a) == pytest.approx(1.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(0.01, 5)), min_size=2, max_size=8))
def test_partial_synthesis_never_claims_more_certainty_than_one_copy(copies):
    estimates, variances = zip(*copies, strict=True)
    found = combine(estimates, variances, "partial")
    assert found.variance >= np.mean(variances) - 1e-12
    low, high = found.interval()
    assert low <= found.estimate <= high


def test_the_rules_hold_for_vectors_and_for_matrices():
    rows = np.array([[1.0, 2.0], [1.2, 1.8], [0.9, 2.1]])
    own = np.full((3, 2), 0.04)
    numbers = combine(rows, own, "partial")
    matrices = combine(rows, np.array([np.diag(row) for row in own]), "partial")
    assert np.diag(matrices.variance) == pytest.approx(numbers.variance)
    assert numbers.to_dict()["rule"] == "partial"


@pytest.mark.parametrize(
    ("formula", "family", "term", "value"),
    [
        ("pay ~ age + sex", "linear", "age", 20.0),
        ("owns ~ age", "logistic", "age", 0.1),
        ("children ~ age", "poisson", "age", 0.02),
    ],
)
def test_fits_find_what_was_put_in(formula, family, term, value):
    found = fit(formula, A, family)
    at = found.names.index(term)
    assert abs(found.coefficients[at] - value) < 4 * found.standard_errors[at]
    assert found.converged
    assert found.records == 600


def test_a_multinomial_has_coefficients_for_each_level():
    found = compare_model("town ~ age + sex", A, B, family="multinomial")
    terms = found.detail["coefficients"]["term"].to_list()
    assert [term for term in terms if term.startswith("age")] == ["age [b]", "age [c]"]


def test_a_file_agrees_with_itself():
    found = compare_model("pay ~ age + sex + town", A, A)
    assert found.value == pytest.approx(1.0)
    assert found.figures["difference_max"] == 0.0
    assert found.figures["share_same_conclusion"] == 1.0
    assert found.figures["ellipsoid_overlap"] == pytest.approx(1.0, abs=0.02)
    assert found.figures["wald"] == pytest.approx(0.0, abs=1e-12)


def test_a_release_without_relations_loses_its_conclusions():
    mixed = Microdata(A.frame.with_columns(pl.col("pay").shuffle(seed=1)))
    found = compare_model("pay ~ age", A, mixed)
    assert found.figures["overlap_min"] < 0
    assert found.figures["share_same_conclusion"] < 1


def test_levels_that_a_file_lacks_are_listed_and_not_scored():
    few = Microdata(B.frame.filter(pl.col("town") != "c"))
    found = compare_model("pay ~ age + town", A, few)
    rows = found.detail["coefficients"].filter(pl.col("overlap").is_null())
    assert rows["term"].to_list() == ["town[T.c]"]
    assert found.figures["coefficients_in_one_only"] == 1
    without_reference = Microdata(B.frame.filter(pl.col("town") != "a"))
    found = compare_model("pay ~ age + town", A, without_reference)
    # What is measured against the lacking level means something else there; the slope of age does not.
    assert found.detail["coefficients"].filter(pl.col("overlap").is_not_null())["term"].to_list() == ["age"]
    assert any("reference level of 'town'" in caveat for caveat in found.caveats)


def test_population_intervals_are_wider_than_observed_ones():
    copies = [Microdata(workers(600, seed)) for seed in (3, 4, 5)]
    observed = compare_model("pay ~ age", A, copies)
    population = compare_model("pay ~ age", A, copies, target="population")
    se = [found.detail["coefficients"]["se_released"].to_numpy() for found in (observed, population)]
    assert se[1] == pytest.approx(se[0] * np.sqrt(1 + 1 / 3))
    assert population.parameters["rule"] == "simple"


def test_posterior_or_partial_copies_have_no_p_value():
    copies = [B, Microdata(workers(600, 3))]
    assert compare_model("pay ~ age", A, copies).figures["wald_p_value"] is not None
    for how in ({"synthesis": "partial"}, {"posterior": True}):
        found = compare_model("pay ~ age", A, copies, **how)
        assert found.figures["wald_p_value"] is None
        assert any("without a p-value" in caveat for caveat in found.caveats)


def test_several_models_give_one_summary_and_functions_may_be_models():
    def mean_pay(data):
        pay = data.frame["pay"]
        return ModelFit(("mean",), [pay.mean()], [[pay.var() / len(pay)]])

    found = compare_model({"pay": "pay ~ age", "owns": ("owns ~ age", "logistic"), "mean": mean_pay}, A, B)
    assert found.detail["models"]["model"].to_list() == ["pay", "owns", "mean"]
    assert found.figures["models"] == 3
    assert found.figures["coefficients"] == 5


def test_a_failed_standard_error_gives_no_overlap():
    one, other = ModelFit(("x", "y"), [1, 2], np.eye(2)), ModelFit(("x", "y"), [1, 2], np.diag([1.0, 0.0]))
    found = compare_fits(one, other)
    assert found.detail["coefficients"]["overlap"].to_list() == [1.0, None]
    assert found.figures["ellipsoid_overlap"] is None


def test_ellipsoids_far_apart_share_nothing():
    overlap, error = ellipsoid_overlap([0, 0], np.eye(2), [50, 50], np.eye(2))
    assert (overlap, error) == (0.0, 0.0)


def test_weights_of_one_leave_coefficients_alone():
    weighted = Microdata(A.frame.with_columns(w=pl.lit(2.0)))
    plain, even = fit("pay ~ age", A), fit("pay ~ age", weighted, weight="w")
    assert even.coefficients == pytest.approx(plain.coefficients)


def test_the_weight_of_the_data_is_used_unless_it_is_taken_away():
    rng = np.random.default_rng(3)
    frame = A.frame.with_columns(w=pl.Series(rng.uniform(1, 9, len(A.frame))))
    survey = Microdata(frame, weight="w")
    by_role, by_name = fit("pay ~ age", survey), fit("pay ~ age", Microdata(frame), weight="w")
    assert by_role.coefficients.tolist() == by_name.coefficients.tolist()
    plain = fit("pay ~ age", survey.with_roles(weight=None))
    assert plain.coefficients.tolist() == fit("pay ~ age", A).coefficients.tolist()
    assert compare_model("pay ~ age", survey, A).parameters["weight"] == "w"


def test_a_weighted_multinomial_is_the_fit_of_records_repeated_as_often_as_they_weigh():
    rng = np.random.default_rng(4)
    times = rng.integers(1, 4, len(A.frame))
    repeated = Microdata(A.frame[np.repeat(np.arange(len(times)), times)])
    weighted = fit("town ~ age + sex", Microdata(A.frame.with_columns(w=times), weight="w"), "multinomial")
    wanted = fit("town ~ age + sex", repeated, "multinomial")
    assert weighted.names == wanted.names
    assert weighted.coefficients == pytest.approx(wanted.coefficients, abs=1e-6)
    assert weighted.converged
    even = fit("town ~ age + sex", Microdata(A.frame.with_columns(w=pl.lit(2.0)), weight="w"), "multinomial")
    plain = fit("town ~ age + sex", A, "multinomial")
    assert even.standard_errors == pytest.approx(plain.standard_errors, rel=0.1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fit("pay", A), ParameterError, "tilde"),
        (lambda: fit("pay ~ nose", A), ColumnError, "no column 'nose'"),
        (lambda: fit("pay ~ age +", A), ParameterError, "formula cannot be read"),
        (lambda: compare_model("pay ~ age", A, Microdata(B.frame.drop("age"))), ColumnError, "'age'"),
        (lambda: compare_model("pay ~ age", A, B.frame), ParameterError, "released must be Microdata"),
        (
            lambda: compare_model("pay ~ age", A, Microdata(B.frame.with_columns(pl.col("age").cast(str)))),
            ColumnError,
            "'age' is a category in a file and a number in the original",
        ),
        (lambda: ModelFit(("x", "x"), [1.0, 2.0], np.eye(2)), ParameterError, "two coefficients"),
        (lambda: combine([[1, 2], [3]], [[1, 2], [3]]), ParameterError, "estimates must be numbers"),
        (lambda: combine([1.0, 2.0], [0.1, -0.1]), ParameterError, "negative"),
        (lambda: combine([1.0, 2.0], [0.1, 0.1], n="a", n_syn=2), ParameterError, "n must be"),
        (lambda: combine([1.0, 2.0], [0.1, 0.1], generation=A), ParameterError, "fitted synthesizer"),
        (lambda: fit("x ~ z", A), ColumnError, "names no column"),
        (lambda: fit("sex ~ age", A), ColumnError, "category"),
        (lambda: fit("town ~ age", A, "logistic"), ColumnError, "two"),
        (lambda: fit("pay ~ age", A, "gamma"), ParameterError, "family"),
        (lambda: fit("pay ~ age", Microdata(A.frame[:2])), InputError, "coefficients"),
        (lambda: compare_model("pay ~ age", A, B, level=1.0), ParameterError, "level"),
        (lambda: compare_model("pay ~ age", A, []), ParameterError, "at least one"),
        (
            lambda: compare_model("pay ~ age", A, B, synthesis="partial", target="population"),
            ParameterError,
            "two",
        ),
        (lambda: compare_fits(A, B), ParameterError, "ModelFit"),
        (lambda: compare_model(int, A, B), ParameterError, r"formula failed .* \(TypeError\)"),
        (lambda: interval_overlap((3, 1), (0, 1)), ParameterError, "lower end"),
        (lambda: train_on_synthetic(A, B, "nose"), ColumnError, "nose"),
        (lambda: train_on_synthetic(A, B, "owns", learners="magic"), ParameterError, "learner"),
        (lambda: train_on_synthetic(A, B, "owns", task="regression"), ColumnError, "number"),
    ],
)
def test_bad_requests_say_the_way_out(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_training_on_a_good_release_is_as_good_and_on_noise_is_not():
    holdout = Microdata(workers(400, 9))
    noise = Microdata(B.frame.with_columns(pl.col("owns").shuffle(seed=1)))
    good, bad = (
        train_on_synthetic(A, release, "owns", holdout=holdout, learners="linear", seed=1)
        for release in (B, noise)
    )
    assert abs(good.value) < 0.05
    assert bad.value > 0.1
    assert good.figures["linear_real"] > 0.6
    assert good.caveats == ()


@pytest.mark.slow
def test_numbers_are_regressed_with_every_learner_and_with_a_search():
    found = train_on_synthetic(A, [B, B], "pay", learners=["linear", "boosting"], seed=1)
    assert found.parameters["score"] == "r2"
    assert found.figures["best_real"] > 0.7
    assert any("flatters" in caveat for caveat in found.caveats)
    searched = train_on_synthetic(A, B, "pay", learners="linear", search=True, seed=1)
    assert searched.figures["linear_real"] > 0.7


def test_many_classes_are_scored_by_balanced_accuracy():
    found = train_on_synthetic(A, B, "town", learners="forest", seed=1)
    assert found.parameters["score"] == "balanced_accuracy"
    assert set(found.detail["scores"].columns) >= {"accuracy", "f1", "auc", "log_loss"}
