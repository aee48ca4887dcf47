"""Records that belong together, households above all, are drawn together."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.synth import BayesianNetwork, GaussianCopula, Independent, Sequential, load
from discreet.synth.preflighting import preflight
from discreet.synth.sequential.whole_units import units_seen


def homes(number=150, seed=1):
    """Households whose members share an area and a rent, and follow their first member in age."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 5], size=number, p=[0.3, 0.4, 0.2, 0.1])
    home = np.repeat(np.arange(number) * 3 + 1000, sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    first = np.repeat(rng.integers(25, 80, number), sizes)
    return pl.DataFrame(
        {
            "home": home,
            "size": np.repeat(sizes, sizes),
            "area": np.repeat(rng.choice(["north", "south", "west"], number), sizes),
            "rent": np.repeat(rng.integers(300, 900, number), sizes),
            "age": np.where(place == 0, first, np.where(place == 1, first - 2, first - 25)),
            "sex": np.where(place == 1, "m", rng.choice(["f", "m"], len(home))),
        }
    )


HOMES = homes()
DECLARED = Microdata(HOMES, household="home")


def wrong_sizes(frame, unit="home", size="size"):
    return frame.select((pl.len().over(unit) != pl.col(size)).mean()).item()


def shares(frame, unit, names):
    return all(frame.group_by(unit).agg(pl.col(name).n_unique())[name].max() == 1 for name in names)


@st.composite
def files(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=25))
    count = len(sizes)
    area = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=count, max_size=count))
    age = draw(st.lists(st.one_of(st.none(), st.integers(0, 90)), min_size=sum(sizes), max_size=sum(sizes)))
    number = draw(st.permutations(range(count)))
    frame = pl.DataFrame(
        {
            "home": np.repeat(np.array(number), sizes),
            "size": np.repeat(sizes, sizes),
            "area": pl.Series(
                [a for a, s in zip(area, sizes, strict=True) for _ in range(s)], dtype=pl.String
            ),
            "age": pl.Series(age, dtype=pl.Int64),
        }
    )
    return frame[draw(st.permutations(range(frame.height)))]


@settings(max_examples=examples(15))
@given(files(), st.sampled_from(["cart", "sample", "parametric"]))
def test_sizes_and_shared_columns_hold_in_every_household_of_any_file(frame, method):
    if frame.height < 2:
        return
    fitted = Sequential(method=method).fit(Microdata(frame, household="home"), seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DiscreetWarning
        )  # of sizes that do not add up to the number of records
        drawn = fitted.sample(seed=2).frame
    assert drawn.columns == frame.columns
    assert wrong_sizes(drawn) == 0
    assert shares(drawn, "home", ["size", "area"])
    assert set(drawn["size"]) <= set(frame["size"])


def test_a_household_has_as_many_records_as_it_says_and_members_follow_the_first():
    drawn = Sequential().fit(DECLARED, seed=1).sample(3000, seed=1).frame
    assert drawn.height == 3000
    assert wrong_sizes(drawn) == 0
    assert shares(drawn, "home", ["size", "area", "rent"])
    pairs = drawn.with_columns(place=pl.int_range(pl.len()).over("home"))
    first = pairs.filter(pl.col("place") == 0).select("home", older="age")
    second = pairs.filter(pl.col("place") == 1).join(first, on="home")
    assert (second["sex"] == "m").all()
    assert (
        second["older"] - second["age"]
    ).std() < 6  # 0 in the data; 22 if ages had nothing to do with each other
    sizes = [f.group_by("home").len()["len"].value_counts(normalize=True).sort("len") for f in (HOMES, drawn)]
    assert np.abs(sizes[0]["proportion"].to_numpy() - sizes[1]["proportion"].to_numpy()).max() < 0.05


def test_a_household_that_nobody_declared_is_recognized_by_the_column_that_counts_it():
    (seen,) = units_seen(HOMES, HOMES.columns)
    assert (seen.column, seen.counted_by, seen.same) == ("home", ("size",), ("area", "rent"))
    fitted = Sequential().fit(Microdata(HOMES), seed=1)
    assert wrong_sizes(fitted.sample(seed=1).frame) == 0
    assert any("'home' numbers records that belong together" in note for note in fitted.plan.warnings)


def test_a_likely_household_that_nothing_counts_is_warned_about():
    plan = Sequential().plan(Microdata(HOMES.drop("size")))
    assert any("together='home'" in note for note in plan.warnings)
    assert not any(
        "together" in note for note in Sequential().plan(Microdata(HOMES.drop("size", "home"))).warnings
    )


