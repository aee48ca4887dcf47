"""Releases that tell columns less precisely are judged by their values: no rule ends as "could not be checked"."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from verdicts.people_files import drawn

from discreet import Microdata, compare, judge
from discreet.pairs.coarser_labels import coarsening
from discreet.protect import Mondrian, Plan, ReorderRecords

ROWS = 1_500


def grouped(frame, roles, k=10):
    plan = Plan([Mondrian(k=k), ReorderRecords()])
    return Microdata(plan.apply(Microdata(frame, **roles), seed=1).data.frame)


def few_keys(name, roles):
    return {**roles, "keys": roles["keys"][:3]} if name == "census" else roles


@pytest.mark.parametrize("name", ["census", "homes", "numbers"])
def test_ranges_that_differ_by_group_are_read_and_rules_on_keys_are_judged(name):
    original, fresh, _, roles = drawn(name, ROWS, seed=1)
    roles = few_keys(name, roles)
    for people in (original, fresh):
        verdict = judge(grouped(people, roles), "scientific-use-file", Microdata(original, **roles), seed=0)
        assert not [rule for rule in verdict.unjudged if "labels" in rule.needs], verdict.line
        assert not [check for check in verdict.checks if check.passed is None], verdict.line


@pytest.mark.parametrize("name", ["census", "homes", "numbers"])
def test_attacks_run_on_groups_and_tell_the_people_from_strangers(name):
    original, fresh, aside, roles = drawn(name, ROWS, seed=1)
    roles = few_keys(name, roles)
    settings = {"holdout": Microdata(aside), "seed": 0}
    attacked = [
        judge(grouped(people, roles), "three-attackers", Microdata(original, **roles), **settings)
        for people in (original, fresh)
    ]
    assert attacked[0].outcome == "not met", attacked[0].line
    assert not attacked[1].failed, attacked[1].line


def areas(rows, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "zip": rng.choice([75014, 69003, 13001, 33000, 59800, 44000], rows) + rng.integers(0, 9, rows),
            "age": rng.integers(18, 90, rows),
            "ill": rng.choice(list("abcd"), rows),
        }
    )


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_codes_that_lost_their_last_digits_are_the_same_places(cut):
    people = areas(2_000, 1)
    data = Microdata(people, keys=["zip", "age"], sensitive="ill")
    released = people.with_columns(pl.col("zip") // 10**cut).sample(2_000, shuffle=True, seed=1)
    found = compare(data, Microdata(released), measures=["replicated_uniques"], seed=0)
    same = data.with_frame(people.with_columns(pl.col("zip") // 10**cut))
    known = compare(same, Microdata(released), measures=["replicated_uniques"], seed=0)
    assert found.risk["replicated_uniques"].value == known.risk["replicated_uniques"].value
    assert "last" in found.alignment.converted["zip"]


@pytest.mark.parametrize("masked", [pl.lit(""), pl.lit("***")])
def test_whole_numbers_whose_beginning_became_a_text_are_the_same_places(masked):
    people = areas(2_000, 1)
    released = people.with_columns((pl.col("zip").cast(pl.String).str.slice(0, 2) + masked).alias("zip"))
    way = coarsening(people["zip"], released["zip"])
    assert way(people["zip"]).equals(released["zip"], check_names=False)


def test_other_whole_numbers_are_not_taken_for_beginnings():
    people, others = areas(2_000, 1), areas(2_000, 2)
    assert coarsening(people["zip"], others["zip"]) is None
    assert coarsening(people["age"], others["age"]) is None
    assert coarsening(people["age"], others["age"] // 2) is None


ALONE = [("levels", "town"), ("firms", "turnover"), ("levels", "party"), ("census", "age")]


@pytest.mark.parametrize(("name", "column"), ALONE)
@pytest.mark.parametrize("policy", ["synthetic-file", "public-use-file", "three-attackers"])
def test_of_a_single_column_no_rule_ends_as_could_not_be_checked(name, column, policy):
    original, fresh, aside, roles = drawn(name, ROWS, seed=1)
    data, holdout = Microdata(original, **roles), Microdata(aside) if policy == "three-attackers" else None
    for people in (original, fresh):
        released = Microdata(people.select(column).sample(ROWS, shuffle=True, seed=1))
        verdict = judge(released, policy, data, holdout=holdout, seed=0)
        assert not [check for check in verdict.checks if check.passed is None], verdict.line
        assert any("the release does not have" in rule.needs for rule in verdict.unjudged)
        assert verdict.meets is not True


def test_amounts_of_the_people_are_found_in_a_column_alone_and_those_of_strangers_are_not():
    original, fresh, _, roles = drawn("firms", ROWS, seed=1)
    data = Microdata(original, **roles)
    found = [
        {
            check.measure
            for check in judge(Microdata(people.select("turnover")), "public-use-file", data).failed
        }
        for people in (original.sample(ROWS, shuffle=True, seed=1), fresh)
    ]
    assert "near_copies" in found[0]
    assert "near_copies" not in found[1]


def test_files_past_memory_leave_rules_on_people_open_with_the_command_that_judges_them():
    original, fresh, _, roles = drawn("census", 3_000, seed=1)
    data, released = Microdata(original.lazy(), **roles), Microdata(fresh.lazy())
    found = compare(data, released, policy="synthetic-file", rows=1_000, seed=0).verdict
    open_ = {rule.rule: rule.command for rule in found.unjudged}
    assert open_["near_copies.copied_share"].endswith("--rows 3000")
    assert not [check for check in found.checks if check.passed is None], found.line
    whole = compare(data, released, policy="synthetic-file", rows=3_000, seed=0).verdict
    assert "near_copies.copied_share" not in {rule.rule for rule in whole.unjudged}
