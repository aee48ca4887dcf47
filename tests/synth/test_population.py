"""Populations and households: as many as the weights say, one region each, nobody copied all over, clear refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, synth
from discreet.core.errors import ColumnError, ParameterError


def survey(homes=150, seed=1):
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 2, 3, 4], homes, p=[0.3, 0.3, 0.2, 0.2])
    home = np.repeat(np.arange(homes), size)
    place = np.arange(len(home)) - np.repeat(np.cumsum(size) - size, size)
    age = np.where(place < 2, rng.integers(20, 80, len(home)), rng.integers(0, 16, len(home)))
    pay = np.where(
        age < 16, np.nan, np.where(rng.random(len(home)) < 0.2, 0.0, rng.gamma(2, 900, len(home)).round(2))
    )
    frame = pl.DataFrame(
        {
            "home": home,
            "size": np.repeat(size, size),
            "area": np.repeat(rng.choice(["n", "s"], homes), size),
            "w": np.repeat(rng.uniform(5, 15, homes).round(1), size),
            "age": age,
            "sex": np.where(
                place % 2 == 0, rng.choice(["f", "m"], len(home)), rng.choice(["f", "m"], len(home))
            ),
            "job": [None if own < 16 else ["none", "part", "full"][own % 3] for own in age],
            "pay": pl.Series(pay).fill_nan(None),
        }
    ).with_columns((pl.col("pay") * 0.7).alias("wage"), (pl.col("pay") * 0.3).alias("rent"))
    return Microdata(frame, household="home", weight="w", strata="area")


PLAN = synth.Population(
    structure=["age", "sex"], categorical=["job"], continuous=["pay"], components={"pay": ["wage", "rent"]}
)


@settings(max_examples=examples(3))
@given(st.integers(0, 100))
def test_a_population_is_as_large_as_the_weights_say_and_its_households_are_households(seed):
    data = survey(seed=seed % 5)
    fitted = PLAN.fit(data, seed=seed)
    made = fitted.sample(seed=seed).frame
    homes = made.group_by("home").agg(
        pl.len().alias("size"), pl.col("area").n_unique(), (pl.col("age") >= 16).any().alias("adult")
    )
    wanted = data.frame.group_by("home").agg(pl.col("w").first(), pl.len().alias("n"), pl.col("area").first())
    cells = wanted.group_by("area", "n").agg(pl.col("w").sum())
    assert abs(homes.height - sum(round(own) for own in cells["w"])) <= 2  # halves
    assert homes["area"].max() == 1
    assert homes["adult"].all()
    assert made.filter(pl.col("age") < 16)["job"].is_null().all()
    assert made.filter(pl.col("age") < 16)["pay"].is_null().all()
    parts = made.filter(pl.col("pay").is_not_null())
    assert np.allclose(parts["wage"] + parts["rent"], parts["pay"], atol=0.02)
    assert made["pay"].max() <= data.frame["pay"].max()
    assert "w" not in made.columns


@settings(max_examples=examples(3))
@given(st.integers(2, 12))
def test_no_cell_has_fewer_donors_than_asked_for(least):
    fitted = synth.Population(structure=["age"], min_donors=least).fit(survey(40), seed=1)
    assert all(len(cell.donors) >= least for cell in fitted.cells)
    for size, _ in fitted.merged:
        assert 1 <= size <= 4


def test_shares_of_zero_and_of_categories_are_kept():
    data = survey(400)
    made = PLAN.fit(data, seed=1).sample(seed=1).frame
    weights = data.frame["w"].to_numpy()
    pay = data.frame["pay"]
    zero = weights[(pay == 0).fill_null(False).to_numpy()].sum() / weights[pay.is_not_null().to_numpy()].sum()
    assert abs((made["pay"].drop_nulls() == 0).mean() - zero) < 0.03
    full = weights[(data.frame["job"] == "full").fill_null(False).to_numpy()].sum() / weights.sum()
    assert abs((made["job"] == "full").sum() / made.height - full) < 0.03


@pytest.mark.parametrize("kind", ["distribution", "forest", "boosting"])
def test_other_models_and_a_share_of_the_population(kind):
    plan = synth.Population(structure=["age", "sex"], categorical="job", cat_method=kind)
    fitted = plan.fit(survey(), seed=1)
    made = fitted.sample(300, seed=1).frame
    assert 200 < made.height < 400
    assert set(made["job"].drop_nulls()) <= {"none", "part", "full"}


def counted(data):
    """Give everybody a number of visits that grows with age."""
    rng = np.random.default_rng(7)
    visits = pl.Series("visits", rng.poisson(np.exp(data.frame["age"].to_numpy() / 40)))
    return data.with_frame(data.frame.with_columns(visits))


@pytest.mark.parametrize("kind", ["lm", "boosting"])
def test_numbers_by_a_regression_keep_zeros_and_the_middle_and_what_they_go_by(kind):
    data = survey(400)
    frame = data.frame.with_columns((pl.col("pay") * (1 + 2 * (pl.col("job") == "full"))).alias("pay"))
    plan = synth.Population(
        structure=["age", "sex"], categorical=["job"], continuous=["pay"], cont_method=kind
    )
    made = plan.fit(data.with_frame(frame), seed=1).sample(seed=1).frame
    assert made.filter(pl.col("age") < 16)["pay"].is_null().all()
    assert frame["pay"].min() <= made["pay"].min()
    assert made["pay"].max() <= frame["pay"].max()
    real, drawn = (own.filter(pl.col("pay").is_not_null()) for own in (frame, made))
    # About 700 answers: 0.1 and 30 % are more than five standard errors of a share and of a median.
    assert abs((drawn["pay"] == 0).mean() - (real["pay"] == 0).mean()) < 0.1
    for job in ("full", "part"):
        middle = [
            own.filter((pl.col("job") == job) & (pl.col("pay") > 0))["pay"].median() for own in (real, drawn)
        ]
        assert 0.7 < middle[1] / middle[0] < 1.3


def test_counts_by_a_regression_are_counts_with_the_right_mean():
    data = counted(survey(400))
    plan = synth.Population(structure=["age", "sex"], continuous=["visits"], cont_method="poisson")
    fitted = plan.fit(data, seed=1)
    made = fitted.sample(seed=1).frame
    assert made["visits"].dtype == data.frame["visits"].dtype
    assert made["visits"].min() == 0
    for young in (True, False):
        here = [own.filter((pl.col("age") < 40) == young)["visits"].mean() for own in (data.frame, made)]
        assert 0.8 < here[1] / here[0] < 1.2
    with pytest.raises(ColumnError, match="draws counts"):
        synth.Population(structure=["age"], continuous=["pay"], cont_method="poisson").fit(data, seed=1)


@pytest.mark.parametrize(("kind", "column"), [("lm", "pay"), ("poisson", "visits")])
def test_a_population_by_regression_is_saved_and_loaded(kind, column, tmp_path):
    plan = synth.Population(structure=["age", "sex"], continuous=[column], cont_method=kind)
    fitted = plan.fit(counted(survey()), seed=1)
    again = synth.load(fitted.save(tmp_path / "model"))
    assert again.sample(seed=3).frame.equals(fitted.sample(seed=3).frame)


def test_boosted_trees_are_not_saved(tmp_path):
    plan = synth.Population(structure=["age"], continuous=["pay"], cont_method="boosting")
    with pytest.raises(ParameterError, match="not kept"):
        plan.fit(survey(), seed=1).save(tmp_path / "model")


def test_impossible_outcomes_do_not_occur():
    plan = synth.Population(
        structure=["sex", "age"], categorical=["job"], censor={"job": {"sex": {"f": ["full"]}}}
    )
    made = plan.fit(survey(), seed=1).sample(seed=1).frame
    assert not ((made["sex"] == "f") & (made["job"] == "full")).any()
    only = synth.Population(
        structure=["sex", "age"], categorical=["job"], limit={"job": {"sex": {"m": ["part"]}}}
    )
    made = only.fit(survey(), seed=1).sample(seed=1).frame
    assert set(made.filter(pl.col("sex") == "m")["job"].drop_nulls()) == {"part"}


def test_known_numbers_of_persons_come_out():
    data = survey()
    base = synth.Population(structure=["sex", "age"]).fit(data, seed=1).sample(seed=1).frame
    women = int((base["sex"] == "f").sum()) + 40
    plan = synth.Population(structure=["sex", "age"], calibrate={"sex": {"f": women}})
    made = plan.fit(data, seed=1).sample(seed=1).frame
    assert abs(int((made["sex"] == "f").sum()) - women) <= 2


def test_numbers_of_persons_by_stratum_are_refused_rather_than_passed_over():
    with pytest.raises(ColumnError, match="Strata have the numbers"):
        synth.Population(structure=["sex", "age"], calibrate={"area": {"a": 10}}).fit(survey(), seed=1)


def test_a_population_model_is_saved_and_loaded(tmp_path):
    fitted = PLAN.fit(survey(), seed=1)
    again = synth.load(fitted.save(tmp_path / "model"))
    assert again.sample(seed=3).frame.equals(fitted.sample(seed=3).frame)


def test_what_cannot_be_is_refused_with_counts():
    data = survey()
    frame = data.frame
    shared = int(np.flatnonzero(frame["home"].is_duplicated().to_numpy())[0])
    torn = Microdata(
        frame.with_columns(pl.when(pl.int_range(pl.len()) == shared).then(99.0).otherwise("w").alias("w")),
        household="home", weight="w",
    )  # fmt: skip
    with pytest.raises(ColumnError, match="1 households"):
        PLAN.fit(torn, seed=1)
    moved = frame.with_columns(area=pl.col("area").shift(1).fill_null("n"))
    with pytest.raises(ColumnError, match="more than one stratum"):
        PLAN.fit(Microdata(moved, household="home", weight="w", strata="area"), seed=1)
    with pytest.raises(ColumnError, match="zero"):
        PLAN.fit(Microdata(frame.with_columns(w=pl.lit(0.0)), household="home", weight="w"), seed=1)
    with pytest.raises(ParameterError, match="household"):
        PLAN.fit(Microdata(frame), seed=1)
    with pytest.raises(ParameterError, match="structure"):
        synth.Population().fit(data, seed=1)
    for wrong in ({"categorical": ["jop"]}, {"categorical": ["age"]}, {"continuous": ["job"]}):
        with pytest.raises(ColumnError):
            synth.Population(structure=["age"], **wrong).fit(data, seed=1)


@pytest.mark.parametrize("by", [synth.Sequential(), synth.Independent()])
def test_any_generator_keeps_households(by):
    data = survey()
    made = synth.Households(by).fit(data, seed=1).sample(seed=1).frame
    homes = made.group_by("home").agg(pl.len(), pl.col("size").first(), pl.col("area").n_unique())
    assert (homes["len"] == homes["size"]).all()
    assert homes["area"].max() == 1
    assert made.schema == data.frame.drop("w").schema
    assert abs(made.height - data.frame.height) < 60


def test_relations_inside_a_household_are_kept_by_the_wide_form():
    rng = np.random.default_rng(1)
    first = rng.integers(20, 80, 500)
    pairs = pl.DataFrame(
        {
            "home": np.repeat(np.arange(500), 2),
            "age": np.column_stack([first, first + rng.integers(-3, 4, 500)]).ravel(),
            "sex": np.tile(["f", "m"], 500),
        }
    )
    made = (
        synth.Households(synth.Sequential())
        .fit(Microdata(pairs, household="home"), seed=1)
        .sample(seed=1)
        .frame
    )
    wide = made.with_columns(pl.int_range(pl.len()).over("home").alias("at")).pivot(
        on="at", index="home", values="age"
    )
    assert np.corrcoef(wide["0"], wide["1"])[0, 1] > 0.97


def test_households_are_saved_and_written_as_a_plan(tmp_path):
    wanted = synth.Households(synth.Sequential(method="sample"), min_households=5)
    fitted = wanted.fit(survey(), seed=1)
    again = synth.load(fitted.save(tmp_path / "model"))
    assert again.sample(seed=2).frame.equals(fitted.sample(seed=2).frame)
    assert synth.load_plan(synth.save_plan(wanted, tmp_path / "plan.toml")) == wanted
    with pytest.raises(ParameterError):
        synth.Households(synth.Independent(), way="two-level")


def test_samples_are_drawn_by_design_and_raked():
    population = survey(500)
    for allocation in ("proportional", "equal"):
        sample = synth.SurveyDesign(60, allocation).draw(population, seed=1)
        assert abs(sample.frame.group_by("home").first().height - 60) <= 1
        weights = sample.frame.group_by("home").first()["design_weight"].sum()
        assert weights == pytest.approx(500)
    raked = synth.rake(sample, {"sex": {"f": 700, "m": 600}})
    assert raked[(sample.frame["sex"] == "f").to_numpy()].sum() == pytest.approx(700)
    with pytest.raises(ParameterError, match="without a total"):
        synth.rake(sample, {"sex": {"f": 700}})
    with pytest.raises(ParameterError, match="contradict"):
        synth.rake(sample, {"sex": {"f": 700, "m": 600}, "area": {"n": 1, "s": 2}})


def test_sizes_may_be_modelled_by_stratum():
    data = survey(400)
    fitted = synth.Population(structure=["age"], structure_method="multinom").fit(data, seed=1)
    homes = fitted.sample(seed=1).frame.group_by("home").agg(pl.len().alias("size"), pl.col("area").first())
    real = data.frame.group_by("home").agg(
        pl.len().alias("size"), pl.col("area").first(), pl.col("w").first()
    )
    assert abs(homes.height - real["w"].sum()) <= 2  # one stratum may be rounded up, another down
    for size, share in real.group_by("size").agg(pl.col("w").sum() / real["w"].sum()).rows():
        error = np.sqrt(share * (1 - share) / homes.height)
        # Five standard errors of the draw, and a little for the shrinkage of the regression.
        assert abs((homes["size"] == size).mean() - share) < 5 * error + 0.01
    one = data.with_roles(strata=None)
    with pytest.raises(ParameterError, match="only one stratum"):
        synth.Population(structure=["age"], structure_method="multinom").fit(one, seed=1)


@pytest.mark.parametrize("plan", [PLAN, synth.Households(synth.Sequential(method="sample"))])
def test_a_population_drawn_in_parts_has_households_of_its_own_in_each(plan, tmp_path):
    data = survey()
    fitted = plan.fit(data, seed=1)
    made = fitted.sample(600, to=tmp_path / "people", rows_per_part=200, seed=1)
    whole = made.frame.collect()
    assert 400 < whole.height < 800
    parts = [pl.read_parquet(path) for path in sorted((tmp_path / "people").glob("*.parquet"))]
    assert len(parts) == 3
    assert sum(part["home"].n_unique() for part in parts) == whole["home"].n_unique()
    homes = whole.group_by("home").agg(pl.col("area").n_unique())
    assert homes["area"].max() == 1