def test_new_numbers_are_given_and_those_of_real_households_do_not_come_back():
    fitted = Sequential().fit(DECLARED, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert drawn["home"].dtype == pl.Int64
    assert drawn["home"].unique().sort().to_list() == list(range(1, drawn["home"].n_unique() + 1))
    assert fitted.plan.methods["home"] == "numbered"
    texts = HOMES.with_columns(home=pl.format("H{}", "home"), again=pl.format("H{}", "home"))
    drawn = Sequential().fit(Microdata(texts, household="home"), seed=1).sample(seed=1).frame
    assert (drawn["home"] == drawn["again"]).all()
    assert not set(drawn["home"]) & set(texts["home"])


@pytest.mark.parametrize("weights", ["use", "regenerate", "synthesize", "ignore"])
def test_weights_of_households_are_used(weights):
    heavy = HOMES.with_columns(w=pl.when(pl.col("size") == 1).then(9.0).otherwise(1.0))
    data = Microdata(heavy, household="home", weight="w")
    drawn = Sequential(weights=weights).fit(data, seed=1).sample(2000, seed=1).frame
    alone = drawn.group_by("home").len()["len"].eq(1).mean()
    assert wrong_sizes(drawn) == 0
    assert (alone > 0.7) == (weights in ("use", "regenerate"))
    assert ("w" in drawn.columns) == (weights in ("regenerate", "synthesize"))
    if weights == "regenerate":
        assert drawn["w"].sum() == pytest.approx(heavy["w"].sum())


def test_records_are_drawn_one_by_one_where_that_is_asked_for():
    fitted = Sequential(together="no").fit(DECLARED, seed=1)
    assert fitted.plan.left_out == {"home": "a household, whose records are drawn one by one"}
    assert "home" not in fitted.sample(seed=1).columns


def test_rules_codes_and_formulas_hold_for_all_members():
    frame = HOMES.with_columns(
        pay=pl.when(pl.col("age") < 16)
        .then(0)
        .when(pl.col("age") % 7 == 0)
        .then(-8)
        .otherwise(pl.col("age") * 10),
        double=pl.col("age") * 2,
    )
    fitted = Sequential(
        method={"double": "~age * 2"}, rules={"pay": [("age < 16", 0)]}, special_codes={"pay": [-8]}
    ).fit(Microdata(frame, household="home"), seed=1)
    drawn = fitted.sample(seed=1).frame
    assert (drawn["double"] == 2 * drawn["age"]).all()
    assert (drawn.filter(pl.col("age") < 16)["pay"] == 0).all()
    assert -8 in drawn["pay"].to_list()


def test_predictors_that_are_named_are_respected():
    fitted = Sequential(predictor_matrix={"age": ["area"]}).fit(DECLARED, seed=1)
    assert fitted.plan.predictors["age"] == ("area",)
    assert fitted.others.plan.predictors["age"] == ("records of home", "place in home", "area", "first: age")


def test_a_saved_model_draws_the_same_households(tmp_path):
    fitted = Sequential().fit(DECLARED, seed=1)
    again = load(fitted.save(tmp_path / "homes.model"))
    assert again.sample(seed=3).frame.equals(fitted.sample(seed=3).frame)


def test_households_that_cannot_be_divided_say_so():
    couples = {"home": [1, 1, 2, 2, 3, 3], "age": [1, 2, 3, 4, 5, 6], "sex": [0, 1, 0, 1, 1, 0]}
    pairs = Microdata(pl.DataFrame(couples), household="home")
    with pytest.warns(DiscreetWarning, match="1 records fewer"):
        assert Sequential().fit(pairs, seed=1).sample(5, seed=1).frame.height == 4


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"method": {"age": "keep"}}, ParameterError, "'home': 'keep'"),
        ({"proper": "bootstrap"}, ParameterError, "proper=True"),
        ({"strata": "sex"}, ParameterError, "'sex' is a stratum"),
        ({"together": "hom"}, ColumnError, "home"),
        ({"together": 3}, ParameterError, "together"),
        (
            {"method": {"sex": "catall"}, "visit_sequence": ["sex", "size", "area", "rent", "age"]},
            ParameterError,
            "no units",
        ),
        ({"method": {"sex": "numbered"}}, ParameterError, "no method to choose"),
    ],
)
def test_what_cannot_be_done_to_whole_households_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        Sequential(**options).fit(DECLARED, seed=1)


def test_a_household_that_is_missing_is_refused():
    gone = HOMES.with_columns(pl.when(pl.col("home") > 1010).then("home").alias("home"))
    with pytest.raises(ColumnError, match="together='no'"):
        Sequential().fit(Microdata(gone, household="home"))


@pytest.mark.parametrize("synthesizer", [Independent(), GaussianCopula(), BayesianNetwork()])
@pytest.mark.parametrize("data", [DECLARED, Microdata(HOMES)])
def test_others_leave_the_household_out_and_say_so(synthesizer, data):
    with pytest.warns(DiscreetWarning, match="'home' belong together"):
        drawn = synthesizer.fit(data, seed=1).sample(seed=1)
    assert "home" not in drawn.columns


def test_preflight_keeps_households_together_and_looks_nothing_up_from_their_numbers():
    found = preflight(Microdata(HOMES), probe=False)
    assert found["household:home"].confidence == "high"
    assert not any("home" in finding.columns[1:] for finding in found.of("look-up"))
    drawn = found.synthesizer().fit(Microdata(HOMES), seed=1).sample(seed=1).frame
    assert wrong_sizes(drawn) == 0
    apart = found.decided(reject=["household:home"]).synthesizer(together="no")
    assert apart.visit_sequence[-1] == "home"
