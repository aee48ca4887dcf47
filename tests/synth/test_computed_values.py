"""Numbers that are computed from others: rounded into their columns, never cut."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.protect import Pram, Recode
from discreet.synth import Sequential, finish, load
from discreet.synth.methods.observed_values import Near
from discreet.synth.preflighting import preflight
from discreet.synth.written_values import as_computed

PARTS = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from([0.1, 0.3, 0.7, 1.1, 2.9, 7.3])), min_size=8, max_size=40
)


@settings(max_examples=examples(40))
@given(PARTS, st.sampled_from([1, 50]))
def test_a_whole_number_is_the_nearest_one_to_its_formula_however_few_values_it_has(parts, few_values):
    count, rate = (np.array(column) for column in zip(*parts, strict=True))
    frame = pl.DataFrame({"product": count * rate, "rate": rate, "count": count})
    made = Sequential(method={"count": "~product / rate"}, few_values=few_values).fit(
        Microdata(frame), seed=1
    )
    drawn = made.sample(200, seed=1).frame
    assert drawn["count"].dtype == pl.Int64
    gap = (drawn["count"] - drawn["product"] / drawn["rate"]).abs()
    assert gap.max() <= 0.5


def test_few_distinct_decimals_keep_the_decimals_they_are_written_with():
    third = pl.Series([1 / 3, 2 / 3, 1.0])
    assert as_computed(third, pl.Float64(), 2).to_list() == [0.33, 0.67, 1.0]
    frame = pl.DataFrame({"parts": [1, 2, 3] * 40, "share": [0.33, 0.67, 1.0] * 40})
    fitted = Sequential(method={"share": "~parts / 3"}, few_values=5).fit(Microdata(frame), seed=1)
    assert set(fitted.sample(seed=1).frame["share"]) <= {0.33, 0.67, 1.0}
    assert not any("is not 'parts / 3'" in note for note in fitted.plan.warnings)


def test_what_a_formula_cannot_compute_is_missing():
    assert as_computed(pl.Series([float("inf"), float("nan"), -0.4]), pl.Int8()).to_list() == [None, None, 0]
    assert as_computed(pl.Series([19_000.6]), pl.Date()).to_list() == [pl.Series([19_001]).cast(pl.Date)[0]]


def test_a_limit_between_whole_numbers_stays_what_it_is_with_codes_beside():
    data = Microdata(pl.DataFrame({"pay": [1, -8, 30]}))
    plain = finish(data, bottom={"pay": 1.5}, top={"pay": 10.5}).data.frame["pay"].to_list()
    coded = (
        finish(data, bottom={"pay": 1.5}, top={"pay": 10.5}, codes={"pay": [-8]}).data.frame["pay"].to_list()
    )
    assert (plain, coded) == ([1.5, 1.5, 10.5], [1.5, -8.0, 10.5])


def test_a_fraction_is_no_code_of_whole_numbers():
    data = Microdata(pl.DataFrame({"children": [1, 2, 3] * 10}))
    with pytest.raises(ParameterError, match="children"):
        Recode({"children": {1.5: 9}}).apply(data)
    with pytest.raises(ParameterError, match="children"):
        Pram(columns=["children"], matrix={"children": {1.5: {1: 1.0}, 2: {2: 1.0}, 3: {3: 1.0}}}).apply(
            data, seed=1
        )


@settings(max_examples=examples(15))
@given(st.integers(0, 10**6), st.floats(0.0, 0.009))
def test_a_total_with_exceptions_is_found_and_is_off_as_often_as_in_the_data(seed, off):
    rng = np.random.default_rng(seed)
    parts = rng.lognormal(8, 1, (3, 2000)).round()
    wrong = rng.random(2000) < off
    total = parts.sum(axis=0) + np.where(wrong, rng.integers(50, 5000, 2000), 0)
    frame = pl.DataFrame({"a": parts[0], "b": parts[1], "c": parts[2], "total": total}).cast(pl.Int64)
    found = preflight(Microdata(frame), probe=False)
    (identity,) = found.of("sum")
    assert identity.evidence["broken"] == wrong.sum()
    assert set(identity.columns) == {"a", "b", "c", "total"}
    drawn = found.synthesizer().fit(Microdata(frame), seed=1).sample(seed=1).frame
    kept = (drawn["total"] == drawn["a"] + drawn["b"] + drawn["c"]).mean()
    assert kept > 1 - 2 * wrong.mean() - 0.005


def test_a_total_that_is_nearly_one_keeps_its_gaps_and_comes_back_from_a_file(tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.integers(100, 9000, (2, 800))
    total = pl.Series(a + b + (rng.random(800) < 0.1)).set(pl.Series(rng.random(800) < 0.2), None)
    data = Microdata(pl.DataFrame({"a": a, "b": b, "total": total}))
    fitted = Sequential(method={"total": Near(expression="a + b")}).fit(data, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert drawn["total"].is_null().mean() == pytest.approx(0.2, abs=0.05)
    rest = (drawn["total"] - drawn["a"] - drawn["b"]).drop_nulls()
    assert set(rest) == {0, 1}
    assert load(fitted.save(tmp_path / "near.model")).sample(seed=1).frame.equals(drawn)
    with pytest.raises(ParameterError, match="must come earlier"):
        Sequential(method={"a": Near(expression="total - b")}).fit(data)
    auto = Sequential(method={"a": Near(expression="total - b")}, visit_sequence="auto").plan(data)
    assert auto.order[-1] == "a"
