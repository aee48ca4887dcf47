"""Rules of records: reading, checking, deriving, repairing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.record_rules import check_rules, derived_columns, enforce_rules, read_rules

FILE = pl.DataFrame(
    {
        "age": [10, 20, 30, None],
        "status": ["child", "adult", "child", "adult"],
        "pay": [0.0, 5.0, -1.0, 3.0],
        "tax": [0.0, 6.0, 0.0, None],
        "net": [0.0, -1.0, -1.0, 1.0],
        "copy": [0.0, 5.0, 2.0, 3.0],
    }
)
RULES = [
    "net = pay - tax",
    "copy == pay",
    "pay >= 0",
    "tax <= pay",
    "if age >= 18 then status == 'adult'",
    "status in ['child', 'adult']",
]


def test_rules_are_told_apart_and_counted_by_kind():
    found = check_rules(Microdata(FILE), RULES)
    table = found.detail["rules"]
    assert table["kind"].to_list() == [
        "summation",
        "equality",
        "non-negative",
        "inequality",
        "if-then",
        "condition",
    ]
    assert table["broken"].to_list() == [0, 1, 1, 2, 1, 0]
    assert table["checked"].to_list() == [3, 4, 4, 3, 2, 4]
    assert table["share"].to_list() == pytest.approx([0, 0.25, 0.25, 2 / 3, 0.25, 0])
    assert found.figures["records_breaking_a_rule"] == 2
    assert found.detail["records"]["breaks_a_rule"].to_list() == [False, True, True, False]


def test_the_real_file_s_own_violations_stand_beside():
    found = check_rules(Microdata(FILE.head(2)), RULES, original=Microdata(FILE))
    assert found.figures["share_original"] == 0.5
    assert found.figures["non_negative"] == 0
    assert found.figures["non_negative_original"] == 0.25
    assert "share_original" in found.detail["rules"].columns


def test_a_tolerance_forgives_rounding():
    file = Microdata(pl.DataFrame({"total": [100.0], "a": [33.3], "b": [66.6]}))
    assert check_rules(file, "total == a + b").value == 1
    assert check_rules(file, "total == a + b", tolerance=0.01).value == 0


def test_sums_of_sums_are_computed_in_order():
    file = pl.DataFrame({"all": [0.0], "part": [0.0], "a": [1.0], "b": [2.0], "c": [3.0]})
    made = enforce_rules(Microdata(file), ["all == part + c", "part == a + b"]).frame
    assert made.row(0) == (6, 3, 1, 2, 3)


def test_a_sum_may_be_written_the_other_way_round():
    rules = read_rules(["a + b == total"], dict.fromkeys(["a", "b", "total"], pl.Int64()))
    assert list(derived_columns(rules)) == ["total"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["a == b + c", "b == a + c"], "circle"),
        (["a == b + c", "a == c + d"], "two rules"),
        (["if a > 1"], "if … then"),
        (["a + 1"], "not a condition"),
        ([3], "text"),
        (["a = b = c +"], "cannot be read"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, message):
    with pytest.raises(ParameterError, match=message):
        derived_columns(read_rules(rules, dict.fromkeys("abcd", pl.Float64())))


def test_an_unknown_column_is_named_with_its_near_miss():
    with pytest.raises(ColumnError, match="Did you mean 'status'"):
        check_rules(Microdata(FILE), ["Status == 'child'"])
    with pytest.raises(ParameterError, match="no rule"):
        check_rules(Microdata(FILE), [])


def test_rejection_drops_the_records_that_break_a_rule():
    made = enforce_rules(Microdata(FILE, keys=["age"]), RULES[2:], repair="reject")
    assert made.frame["age"].to_list() == [10, None]
    assert made.roles.keys == ("age",)


def test_pandas_files_stay_pandas():
    made = enforce_rules(Microdata(FILE.select("pay", "tax").to_pandas()), ["pay >= 0"])
    assert isinstance(made.frame, pd.DataFrame)
    assert made.frame["pay"].min() == 0


numbers = st.floats(-1000, 1000)


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=30))
def test_projection_mends_inequalities_by_the_least_amount(rows):
    x, y, z = (np.array(column) for column in zip(*rows, strict=True))
    file = Microdata(pl.DataFrame({"x": x, "y": y, "z": z}))
    rules = ["x <= y + z"]
    made = enforce_rules(file, rules)
    assert check_rules(made, rules).value == 0
    gap = np.maximum(x - y - z, 0)
    assert made.frame["x"].to_numpy() == pytest.approx(x - gap / 3, abs=1e-6)
    assert made.frame["z"].to_numpy() == pytest.approx(z + gap / 3, abs=1e-6)


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=30))
def test_projected_whole_numbers_stay_whole(rows):
    file = Microdata(pl.DataFrame({"x": [a for a, _ in rows], "y": [b for _, b in rows]}))
    rules = ["x <= y", "x >= 0"]
    made = enforce_rules(file, rules)
    assert made.frame.schema == file.frame.schema
    assert check_rules(made, rules).value == 0


def test_what_is_no_plain_sum_is_left_alone_and_reported():
    file = Microdata(pl.DataFrame({"x": [2.0, 3.0], "y": [1.0, 20.0]}))
    made = enforce_rules(file, ["x ** 2 <= y"])
    assert made.frame.equals(file.frame)
    assert check_rules(made, ["x ** 2 <= y"]).value == 0.5
