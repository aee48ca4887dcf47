"""Attacks against a trained model: what it holds, and whom it gives away."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from discreet import Microdata, attack
from discreet.core.errors import InputError, ParameterError
from discreet.outputs import Session

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5))
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=600) > 0).astype(int)
TRAIN, REST = slice(0, 300), slice(300, 600)


def structure(model, threshold=10, target=Y):
    return attack.model_structure(
        model.fit(X[TRAIN], target[TRAIN]), X[TRAIN], target[TRAIN], threshold=threshold
    )


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (KNeighborsClassifier(), 300),
        (KernelRidge(), 300),
        (GaussianProcessRegressor(optimizer=None), 300),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), 300),
        (LogisticRegression(), 0),
        (DecisionTreeClassifier(min_samples_leaf=20), 0),
    ],
)
def test_models_that_carry_records_are_told_from_those_that_do_not(model, rows):
    assert structure(model).figures["memorized_rows"] == rows


def test_a_support_vector_machine_carries_its_support_vectors():
    model = SVC().fit(X[TRAIN], Y[TRAIN])
    found = attack.model_structure(model, X[TRAIN], Y[TRAIN])
    assert found.figures["memorized_rows"] == len(model.support_)
    assert found.value == pytest.approx(len(model.support_) / 300)


@pytest.mark.parametrize(
    "kind",
    [
        DecisionTreeClassifier,
        RandomForestClassifier,
        pytest.param(HistGradientBoostingClassifier, marks=pytest.mark.slow),
        GradientBoostingClassifier,
    ],
)
def test_leaves_below_the_threshold_are_counted_and_the_setting_that_mends_it_does(kind):
    few = {"max_iter": 3} if kind is HistGradientBoostingClassifier else {}
    small = {**few, "min_samples_leaf": 1}
    full = structure(kind(random_state=0, **small)).figures
    assert full["smallest_leaf"] < 10
    assert full["leaves_below"] > 0
    assert full["exposed_share"] > 0
    bootstrap = {"bootstrap": False} if kind is RandomForestClassifier else few
    mended = structure(kind(random_state=0, min_samples_leaf=20, **bootstrap)).figures
    assert mended["smallest_leaf"] >= 20
    assert mended["leaves_below"] == 0


def test_leaves_of_a_tree_are_those_that_scikit_learn_counts():
    model = DecisionTreeClassifier(random_state=0).fit(X[TRAIN], Y[TRAIN])
    found = attack.model_structure(model, X[TRAIN], Y[TRAIN]).figures
    sizes = model.tree_.n_node_samples[model.tree_.children_left == -1]
    assert (found["leaves"], found["smallest_leaf"]) == (len(sizes), sizes.min())
    assert found["leaves_below"] == (sizes < 10).sum()
    assert found["exposed_share"] == pytest.approx(sizes[sizes < 10].sum() / 300)


def test_degrees_of_freedom_are_what_the_numbers_learned_leave():
    assert structure(LinearRegression()).figures["degrees_of_freedom"] == 300 - 6
    wide = structure(MLPClassifier((60,), max_iter=5, random_state=0)).figures
    assert wide["degrees_of_freedom"] < 0
    unread = structure(GaussianNB())
    assert unread.value is None
    assert any("nothing was cleared" in caveat for caveat in unread.caveats)


@pytest.mark.parametrize("shadows", [0, 12])
def test_a_forest_gives_its_members_away_and_a_small_regression_does_not(shadows):
    def risk(model):
        fitted = model.fit(X[TRAIN], Y[TRAIN])
        return attack.model_membership(
            fitted, X[TRAIN], Y[TRAIN], others=(X[REST], Y[REST]), shadows=shadows, seed=1
        ).figures

    forest = risk(RandomForestClassifier(20, random_state=0))
    assert forest["risk_low"] > 0.3
    assert forest["auc"] > 0.7
    plain = risk(LogisticRegression())
    assert plain["risk_low"] <= 0.05
    assert plain["auc"] == pytest.approx(0.5, abs=0.1)


def test_a_model_of_numbers_and_any_predict_proba_can_be_attacked():
    number = X[:, 0] + RNG.normal(size=600)
    forest = RandomForestRegressor(20, random_state=0).fit(X[TRAIN], number[TRAIN])
    found = attack.model_membership(
        forest, X[TRAIN], number[TRAIN], others=(X[REST], number[REST]), shadows=8, seed=1
    )
    assert found.figures["risk_low"] > 0.1

    class Service:
        def predict_proba(self, table):
            chance = 1 / (1 + np.exp(-table[:, 0] - table[:, 1]))
            return np.column_stack([1 - chance, chance])

    service = attack.model_membership(Service(), X[TRAIN], Y[TRAIN], others=(X[REST], Y[REST]), seed=1)
    assert service.figures["risk_low"] <= 0.05
    assert any("cannot be refitted" in caveat for caveat in service.caveats)


def test_members_of_a_model_that_never_saw_them_are_covered_by_zero():
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table, outcome = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
        model = DecisionTreeClassifier(random_state=0).fit(rng.normal(size=(300, 4)), rng.integers(0, 2, 300))
        found = attack.model_membership(
            model, table[:300], outcome[:300], others=(table[300:], outcome[300:]), shadows=0, seed=seed
        ).figures
        covered += found["risk_low"] <= 0 <= found["risk_high"]
    assert covered >= 17


def test_what_a_model_cannot_take_is_said_without_values():
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(InputError, match="refused the records"):
        attack.model_membership(model, holes[TRAIN], Y[TRAIN], others=(X[REST], Y[REST]), shadows=0)
    with pytest.raises(ParameterError, match="not trained on"):
        attack.model_membership(model, X[TRAIN], Y[TRAIN], others=(X[TRAIN], Y[TRAIN]))
    with pytest.raises(InputError, match="outcomes"):
        attack.model_membership(model, X[TRAIN], Y[:10], others=(X[REST], Y[REST]))
    with pytest.raises(ParameterError, match="shadows"):
        attack.model_membership(model, X[TRAIN], Y[TRAIN], others=(X[REST], Y[REST]), shadows=3)
    with pytest.raises(ParameterError, match="threshold"):
        attack.model_structure(model, X[TRAIN], threshold=0)


def test_a_session_refuses_models_that_hold_people_or_give_them_away():
    data = Microdata(pl.DataFrame(X, schema=[f"x{i}" for i in range(5)]))
    with Session(data=data) as session:

        def judged(model, **given):
            return session.sklearn(model.fit(X[TRAIN], Y[TRAIN]), X[TRAIN], Y[TRAIN], **given)

        scaled = judged(make_pipeline(StandardScaler(), KNeighborsClassifier()))
        assert scaled.status == "fail"
        assert judged(RandomForestClassifier(5, random_state=0)).status == "fail"
        broad = {"min_samples_leaf": 40, "bootstrap": False, "max_depth": 2, "random_state": 0}
        assert judged(RandomForestClassifier(5, **broad)).status == "review"
        attacked = judged(RandomForestClassifier(20, random_state=0), others=(X[REST], Y[REST]))
        assert {finding.check for finding in attacked.findings} >= {"membership", "small leaves"}
