import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect.plan import Plan
from discreet.protect.pram import Pram
from discreet.protect.transition_matrices import (
    even_change,
    expected_change,
    local_epsilon,
    one_step_invariant,
    theta_for_epsilon,
    two_stage_invariant,
)

counts = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)
shares = st.floats(0, 1)


def pram(frame, **options):
    return Pram(**options).apply(Microdata(frame), seed=7)


@given(counts, shares)
def test_both_invariant_matrices_keep_expected_counts_and_are_laws(tally, strength):
    t = np.array(tally, dtype=float) / sum(tally)
    for made in (two_stage_invariant(even_change(len(t), strength), t), one_step_invariant(t, strength)):
        assert np.abs(t @ made - t).max() <= 1e-12
        assert np.abs(made.sum(axis=1) - 1).max() <= 1e-12
        assert made.min() >= -1e-15


@given(
    st.integers(2, 6).flatmap(
        lambda c: st.tuples(
            st.lists(st.integers(1, 500), min_size=c, max_size=c),
            st.lists(st.lists(st.floats(0.01, 1), min_size=c, max_size=c), min_size=c, max_size=c),
        )
    )
)
def test_any_matrix_becomes_invariant_when_followed_by_its_way_back(drawn):
    tally, rows = drawn
    first = np.array(rows) / np.array(rows).sum(axis=1, keepdims=True)
    t = np.array(tally, dtype=float) / sum(tally)
    assert np.abs(t @ two_stage_invariant(first, t) - t).max() <= 1e-12


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=8), st.floats(0.05, 8))
def test_theta_reaches_the_epsilon_that_was_asked_for(tally, wanted):
    least = local_epsilon(one_step_invariant(tally, (len(tally) - 1) / len(tally)))
    if wanted < least:
        with pytest.raises(ParameterError, match="the least is"):
            theta_for_epsilon(tally, wanted)
        return
    reached = local_epsilon(one_step_invariant(tally, theta_for_epsilon(tally, wanted)))
    assert reached <= wanted + 1e-9
    assert reached == pytest.approx(wanted, abs=1e-6)


def test_invariant_pram_keeps_counts_empirically_and_changes_as_many_as_said():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"x": rng.choice(["a", "b", "c", "d"], 200_000, p=[0.6, 0.25, 0.14, 0.01])})
    release = pram(frame, columns=["x"], change=0.3)
    before, after = (
        f["x"].value_counts().sort("x")["count"].to_numpy().astype(int) for f in (frame, release.data.frame)
    )
    laws = release.log[0].internal["matrices"]["x"]["matrices"][0]
    spread = np.sqrt((before[:, None] * laws * (1 - laws)).sum(axis=0))
    assert (np.abs(after - before) < 4.5 * spread).all()
    expected = release.log[0].internal["expected_changed"]["x"] * 200_000
    assert release.log[0].changed_cells["x"] == pytest.approx(expected, rel=0.02)


def test_each_row_of_the_matrix_is_the_law_that_is_drawn_from():
    matrix = {"x": {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 0.9, "c": 0.1}}}
    frame = pl.DataFrame({"x": ["a", "b"] * 50_000})
    made = pram(frame, columns=["x"], invariant=False, matrix=matrix).data.frame["x"]
    pairs = pl.DataFrame({"old": frame["x"], "new": made}).group_by("old", "new").len()
    found = {(old, new): n / 50_000 for old, new, n in pairs.rows()}
    assert set(found) == {("a", "a"), ("a", "b"), ("b", "b"), ("b", "c")}
    assert found["a", "b"] == pytest.approx(0.5, abs=0.01)
    assert found["b", "c"] == pytest.approx(0.1, abs=0.01)


levels = st.sampled_from(["a", "b", "c", None])


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.tuples(levels, levels, st.integers(0, 2)), min_size=1, max_size=40), st.booleans())
def test_pram_draws_only_what_occurs_in_the_stratum_and_keeps_missing_missing(rows, jointly):
    frame = pl.DataFrame(rows, schema={"x": pl.String, "y": pl.String, "s": pl.Int64}, orient="row")
    release = pram(frame, columns=["x", "y"], strata=["s"], change=0.8, jointly=jointly)
    after = release.data.frame
    for name in ("x", "y"):
        assert after[name].is_null().to_list() == frame[name].is_null().to_list()
        before = set(frame.select("s", name).rows())
        assert set(after.select("s", name).rows()) <= before
    if jointly:
        assert set(after.drop_nulls().rows()) <= set(frame.rows())


def test_missing_can_be_a_category_that_comes_and_goes():
    frame = pl.DataFrame({"x": ["a", None] * 500})
    made = pram(frame, columns=["x"], missing="category", change=0.5).data.frame["x"]
    assert 400 < made.null_count() < 600
    assert (made.is_null() != frame["x"].is_null()).any()


