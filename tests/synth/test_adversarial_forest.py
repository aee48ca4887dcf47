"""Adversarial random forests: what their leaves hold, what is drawn from them, and what they refuse."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import AdversarialForest, check_rules, load

RNG = np.random.default_rng(7)
N = 600
SEX = RNG.choice(["f", "m"], N)
PAY = np.where(RNG.random(N) < 0.4, 0.0, np.where(SEX == "f", 1000, 2000) + RNG.normal(0, 50, N).round(1))
FRAME = pl.DataFrame(
    {
        "sex": SEX,
        "pay": pl.Series(PAY).set(pl.Series(np.arange(N) % 10 == 0), None),
        "tax": pl.Series(PAY).set(pl.Series(np.arange(N) % 10 == 0), None) * 0.5,
        "region": pl.Series(RNG.choice(["n", "s"], N)).cast(pl.Enum(["s", "n"])),
        "born": pl.Series(RNG.integers(0, 9000, N)).cast(pl.Int32).cast(pl.Date),
    }
)
PEOPLE = Microdata(FRAME, keys=["sex", "region"], sensitive="pay")


@pytest.fixture(scope="module")
def fitted():
    return AdversarialForest(trees=6, constraints=["tax == 0.5 * pay"]).fit(PEOPLE, seed=1)


def test_the_contest_ends_near_chance(fitted):
    assert fitted.accuracies[0] > fitted.accuracies[-1] - 0.2
    assert min(fitted.accuracies) < 0.62


def test_types_order_piles_missing_values_and_relations_come_back(fitted):
    made = fitted.sample(3000, seed=2).frame
    assert made.schema == FRAME.schema
    assert made["pay"].is_null().mean() == pytest.approx(0.1, abs=0.04)
    assert (made["pay"] == 0).mean() == pytest.approx((FRAME["pay"] == 0).mean(), abs=0.06)
    paid = made.filter(pl.col("pay") > 0)
    means = {sex: paid.filter(pl.col("sex") == sex)["pay"].mean() for sex in ("f", "m")}
    assert means["f"] == pytest.approx(1000, abs=80)
    assert means["m"] == pytest.approx(2000, abs=80)


def test_a_defined_column_is_computed(fitted):
    assert check_rules(fitted.sample(500, seed=3), "tax == 0.5 * pay").value == 0


def test_the_same_seed_gives_the_same_bytes_before_and_after_saving(fitted, tmp_path):
    once = fitted.sample(200, seed=4).frame
    assert once.equals(fitted.sample(200, seed=4).frame)
    again = load(fitted.save(tmp_path / "forest.model"))
    assert once.equals(again.sample(200, seed=4).frame)
    assert not once.equals(fitted.sample(200, seed=5).frame)


def test_records_can_be_asked_for(fitted):
    made = fitted.sample(300, given={"sex": "f", "pay": (1, 5000)}, seed=6).frame
    assert made["sex"].unique().to_list() == ["f"]
    assert made["pay"].min() > 0
    assert made["pay"].mean() == pytest.approx(1000, abs=80)
    gaps = fitted.sample(20, given={"pay": None, "region": ["n"]}, seed=6).frame
    assert gaps["pay"].null_count() == 20


def test_what_nobody_has_is_refused(fitted):
    with pytest.raises(ParameterError, match="given"):
        fitted.sample(5, given={"sex": "x"}, seed=1)
    with pytest.raises(ParameterError, match="as given asks"):
        fitted.sample(5, given={"pay": (10_000_000, 20_000_000)}, seed=1)
    with pytest.raises(ColumnError, match="given"):
        fitted.sample(5, given={"sexe": "f"}, seed=1)


def test_weights_move_the_shares():
    frame = pl.DataFrame({"a": ["x", "y"] * 200, "b": list(range(400)), "w": [3.0, 1.0] * 200})
    made = AdversarialForest(trees=4).fit(Microdata(frame, weight="w"), seed=1).sample(4000, seed=1).frame
    assert made.columns == ["a", "b"]
    assert (made["a"] == "x").mean() == pytest.approx(0.75, abs=0.05)


def test_observed_numbers_are_observed_and_normal_ones_need_not_be():
    frame = Microdata(pl.DataFrame({"x": RNG.normal(size=300), "y": RNG.normal(size=300)}))
    seen = set(frame.frame["x"])
    donors = AdversarialForest(trees=4, numbers="observed").fit(frame, seed=1).sample(seed=1).frame
    fresh = AdversarialForest(trees=4).fit(frame, seed=1).sample(seed=1).frame
    assert set(donors["x"]) <= seen
    assert len(set(fresh["x"]) & seen) < 10


def test_odd_files_are_taken_or_refused_in_words():
    constant = pl.DataFrame({"a": ["x"] * 50, "b": [1.0] * 50, "c": list(range(50))})
    made = AdversarialForest(trees=3).fit(Microdata(constant), seed=1).sample(seed=1).frame
    assert made["a"].unique().to_list() == ["x"]
    assert made["b"].unique().to_list() == [1.0]
    many = pl.DataFrame({"id": [str(n) for n in range(3000)], "x": np.arange(3000) % 7})
    assert AdversarialForest(trees=2).fit(Microdata(many), seed=1).sample(10, seed=1).frame.height == 10
    with pytest.raises(ParameterError, match="two records"):
        AdversarialForest().fit(Microdata(constant.head(1)), seed=1)
    with pytest.raises(ParameterError, match="trees"):
        AdversarialForest(trees=0)
    with pytest.raises(ColumnError, match="semicontinuous"):
        AdversarialForest(semicontinuous={"nothing": [0]}).fit(Microdata(constant), seed=1)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**31))
def test_whatever_is_drawn_lies_within_what_was_seen(rows, seed):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"x": rng.normal(size=rows).round(2), "c": rng.choice(["a", "b", "c"], rows)})
    made = AdversarialForest(trees=2).fit(Microdata(frame), seed=seed).sample(50, seed=seed).frame
    assert made["x"].min() >= frame["x"].min()
    assert made["x"].max() <= frame["x"].max()
    assert set(made["c"]) <= set(frame["c"])
