import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect.additive_noise import AddNoise
from discreet.protect.plan import Plan

METHODS = ("independent", "correlated", "restricted", "romm", "outliers", "laplace")


def firms(records=400, seed=0, gaps=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=records)
    frame = pl.DataFrame(
        {
            "region": rng.choice(["n", "s"], records),
            "sales": np.exp(3 + size),
            "staff": np.round(50 + 10 * size + rng.normal(size=records)).astype(np.int32),
            "debt": 1e6 * (size + rng.normal(size=records)),
        }
    )
    if gaps:
        hole = pl.Series(rng.random(records) < gaps)
        frame = frame.with_columns(
            sales=pl.when(~hole).then("sales"), staff=pl.when(~hole.reverse()).then("staff")
        )
    return frame


def noisy(frame, seed=1, **parameters):
    parameters.setdefault("columns", ["sales", "staff", "debt"])
    return AddNoise(**parameters).apply(Microdata(frame), seed=seed)


def moments(frame, names=("sales", "debt")):
    matrix = frame.select(names).to_numpy()
    return matrix.mean(axis=0), np.cov(matrix, rowvar=False)


@pytest.mark.parametrize("method", METHODS)
def test_types_gaps_and_other_columns_survive(method):
    frame = firms(gaps=0.1)
    made = noisy(frame, method=method).data.frame
    assert made.schema == frame.schema
    assert made["region"].equals(frame["region"])
    for name in ("sales", "staff", "debt"):
        assert made[name].is_null().equals(frame[name].is_null())


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(method):
    frame = firms()
    first, again, other = (noisy(frame, seed=seed, method=method).data.frame for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_the_bytes_do_not_depend_on_the_number_of_processors(monkeypatch):
    frame = pl.DataFrame({"x": np.random.default_rng(0).normal(size=2_200_000)})
    many = noisy(frame, columns=["x"]).data.frame
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert noisy(frame, columns=["x"]).data.frame.equals(many)


@pytest.mark.parametrize("method", ["independent", "laplace"])
def test_noise_has_the_size_that_was_asked_for(method):
    frame = firms(20_000)
    added = noisy(frame, method=method, level=0.3).data.frame["debt"] - frame["debt"]
    assert added.std() == pytest.approx(0.3 * frame["debt"].std(), rel=0.03)
    assert added.mean() == pytest.approx(0, abs=0.01 * frame["debt"].std())


def test_noise_of_different_columns_and_of_different_blocks_of_rows_is_different():
    values = np.random.default_rng(0).normal(size=2_100_000)
    made = noisy(pl.DataFrame({"x": values, "y": values}), columns=["x", "y"]).data.frame
    x, y = made["x"].to_numpy() - values, made["y"].to_numpy() - values
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.01
    assert abs(np.corrcoef(x[: 2**20], x[2**20 : 2**21])[0, 1]) < 0.01


def test_correlated_noise_has_the_covariance_of_the_data_times_the_level_squared():
    frame = firms(20_000)
    made = noisy(frame, columns=["sales", "debt"], method="correlated", level=0.5).data.frame
    added = made.select(["sales", "debt"]).to_numpy() - frame.select(["sales", "debt"]).to_numpy()
    assert np.cov(added, rowvar=False) == pytest.approx(0.25 * moments(frame)[1], rel=0.05)


@pytest.mark.slow
def test_restricted_noise_keeps_means_and_covariances_on_average():
    frame = firms(60)
    mean, spread = moments(frame)
    found = [
        moments(noisy(frame, seed=seed, columns=["sales", "debt"], method="restricted", level=0.7).data.frame)
        for seed in range(300)
    ]
    assert np.mean([m for m, _ in found], axis=0) == pytest.approx(
        mean, abs=0.15 * np.sqrt(spread.max() / 60)
    )
    assert np.mean([s for _, s in found], axis=0) == pytest.approx(spread, rel=0.06)


@given(
    records=st.integers(6, 60),
    level=st.floats(0.01, 5),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-3, 1.0, 1e7]),
)
@settings(max_examples=examples(40), deadline=None)
def test_orthogonal_masking_keeps_means_and_covariances_exactly(records, level, seed, scale):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(records, 3)) @ rng.normal(size=(3, 3)) * [1, scale, 10] + [0, 5, -100]
    frame = pl.DataFrame(matrix, schema=list("abc"))
    made = noisy(frame, seed=seed, columns=list("abc"), method="romm", level=level).data.frame.to_numpy()
    spread = np.cov(matrix, rowvar=False)
    size = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    assert (np.abs(np.cov(made, rowvar=False) - spread) / size).max() < 1e-9
    assert (np.abs(made.mean(axis=0) - matrix.mean(axis=0)) / (np.abs(matrix).max(axis=0))).max() < 1e-10
    assert not np.allclose(made, matrix)


