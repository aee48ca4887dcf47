"""Who is found by any three things that others may know of them."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from verdicts.people_files import FILES, drawn

from discreet import Microdata, Policy
from discreet.core.errors import ParameterError
from discreet.protect import LocalSuppression
from discreet.risk import knowable_uniques


def by_definition(original: pl.DataFrame, released: pl.DataFrame, columns: list[str]) -> float:
    """The share of people alone on some set of up to three columns whose own record is the only one that agrees."""
    found = np.zeros(original.height, dtype=bool)
    ours, theirs = original.rows(named=True), released.rows(named=True)
    for size in (1, 2, 3):
        for chosen in combinations(columns, size):
            here = [tuple(row[name] for name in chosen) for row in ours]
            there = [tuple(row[name] for name in chosen) for row in theirs]
            for place, values in enumerate(here):
                single = here.count(values) == 1 and there.count(values) == 1
                found[place] |= single and there[place] == values
    return float(found.mean())


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(5, 60))
def test_linked_files_are_counted_as_the_definition_says(seed, levels, rows):
    rng = np.random.default_rng(seed)
    columns = ["a", "b", "c", "d"]
    original = pl.DataFrame({name: rng.choice(list("vwxyz")[:levels], rows) for name in columns})
    swapped = {name: original[name].gather(rng.permutation(rows)) for name in columns[:2]}
    released = original.with_columns(**swapped)
    found = knowable_uniques(
        Microdata(original, keys=columns), Microdata(released), may_know=["keys"], linked=True
    )
    # Values that all became one other value were recoded, and the intruder knows that too: never fewer are found.
    assert found.value >= by_definition(original, released, columns) - 1e-12
    assert found.figures["alone"] <= found.figures["people"]


def test_a_suppressed_value_hides_somebody_only_where_others_agree_on_the_rest():
    frame = pl.DataFrame({"sex": list("ffmm") * 30, "town": ["A", "B", "A", "B"] * 30})
    one = frame.with_columns(town=pl.when(pl.int_range(120) == 0).then(pl.lit("C")).otherwise("town"))
    gone = one.with_columns(town=pl.when(pl.int_range(120) < 2).then(None).otherwise("town"))
    lonely = one.with_columns(town=pl.when(pl.int_range(120) == 0).then(None).otherwise("town"))
    data = Microdata(one, keys=["sex", "town"])
    asked = {"linked": True, "may_know": ["keys"]}
    assert knowable_uniques(data, Microdata(one), **asked).figures["found"] == 1
    assert knowable_uniques(data, Microdata(lonely), **asked).figures["found"] in (0, 1)
    assert knowable_uniques(data, Microdata(gone), **asked).figures["found"] == 0


@pytest.mark.parametrize("name", FILES)
def test_strangers_are_nobody_whom_an_intruder_finds(name):
    values = []
    for seed in range(6):
        original, fresh, _, roles = drawn(name, 1_500, seed=seed)
        values.append(knowable_uniques(Microdata(original, **roles), Microdata(fresh)).value)
    assert max(values) < 0.01, values


@pytest.mark.parametrize("name", FILES)
def test_strangers_with_suppressed_keys_are_nobody_either(name):
    original, fresh, _, roles = drawn(name, 1_000, seed=11)
    keyed = Microdata(fresh, keys=roles["keys"], sensitive=roles["sensitive"])
    suppressed = LocalSuppression(k=3).apply(keyed, seed=1).data
    assert knowable_uniques(Microdata(original, **roles), Microdata(suppressed.frame)).value < 0.01


@pytest.mark.parametrize("name", FILES)
def test_a_copy_in_another_order_is_found_like_one_in_the_same(name):
    original, _, _, roles = drawn(name, 1_500, seed=1)
    data = Microdata(original, **roles)
    mixed = Microdata(original.sample(fraction=1, shuffle=True, seed=2))
    linked = knowable_uniques(data, Microdata(original), linked=True).value
    assert knowable_uniques(data, mixed).value == pytest.approx(linked, abs=0.02)


def test_a_date_rounded_to_the_month_finds_fewer():
    rng = np.random.default_rng(3)
    days = [date(2024, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 366, 900)]
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 900), "admitted": days})
    data = Microdata(frame, keys="sex")
    exact = knowable_uniques(data, Microdata(frame), linked=True)
    month = Microdata(frame.with_columns(pl.col("admitted").dt.truncate("1mo")))
    assert exact.value > 0.1
    assert exact.figures["mostly_by"] == "sex and admitted"
    assert knowable_uniques(data, month, linked=True).value == 0


def test_what_an_intruder_knows_is_part_of_the_policy():
    rule = {"knowable_uniques": {"at_most": 0.01}}
    stated = {"name": "Ours", "comparison": rule, "intruder": {"knows": ["keys", "dates"]}}
    policy = Policy.from_dict(stated)
    assert policy.parameters["knowable_uniques"] == {"may_know": ["keys", "dates"]}
    assert Policy.from_dict(policy.to_dict()) == policy
    assert policy.to_dict()["intruder"] == {"knows": ["keys", "dates"]}
    for template, amounts in (("public-use-file", True), ("scientific-use-file", False)):
        assert ("amounts" in (Policy.load(template).intruder or ())) is amounts
    assert Policy.load("safe-setting").intruder is None


@pytest.mark.parametrize(
    ("intruder", "said"),
    [
        ({"knows": ["dtes"]}, "dates"),
        ({"knows": []}, "knows nothing"),
        ({"knows": "dates"}, "is a table"),
        (["dates"], "is a table"),
        ({"know": ["dates"]}, "is a table"),
    ],
)
def test_an_intruder_that_cannot_be_read_is_refused_with_the_way_out(intruder, said):
    stated = {"name": "Ours", "comparison": {"knowable_uniques": {"at_most": 0.01}}, "intruder": intruder}
    with pytest.raises(ParameterError, match=said):
        Policy.from_dict(stated)


def test_an_intruder_whom_no_rule_asks_about_is_refused():
    stated = {"name": "Ours", "rules": {"k_anonymity": {"at_least": 3}}, "intruder": {"knows": ["dates"]}}
    with pytest.raises(ParameterError, match="no rule asks"):
        Policy.from_dict(stated)
