"""Two outputs on almost the same people: whoever has both has the few between them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.outputs import Session

N = 300


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "pay": rng.lognormal(7, 0.4, N).round(2),
            "age": rng.integers(20, 65, N),
            "sex": rng.choice(["f", "m"], N),
            "ill": rng.random(N) < 0.4,
            "months": rng.integers(1, 4, N),
            "boss": [1] + [0] * (N - 1),
        }
    )


def differences(output):
    return [f.status for f in output.findings if f.check == "differencing"]


MAKERS = {
    "ols": lambda s, **more: s.ols("pay ~ age + C(sex)", **more),
    "logit": lambda s, **more: s.logit("sick ~ age", **more),
    "mean": lambda s, **more: s.summary("pay", statistics=["mean"], **more),
    "median": lambda s, **more: s.summary("pay", statistics=["median"], **more),
    "sd": lambda s, **more: s.summary("pay", "sex", statistics=["sd"], **more),
    "table": lambda s, **more: s.crosstab("sex", "ill", **more),
    "quantiles": lambda s, **more: s.quantiles("age", probabilities=[0.5], **more),
    "histogram": lambda s, **more: s.histogram("age", edges=[20, 35, 50, 65], **more),
    "gini": lambda s, **more: s.gini("pay", **more),
    "hhi": lambda s, **more: s.hhi("pay", **more),
    "lorenz": lambda s, **more: s.lorenz("pay", points=4, **more),
    "concentration": lambda s, **more: s.concentration("pay", **more),
    "curve": lambda s, **more: s.survival("months", "ill", show_counts=False, **more),
    "survival": lambda s, **more: s.survival("months", "ill", **more),
    "odds": lambda s, **more: s.odds_ratio("sex", "ill", **more),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_everybody_and_everybody_but_one_by_a_filter(people, kind):
    frame = people.with_columns(sick=pl.col("ill").cast(pl.Int8))
    with Session(data=frame) as s:
        MAKERS[kind](s)
        assert "fail" in differences(MAKERS[kind](s, where={"boss": 0}))


FILES = {
    **{name: MAKERS[name] for name in ("ols", "mean", "gini", "histogram", "survival")},
    "t": lambda s, **more: s.test("t", "pay", "sex", **more),
    "correlation": lambda s, **more: s.correlation(["pay", "age"], **more),
}


@pytest.mark.parametrize("kind", FILES)
def test_everybody_and_everybody_but_one_as_two_files(people, kind):
    changed = people.slice(1).sample(fraction=1, shuffle=True, seed=1).with_columns(fresh=pl.lit(1.5))
    with Session(data=people) as s:
        FILES[kind](s)
        assert "fail" in differences(FILES[kind](s, data=changed))


def test_a_column_that_was_changed_does_not_hide_who_is_meant(people):
    scaled = people.slice(1).with_columns(pl.col("age") * 12)
    with Session(data=people) as s:
        s.ols("pay ~ age")
        assert "fail" in differences(s.ols("pay ~ age", data=scaled))


def test_the_same_number_of_other_people_is_told_from_the_same_people(people):
    swapped = pl.concat([people.slice(1), people.slice(0, 1).with_columns(pay=pl.lit(99.99))])
    twins = people.with_columns(pl.col("pay") + 0.001 * pl.int_range(pl.len()) + 10_000)
    with Session(data=people) as s:
        s.summary("pay", statistics=["mean"])
        assert "fail" in differences(s.summary("pay", statistics=["mean"], data=swapped))
        s.remove("output_2")
        assert "fail" not in differences(s.summary("pay", statistics=["mean"], data=twins))


def test_another_model_of_almost_the_same_people_is_for_a_human(people):
    gaps = people.with_columns(age=pl.when(pl.int_range(pl.len()) >= 3).then("age"))
    with Session(data=gaps) as s:
        s.ols("pay ~ C(sex) + months")
        assert differences(s.ols("pay ~ age")) == ["review"]
        assert differences(s.ols("pay ~ age + C(sex)")) == ["review"]


def test_models_fitted_elsewhere_are_told_apart_by_their_records(people):
    import statsmodels.api as sm
    from sklearn.linear_model import LinearRegression

    y, x = people["pay"].to_numpy(), sm.add_constant(people["age"].to_numpy().astype(float))
    with Session() as s:
        s.fitted(sm.OLS(y, x).fit())
        assert differences(s.fitted(sm.OLS(y[1:], x[1:]).fit())) == ["fail"]
        assert differences(s.fitted(sm.OLS(y[150:], x[150:]).fit())) == []
    with Session() as s:
        s.sklearn(LinearRegression().fit(x, y), x, y)
        assert differences(s.sklearn(LinearRegression().fit(x[:-2], y[:-2]), x[:-2], y[:-2])) == ["fail"]


def test_histograms_of_nested_people_are_compared_bin_by_bin(people):
    frame = people.with_columns(
        team=pl.when((pl.col("age") < 35) & (pl.int_range(pl.len()) < 12))
        .then(pl.lit("z"))
        .when(pl.col("age") > 50)
        .then(pl.lit("z"))
        .otherwise(pl.lit("y"))
    )
    edges = [20, 35, 50, 65]
    with Session(data=frame) as s:
        s.histogram("age", edges=edges)
        found = s.histogram("age", edges=edges, where={"team": "y"})
    assert differences(found) == ["fail"]
    # Only the first bin loses few people; in total it is many.
    assert [f.cells for f in found.findings if f.check == "differencing"] == [((0,),)]


def test_bins_that_only_together_come_close_are_found():
    frame = pl.DataFrame({"age": np.repeat(np.arange(20, 60), 30)})
    frame = pl.concat([frame, pl.DataFrame({"age": [40] * 5})])
    with Session(data=frame) as s:
        s.histogram("age", edges=[20, 30, 40, 50, 60])
        assert differences(s.histogram("age", edges=[20, 25, 35, 40.5, 60])) == []
        s.remove("output_2")
        thin = frame.filter(pl.col("age") != 40).vstack(pl.DataFrame({"age": [40] * 5}))
        s.histogram("age", edges=[20, 25, 40, 60], data=thin, name="thin")
        assert "fail" in differences(s.histogram("age", edges=[20, 35, 41, 60], data=thin))


def test_a_cell_of_one_table_and_the_whole_of_another_are_compared(people):
    frame = people.with_columns(pay=pl.when(pl.int_range(pl.len()) >= 6).then("pay"))
    with Session(data=frame) as s:
        s.crosstab("sex")
        women = s.summary("pay", "ill", where={"sex": "f"}, statistics=["mean"])
    assert differences(women) == ["fail"]


def test_people_with_several_records_count_once_in_a_difference():
    frame = pl.DataFrame({"who": [*range(40)] * 12, "x": np.random.default_rng(1).normal(50, 3, 480)})
    frame = frame.with_columns(wave=pl.Series(np.repeat(np.arange(12), 40)), last=pl.col("who") >= 37)
    data = Microdata(frame, person="who")
    with Session(data=data) as s:
        s.summary("x", statistics=["mean"])
        # 36 records, but three people.
        assert differences(s.summary("x", statistics=["mean"], where={"last": False})) == ["fail"]
        s.remove("output_2")
        assert differences(s.summary("x", statistics=["mean"], where={"wave": list(range(11))})) == []


def test_models_of_an_earlier_package_are_compared_too(people, tmp_path):
    with Session(data=people) as s:
        s.ols("pay ~ age", where={"boss": 0})
        s.quantiles("age", probabilities=[0.5], where={"boss": [0]})
        s.save(tmp_path / "first")
    with Session(data=people, earlier=[tmp_path / "first"]) as later:
        assert "fail" in differences(later.ols("pay ~ age"))
        assert "fail" in differences(later.quantiles("age", probabilities=[0.5]))
    other = people.drop("boss").slice(1)
    with Session(data=other.slice(1), earlier=[tmp_path / "first"]) as later:
        # Neither the file nor the filter is there to look: the number of people is all there is.
        assert differences(later.ols("pay ~ age")) == ["review", "review"]


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 40), st.booleans())
def test_a_mean_of_fewer_people_fails_exactly_when_few_are_between(left_out, as_file):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"x": rng.normal(100, 5, 120), "part": [1] * left_out + [0] * (120 - left_out)})
    with Session(data=frame) as s:
        s.summary("x", statistics=["mean"])
        more = {"data": frame.slice(left_out)} if as_file else {"where": {"part": 0}}
        found = s.summary("x", statistics=["mean"], **more)
    assert (differences(found) == ["fail"]) == (0 < left_out < 10)


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_finds_the_few_between(people, engine):
    if engine == "pandas":
        frame = people.to_pandas()
    elif engine == "pyarrow":
        frame = people.to_arrow()
    else:
        duckdb = pytest.importorskip("duckdb")
        table = people.to_arrow()
        frame = duckdb.arrow(table)
    with Session(data=frame) as s:
        s.summary("pay", "sex", statistics=["mean"])
        assert "fail" in differences(s.summary("pay", "sex", statistics=["mean"], where={"boss": 0}))


def test_a_weight_of_nothing_leaves_somebody_out(people):
    frame = people.with_columns(
        one=pl.lit(1.0), rest=1.0 - pl.col("boss"), tiny=1.0 - 0.9999999 * pl.col("boss")
    )
    with Session(data=frame) as s:
        s.model("wls", "pay ~ age", weights="one")
        assert "fail" in differences(s.model("wls", "pay ~ age", weights="rest"))
        assert "fail" in differences(s.model("wls", "pay ~ age", weights="tiny"))


def test_a_model_made_elsewhere_is_compared_by_its_number_of_people(people, tmp_path):
    file = tmp_path / "model.txt"
    file.write_text("No. Observations: 299\nDf Residuals: 290\n")
    with Session(data=people) as s:
        s.ols("pay ~ age")
        assert differences(s.custom(file)) == ["review"]
