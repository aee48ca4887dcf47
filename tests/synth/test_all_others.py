"""Order-free regression synthesis: its law, its repair, what every drawn file must keep, and bad input."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.synth.all_others import AllOthers
from discreet.synth.synthesizer import load, load_plan, save_plan

RNG = np.random.default_rng(3)
N = 400
PEOPLE = pl.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "age": RNG.integers(16, 90, N),
        "region": RNG.choice(["north", "south", "west"], N),
        "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 9000, N)],
        "member": RNG.random(N) < 0.3,
        "country": ["X"] * N,
    }
).with_columns(
    pay=pl.when(pl.Series(RNG.random(N) < 0.2))
    .then(None)
    .otherwise((pl.col("age") * 20 + pl.Series(RNG.normal(0, 300, N))).round(2)),
    hours=pl.when(pl.Series(RNG.random(N) < 0.1)).then(-8).otherwise(pl.Series(RNG.integers(10, 60, N))),
    health=pl.when(pl.Series(RNG.random(N) < 0.1)).then(None).otherwise(
        pl.when(pl.col("age") + pl.Series(RNG.normal(0, 20, N)) > 60).then(pl.lit("poor")).otherwise(pl.lit("good"))
    ).cast(pl.Enum(["poor", "good"])),
)  # fmt: skip
DATA = Microdata(PEOPLE, keys=["sex", "age"], sensitive="pay")
USUAL = AllOthers(special_codes={"hours": [-8]})


def normal(n: int, correlation, seed: int = 1) -> Microdata:
    matrix = np.asarray(correlation, dtype=float)
    drawn = np.random.default_rng(seed).multivariate_normal(np.zeros(len(matrix)), matrix, n)
    return Microdata(pl.DataFrame({f"x{i}": drawn[:, i] for i in range(len(matrix))}))


def correlations(model, seed=1):
    return model.diagnose(seed=seed).detail["correlations"]


def test_of_two_columns_a_correlation_is_left_at_its_cube_and_after_a_second_pass_at_its_fifth_power():
    pair = normal(40_000, [[1, 0.8], [0.8, 1]])
    r = np.corrcoef(pair.frame["x0"], pair.frame["x1"])[0, 1]
    once = AllOthers().fit(pair, seed=1).sample(seed=2).frame
    twice = AllOthers(second_pass=True).fit(pair, seed=1).sample(seed=2).frame
    assert np.corrcoef(once["x0"], once["x1"])[0, 1] == pytest.approx(r**3, abs=0.015)
    assert np.corrcoef(twice["x0"], twice["x1"])[0, 1] == pytest.approx(r**5, abs=0.015)


def test_the_attenuation_law_holds_for_several_columns_and_can_make_correlation_out_of_none():
    wanted = np.array([[1, 0, 0.6], [0, 1, 0.6], [0.6, 0.6, 1]])
    data = normal(60_000, wanted)
    inverse = np.linalg.inv(wanted)
    explained = 1 - 1 / np.diag(inverse)
    partial = -inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    law = wanted - partial * np.sqrt(np.outer(1 - explained, 1 - explained))
    table = correlations(AllOthers(selector="none").fit(data, seed=1))
    for row in table.iter_rows(named=True):
        i, j = int(row["one"][1]), int(row["other"][1])
        assert row["synthetic"] == pytest.approx(law[i, j], abs=0.02)
        assert row["expected"] == pytest.approx(law[i, j], abs=0.02)
    assert law[0, 1] > 0.2


def test_sweeps_bring_the_joint_law_back():
    data = normal(20_000, [[1, 0, 0.6], [0, 1, 0.6], [0.6, 0.6, 1]])
    for start in ("aligned", "bootstrap"):
        table = correlations(AllOthers(sweeps=20, start=start, selector="none").fit(data, seed=1))
        assert (table["original"] - table["synthetic"]).abs().max() < 0.04


def test_the_correlation_of_a_synthetic_column_with_its_original_is_its_r2_until_sweeps_wash_it_out():
    data = normal(20_000, [[1, 0.7, 0.3], [0.7, 1, 0.5], [0.3, 0.5, 1]])
    table = AllOthers(selector="none").fit(data, seed=1).diagnose(seed=1).detail["variables"]
    assert table["alignment"].to_numpy() == pytest.approx(table["r2"].to_numpy(), abs=0.02)
    swept = AllOthers(sweeps=15).fit(data, seed=1).diagnose(seed=1)
    assert swept.detail["variables"]["alignment"].abs().max() < 0.05


def test_records_that_are_nearly_copied_are_led_back():
    model = AllOthers().fit(normal(500, [[1, 0.999], [0.999, 1]]), seed=1)
    found = model.diagnose(seed=1)
    assert found.figures["linked_share"] > 5 * found.figures["guess_share"]
    assert any("linked" in caveat for caveat in found.caveats)


def test_types_column_order_and_roles_survive():
    released = USUAL.fit(DATA, seed=1).sample(seed=2)
    assert released.frame.schema == PEOPLE.schema
    assert released.roles == DATA.roles


def test_missing_values_and_special_codes_stay_where_they_are_and_constants_are_copied():
    for options in (USUAL, AllOthers(special_codes={"hours": -8}, sweeps=2)):
        released = options.fit(DATA, seed=1).sample(seed=2).frame
        for name in PEOPLE.columns:
            assert released[name].is_null().equals(PEOPLE[name].is_null())
        assert (released["hours"] == -8).equals(PEOPLE["hours"] == -8)
        assert released["country"].unique().to_list() == ["X"]


def test_blanks_do_not_weaken_the_fit_of_complete_records():
    data = normal(8000, [[1, 0.9], [0.9, 1]])
    holes = data.frame.with_columns(
        pl.when(pl.Series(np.random.default_rng(1).random(8000) < 0.4)).then(None).otherwise("x1").alias("x1")
    )
    model = AllOthers().fit(Microdata(holes), seed=1)
    assert model.models["x0"].r2 == pytest.approx(0.81, abs=0.02)
    released = model.sample(seed=3).frame
    assert released["x0"].std() == pytest.approx(1, abs=0.03)


def test_the_same_seed_gives_the_same_bytes_and_copies_differ():
    first, second = USUAL.fit(DATA, seed=1).sample(copies=2, seed=9)
    again = USUAL.fit(DATA, seed=1).sample(copies=2, seed=9)
    assert first.frame.equals(again[0].frame)
    assert second.frame.equals(again[1].frame)
    assert not first.frame.equals(second.frame)


@pytest.mark.parametrize(
    "options",
    [
        AllOthers(),
        AllOthers(noise="bayes"),
        AllOthers(selector="aic", sweeps=2, start="bootstrap"),
        AllOthers(
            laplace_switch=True,
            epsilon={"age": 1, "pay": 2, "hours": 1, "born": 1},
            bounds={"age": (0, 120), "pay": (-2000, 5000), "hours": (-10, 100), "born": (-10000, 10000)},
        ),
    ],
)
def test_a_model_is_saved_and_loaded_and_draws_the_same_file(options, tmp_path):
    fitted = options.fit(DATA, seed=1)
    again = load(fitted.save(tmp_path / "model.discreet"))
    assert again.sample(seed=4).frame.equals(fitted.sample(seed=4).frame)
    assert again.selected == fitted.selected
    plan = load_plan(save_plan(options, tmp_path / "plan.toml"))
    assert plan.fit(DATA, seed=1).sample(seed=4).frame.equals(fitted.sample(seed=4).frame)


def test_the_number_of_threads_of_linear_algebra_changes_nothing():
    rng = np.random.default_rng(1)
    mixed = rng.normal(size=(30_000, 8)) @ rng.normal(size=(8, 8))
    data = Microdata(pl.DataFrame({f"c{place}": mixed[:, place] for place in range(8)}))
    files = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            files.append(AllOthers(sweeps=1, selector="none").fit(data, seed=1).sample(seed=1).frame)
    assert files[0].equals(files[1])


def test_a_bootstrap_start_gives_any_number_of_records():
    model = AllOthers(sweeps=2, start="bootstrap").fit(DATA, seed=1)
    assert model.sample(17, seed=1).frame.height == 17
    assert not model.keeps_records


def test_aligned_records_are_as_many_as_there_were():
    with pytest.raises(ParameterError, match="bootstrap"):
        USUAL.fit(DATA, seed=1).sample(17)


@pytest.mark.slow
def test_bayesian_noise_varies_the_model_from_copy_to_copy():
    small = normal(30, [[1, 0.5], [0.5, 1]])
    spread = {}
    for noise in ("residual", "bayes"):
        files = AllOthers(noise=noise, lasso_alpha=0.001).fit(small, seed=1).sample(copies=300, seed=2)
        spread[noise] = np.std([file.frame["x0"].mean() for file in files])
    assert spread["bayes"] > 1.25 * spread["residual"]


def test_without_noise_numbers_are_predictions():
    data = normal(2000, [[1, 0.8], [0.8, 1]])
    released = AllOthers(noise="none").fit(data, seed=1).sample(seed=1).frame
    assert np.corrcoef(released["x0"], data.frame["x1"])[0, 1] == pytest.approx(1)


def test_a_perfect_fit_is_warned_about_and_gets_noise():
    x = np.random.default_rng(1).normal(size=300)
    table = Microdata(
        pl.DataFrame({"x": x, "copy": 2 * x + 1, "other": np.random.default_rng(2).normal(size=300)})
    )
    with pytest.warns(DiscreetWarning, match="almost exactly"):
        model = AllOthers().fit(table, seed=1)
    released = model.sample(seed=1).frame
    assert not np.isclose(released["x"], table.frame["x"], atol=1e-9).any()
    assert (released["x"] - table.frame["x"]).std() == pytest.approx(0.01 * x.std(), rel=0.2)


def test_a_category_that_another_tells_without_error_is_warned_about_and_blurred():
    code = np.random.default_rng(1).integers(0, 4, 3000)
    table = pl.DataFrame({"code": [f"c{c}" for c in code], "label": [f"l{c}" for c in code]})
    with pytest.warns(DiscreetWarning, match="almost without error"):
        model = AllOthers(noise_floor=0.1).fit(Microdata(table), seed=1)
    kept = (model.sample(seed=1).frame["code"] == table["code"]).mean()
    assert 0.88 < kept < 0.97


def test_nothing_that_predicts_leaves_draws_from_the_column_itself():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"x": rng.integers(0, 50, 2000) / 7, "y": rng.normal(size=2000)})
    model = AllOthers(lasso_alpha=0.3).fit(Microdata(table), seed=1)
    assert model.selected == {"x": (), "y": ()}
    assert set(model.sample(seed=1).frame["x"].to_list()) <= set(table["x"].to_list())


def test_too_few_records_shrink_the_predictors():
    data = normal(8, np.eye(12))
    model = AllOthers(selector="none").fit(data, seed=1)
    assert all(len(predictors) <= 5 for predictors in model.selected.values())


@pytest.mark.slow
def test_cross_validation_and_akaike_find_the_predictors():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 6))
    table = pl.DataFrame({f"x{i}": x[:, i] for i in range(6)}).with_columns(
        y=pl.Series(x[:, 0] - 0.5 * x[:, 1] + rng.normal(size=1500))
    )
    for options in (AllOthers(lasso_alpha="cv"), AllOthers(selector="aic")):
        assert {"x0", "x1"} <= set(options.fit(Microdata(table), seed=1).selected["y"])
    assert set(AllOthers(lasso_alpha=0.1).fit(Microdata(table), seed=1).selected["y"]) == {"x0", "x1"}


def test_weights_fit_the_population_and_stay_with_their_records():
    rng = np.random.default_rng(1)
    group, x = rng.random(6000) < 0.5, rng.normal(size=6000)
    table = pl.DataFrame(
        {"x": x, "y": np.where(group, 2 * x, -x) + rng.normal(size=6000), "w": np.where(group, 9.0, 1.0)}
    )
    released = AllOthers().fit(Microdata(table, weight="w"), seed=1)
    law = released.models["y"].law
    assert law.beta[1] / law.design.scale[1] == pytest.approx(0.9 * 2 - 0.1, abs=0.1)
    assert released.sample(seed=1).frame["w"].equals(table["w"])
    drawn = (
        AllOthers(sweeps=3, start="bootstrap").fit(Microdata(table, weight="w"), seed=1).sample(100, seed=1)
    )
    assert list(drawn.columns) == ["x", "y"]


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.floats(-1e3, 1e3), st.sampled_from(["a", "b", "c", None])),
        min_size=6,
        max_size=40,
    ),
    st.integers(0, 1000),
)
@settings(max_examples=examples(25), deadline=None)
def test_any_small_file_keeps_its_types_and_gaps(rows, seed):
    import warnings

    table = pl.DataFrame(
        rows, schema={"whole": pl.Int32, "number": pl.Float64, "kind": pl.String}, orient="row"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        model = AllOthers().fit(Microdata(table), seed=seed)
        first, again = model.sample(seed=seed).frame, model.sample(seed=seed).frame
    assert first.schema == table.schema
    assert first.equals(again)
    assert first["kind"].is_null().equals(table["kind"].is_null())
    assert set(first["kind"].to_list()) <= set(table["kind"].to_list())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selector": "laso"}, "lasso"),
        ({"lasso_alpha": 0}, "lasso_alpha"),
        ({"noise_floor": 0}, "noise_floor"),
        ({"sweeps": -1}, "sweeps"),
        ({"start": "bootstrap"}, "sweeps"),
        ({"epsilon": 1}, "laplace_switch"),
        ({"laplace_switch": True}, "epsilon"),
        ({"laplace_switch": True, "epsilon": 0}, "epsilon"),
        ({"laplace_switch": True, "epsilon": 1, "sweeps": 2}, "laplace_switch"),
        ({"laplace_switch": True, "epsilon": 1, "bounds": {"x": (1, 0)}}, "bounds"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        AllOthers(**options)


def test_the_switch_wants_bounds_and_values_within_them():
    data = normal(100, [[1, 0.5], [0.5, 1]])
    with pytest.raises(ParameterError, match="bounds of every number"):
        AllOthers(laplace_switch=True, epsilon=1).fit(data)
    narrow = {"x0": (-0.5, 0.5), "x1": (-9, 9)}
    with pytest.raises(ColumnError, match="outside its bounds"):
        AllOthers(laplace_switch=True, epsilon=1, bounds=narrow).fit(data)
    model = AllOthers(laplace_switch=True, epsilon=1, bounds=narrow, outside="clip").fit(data, seed=1)
    assert "clipped" in model.notes[0]


def test_the_switch_refuses_times_of_day():
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=h) for h in range(50)]
    table = Microdata(pl.DataFrame({"at": times, "x": np.arange(50.0)}))
    with pytest.raises(ColumnError, match="a time"):
        AllOthers(laplace_switch=True, epsilon=1, bounds={"at": (0, 1), "x": (0, 50)}).fit(table)


def test_one_column_cannot_be_predicted_from_others():
    with pytest.raises(ParameterError, match="at least 2"):
        AllOthers().fit(Microdata(pl.DataFrame({"x": [1.0, 2.0, 3.0]})))
