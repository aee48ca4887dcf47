from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Hierarchy, Microdata, Plan
from discreet.core.errors import ColumnError, DiscreetError, ParameterError
from discreet.protect import (
    Band,
    DropIdentifiers,
    Generalize,
    Pseudonymize,
    Recode,
    ReorderRecords,
    Round,
    ShiftDates,
    TopBottomCode,
)

ages = st.lists(st.one_of(st.none(), st.integers(-50, 150)), min_size=1, max_size=40)


def column(treatment, values, name="x", **options):
    frame = pl.DataFrame({name: values}, strict=False)
    return treatment.apply(Microdata(frame), **options).data.frame[name]


@given(ages, st.lists(st.integers(-20, 120), min_size=1, max_size=5, unique=True))
def test_banding_loses_no_value_and_keeps_the_order_of_ages(values, breaks):
    made = column(Band(breaks={"x": sorted(breaks)}), pl.Series(values, dtype=pl.Int64))
    assert [v is None for v in values] == made.is_null().to_list()
    ranks = made.to_physical().to_list()
    known = sorted((v, r) for v, r in zip(values, ranks, strict=True) if v is not None)
    assert [r for _, r in known] == sorted(r for _, r in known)


def test_a_boundary_value_belongs_to_the_band_that_closed_says():
    assert column(Band(breaks={"x": [18]}, labels={"x": ["low", "high"]}), [18]).to_list() == ["high"]
    right = Band(breaks={"x": [18]}, labels={"x": ["low", "high"]}, closed="right")
    assert column(right, [18]).to_list() == ["low"]


@given(ages, st.integers(1, 30))
def test_rounding_moves_no_value_by_more_than_half_the_base(values, base):
    made = column(Round({"x": base}), pl.Series(values, dtype=pl.Int64))
    assert made.dtype == pl.Int64
    for old, new in zip(values, made.to_list(), strict=True):
        assert (old is None) == (new is None)
        assert old is None or (abs(old - new) * 2 <= base and new % base == 0)


def test_recoding_keeps_levels_in_their_order_and_adds_new_ones_last():
    levels = pl.Enum(["low", "mid", "high"])
    frame = pl.DataFrame({"x": pl.Series(["low", "high", "mid"], dtype=levels)})
    made = Recode({"x": {"low": "other"}}).apply(Microdata(frame)).data.frame["x"]
    assert made.to_list() == ["other", "high", "mid"]
    assert made.dtype == pl.Enum(["mid", "high", "other"])


def test_recoding_numbers_from_a_plan_file_matches_text_keys():
    assert column(Recode({"x": {"1": 10}}), [1, 2]).to_list() == [10, 2]


def test_recoding_can_refuse_values_it_does_not_name_without_showing_them():
    with pytest.raises(ColumnError, match="does not name 1 of its values") as caught:
        column(Recode({"x": {"a": "b"}}, other="error"), ["a", "secret"])
    assert "secret" not in str(caught.value)


def test_recoding_can_make_other_values_missing():
    assert column(Recode({"x": {"a": "b"}}, other="missing"), ["a", "c"]).to_list() == ["b", None]


def test_generalizing_refuses_values_outside_the_hierarchy():
    tree = Hierarchy.from_tree({"up": ["a"]})
    with pytest.raises(ColumnError, match="'x'"):
        column(Generalize({"x": 1}, {"x": tree}), ["a", "z"])


def test_top_coding_by_share_keeps_the_mean_when_asked_to():
    values = [1.0, 2.0, 3.0, 4.0, 100.0, 200.0]
    made = column(TopBottomCode(top={"x": 4}, replacement="mean"), values)
    assert made.to_list() == [1.0, 2.0, 3.0, 4.0, 150.0, 150.0]
    assert made.mean() == pytest.approx(sum(values) / 6)


@given(ages, st.floats(0.05, 0.45))
def test_top_and_bottom_coding_leave_nothing_beyond_their_limits(values, share):
    series = pl.Series(values, dtype=pl.Int64)
    if series.drop_nulls().is_empty():
        return
    low, high = series.quantile(share, "higher"), series.quantile(1 - share, "lower")
    made = column(TopBottomCode(top_share={"x": share}, bottom_share={"x": share}), series)
    if low <= high:
        assert made.drop_nulls().is_between(low, high).all()
    assert made.null_count() == series.null_count()


