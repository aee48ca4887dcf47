"""Published orderings (methods/shapley-record-reconstruction-attack.md, section 6) on Adult."""

import numpy as np
import polars as pl
import pytest

from discreet import attack

COLUMNS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week", "sex", "race"]


@pytest.fixture(scope="module")
def adult(test_data):
    frame = pl.read_csv(test_data / "adult" / "adult_train.csv.gz")
    frame = frame.rename({name: name.replace("-", "_").replace(".", "_") for name in frame.columns})
    coded = frame.select(
        *COLUMNS[:2],
        pl.col("capital_gain").cast(pl.Float64).log1p(),
        pl.col("capital_loss").cast(pl.Float64).log1p(),
        "hours_per_week",
        (pl.col("sex") == "Male").cast(pl.Float64),
        (pl.col("race") == "White").cast(pl.Float64),
    )
    income = frame.select((pl.col("income").str.contains(">50K")).cast(pl.Float64)).to_series().to_numpy()
    # Some people are alike in seven columns; only one of each is taken, so that nobody is on both sides.
    table, first = np.unique(coded.to_numpy().astype(float), axis=0, return_index=True)
    order = np.random.default_rng(1).permutation(len(table))
    return table[order], income[first][order]


@pytest.fixture(scope="module")
def models(adult):
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LinearRegression

    records, income = adult[0][2000:8000], adult[1][2000:8000]
    forest = RandomForestClassifier(100, max_depth=5, random_state=0).fit(records, income)
    boosted = GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0).fit(records, income)
    return {
        "linear": LinearRegression().fit(records, income).predict,
        "forest": lambda x: forest.predict_proba(x)[:, 1],
        "boosted": lambda x: boosted.predict_proba(x)[:, 1],
    }


SETTING = {"names": COLUMNS, "categorical": ["sex", "race"], "discrete": ["education_num"], "seed": 1}


@pytest.mark.slow
def test_a_linear_model_gives_most_away_and_more_records_make_every_attack_better(adult, models):
    records = adult[0]
    found = attack.shapley_sweep(
        models,
        records[2000:2010],
        records[:400],
        records[1000:1150],
        attacks=["linear", "mlp"],
        optimizers=["rmsprop"],
        sizes=[50, 400],
        epochs=150,
        seeds=3,
        **SETTING,
    )
    table = found.detail["sweep"]
    for model in ("linear", "mlp (rmsprop)"):
        most = table.filter((pl.col("attack") == model) & (pl.col("auxiliary") == 400))
        by_model = {row["model"]: row for row in most.iter_rows(named=True)}
        assert all(by_model["linear"]["mae"] < by_model[name]["mae"] for name in ("forest", "boosted"))
        assert all(
            by_model["linear"]["attack_rate"] > by_model[name]["attack_rate"]
            for name in ("forest", "boosted")
        )
        few = table.filter((pl.col("attack") == model) & (pl.col("auxiliary") == 50))
        worse = {row["model"]: row["mae"] for row in few.iter_rows(named=True)}
        assert all(by_model[name]["mae"] <= worse[name] + 1e-12 for name in models)
    assert found.value == pytest.approx(1.0)


@pytest.mark.slow
def test_adaptive_optimizers_train_the_more_dangerous_networks(adult, models):
    records = adult[0]
    found = attack.shapley_sweep(
        {"linear": models["linear"]},
        records[2000:2020],
        records[:400],
        records[1000:1200],
        explainer="linear",
        attacks=["mlp"],
        optimizers=["sgd", "momentum", "rmsprop", "adam"],
        epochs=150,
        seeds=3,
        **SETTING,
    )
    error = {row["attack"]: row["mae"] for row in found.detail["sweep"].iter_rows(named=True)}
    adaptive = max(error["mlp (rmsprop)"], error["mlp (adam)"])
    assert adaptive < error["mlp (momentum)"] < error["mlp (sgd)"]
