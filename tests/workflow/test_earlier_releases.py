"""Two releases that are safe alone, laid beside each other."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, judge
from discreet.core.verdicts import Acceptance, Verdict
from discreet.workflow.earlier_releases import EARLIER, with_earlier

KEYS = ["age", "town", "sex"]
ROWS = 2_000


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, ROWS),
            "town": [f"t{place}" for place in rng.integers(0, 12, ROWS)],
            "sex": rng.choice(["f", "m"], ROWS),
            "income": rng.lognormal(10, 1, ROWS).round(0),
        }
    )


def banded(frame, width, shift=0):
    return frame.with_columns(age=((pl.col("age") + shift) // width * width).cast(pl.String))


def data(frame):
    return Microdata(frame, keys=[key for key in KEYS if key in frame.columns])


def together(new, old, **options):
    return with_earlier(None, data(new), {"old.csv": Microdata(old)}, **options)


def mixed(frame, seed=1):
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def test_bands_that_cut_elsewhere_are_caught_where_records_stand_in_one_order(people):
    found = together(banded(people, 13, 5), banded(people, 15))
    assert found.meets is False
    assert found.failed[0].actual == exposed(people, banded(people, 13, 5), banded(people, 15))


def exposed(people, one, other, k=3):
    """Count from the definition: hidden among k in each, not in both together."""
    both = pl.DataFrame(
        {f"{key}{side}": frame[key] for side, frame in enumerate((one, other)) for key in KEYS}
    )
    sizes = [
        both.select(pl.len().over([name for name in both.columns if name[-1] in sides])).to_series()
        for sides in ("0", "1", "01")
    ]
    return int(((sizes[0] >= k) & (sizes[1] >= k) & (sizes[2] < k)).sum())


def test_they_are_caught_by_a_column_that_stayed_as_it_was_where_the_order_is_another(people):
    found = together(mixed(banded(people, 13, 5)), banded(people, 15))
    assert found.meets is False
    assert found.failed[0].actual == exposed(people, banded(people, 13, 5), banded(people, 15))


def test_and_by_a_pseudonym(people):
    named = people.drop("income").with_columns(who=pl.Series(np.random.default_rng(1).permutation(ROWS)))
    new = Microdata(mixed(banded(named, 13, 5)), keys=KEYS, person="who")
    assert with_earlier(None, new, {"old": Microdata(banded(named, 15))}).meets is False


def test_people_are_counted_and_not_their_records(people):
    """Everybody comes twice: two records of one person hide nobody."""
    twice = pl.concat([people.with_row_index("who")] * 2)
    one, other = banded(twice, 13, 5), banded(twice, 15)
    single = exposed(people, banded(people, 13, 5), banded(people, 15))
    assert single > 0
    for new in (one, mixed(one)):
        found = with_earlier(None, Microdata(new, keys=KEYS, person="who"), {"old": Microdata(other)})
        assert found.failed[0].actual == single


def test_where_nothing_shows_which_records_belong_together_the_verdict_is_open(people):
    bare = people.drop("income")
    found = together(mixed(banded(bare, 13, 5)), banded(bare, 15))
    assert found.outcome == "open"
    assert "nothing shows which records belong together" in found.line


@pytest.mark.parametrize("rows", [40, 200])
def test_files_in_orders_of_their_own_are_never_laid_beside_each_other_by_place(people, rows):
    bare = people.drop("income")[:rows]
    for seed in range(20):
        assert together(mixed(banded(bare, 13, 5), seed), banded(bare, 15)).outcome == "open"


def test_bands_of_one_name_and_other_bounds_are_never_taken_for_one_coding(people):
    """The labels are the same, and what they mean has moved by a third of a band."""
    for frame in (people, people.drop("income")):
        old, new = banded(frame, 15), banded(frame.with_columns((pl.col("age") + 5).clip(20, 79)), 15)
        assert set(old["age"]) == set(new["age"])
        assert together(mixed(new), old).outcome != "met"


def test_people_who_left_between_two_releases_of_one_coding_are_counted(people):
    bare = banded(people.drop("income"), 15)
    found = together(mixed(bare[:-2]), bare)
    assert found.failed[0].actual == 2
    assert together(mixed(bare), bare).meets is True


def test_what_one_release_suppressed_and_the_other_shows_fills_the_gap(people):
    fine = people.with_columns(age=(pl.col("age") // 2).cast(pl.String))
    alone = fine.select(pl.len().over(KEYS) < 3).to_series()
    one = fine.with_columns(town=pl.when(alone).then(None).otherwise("town"))
    other = fine.with_columns(age=pl.when(alone).then(None).otherwise("age"))
    assert alone.sum() > 100
    found = together(other, one)
    assert found.meets is False
    assert found.failed[0].actual > 100
    assert together(one, one).meets is True


def test_a_column_that_the_new_release_no_longer_has_counts_with_the_old_one(people):
    coarse = banded(people, 30).with_columns(town=pl.col("town").str.slice(1).cast(pl.Int64).cast(pl.String))
    fine = people.drop("town").with_columns(pl.col("age").cast(pl.String))
    assert together(fine, coarse).meets is True, "the town is no key of the new release by itself"
    assert together(fine, coarse, keys=KEYS).meets is False


def test_the_same_release_again_and_a_coarser_one_expose_nobody(people):
    fine = banded(people, 15)
    assert together(fine, fine).meets is True
    assert together(banded(people, 30), fine).meets is True


def test_a_release_that_is_not_at_hand_leaves_the_verdict_open_until_a_person_accepts_it(people):
    lost = {"lost": ["gone.csv"]}
    found = with_earlier(Verdict("Ours", ()), data(people), {}, **lost)
    assert (found.outcome, found.unjudged[0].rule) == ("open", EARLIER)
    taken = Acceptance(EARLIER, because="it was about other years", by="A. Steward")
    assert with_earlier(None, data(people), {}, accept=[taken], **lost).outcome == "accepted"


def test_without_keys_nothing_is_cleared(people):
    assert with_earlier(None, Microdata(people), {"old": Microdata(people)}).outcome == "open"


def test_judge_takes_earlier_releases_and_the_company_of_its_policy(people):
    released, old = data(banded(people, 13, 5)), Microdata(banded(people, 15))
    roles = {"keys": KEYS, "sensitive": ["income"]}
    original = Microdata(people, **roles)
    alone = judge(released, "safe-setting", original, seed=0)
    found = judge(released, "safe-setting", original, previous={"old.csv": old}, seed=0)
    assert EARLIER not in [check.measure for check in alone.checks]
    assert found.meets is False
    assert found.failed[0].measure == EARLIER


def test_with_nothing_to_lay_beside_the_verdict_stays_what_it_is(people):
    verdict = Verdict("Ours", ())
    assert with_earlier(verdict, data(people), {}) is verdict
    assert with_earlier(None, data(people), {}) is None
