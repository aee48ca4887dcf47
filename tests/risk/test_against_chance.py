"""What strangers show is chance: shares are held beyond it, and what comes from people's own records is left."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, compare
from discreet.core.results import Measure
from discreet.numerics.counts_of_counts import alone_in_both
from discreet.risk import attribution, near_copies, replicated_uniques
from discreet.risk.copy_counts import Found
from discreet.workflow.pair_questions import by_name

SEEDS = st.integers(0, 2**20)


def people(count: int, rng: np.random.Generator) -> pl.DataFrame:
    age = rng.integers(18, 90, count)
    return pl.DataFrame(
        {
            "age": age,
            "town": rng.choice(40, count, p=np.arange(1, 41) / np.arange(1, 41).sum()),
            "work": np.where(
                age > 65, "retired", rng.choice(["employed", "free", "none"], count, p=[0.7, 0.2, 0.1])
            ),
            "pay": np.where(rng.random(count) < 0.6, 0.0, rng.lognormal(7, 1, count).round(2)),
        }
    )


def halves(rows: int, seed: int) -> tuple[Microdata, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    return Microdata(people(rows, rng), keys=["age", "town"], sensitive="work"), people(rows, rng)


@pytest.mark.parametrize("times", [0.5, 1.0])
@pytest.mark.parametrize("law", ["exponential", "lognormal", "zipf"])
def test_the_number_of_strangers_alone_in_both_files_is_known_beforehand(law, times):
    rng = np.random.default_rng(3)
    rates = {
        "exponential": rng.exponential(1, 4_000),
        "lognormal": rng.lognormal(-1, 1.5, 3_000),
        "zipf": 400 / np.arange(1, 3_000) ** 1.1,
    }[law]
    seen, expected = [], []
    for _ in range(10):
        here, there = rng.poisson(rates), rng.poisson(times * rates)
        seen.append(int(((here == 1) & (there == 1)).sum()))
        expected.append(alone_in_both(here, times)[0])
    assert np.mean(expected) == pytest.approx(np.mean(seen), rel=0.12)


@settings(max_examples=examples(30))
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.floats(0.1, 5))
def test_chance_is_never_more_than_the_pairs_allow(sizes, times):
    expected, unsure = alone_in_both(np.array(sizes), times)
    assert 0 <= expected <= 2 * times * sizes.count(2) + 1e-9
    assert unsure >= 0


def test_the_published_share_of_those_alone_in_both_stays_and_strangers_are_not_beyond_chance():
    original, fresh = halves(3_000, 1)
    strangers = replicated_uniques(original, Microdata(fresh)).figures
    assert strangers["repU"] > 5
    assert strangers["replicated"] == pytest.approx(strangers["replicated_by_chance"], rel=0.2)
    assert strangers["repU_beyond_chance"] == 0
    copy = replicated_uniques(original, Microdata(original.frame)).figures
    assert copy["repU"] == copy["UiO"]
    assert copy["repU_beyond_chance"] == pytest.approx(
        copy["repU"] - 100 * copy["replicated_by_chance"] / 3_000
    )
    assert copy["repU_beyond_chance"] > 10


def test_people_who_are_never_alike_are_found_by_no_chance():
    ages = pl.DataFrame({"age": range(500)})
    found = replicated_uniques(Microdata(ages, keys="age"), Microdata(ages)).figures
    assert found["replicated_by_chance"] == 0
    assert found["repU_beyond_chance"] == 100


def test_only_few_files_of_strangers_are_beyond_chance():
    beyond = []
    for seed in range(40):
        original, fresh = halves(800, seed)
        beyond.append(replicated_uniques(original, Microdata(fresh)).figures["repU_beyond_chance"] > 0)
    assert sum(beyond) <= 2


def test_what_the_other_people_of_a_group_tell_is_not_learned_from_a_person():
    original, fresh = halves(3_000, 2)
    strangers = attribution(original, Microdata(fresh)).figures
    assert strangers["learned"] > 0.1
    assert strangers["cap_released"] == pytest.approx(strangers["cap_by_chance"], abs=0.03)
    assert strangers["learned_beyond_chance"] == 0
    copy = attribution(original, Microdata(original.frame))
    assert copy.figures["learned_beyond_chance"] == pytest.approx(
        copy.figures["cap_released"] - copy.figures["cap_by_chance"]
    )
    assert copy.figures["learned_beyond_chance"] > 0.15
    assert "Other people with the same keys tell it" in copy.meaning


@pytest.mark.parametrize(
    "given", [{}, {"guess": "majority"}, {"unmatched": "zero"}, {"unmatched": "nearest"}, {"membership": 0.8}]
)
def test_every_guess_is_held_against_itself_without_the_person(given):
    original, fresh = halves(2_000, 3)
    strangers, copy = (
        attribution(original, Microdata(file), **given).figures for file in (fresh, original.frame)
    )
    # Of those who have only like records to go by, a blind guess is taken for chance, which is a little less.
    assert strangers["learned_beyond_chance"] <= (0.1 if "nearest" in given.values() else 0)
    assert 0 <= strangers["cap_by_chance"] <= 1
    assert copy["learned_beyond_chance"] > 0.1


def test_a_tolerance_is_allowed_to_the_others_as_well():
    rng = np.random.default_rng(4)
    ours, theirs = (
        pl.DataFrame({"age": rng.integers(18, 60, 2_000), "pay": rng.normal(100, 20, 2_000)})
        for _ in range(2)
    )
    original = Microdata(ours, keys="age", sensitive="pay")
    found = attribution(original, Microdata(theirs), tolerance=10).figures
    assert found["cap_by_chance"] == pytest.approx(found["cap_released"], abs=0.02)
    assert found["cap_by_chance"] > 0.2
    assert found["learned_beyond_chance"] == 0


@settings(max_examples=examples(20))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=3, max_size=40),
    st.sampled_from(["proportional", "majority"]),
)
def test_the_guess_from_others_is_what_leaving_each_person_out_gives(rows, guess):
    frame = pl.DataFrame(rows, schema=["k", "s"], orient="row")
    right = []
    for place, (key, value) in enumerate(rows):
        others = [v for at, (k, v) in enumerate(rows) if k == key and at != place]
        if not others:
            return
        most = max(others.count(v) for v in set(others))
        modes = [v for v in set(others) if others.count(v) == most]
        right.append(
            others.count(value) / len(others) if guess == "proportional" else (value in modes) / len(modes)
        )
    data = Microdata(frame, keys="k", sensitive="s")
    assert attribution(data, data, guess=guess).figures["cap_by_chance"] == pytest.approx(np.mean(right))


def test_people_alone_with_their_keys_leave_only_a_blind_guess_to_others():
    frame = pl.DataFrame({"k": range(200), "s": ["a", "b"] * 100})
    data = Microdata(frame, keys="k", sensitive="s")
    found = attribution(data, data).figures
    assert found["cap_by_chance"] == pytest.approx(found["baseline"])
    assert found["learned_beyond_chance"] == pytest.approx(0.5)


def test_keys_of_numbers_that_nobody_shares_may_miss_each_other():
    ours, theirs = (pl.DataFrame({"pay": range(at, 900, 2), "s": ["a", "b"] * 225}) for at in (0, 1))
    original = Microdata(ours, keys="pay", sensitive="s")
    found = attribution(original, Microdata(theirs))
    assert found.figures["learned_beyond_chance"] == 0
    assert "nothing can be guessed" in found.meaning
    assert replicated_uniques(original, Microdata(theirs)).value == 0


def test_a_coarsened_release_is_set_beside_the_original_as_it_is_and_as_coarse():
    original, _ = halves(1_500, 5)
    banded = original.frame.with_columns(
        age=(pl.col("age") // 20 * 20).cast(pl.String) + "-" + (pl.col("age") // 20 * 20 + 19).cast(pl.String)
    )
    found = compare(original, Microdata(banded), measures=["attribution"], seed=0).risk["attribution"]
    assert "if the original itself were released" not in found.meaning
    assert "made as coarse as the release" in found.meaning
    assert "with the original as it is" in found.meaning
    exact = attribution(original).value
    assert found.figures["cap_as_it_was"] == pytest.approx(exact)
    assert found.figures["cap_original"] < exact
    plain = attribution(original, Microdata(original.frame))
    assert plain.figures["cap_as_it_was"] is None
    assert "if the original itself were released" in plain.meaning


def test_intervals_make_the_original_coarser_too():
    original, fresh = halves(1_000, 6)
    found = attribution(original, Microdata(fresh), intervals={"age": 4})
    assert "if the original itself were released" not in found.meaning
    assert found.figures["cap_as_it_was"] > found.figures["cap_original"]


def test_amounts_that_most_people_do_not_have_tell_those_who_do():
    original, fresh = halves(1_500, 7)
    leak = pl.concat([original.frame.head(150), fresh.head(1_350)])
    clean, planted = (near_copies(original, Microdata(file)).figures for file in (fresh, leak))
    assert clean["telling_columns"] == planted["telling_columns"] == 1
    assert clean["telling_share"] == 0
    assert planted["telling_share"] == pytest.approx(0.1, abs=0.03)


def test_numbers_alone_tell_copies_whose_labels_were_exchanged():
    rng = np.random.default_rng(8)

    def file() -> pl.DataFrame:
        made = pl.DataFrame({f"x{place}": rng.normal(size=800).round(3) for place in range(3)})
        return made.with_columns(pl.Series(f"l{place}", rng.choice(list("abcd"), 800)) for place in range(4))

    ours, fresh = file(), file()
    turned = dict(zip("abcd", "cdab", strict=True))
    leak = pl.concat([ours.head(240), fresh.head(560)]).with_columns(
        pl.col(f"l{place}").replace(turned) for place in range(4)
    )
    found = near_copies(Microdata(ours), Microdata(leak))
    assert found.figures["copied_share"] == pytest.approx(0.3, abs=0.03)
    assert any("in the numbers alone" in caveat for caveat in found.caveats)
    clean = near_copies(Microdata(ours), Microdata(fresh))
    assert clean.figures["copied_share"] == 0
    assert not any("alone: more of them" in caveat for caveat in clean.caveats)


@settings(max_examples=examples(15))
@given(SEEDS)
def test_shares_of_strangers_are_nearly_always_nothing(seed):
    original, fresh = halves(600, seed)
    found = near_copies(original, Microdata(fresh)).figures
    assert found["copied_share"] < 0.1
    assert found["outlying_share"] < 0.2
    assert found["largest_share"] < 0.2


def test_a_chance_that_is_unsure_allows_more():
    assert Found(12, 4.0, 100).share_beyond_chance == 0
    assert Found(16, 4.0, 100).share_beyond_chance == pytest.approx(0.12)
    assert Found(16, 4.0, 100, unsure=5.0).share_beyond_chance == 0


def test_of_several_copies_the_worst_is_shown_and_named():
    original, fresh = halves(400, 9)
    copies = [pl.concat([original.frame.head(many), fresh.head(400 - many)]) for many in (20, 160, 0)]
    found = compare(original, [Microdata(copy) for copy in copies], seed=0)
    alone = compare(original, Microdata(copies[1]), seed=0)
    said = " ".join(found.worst.sentences)
    assert re.search(r"In copy 2, the worst of 3: \d+ people find", said)
    assert "on average" not in said
    assert found.risk["near_copies"].meaning.startswith("In copy 2, the worst of 3: ")
    assert found.risk["near_copies"].figures == alone.risk["near_copies"].figures


def test_an_attack_on_several_copies_is_shown_of_the_worst_and_never_as_a_mean():
    original, fresh = halves(400, 9)
    copies = [Microdata(fresh.sample(400, seed=1, with_replacement=True)), Microdata(original.frame)]
    found = compare(original, copies, holdout=Microdata(fresh), measures=["membership"], seed=0)
    alone = compare(original, copies[1], holdout=Microdata(fresh), measures=["membership"], seed=0)
    assert found.risk["membership"].parameters["copy"] == 2
    assert found.risk["membership"].value == alone.risk["membership"].value


def test_a_larger_headline_does_not_hide_what_another_reading_gives_away():
    question = by_name()["near_copies"]
    nothing = dict.fromkeys(("outlying_share", "telling_share", "largest_share"), 0.0)
    plain = Measure("near_copies", 0.02, {**nothing, "copied_share": 0.02}, "")
    read_back = Measure("near_copies", 0.0, {**nothing, "telling_share": 0.6}, "")
    assert question.card.badness(read_back) > question.card.badness(plain)
