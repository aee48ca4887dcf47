"""Worked examples of sequential synthesis: Nowok, Raab and Dibben (2016), with corrected figures."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp

from discreet import Microdata
from discreet.synth import Sequential
from discreet.synth.column_forms import Variable
from discreet.synth.methods.glm_methods import Logreg
from discreet.synth.methods.method import Task
from discreet.synth.methods.model_matrix import Design, newton_logit
from discreet.synth.methods.normal_regression import least_squares

RNG = np.random.default_rng(1)
FOUR = Microdata(pl.DataFrame({f"X{i}": RNG.normal(size=300) for i in range(1, 5)}))
ASKED = [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_the_predictor_matrix_is_used_as_given_where_the_order_allows_it():
    plan = Sequential(visit_sequence=["X3", "X4", "X2", "X1"], predictor_matrix=ASKED).fit(FOUR, seed=1).plan
    assert plan.predictor_matrix.tolist() == ASKED
    assert plan.methods == {"X1": "cart", "X2": "cart", "X3": "sample", "X4": "cart"}


def test_predictors_that_come_later_are_taken_out():
    plan = Sequential(visit_sequence=["X4", "X3", "X1", "X2"], predictor_matrix=ASKED).fit(FOUR, seed=1).plan
    assert plan.predictor_matrix.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert plan.methods["X4"] == "sample"


def test_a_category_with_four_of_ten_missing_stays_so():
    education = ["low", None, "high", None, "low", "high", None, "low", "high", None]
    frame = pl.DataFrame({"age": range(10), "education": education})
    drawn = Sequential().fit(Microdata(frame), seed=1).sample(10_000, seed=1).frame
    assert drawn["education"].null_count() / 10_000 == pytest.approx(0.40, abs=0.015)


def test_incomes_drawn_from_the_worked_regression_have_its_slope():
    age = [22, 25, 28, 30, 35, 40, 45, 50, 55, 60]
    income = [value * 1000 for value in (30, 35, 40, 45, 50, 60, 70, 80, 85, 90)]
    file = Microdata(pl.DataFrame({"age": age, "income": income}))
    drawn = Sequential(method={"income": "norm"}).fit(file, seed=1).sample(20_000, seed=1).frame
    slope, level = np.polyfit(drawn["age"], drawn["income"], 1)
    rest = drawn["income"] - level - slope * drawn["age"]
    error = np.sqrt(3_704_268.29 / (20_000 * drawn["age"].var()))
    assert slope == pytest.approx(1646.341, abs=3 * error)
    assert rest.std() == pytest.approx(np.sqrt(3_704_268.29), rel=0.02)


def test_a_proper_regression_draws_its_parameters_from_their_posterior():
    age = np.array([22, 25, 28, 30, 35, 40, 45, 50, 55, 60], dtype=float)
    income = np.array([30, 35, 40, 45, 50, 60, 70, 80, 85, 90]) * 1000.0
    x, draws = [Variable("age", age)], []
    design, rng = Design.of(x), np.random.default_rng(1)
    for _ in range(10_000):
        fit = least_squares(design, x, income, posterior=rng)
        draws.append([*fit.drawn(rng), fit.sigma**2])
    beta, variance = np.array(draws)[:, :2], np.array(draws)[:, 2]
    # RSS over a chi-square with 8 degrees of freedom has the mean RSS / 6; slopes then follow t with 8.
    assert variance.mean() == pytest.approx(29_634_146.34 / 6, rel=0.03)
    slope = beta[:, 1] / design.scale[1]
    spread = 3_704_268.29 / np.sum((age - age.mean()) ** 2)
    assert slope.mean() == pytest.approx(1646.341, rel=0.002)
    assert slope.var() == pytest.approx(spread * 8 / 6, rel=0.05)


def test_a_proper_logistic_regression_draws_its_coefficients_from_their_normal_law():
    rng = np.random.default_rng(2)
    x = [Variable("a", rng.normal(size=400)), Variable("b", rng.normal(size=400))]
    share = 1 / (1 + np.exp(1.5 - 0.3 * x[0].values - 0.5 * x[1].values))
    y = (rng.random(400) < share).astype(np.int32)
    design = Design.of(x)
    beta, root = newton_logit(design, x, y)
    draws = beta + rng.standard_normal((100_000, 3)) @ root.T
    matrix = design.matrix(x)
    p = 1 / (1 + np.exp(-matrix @ beta))
    covariance = np.linalg.inv(matrix.T @ (matrix * (p * (1 - p))[:, None]))
    assert matrix.T @ (y - p) == pytest.approx(np.zeros(3), abs=1e-6)
    assert draws.mean(axis=0) == pytest.approx(beta, abs=3e-3)
    assert np.cov(draws.T) == pytest.approx(covariance, rel=0.05, abs=2e-3)
    target = Variable("y", y, levels=2)
    laws = [Logreg(augment=False).fit(Task(target, x, rng, None, proper=True)) for _ in range(2000)]
    drawn = np.array([law.beta[:, 1] for law in laws])
    assert drawn.mean(axis=0) == pytest.approx(beta, abs=0.02)
    assert drawn.var(axis=0) == pytest.approx(np.diag(covariance), rel=0.15)


@pytest.mark.slow
def test_the_order_costs_nothing_where_the_model_is_right():
    gaps, drifts = {"forward": [], "backward": []}, {"forward": [], "backward": []}
    orders = {"forward": ["X1", "X2", "X3"], "backward": ["X3", "X2", "X1"]}
    for run in range(30):
        rng = np.random.default_rng(run)
        x1 = rng.exponential(5, 1000)
        x2 = x1 / 2 + rng.normal(0, 0.1, 1000)
        frame = pl.DataFrame({"X1": x1, "X2": x2, "X3": 2 * x1 + 3 * x2 + rng.normal(0, 0.1, 1000)})
        for name, order in orders.items():
            method = dict.fromkeys(order[1:], "norm") | {order[0]: "sample"}
            synthesis = Sequential(method=method, visit_sequence=order)
            drawn = synthesis.fit(Microdata(frame), seed=run).sample(seed=run).frame
            gaps[name] += [ks_2samp(frame[c], drawn[c]).statistic for c in frame.columns]
            drifts[name].append(
                np.abs(np.corrcoef(frame.to_numpy().T) - np.corrcoef(drawn.to_numpy().T)).max()
            )
    for name in orders:
        assert np.mean(gaps[name]) <= 0.03
        assert np.mean(drifts[name]) < 1e-4
    assert np.mean(gaps["forward"]) == pytest.approx(np.mean(gaps["backward"]), abs=0.006)
