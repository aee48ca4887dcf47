"""Copies of people are found whole or blurred, at every size of a hold-out, and strangers are no copies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.risk import near_copies, neighbors

SEEDS = st.integers(0, 2**20)


def people(count: int, rng: np.random.Generator) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, count),
            "sex": rng.choice(["f", "m"], count),
            "region": rng.choice(list("abcdefgh"), count, p=[0.4, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02, 0.01]),
            "income": rng.lognormal(10, 1, count),
        }
    )


def blurred(frame: pl.DataFrame, share: float, rng: np.random.Generator) -> pl.DataFrame:
    noise = pl.Series(1 + share * rng.standard_normal(frame.height))
    return frame.with_columns(pl.col("income") * noise)


@pytest.mark.parametrize("noise", [0.0, 0.0005])
def test_planted_copies_are_counted_beside_what_chance_gives(noise):
    rng = np.random.default_rng(4)
    ours, strangers = people(3000, rng), people(3000, rng)
    planted = blurred(ours.head(300), noise, rng)
    found = near_copies(Microdata(ours), Microdata(pl.concat([strangers.head(2700), planted]))).figures
    clean = near_copies(Microdata(ours), Microdata(strangers)).figures
    assert found["copied"] - clean["copied"] == pytest.approx(300, abs=60)
    assert clean["copied"] == pytest.approx(clean["copied_by_chance"], rel=0.25)
    assert clean["copied_share"] == clean["outlying_share"] == clean["telling_share"] == 0
    assert found["copied_share"] == pytest.approx(0.1, abs=0.03)
    assert found["outlying_share"] > 0.05
    assert found["whole"] == (0 if noise else 300)


def test_a_value_that_only_one_person_has_is_found_whatever_else_was_changed():
    rng = np.random.default_rng(5)
    ours = people(2000, rng)
    shuffled = people(2000, rng).with_columns(ours["income"].sample(fraction=1, shuffle=True, seed=1))
    found = near_copies(Microdata(ours), Microdata(shuffled))
    assert found.figures["telling_columns"] == 1
    assert found.figures["telling_found"] == 2000
    assert found.figures["telling_share"] == 1
    assert found.figures["largest_found"] == 100
    assert found.figures["largest_share"] > 0.9
    assert found.figures["largest"] == 100
    assert found.detail["telling"]["column"].to_list() == ["income"]
    assert any("'income'" in caveat for caveat in found.caveats)
    rounded = shuffled.with_columns((pl.col("income") / 1000).round() * 1000)
    assert near_copies(Microdata(ours), Microdata(rounded)).figures["telling_share"] == 0


def test_coordinates_tell_together():
    rng = np.random.default_rng(6)
    ours = pl.DataFrame({"x": rng.integers(0, 100, 2000), "y": rng.integers(0, 100, 2000)})
    roles = {"location": ("x", "y")}
    found = near_copies(Microdata(ours, **roles), Microdata(ours.sample(500, seed=1)), reach=0.0)
    assert found.figures["telling_columns"] == 0  # two people in ten share a place with one other
    ours = ours.with_columns(pl.col("x") * 100 + pl.Series(rng.integers(0, 100, 2000)))
    found = near_copies(Microdata(ours, **roles), Microdata(ours.sample(500, seed=1)), reach=0.0)
    assert found.detail["telling"]["column"].to_list() == ["x, y"]
    assert found.figures["telling_share"] == pytest.approx(0.25, abs=0.02)


@settings(max_examples=examples(15), deadline=None)
@given(seed=SEEDS, holdout=st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.75]))
def test_an_exact_copy_scores_as_one_and_strangers_as_strangers_at_every_size_of_the_hold_out(seed, holdout):
    rng = np.random.default_rng(seed)
    everybody = people(1200, rng)
    size = round(holdout * 1200)
    unused, used = everybody.head(size), everybody.tail(1200 - size)
    copy, strangers = used.sample(fraction=1, shuffle=True, seed=seed), people(1000, rng)
    scores = {}
    for name, release in {"copy": copy, "strangers": strangers}.items():
        files = Microdata(used), Microdata(release)
        found = near_copies(*files, holdout=Microdata(unused)).figures
        assert found["closer_low"] <= found["closer_share"] <= found["closer_high"]
        assert neighbors(*files, holdout=Microdata(unused)).value == pytest.approx(found["closer_share"])
        scores[name] = found
    assert scores["copy"]["closer_share"] == 1
    assert scores["copy"]["copied_share"] > 0.9
    assert scores["strangers"]["closer_low"] - 0.06 < 0.5 < scores["strangers"]["closer_high"] + 0.06


@settings(max_examples=examples(15), deadline=None)
@given(seed=SEEDS)
def test_the_order_of_records_changes_no_figure(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = people(200, rng), people(150, rng)
    theirs = pl.concat([theirs, blurred(ours.head(30), 0.001, rng)])
    first = near_copies(Microdata(ours), Microdata(theirs)).figures
    ours, theirs = (part.sample(fraction=1, shuffle=True, seed=seed) for part in (ours, theirs))
    assert near_copies(Microdata(ours), Microdata(theirs)).figures == pytest.approx(first)


def test_a_large_file_is_asked_about_by_a_sample_and_says_so():
    rng = np.random.default_rng(8)
    ours, strangers = people(4000, rng), people(4000, rng)
    release = pl.concat([strangers.head(3000), ours.head(1000)])
    whole = near_copies(Microdata(ours), Microdata(release)).figures
    found = near_copies(Microdata(ours), Microdata(release), most=1000, seed=1)
    assert found.figures["copied_share"] == pytest.approx(whole["copied_share"], abs=0.05)
    assert any("scaled up from 1,000 records" in caveat for caveat in found.caveats)


def test_people_are_looked_up_by_their_keys_exact_or_blurred():
    rng = np.random.default_rng(9)
    ours = people(1000, rng)
    original = Microdata(ours, keys=["age", "region", "income"], sensitive="sex")
    other_keys = people(1000, rng).with_columns(ours["sex"])
    figures = {
        name: near_copies(original, Microdata(release)).figures
        for name, release in {
            "blurred": blurred(ours, 0.001, rng).with_columns(other_keys["sex"]),
            "other keys": other_keys,
            "twice": pl.concat([ours, ours]),
        }.items()
    }
    assert figures["blurred"]["by_keys_share"] > 0.5
    assert figures["other keys"]["by_keys_share"] == 0
    assert figures["twice"]["by_keys"] == 0  # two records near a person hide each other
    assert near_copies(Microdata(ours), Microdata(ours)).figures["by_keys"] is None


@pytest.mark.parametrize("wrong", [{"reach": 0.5}, {"outlying": 0}, {"most": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    file = Microdata(people(10, np.random.default_rng(1)))
    with pytest.raises(ParameterError):
        near_copies(file, file, **wrong)


def test_two_people_are_too_few():
    file = Microdata(people(2, np.random.default_rng(1)))
    with pytest.raises(ParameterError, match="three or more"):
        near_copies(file, file)
