"""New rows: the same answer as comparing all pairs, and the properties its definition promises."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.utility.row_novelty import new_rows

rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 10.0])),
        st.integers(-2, 5),
        st.one_of(st.none(), st.sampled_from("ab")),
    ),
    min_size=1,
    max_size=25,
)


def frame(records):
    return pl.DataFrame(records, schema={"x": pl.Float64, "k": pl.Int64, "c": pl.String}, orient="row")


def by_all_pairs(real, made, tolerance, span=None):
    def agrees(r, s):
        for column, (a, b) in enumerate(zip(r, s, strict=True)):
            if a is None or b is None or column == 2:
                if a is not b and a != b:
                    return False
            else:
                reach = tolerance * (abs(b) if span is None else span[column])
                if abs(a - b) > reach * (1 + 1e-9):
                    return False
        return True

    return sum(not any(agrees(r, s) for r in real) for s in made) / len(made)


@given(rows, rows, st.sampled_from([0.0, 0.01, 0.3, 0.5, 1.0, 2.0]))
@settings(max_examples=examples(60), deadline=None)
def test_new_rows_are_those_that_no_pair_matches(real, made, tolerance):
    found = new_rows(Microdata(frame(real)), Microdata(frame(made)), tolerance=tolerance)
    assert found.value == pytest.approx(by_all_pairs(real, made, tolerance))


@given(rows, rows, st.sampled_from([0.0, 0.1, 0.3, 0.5]))
@settings(max_examples=examples(60), deadline=None)
def test_the_tolerance_may_be_a_share_of_the_range(real, made, tolerance):
    known = [row[0] for row in real if row[0] is not None]
    span = [max(known) - min(known) if known else 0.0, max(r[1] for r in real) - min(r[1] for r in real)]
    found = new_rows(Microdata(frame(real)), Microdata(frame(made)), tolerance=tolerance, scale="range")
    assert found.value == pytest.approx(by_all_pairs(real, made, tolerance, span))


@given(rows, rows)
@settings(max_examples=examples(60), deadline=None)
def test_copies_are_real_records_like_no_other_that_come_back(real, made):
    found = new_rows(Microdata(frame(real)), Microdata(frame(made)))
    copied = sum(real.count(row) == 1 and row in made for row in real)
    assert found.figures["copied_share"] == pytest.approx(copied / len(real))
    assert ("come back whole" in found.meaning) == (copied > 0)


def test_the_curve_falls_from_exact_matches_to_wide_ones():
    rng = np.random.default_rng(1)
    real, made = (
        Microdata(pl.DataFrame({"x": rng.lognormal(size=n), "y": rng.lognormal(size=n)})) for n in (300, 200)
    )
    curve = new_rows(real, made).detail["curve"]
    assert curve["tolerance"].to_list()[:3] == pytest.approx([0, 0.01, 0.05])
    assert (curve["new"].diff().drop_nulls() <= 0).all()
    assert curve["new"][0] == 1


def test_a_copy_is_new_to_nobody_and_the_hold_out_is_the_baseline():
    rng = np.random.default_rng(1)
    people = [pl.DataFrame({"x": rng.normal(50, 10, 400), "y": rng.normal(50, 10, 400)}) for _ in range(2)]
    found = new_rows(Microdata(people[0]), Microdata(people[0]), holdout=Microdata(people[1]))
    assert found.value == 0
    assert found.figures["new_share_holdout"] > 0.5
    assert found.figures["excess_matches"] == pytest.approx(found.figures["new_share_holdout"])
    assert (found.detail["records"]["nearest_original"] == pl.Series(range(400))).all()


def test_codes_are_compared_as_categories_when_told():
    real, made = Microdata(pl.DataFrame({"code": [100, 200]})), Microdata(pl.DataFrame({"code": [101, 200]}))
    assert new_rows(real, made, tolerance=0.05).value == 0
    assert new_rows(real, made, tolerance=0.05, categorical=["code"]).value == 0.5


def test_bad_parameters_are_refused():
    file = Microdata(pl.DataFrame({"x": [1.0]}))
    for bad in ({"tolerance": -1}, {"scale": "sd"}, {"tolerances": [np.nan]}):
        with pytest.raises(ParameterError):
            new_rows(file, file, **bad)
    with pytest.raises(InputError, match="no column in common"):
        new_rows(file, Microdata(pl.DataFrame({"y": [1.0]})))


def test_files_of_categories_alone_match_by_equality():
    real, made = (Microdata(pl.DataFrame({"c": list(text)})) for text in ("aab", "abc"))
    found = new_rows(real, made)
    assert found.value == pytest.approx(1 / 3)
    assert found.detail["records"]["nearest_original"].to_list() == [0, 2, -1]
