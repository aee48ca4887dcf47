from __future__ import annotations

import datetime
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, risk
from discreet.core.errors import ColumnError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect.mondrian import Mondrian
from discreet.protect.privacy_models import KAnonymity, KMap, LDiversity, TCloseness
from discreet.protect.treatment import Treatment

REGION = Hierarchy.from_tree({"north": {"n": ["a", "b"], "o": ["c"]}, "south": {"s": ["d", "e"]}})
KEYS = ["region", "age", "sex", "town"]
PEOPLE = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from("abcde")),
        st.one_of(st.none(), st.integers(0, 60)),
        st.sampled_from("fm"),
        st.one_of(st.none(), st.sampled_from("uvwxyz")),
        st.sampled_from(["ill", "well", "so"]),
    ),
    min_size=1,
    max_size=80,
)


def frame_of(rows):
    names = [*KEYS, "state"]
    schema = {name: pl.Int64 if name == "age" else pl.String for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def empty_keys(frame):
    return any(frame[key].null_count() == frame.height for key in KEYS)


@settings(max_examples=examples(60), deadline=None)
@given(PEOPLE, st.integers(1, 6), st.booleans())
def test_every_class_has_at_least_k_records_and_labels_are_true(rows, k, strict):
    frame = frame_of(rows)
    if frame.height < k or empty_keys(frame):
        return
    release = Mondrian(k, hierarchies={"region": REGION}, strict=strict).apply(
        Microdata(frame, keys=KEYS), seed=1
    )
    after = release.data.frame
    assert after.group_by(KEYS).len()["len"].min() >= k
    assert after["state"].equals(frame["state"])
    assert release.log[0].parameters["smallest_group"] >= k
    for old, new in zip(frame["age"], after["age"], strict=True):
        assert covers(new, old), (old, new)
    for old, new in zip(frame["town"], after["town"], strict=True):
        text = str(new).removesuffix(" or missing").strip("{}").split(", ")
        assert (new is None or "missing" in new) if old is None else old in text
    for old, new in zip(frame["region"], after["region"], strict=True):
        labels = {"*", None} if old is None else {old, *REGION.table(pl.Series([old])).row(0)}
        assert new in labels


def covers(label, value):
    if label is None:
        return value is None
    if not isinstance(label, str):
        return label == value
    text = label.removesuffix(" or missing")
    if value is None:
        return text != label
    low, _, high = text.strip("[]").partition(", ")
    return int(low) <= value <= int(high or low)


@settings(max_examples=examples(40), deadline=None)
@given(PEOPLE, st.sampled_from([LDiversity("state", 2), TCloseness("state", 0.3)]), st.booleans())
def test_every_class_meets_the_other_models_too(rows, model, strict):
    frame = frame_of(rows)
    if empty_keys(frame) or frame["state"].n_unique() < 2:
        return
    release = Mondrian(models=[model], strict=strict).apply(Microdata(frame, keys=KEYS), seed=1)
    after = release.data.with_roles(sensitive=["state"])
    if isinstance(model, LDiversity):
        assert risk.l_diversity(after).value >= 2
    else:
        assert risk.t_closeness(after).value <= 0.3 + 1e-9


def test_strict_groups_of_one_number_do_not_overlap():
    ages = np.random.default_rng(1).integers(0, 90, 300)
    after = Mondrian(4).apply(Microdata(pl.DataFrame({"age": ages}), keys="age"), seed=1).data.frame["age"]
    ends = sorted(
        (int(low), int(high or low))
        for low, _, high in (label.strip("[]").partition(", ") for label in after.unique())
    )
    assert all(before[1] < behind[0] for before, behind in itertools.pairwise(ends))


def test_a_relaxed_cut_splits_ties_that_a_strict_one_keeps_together():
    frame = pl.DataFrame({"age": [1, 1, 1, 1, 1, 1, 1, 2]})
    data = Microdata(frame, keys="age")
    assert Mondrian(2).apply(data).log[0].parameters["groups"] == 1
    assert Mondrian(2, strict=False).apply(data).log[0].parameters["groups"] > 1


def test_few_missing_values_do_not_cost_the_key():
    frame = pl.DataFrame({"age": [*range(40), None]})
    after = Mondrian(5).apply(Microdata(frame, keys="age"), seed=1).data.frame["age"]
    assert after.n_unique() > 4
    assert after[-1].endswith(" or missing")


def test_many_missing_values_make_a_group_of_their_own():
    frame = pl.DataFrame({"age": [*range(10), *[None] * 5]})
    after = Mondrian(5).apply(Microdata(frame, keys="age"), seed=1).data.frame["age"]
    assert after.tail(5).null_count() == 5
    assert after.head(10).null_count() == 0


def test_a_key_that_no_group_had_to_widen_keeps_its_type():
    frame = pl.DataFrame({"sex": [0, 0, 1, 1], "age": [1.5, 2.5, 3.5, 4.5]})
    after = Mondrian(2).apply(Microdata(frame, keys=["sex", "age"]), seed=1).data.frame
    assert after["sex"].equals(frame["sex"])
    assert after["age"].to_list() == ["[1.5, 2.5]", "[1.5, 2.5]", "[3.5, 4.5]", "[3.5, 4.5]"]


def test_dates_ordered_categories_and_booleans_are_cut_by_their_order():
    frame = pl.DataFrame(
        {
            "day": [datetime.date(2024, 1, day) for day in (1, 2, 20, 30)],
            "size": pl.Series(["L", "S", "M", "S"], dtype=pl.Enum(["S", "M", "L"])),
            "flag": [True, False, True, True],
        }
    )
    for key in frame.columns:
        after = Mondrian(2).apply(Microdata(frame, keys=key), seed=1).data.frame
        assert after.group_by(key).len()["len"].min() >= 2
    sizes = Mondrian(2).apply(Microdata(frame, keys="size"), seed=1).data.frame["size"].to_list()
    assert sizes == ["{M, L}", "S", "{M, L}", "S"]


def test_weights_count_the_people_behind_a_group():
    frame = pl.DataFrame({"age": list(range(20)), "w": [1.0, 9.0] * 10})
    release = Mondrian(models=[KMap(25, weight="w")]).apply(Microdata(frame, keys="age", weight="w"), seed=1)
    assert release.data.frame.group_by("age").agg(pl.col("w").sum())["w"].min() >= 25


def test_pandas_comes_back_as_pandas():
    frame = pd.DataFrame({"age": [1, 2, 9, 10]}, index=[5, 6, 7, 8])
    after = Mondrian(2).apply(Microdata(frame, keys="age"), seed=1).data.frame
    assert list(after.index) == [5, 6, 7, 8]
    assert list(after["age"]) == ["[1, 2]", "[1, 2]", "[9, 10]", "[9, 10]"]


def test_a_plan_file_rebuilds_the_treatment():
    treatment = Mondrian(3, [LDiversity("state", 2)], {"region": REGION}, strict=False)
    assert Treatment.named("mondrian", treatment.to_dict()) == treatment


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Mondrian(), "models"),
        (lambda: Mondrian(0), "k must"),
        (lambda: Mondrian(2, strict="yes"), "strict"),
        (lambda: Mondrian(2, hierarchies={"age": 1}), "hierarchies"),
        (lambda: Mondrian(2, [KMap(2, population="people.csv")]), "weight"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(make, word):
    with pytest.raises(ParameterError, match=word):
        make()


def test_a_goal_out_of_reach_and_unknown_columns_are_refused():
    data = Microdata(pl.DataFrame({"age": [1, 2]}), keys="age")
    with pytest.raises(ParameterError, match="whole file"):
        Mondrian(3).apply(data)
    with pytest.raises(ColumnError, match="'age'"):
        Mondrian(2, hierarchies={"agee": REGION}).apply(data)
    assert Mondrian(models=KAnonymity(2)).apply(data).log[0].parameters["groups"] == 1
