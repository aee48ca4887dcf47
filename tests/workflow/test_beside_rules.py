"""A verdict looks at everything that leaves with a release, whatever its rules are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, judge
from discreet.microdata import Metadata
from discreet.policy import Policy, Rule

POLICY = Policy(
    "P",
    comparison=[Rule("replicated_uniques", "repU", at_most=50), Rule("margins", "max_distance", at_most=0.9)],
)
ROLES = {"keys": ["age", "town"], "sensitive": ["ill"]}


def people(seed=1, rows=400):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "town": rng.choice(list("abcd"), rows),
            "ill": rng.choice(["yes", "no"], rows, p=[0.2, 0.8]),
            "pay": rng.lognormal(8, 1, rows).round(2),
        }
    )


def verdict(original, released, **settings):
    return judge(Microdata(released), POLICY, Microdata(original, **ROLES), **settings)


def failed(found):
    return {check.measure for check in found.checks if check.passed is False}


def test_records_in_a_random_order_pass():
    original = people()
    assert failed(verdict(original, original.drop("pay"))) == set()


@pytest.mark.parametrize("column", ["pay", "ill"])
@pytest.mark.parametrize("shown", ["left out", "coarser"])
def test_an_order_that_tells_what_the_release_hides_is_refused(column, shown):
    original = people().sort(column)
    hidden = {"pay": (pl.col("pay") > 3000).cast(pl.String), "ill": pl.lit("?")}[column]
    released = original.drop(column) if shown == "left out" else original.with_columns(hidden.alias(column))
    if (column, shown) == ("pay", "coarser"):
        # Sorted by what is shown too: within its groups the order still tells the amounts.
        assert released["pay"].n_unique() == 2
    assert "order of the records" in failed(verdict(original, released))


def test_a_file_that_is_sorted_by_a_column_it_shows_is_not_refused_for_it():
    original = people().with_columns(region=pl.col("town").replace({"a": "1", "b": "1", "c": "2", "d": "2"}))
    released = original.sort("town").drop("region")
    assert failed(verdict(original, released)) == set()


def test_an_order_is_also_seen_where_records_are_linked_by_their_values_only():
    original = people()
    assert "order of the records" in failed(
        verdict(original, original.with_columns(pl.col("age") * 1).sort("ill").drop("ill"))
    )


def test_an_index_that_numbers_the_original_is_refused():
    pandas = pytest.importorskip("pandas")
    original = people()
    frame = original.drop("pay").to_pandas()
    kept = frame[np.arange(len(frame)) % 3 > 0]
    assert isinstance(kept, pandas.DataFrame)
    assert "index of the frame" in failed(verdict(original, kept))
    assert failed(verdict(original, kept.reset_index(drop=True))) == set()


def test_categories_that_list_a_removed_rare_value_are_refused():
    original = people().with_columns(
        ill=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("rare")).otherwise("ill")
    )
    levels = ["no", "rare", "yes"]
    released = original.filter(pl.col("ill") != "rare").with_columns(pl.col("ill").cast(pl.Enum(levels)))
    assert "labels of removed values" in failed(verdict(original, released))
    clean = released.with_columns(pl.col("ill").cast(pl.String))
    assert failed(verdict(original, clean)) == set()


def test_a_column_that_only_the_release_has_leaves_the_verdict_open_until_somebody_accepts_it():
    original = people()
    released = original.drop("pay").with_columns(score=pl.Series(np.random.default_rng(3).normal(size=400)))
    found = verdict(original, released)
    assert found.outcome == "open"
    assert "'score'" in found.line


def test_labels_of_codes_that_were_removed_are_refused():
    original = people().with_columns(ill=pl.when(pl.int_range(pl.len()) == 7).then(9).otherwise(1))
    released = Microdata(original.filter(pl.col("ill") != 9))
    labelled = released.with_metadata(Metadata(value_labels={"ill": {1: "healthy", 9: "a rare disease"}}))
    found = judge(labelled, POLICY, Microdata(original, **ROLES))
    assert "labels of removed values" in failed(found)
    assert "rare disease" not in found.line
    assert failed(judge(released, POLICY, Microdata(original, **ROLES))) == set()


def test_a_weight_or_a_number_that_one_person_has_alone_is_judged_whatever_its_role_is():
    rng = np.random.default_rng(9)
    original = people().with_columns(
        w=pl.Series(rng.uniform(1, 90, 400)), home=pl.Series(rng.permutation(9999)[:400])
    )
    policy = Policy("P", comparison=[Rule("near_copies", "telling_share", at_most=0.01)])
    roles = {**ROLES, "weight": "w", "household": "home"}
    fresh = people(seed=2)

    def refused(**columns):
        found = judge(Microdata(fresh.with_columns(**columns)), policy, Microdata(original, **roles))
        return [check.reason for check in found.checks if check.measure == "own values of technical columns"]

    assert "'w'" in refused(w=original["w"])[0]
    assert "'home'" in refused(home=original["home"])[0]
    assert refused(home=pl.int_range(1, 401, eager=True), w=pl.Series(rng.uniform(1, 90, 400))) == []
