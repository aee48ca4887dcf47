"""Published targets for evaluations of generators: the worthless baseline, and the linked-registers pseudo-data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.synth import Sequential
from discreet.workflow.evaluation import DataSet, Generator, Metric, Study, evaluate


def floor(folder, name, frame):
    frame.write_csv(folder / f"{name}.csv")
    study = Study(
        data=[DataSet(name, source=f"{name}.csv")],
        generators=[Generator("floor", reference="uniform")],
        metrics=[Metric("tabular", figures=("mean_S_pMSE",))],
        references=False,
        seeds=[1, 2, 3],
        folder=folder,
    )
    return evaluate(study).table().filter(figure="mean_S_pMSE")["mean"][0]


def test_uniform_draws_equal_independent_uniform_columns_and_fail_skewed_ones_the_more_the_larger(tmp_path):
    # Evaluation with synthcity, worked example: near 1 where the law is the same, growing with n on skewed data.
    draw = np.random.default_rng(7)
    columns = {name: draw.choice(list("abcd"), 4000) for name in ("x", "y")}
    assert 0.3 < floor(tmp_path, "flat", pl.DataFrame(columns)) < 2.5
    skewed = [
        floor(
            tmp_path,
            f"skewed-{n}",
            pl.DataFrame(
                {name: draw.choice(list("abcd"), n, p=[0.85, 0.05, 0.05, 0.05]) for name in ("x", "y")}
            ),
        )
        for n in (500, 4000)
    ]
    assert skewed[0] > 10
    assert skewed[1] > 5 * skewed[0]


@pytest.mark.slow
def test_trees_on_the_joined_registers_predict_like_the_real_ones_and_keep_every_rule(tmp_path):
    # Relational versus joined single-table synthesis, worked example R3.
    rng = np.random.default_rng(11)
    n = 52_000
    year = np.round(rng.normal(1970, 14.9, n)).astype(int)
    sex = rng.integers(1, 3, n)
    ioaw = (rng.random(n) < 0.038).astype(int)
    days = 98286.67 - 48.71 * year + 332.89 * sex - 1332.74 * ioaw + rng.normal(0, 2129.4, n)
    bijstand = (rng.random(n) >= 0.041).astype(int)
    date = np.where(bijstand == 1, rng.integers(10_000, 18_000, n).astype(float), np.nan)
    frame = pl.DataFrame(
        {"year": year, "sex": sex, "ioaw": ioaw, "bijstand": bijstand, "days": days, "date": date}
    ).with_columns(pl.col("date").fill_nan(None))
    frame.head(50_000).write_csv(tmp_path / "joined.csv")
    frame.tail(2_000).write_csv(tmp_path / "test.csv")
    study = Study(
        data=[DataSet("joined", source="joined.csv", holdout="test.csv", target="days")],
        generators={"cart": Sequential()},
        metrics=[
            Metric(
                "rmse",
                "train_on_synthetic",
                {"learners": ["linear"], "columns": ["year", "sex", "ioaw"]},
                detail=("scores",),
            )
        ],
        references=False,
        keep_files=True,
        folder=tmp_path,
    )
    found = evaluate(study, out=tmp_path / "out")
    scores = found.detail("rmse", "scores")
    errors = dict(scores.select("trained_on", "rmse").rows())
    real, (released,) = errors.pop("original"), errors.values()
    assert abs(real - 2129) < 80
    assert released < 1.015 * real
    made = pl.read_parquet(tmp_path / "out" / "synthetic" / "joined-cart-1-1.parquet")
    assert (made["date"].is_null() == (made["bijstand"] == 0)).all()
