import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect.number_blocks import rank_correlation
from discreet.protect.plan import Plan
from discreet.protect.regression_synthesis import Shuffle

MIXED = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-50, 50)),
        st.one_of(st.none(), st.floats(-1e6, 1e6)),
        st.one_of(st.none(), st.floats(-10, 10)),
        st.sampled_from(["x", "y", "z", None]),
    ),
    min_size=1,
    max_size=40,
)


def people(records=3_000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 80, records)
    pay = np.exp(6 + age / 25 + rng.normal(0, 0.5, records))
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], records),
            "pay": pay,
            "wealth": pay**2 * np.exp(rng.normal(0, 0.4, records)),
        }
    )


def shuffled(frame, seed=1, **parameters):
    return Shuffle(**parameters).apply(Microdata(frame), seed=seed)


@given(records=MIXED, strata=st.booleans(), seed=st.integers(0, 1000))
@settings(max_examples=examples(60), deadline=None)
def test_every_column_keeps_exactly_its_values_and_gaps(records, strata, seed):
    schema = {"a": pl.Int64, "b": pl.Float64, "g": pl.Float64, "s": pl.String}
    frame = pl.DataFrame(records, schema=schema, orient="row")
    options = {"given": ["g"], "strata": ["s"]} if strata else {"given": ["g", "s"]}
    made = shuffled(frame, seed, columns=["a", "b"], **options).data.frame
    assert made.schema == frame.schema
    for name in ("a", "b"):
        assert made[name].is_null().equals(frame[name].is_null())
        assert made[name].sort().equals(frame[name].sort())
    for name in ("g", "s"):
        assert made[name].equals(frame[name])


def test_rank_correlations_among_and_with_given_columns_survive():
    frame = people()
    made = shuffled(frame, columns=["pay", "wealth"], given=["age"]).data.frame
    names = ["age", "pay", "wealth"]
    before, after = (rank_correlation(table.select(names).to_numpy()) for table in (frame, made))
    assert after == pytest.approx(before, abs=0.04)


def test_a_new_value_says_nothing_about_the_old_one_beyond_what_is_given():
    frame = people()
    made = shuffled(frame, columns=["pay"], given=["age"]).data.frame
    ranks = pl.DataFrame({"old": frame["pay"], "new": made["pay"], "age": frame["age"]}).select(
        pl.all().rank()
    )
    table = ranks.to_numpy() - ranks.to_numpy().mean(axis=0)
    age = table[:, 2]
    rest = table[:, :2] - np.outer(age, age @ table[:, :2] / (age @ age))
    assert abs(np.corrcoef(rest, rowvar=False)[0, 1]) < 0.06


def test_categories_count_as_what_is_given():
    rng = np.random.default_rng(3)
    job = rng.choice(["nurse", "clerk", "judge"], 4_000)
    pay = rng.normal(size=4_000) + 3 * (job == "judge")
    frame = pl.DataFrame({"job": job, "pay": pay})
    made = shuffled(frame, columns=["pay"], given=["job"]).data.frame
    before, after = (
        table.group_by("job").agg(pl.col("pay").mean()).sort("job")["pay"] for table in (frame, made)
    )
    assert after.to_numpy() == pytest.approx(before.to_numpy(), abs=0.35)


def test_strata_keep_their_own_values():
    frame = people()
    made = shuffled(frame, columns=["pay"], given=["age"], strata="sex").data.frame
    for sex in ("f", "m"):
        own = pl.col("sex") == sex
        assert made.filter(own)["pay"].sort().equals(frame.filter(own)["pay"].sort())
    assert not made["pay"].equals(frame["pay"])


def test_small_strata_are_put_together_and_counted():
    frame = people(60).with_columns(sex=pl.Series(["a"] * 50 + ["b", "c"] * 5))
    release = shuffled(frame, columns=["pay"], strata=["sex"])
    assert any("2 strata" in note for note in release.log[0].notes)


def test_records_with_missing_given_values_are_drawn_from_what_they_have():
    frame = people().with_columns(age=pl.when(pl.int_range(pl.len()) % 4 > 0).then("age"))
    release = shuffled(frame, columns=["pay"], given=["age", "wealth"])
    assert any("750 records with missing given values" in note for note in release.log[0].notes)
    gone = frame["age"].is_null()
    found = np.corrcoef(release.data.frame.filter(gone)["pay"].rank(), frame.filter(gone)["wealth"].rank())[
        0, 1
    ]
    assert found == pytest.approx(np.corrcoef(frame["pay"].rank(), frame["wealth"].rank())[0, 1], abs=0.08)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    first, again, other = (
        shuffled(people(), seed, columns=["pay"], given=["age"]).data.frame for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_pandas_comes_back_as_pandas():
    frame = people(100).to_pandas()
    made = shuffled(frame, columns=["pay"], given=["sex"]).data.frame
    assert isinstance(made, pd.DataFrame)
    assert (made.dtypes == frame.dtypes).all()


def test_a_plan_file_brings_the_same_treatment_back(tmp_path):
    plan = Plan([Shuffle(["pay"], given="age")])
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan


def test_correlations_by_pairs_use_the_records_that_know_both():
    matrix = np.array([[1.0, 2.0, 9.0], [2.0, 1.0, np.nan], [3.0, 3.0, 1.0], [4.0, 4.0, 0.0]])
    found = rank_correlation(matrix)
    assert found[0, 2] == pytest.approx(-1.0)
    assert found[0, 1] == pytest.approx(0.8)


def test_bad_input_is_refused():
    with pytest.raises(ColumnError, match="'pya'"):
        shuffled(people(20), columns=["pya"])
    with pytest.raises(ColumnError, match="'agee'"):
        shuffled(people(20), columns=["pay"], given=["agee"])
    with pytest.raises(ColumnError, match="is for numbers"):
        shuffled(people(20), columns=["sex"])
    with pytest.raises(ParameterError, match="both changed"):
        shuffled(people(20), columns=["pay"], given=["pay"])
    with pytest.raises(ParameterError, match="among the strata"):
        Shuffle(["pay"], given=["sex"], strata=["sex"])
    many = people(1_200).with_columns(sex=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(ParameterError, match="too many levels"):
        shuffled(many, columns=["pay"], given=["sex"])


def test_members_of_a_household_get_the_same_value():
    homes = people(200).with_columns(home=pl.int_range(pl.len()))
    members = homes[np.repeat(np.arange(200), 2)]
    made = shuffled(members, columns=["pay"], given=["age"], by="home").data.frame
    assert (made["pay"][::2] == made["pay"][1::2]).all()
    assert made["pay"].sort().equals(members["pay"].sort())
    assert not made["pay"].equals(members["pay"])