def test_orthogonal_masking_copes_with_columns_that_follow_from_others():
    frame = firms().with_columns(twice=2 * pl.col("sales"), same=pl.lit(7.0))
    names = ["sales", "debt", "twice", "same"]
    made = noisy(frame, columns=names, method="romm").data.frame
    assert made["twice"].to_numpy() == pytest.approx(2 * made["sales"].to_numpy())
    assert made["same"].unique().to_list() == pytest.approx([7.0])
    assert moments(made, names)[1] == pytest.approx(moments(frame, names)[1], rel=1e-9)


def test_a_small_level_moves_little_and_a_large_one_leaves_no_trace():
    frame = firms()
    near, far = (
        noisy(frame, columns=["sales", "debt"], method="romm", level=level).data.frame for level in (0.05, 50)
    )
    assert np.corrcoef(near["debt"], frame["debt"])[0, 1] > 0.99
    assert abs(np.corrcoef(far["debt"], frame["debt"])[0, 1]) < 0.2


def test_only_outlying_values_move_and_never_more_than_the_share_by_each_rule():
    frame = firms(1_000)
    step = noisy(frame, method="outliers", outlier_share=0.02, round_integers=False).log[0]
    assert all(20 <= count <= 40 for count in step.changed_cells.values())
    ties = pl.DataFrame({"x": [0.0] * 95 + [50.0] * 5})
    assert noisy(ties, columns=["x"], method="outliers", outlier_share=0.05).log[0].changed_cells == {"x": 5}


def test_strata_have_noise_of_their_own_size():
    frame = pl.DataFrame({"g": ["a"] * 3000 + ["b"] * 3000, "x": np.random.default_rng(0).normal(size=6000)})
    frame = frame.with_columns(x=pl.when(pl.col("g") == "a").then("x").otherwise(pl.col("x") * 100))
    made = noisy(frame, columns=["x"], strata="g", level=0.5).data.frame
    added = (made["x"] - frame["x"]).to_numpy()
    assert added[:3000].std() == pytest.approx(0.5, rel=0.1)
    assert added[3000:].std() == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize("method", METHODS[:4])
def test_a_record_alone_in_its_stratum_gets_noise_too(method):
    frame = firms().with_columns(
        region=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("x")).otherwise("region")
    )
    release = noisy(frame, method=method, strata=["region"], columns=["sales", "debt"])
    assert release.data.frame["debt"][5] != frame["debt"][5]
    assert any("strata" in note for note in release.log[0].notes)


def test_a_column_that_does_not_vary_is_named():
    frame = pl.DataFrame({"x": [3, 3, 3], "y": [1.0, 2.0, 4.0]})
    release = noisy(frame, columns=["x", "y"])
    assert release.data.frame["x"].equals(frame["x"])
    assert any("'x' does not vary" in note for note in release.log[0].notes)


@pytest.mark.parametrize(
    "kind", [pl.UInt8, pl.Int8, pl.UInt32, pl.Int64, pl.UInt64, pl.Float32, pl.Decimal(10, 2)]
)
def test_every_type_of_number_survives_also_at_the_end_of_its_range(kind):
    frame = pl.DataFrame({"x": pl.Series([0, 1, 100, 127, None] * 20).cast(kind)})
    made = noisy(frame, columns=["x"], level=3).data.frame
    assert made.schema == frame.schema
    assert made["x"].null_count() == 20
    assert not made["x"].equals(frame["x"])