def test_columns_that_describe_the_household_change_for_all_its_members():
    frame = pl.DataFrame({"hh": [1, 1, 2, 2, 3] * 40, "x": ["a", "a", "b", "b", "a"] * 40}).with_columns(
        hh=pl.col("hh") + 3 * (pl.int_range(pl.len()) // 5)
    )
    made = pram(frame, columns=["x"], by="hh", change=0.5).data.frame
    assert made.group_by("hh").agg(pl.col("x").n_unique())["x"].max() == 1
    assert (made["x"] != frame["x"]).any()
    with pytest.raises(ColumnError, match="differs between records with the same 'hh'"):
        pram(pl.DataFrame({"hh": [1, 1], "x": ["a", "b"]}), columns=["x"], by="hh")


def test_types_and_category_levels_survive():
    frame = pl.DataFrame(
        {
            "i": pl.Series([1, 2, 3] * 20, dtype=pl.Int16),
            "e": pl.Series(["lo", "hi", "lo"] * 20, dtype=pl.Enum(["lo", "mid", "hi"])),
            "c": pl.Series(["u", "v", "v"] * 20, dtype=pl.Categorical),
            "b": [True, False, False] * 20,
            "f": [1.0, 2.5, 2.5] * 20,
        }
    )
    made = pram(frame, columns=frame.columns, change=0.5).data.frame
    assert made.schema == frame.schema
    back = pram(frame.to_pandas(), columns=frame.columns, change=0.5).data.frame
    assert isinstance(back, pd.DataFrame)
    assert (back.dtypes == frame.to_pandas().dtypes).all()


def test_same_seed_same_bytes_and_a_column_more_changes_nothing_in_the_others():
    frame = pl.DataFrame({"x": ["a", "b", "c"] * 100, "y": [1, 2, 1] * 100})
    one, two = (pram(frame, columns=["x"], change=0.5).data.frame for _ in range(2))
    assert one.equals(two)
    assert pram(frame, columns=["y", "x"], change=0.5).data.frame["x"].equals(one["x"])


def test_a_guarantee_is_given_only_for_a_matrix_fixed_beforehand_without_zeros():
    frame = pl.DataFrame({"x": [0, 1] * 50})
    own = {"x": {0: {0: 0.75, 1: 0.25}, 1: {0: 0.25, 1: 0.75}}}
    fixed = Pram(columns=["x"], invariant=False, matrix=own).apply(Microdata(frame))
    assert fixed.guarantee.startswith(
        "1.09862-local differential privacy against changing the values of one record"
    )
    assert fixed.log[0].parameters["local_epsilon"]["x"] == pytest.approx(math.log(3))
    assert pram(frame, columns=["x"]).guarantee is None
    assert pram(frame, columns=["x"], matrix=own).guarantee is None
    zero = {"x": {0: {0: 1.0}, 1: {0: 0.25, 1: 0.75}}}
    made = pram(frame, columns=["x"], invariant=False, matrix=zero)
    assert made.guarantee is None
    assert made.to_dict()["steps"][0]["parameters"]["local_epsilon"]["x"] == "inf"


def test_matrices_stay_in_the_house():
    own = {"x": {"0": {"0": 0.75, "1": 0.25}, "1": {"0": 0.25, "1": 0.75}}}
    release = pram(pl.DataFrame({"x": [0, 1] * 50}), columns=["x"], matrix=own)
    assert "0.75" not in str(release.to_dict())
    assert "matrices" in str(release.to_dict(internal=True))


def test_a_plan_file_brings_pram_back_with_its_matrix():
    plan = Plan(
        [Pram(columns=["x"], change=0.2, matrix={"x": {1: {1: 0.5, 2: 0.5}, 2: {2: 1.0}}}, strata=["s"])]
    )
    data = Microdata(pl.DataFrame({"x": [1, 2] * 30, "s": ["u", "v"] * 30}))
    again = Plan.from_dict(plan.to_dict())
    assert again.apply(data, seed=5).data.frame.equals(plan.apply(data, seed=5).data.frame)


def test_expected_change_of_an_even_matrix_is_its_change():
    assert expected_change(even_change(4, 0.3), [1, 2, 3, 4]) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"change": 1.5}, "change must be a share between 0 and 1"),
        ({"theta": -1}, "theta must be"),
        ({"theta": 0.1, "epsilon": 1}, "theta or epsilon"),
        ({"theta": 0.1, "invariant": False}, "invariant=True"),
        ({"missing": "drop"}, "missing must be"),
        ({"jointly": True, "matrix": {}}, "jointly"),
        ({"jointly": True, "change": {"x": 0.1}}, "one number each"),
        ({"matrix": {"x": {"a": {"a": 0.5}}}}, "add up to 1"),
    ],
)
def test_bad_parameters_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        Pram(columns=["x"], **options)


def test_bad_columns_are_refused_without_showing_values():
    frame = pl.DataFrame({"x": ["a", "secret"], "s": [1, 2]})
    with pytest.raises(ColumnError, match="Did you mean 'x'"):
        pram(frame, columns=["xx"])
    with pytest.raises(ColumnError, match="no row for 1 of its values") as caught:
        pram(frame, columns=["x"], matrix={"x": {"a": {"a": 1.0}}})
    assert "secret" not in str(caught.value)
    with pytest.raises(ParameterError, match="among the strata"):
        pram(frame, columns=["x"], strata="x")
    with pytest.raises(ParameterError, match="change does not name 's'"):
        pram(frame, columns=["x", "s"], change={"x": 0.1})
    with pytest.raises(ColumnError, match="more than the 2,000"):
        pram(pl.DataFrame({"x": range(3000)}), columns=["x"])
    with pytest.raises(ParameterError, match="at least one column"):
        pram(frame)
    with pytest.raises(ParameterError, match="does not have"):
        pram(frame, columns=["s"], matrix={"s": {"one": {"one": 1.0}}})


def test_columns_without_values_or_with_one_value_stay_as_they_are():
    frame = pl.DataFrame({"x": ["a"] * 5, "n": pl.Series([None] * 5, dtype=pl.String)})
    release = pram(frame, columns=["x", "n"])
    assert release.data.frame.equals(frame)
    assert release.log[0].internal["local_epsilon"] == {"x": 0.0, "n": 0.0}
