"""One person's records stay one person's at every door, also when the column that says so is left out."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, assess, compare, judge, protect, risk
from discreet.protect import Plan

NINE = pl.DataFrame(
    {
        "who": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "sex": ["f"] * 3 + ["m"] * 6,
        "age": [30] * 3 + [40] * 3 + [50] * 3,
        "ill": ["flu", "cold", "gout"] * 3,
    }
)
ROLES = {"keys": ["sex", "age"], "sensitive": "ill", "person": "who", "identifiers": "who"}
KINDS = [lambda f: f, lambda f: f.lazy(), lambda f: f.to_pandas(), lambda f: f.to_arrow()]


@pytest.mark.parametrize("kind", KINDS, ids=["polars", "lazy", "pandas", "pyarrow"])
def test_leaving_out_the_persons_does_not_make_their_records_strangers(kind):
    data = Microdata(kind(NINE), **ROLES)
    released = protect.DropIdentifiers().apply(data).data
    assert "who" not in released.columns
    assert risk.k_anonymity(released).value == 1
    assert not assess(released, "safe-setting").verdict.meets
    mended = protect.Mondrian(k=2).apply(released).data
    assert risk.k_anonymity(mended).value == 3


def test_records_that_are_removed_or_reordered_keep_their_persons():
    plan = Plan([protect.DropIdentifiers(), protect.OptimalGeneralization([protect.KAnonymity(1)])])
    released = plan.apply(Microdata(NINE, **ROLES), seed=1).data
    assert released.whose is not None
    assert risk.k_anonymity(released).figures["records_in_file"] == 9
    assert "whose" not in str(released)


def test_every_door_judges_the_same_people():
    data = Microdata(NINE, **ROLES)
    released = protect.DropIdentifiers().apply(data).data
    read_again = Microdata(NINE.drop("who"))
    assert not judge(released, "safe-setting", data).meets
    assert not judge(read_again, "safe-setting", data).meets
    assert not compare(data, read_again, policy="safe-setting").verdict.meets


def test_where_nobody_can_tell_whose_the_records_are_nothing_is_cleared():
    shuffled = Microdata(NINE.drop("who").sample(fraction=1, shuffle=True, seed=1))
    found = judge(shuffled, "safe-setting", Microdata(NINE, **ROLES))
    assert not found.meets
    assert "rules that need to know which records belong to one person" in found.line


def test_a_database_forgets_persons_aloud_unless_each_has_one_record():
    duckdb = pytest.importorskip("duckdb")
    for frame, lost in ((NINE, ("person",)), (NINE.with_columns(who=pl.int_range(9)), ())):
        data = Microdata(duckdb.connect().from_arrow(frame.to_arrow()), **ROLES)
        assert protect.DropIdentifiers().apply(data).data.lost_roles == lost


def test_a_verdict_says_about_how_many_records_it_says_nothing():
    frame = pl.DataFrame({"sex": ["f"] * 20 + [None] * 80, "ill": ["flu", "cold"] * 50})
    found = assess(Microdata(frame, keys="sex", sensitive="ill"), "safe-setting").verdict
    assert found.line.endswith("It says nothing about 80 records of which no key is known.")
    told = assess(Microdata(frame[:20], keys="sex", sensitive="ill"), "safe-setting").verdict.line
    assert "no key is known" not in told


def test_with_one_record_each_nothing_changes():
    data = Microdata(NINE.with_columns(who=pl.int_range(9)), **ROLES)
    released = protect.DropIdentifiers().apply(data).data
    assert released.whose is None
    assert risk.k_anonymity(released).value == 3