def test_whole_numbers_become_decimal_when_asked():
    made = noisy(firms(), columns=["staff"], round_integers=False).data.frame
    assert made["staff"].dtype == pl.Float64


def test_laplace_noise_claims_no_guarantee():
    release = noisy(firms(), method="laplace")
    assert release.guarantee is None
    assert any("not differential privacy" in note for note in release.log[0].notes)


def test_pandas_comes_back_as_pandas_with_its_index():
    frame = firms().to_pandas().set_index(pd.Index(range(1000, 1400)))
    made = noisy(frame, method="correlated").data.frame
    assert isinstance(made, pd.DataFrame)
    assert made.index.equals(frame.index)
    assert (made.dtypes == frame.dtypes).all()


def test_a_plan_file_brings_the_same_treatment_back(tmp_path):
    plan = Plan([AddNoise(["sales"], method="correlated", level=0.2, strata="region")])
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan
    json.dumps(plan.apply(Microdata(firms()), seed=1).to_dict(), allow_nan=False)


@pytest.mark.parametrize("method", METHODS)
def test_a_file_without_records_stays_one(method):
    assert noisy(firms().clear(), method=method).data.frame.height == 0


def test_sensitive_numbers_are_taken_where_no_column_is_named():
    data = Microdata(firms(), sensitive=["debt", "region"])
    assert set(AddNoise().apply(data, seed=1).log[0].changed_cells) == {"debt"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "corelated"}, "method must be 'independent'"),
        ({"level": 0}, "level"),
        ({"level": float("inf")}, "level"),
        ({"level": "0.1"}, "level"),
        ({"outlier_share": 1}, "outlier_share"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(ParameterError, match=words):
        AddNoise(["x"], **parameters)


def test_bad_columns_are_named():
    with pytest.raises(ColumnError, match="Did you mean 'sales'"):
        noisy(firms(), columns=["salse"])
    with pytest.raises(ColumnError, match="is for numbers"):
        noisy(firms(), columns=["region"])
    with pytest.raises(ColumnError, match="infinite"):
        noisy(pl.DataFrame({"x": [1.0, float("inf")]}), columns=["x"])
    with pytest.raises(ParameterError, match="strata"):
        noisy(firms(), strata=["sales"])
    with pytest.raises(ParameterError, match="at least 5 records"):
        noisy(firms(4), method="romm")


@pytest.mark.parametrize("method", METHODS)
def test_members_of_a_household_move_together(method):
    homes = firms(200).with_columns(home=pl.int_range(pl.len()))
    people = homes[np.repeat(np.arange(200), 3)]
    made = noisy(people, method=method, by="home", outlier_share=0.2).data.frame
    assert made.group_by("home").agg(pl.all().n_unique()).drop("home").max().row(0) == (1, 1, 1, 1)
    assert not made.equals(people)
    with pytest.raises(ColumnError, match="differs between records with the same 'region'"):
        noisy(firms(), by="region")


def test_weights_are_not_forgotten_silently():
    release = AddNoise(["sales"], method="restricted").apply(Microdata(firms(), weight="debt"), seed=1)
    assert any("weights were not used" in note for note in release.log[0].notes)


def test_noise_that_rounding_takes_back_is_said():
    frame = pl.DataFrame({"children": [0, 1, 2, 3] * 50, "pay": [1000, 2000, 4000, 9000] * 50})
    notes = noisy(frame, columns=["children", "pay"]).log[0].notes
    assert sum("Rounding took the noise" in note for note in notes) == 1


def test_noise_of_any_size_gives_numbers():
    data = Microdata(pl.DataFrame({"a": [1.0, 2.0, 4.0, 9.0], "b": [3.0, 1.0, 7.0, 2.0]}))
    for method in ("correlated", "restricted", "romm"):
        made = AddNoise(columns=["a", "b"], method=method, level=2**62).apply(data, seed=1).data.frame
        assert made["a"].is_finite().all()
