"""Statistics of a session that say something about one person or a few, and honest ones beside them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.outputs import Session

rng = np.random.default_rng(23)
N = 400
PEOPLE = pl.DataFrame(
    {
        "pay": rng.lognormal(7, 0.5, N),
        "age": rng.integers(20, 65, N),
        "sex": rng.choice(["f", "m"], N),
        "job": rng.choice(["a", "b", "c"], N),
        "one": [1] + [0] * (N - 1),
        "few": [1] * 4 + [0] * (N - 4),
        "team": ["x"] * 3 + ["y"] * (N - 3),
        "w": [1.0] * 11 + [0.0] * (N - 11),
        "same": [5.0] * N,
        "kids": rng.choice([0, 1, 2, 3], N),
        "months": rng.integers(1, 5, N),
        "ill": rng.random(N) < 0.4,
    }
)

FAIL = {
    "a regressor of one person": lambda s: s.ols("pay ~ age + one"),
    "a model weighted to eleven": lambda s: s.model("wls", "pay ~ age", weights="w"),
    "a mode of everybody": lambda s: s.summary("pay", statistics=["mode"]),
    "a median that all have": lambda s: s.summary("same", statistics=["median"]),
    "quartiles that all have": lambda s: s.quantiles("same"),
    "a saturated model of few": lambda s: s.ols("pay ~ C(few)"),
    "an intercept of an indicator": lambda s: s.ols("few ~ 1"),
    "a Gini of an indicator": lambda s: s.gini("few"),
    "a share of few": lambda s: s.crosstab("few", normalize="all"),
    "an odds ratio of few": lambda s: s.odds_ratio("sex", "few"),
    "a correlation of two points": lambda s: s.correlation(["pay", "age"], data=PEOPLE.head(2)),
    "a perfect model": lambda s: s.ols("double ~ age", data=PEOPLE.with_columns(double=2.0 * pl.col("age"))),
    "extreme percentiles": lambda s: s.quantiles("pay", probabilities=[0.005, 0.995]),
}
REVIEW = {
    "a regressor of four": lambda s: s.ols("pay ~ age + few"),
    "a rare outcome": lambda s: s.logit("few ~ age"),
    "a test against three": lambda s: s.test("t", "pay", "team"),
    "a rank test against three": lambda s: s.test("kruskal", "pay", "team"),
    "a correlation with one person": lambda s: s.correlation(["pay", "one"]),
    "the share of the largest": lambda s: s.concentration("pay", n=1),
}
PASS = {
    "a table": lambda s: s.crosstab("sex", "job"),
    "means": lambda s: s.summary("pay", "job", statistics=["count", "mean", "sd"]),
    "a mean of a small count": lambda s: s.summary("kids", "sex", statistics=["mean"]),
    "a share": lambda s: s.summary("ill", "sex", statistics=["mean"]),
    "a mode": lambda s: s.summary("kids", "sex", statistics=["mode"]),
    "a regression": lambda s: s.ols("pay ~ age + C(job)"),
    "a logit": lambda s: s.logit("sick ~ age", data=PEOPLE.with_columns(sick=pl.col("ill").cast(pl.Int8))),
    "a weighted regression": lambda s: s.model("wls", "pay ~ kids", weights="age"),
    "a correlation": lambda s: s.correlation(["pay", "age"]),
    "a test": lambda s: s.test("t", "pay", "sex"),
    "a Gini": lambda s: s.gini("pay", "sex"),
    "a curve": lambda s: s.survival("months", "ill", mitigate="group-times"),
    "the share of the largest four": lambda s: s.concentration("pay"),
    "a histogram": lambda s: s.histogram("age", bins=5),
}


@pytest.mark.parametrize(
    ("case", "status"),
    [
        (case, status)
        for cases, status in ((FAIL, "fail"), (REVIEW, "review"), (PASS, "pass"))
        for case in cases
    ],
)
def test_a_planted_statistic_gets_its_status(case, status):
    with Session(data=PEOPLE) as s:
        found = {**FAIL, **REVIEW, **PASS}[case](s)
    assert found.status == status, found.line


def test_good_statistics_pass_together_as_well():
    with Session(data=PEOPLE) as s:
        statuses = {case: make(s).status for case, make in PASS.items()}
    assert {case: status for case, status in statuses.items() if status != "pass"} == {}