def test_joint_top_coding_pulls_in_a_record_that_is_only_jointly_extreme():
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    frame = pl.DataFrame({"a": x, "b": x + rng.normal(scale=0.1, size=500)})
    frame[0, "a"], frame[0, "b"] = 2.0, -2.0
    made = TopBottomCode(joint=["a", "b"], joint_share=0.001).apply(Microdata(frame), seed=1).data.frame
    assert abs(made[0, "a"] - made[0, "b"]) < 1
    assert (made["a"] - frame["a"]).abs().median() == 0


def test_dates_of_one_person_keep_their_distances():
    visits = pl.DataFrame(
        {"who": [1, 1, 2, 2, None], "day": [date(2024, 1, 1) + timedelta(days=9 * i) for i in range(5)]}
    )
    made = ShiftDates(max_days=5, by="who").apply(Microdata(visits), seed=3).data.frame
    moved = (made["day"] - visits["day"]).dt.total_days().to_list()
    assert moved[0] == moved[1]
    assert moved[2] == moved[3]
    assert all(0 < abs(days) <= 5 for days in moved)
    assert made["day"].dtype == pl.Date


def test_reordering_keeps_households_together():
    homes = pl.DataFrame({"home": [1, 2, 1, 3, 2, 1], "n": range(6)})
    made = ReorderRecords().apply(Microdata(homes, household="home"), seed=5).data.frame
    runs = made["home"].rle_id().n_unique()
    assert runs == 3
    assert sorted(made["n"]) == list(range(6))


def test_a_pseudonym_needs_a_real_key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "short")
    with pytest.raises(ParameterError, match="at least 16 bytes"):
        column(Pseudonymize(["x"]), ["a"])


def test_pseudonyms_depend_on_key_and_domain_and_never_enter_the_log(monkeypatch, tmp_path):
    monkeypatch.setenv("DISCREET_KEY", "k" * 20)
    first = column(Pseudonymize(["x"]), ["a", "b", "a"])
    assert first[0] == first[2] != first[1]
    assert column(Pseudonymize(["x"], domain="other"), ["a"])[0] != first[0]
    (tmp_path / "key").write_text("another key of good length")
    assert column(Pseudonymize(["x"], key_file=str(tmp_path / "key")), ["a"])[0] != first[0]
    release = Pseudonymize(["x"]).apply(Microdata(pl.DataFrame({"x": ["a"]})))
    assert "kkkk" not in str(release.to_dict(internal=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Band(breaks={"x": [1]}, widths={"x": 2}),
        lambda: Band(labels={"x": ["a"]}),
        lambda: Round({"x": 0}),
        lambda: Recode({}, other="drop"),
        lambda: TopBottomCode(top={"x": 1}, bottom={"x": 2}),
        lambda: TopBottomCode(top_share={"x": 2}),
        lambda: ShiftDates(max_days=0),
        lambda: ShiftDates(max_days=2**63),
        lambda: Pseudonymize(length=2),
    ],
)
def test_parameters_that_make_no_sense_are_refused_at_once(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize(
    "treatment",
    [
        Band(widths={"text": 5}),
        Round({"text": 5}),
        Round({"agee": 5}),
        ShiftDates(["age"]),
        ShiftDates(),
        TopBottomCode(top={"text": 1}),
    ],
)
def test_columns_that_do_not_fit_are_refused(treatment):
    data = Microdata(pl.DataFrame({"age": [1], "text": ["a"]}))
    with pytest.raises(DiscreetError):
        treatment.apply(data)


@pytest.mark.parametrize("treatment", [DropIdentifiers(), Pseudonymize()])
def test_without_identifiers_the_step_does_nothing_and_says_so(treatment):
    data = Microdata(pl.DataFrame({"age": [1, 2], "text": ["a", "b"]}), keys="age")
    release = treatment.apply(data)
    assert release.data.frame.equals(data.frame)
    (step,) = release.log
    assert step.changed_cells == {}
    assert "no column has the role of an identifier" in step.notes[0]
    assert "no column has the role of an identifier" in str(Plan([treatment]).apply(data))


def test_a_column_that_was_suppressed_whole_is_said_so():
    data = Microdata(pl.DataFrame({"age": [1, 2, 3]}), keys="age")
    release = Recode({"age": {1: None, 2: None, 3: None}}).apply(data)
    assert "Nothing is left of 'age': every value was suppressed." in release.log[0].notes


@pytest.mark.parametrize("code", [{"": 1}, [1, 2], np.array([1, 2]), object()])
def test_a_new_code_that_no_column_could_hold_is_refused(code):
    data = Microdata(pl.DataFrame({"town": ["a", "b"]}))
    with pytest.raises(ParameterError, match="mapping of 'town'"):
        Recode({"town": {"a": code, "b": "c"}}).apply(data)
