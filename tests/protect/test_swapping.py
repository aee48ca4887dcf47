from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect.plan import Plan
from discreet.protect.rank_swapping import RandomSwap, RankSwap

numbers = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=20, max_size=80)


def swap(treatment, frame, seed=3):
    return treatment.apply(Microdata(frame), seed=seed).data.frame


@settings(deadline=None)
@given(numbers, st.integers(10, 100))
def test_rank_swapping_keeps_the_values_and_the_bound_on_ranks(values, p):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    known = [v for v in values if v is not None]
    if p / 100 * len(known) < 1:
        with pytest.raises(ParameterError, match="nothing can be swapped"):
            swap(RankSwap(columns=["x"], p=p), frame)
        return
    made = swap(RankSwap(columns=["x"], p=p), frame)["x"]
    assert made.is_null().to_list() == frame["x"].is_null().to_list()
    assert made.drop_nulls().sort().to_list() == frame["x"].drop_nulls().sort().to_list()
    # Ties may stand anywhere within their run, so the bound holds between the nearest ranks of two values.
    low = {v: sum(u < v for u in known) for v in known}
    high = {v: sum(u <= v for u in known) - 1 for v in known}
    window = int(p / 100 * len(known) + 1e-9)
    for old, new in zip(values, made.to_list(), strict=True):
        if old is not None and old != new:
            assert max(low[new] - high[old], low[old] - high[new]) <= window


def test_rank_swapping_moves_nearly_every_record_and_reaches_the_whole_window():
    frame = pl.DataFrame({"x": np.random.default_rng(1).permutation(10_000)})
    moved = (swap(RankSwap(columns=["x"], p=2), frame)["x"] - frame["x"]).abs().to_numpy()
    assert moved.max() <= 200
    assert (moved == 0).mean() < 0.01
    assert np.histogram(moved, bins=4, range=(1, 200))[0].min() > 1000


def test_rank_swapping_within_strata_keeps_the_values_of_each():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"s": rng.integers(0, 5, 1000), "x": rng.normal(size=1000), "y": rng.integers(0, 9, 1000)}
    )
    made = swap(RankSwap(columns=["x", "y"], p=10, strata="s"), frame)
    for name in ("x", "y"):
        assert made.sort("s", name)[name].equals(frame.sort("s", name)[name])
    assert made["x"].n_unique() == 1000
    assert (made["x"] != frame["x"]).mean() > 0.95


def test_rank_swapping_takes_dates_and_ordered_categories_and_keeps_types():
    frame = pl.DataFrame(
        {
            "d": [date(2020, 1, 1 + i) for i in range(20)],
            "e": pl.Series(["lo", "mid", "hi", "lo"] * 5, dtype=pl.Enum(["lo", "mid", "hi"])),
            "b": [True, False] * 10,
            "i": pl.Series(range(20), dtype=pl.UInt8),
        }
    )
    made = swap(RankSwap(columns=["d", "e", "b", "i"], p=20), frame)
    assert made.schema == frame.schema
    assert made["d"].sort().equals(frame["d"].sort())


def test_rank_swapping_of_households_keeps_their_members_alike():
    frame = pl.DataFrame({"hh": np.repeat(np.arange(100), 3), "rent": np.repeat(np.arange(100) * 10, 3)})
    made = swap(RankSwap(columns="rent", p=5, by="hh"), frame)
    assert made.group_by("hh").agg(pl.col("rent").n_unique())["rent"].max() == 1
    assert sorted(made["rent"].unique()) == sorted(frame["rent"].unique())


def test_rank_swapping_refuses_text_bad_p_and_unknown_columns():
    frame = pl.DataFrame({"x": ["a", "b"] * 20})
    with pytest.raises(ColumnError, match="needs an order"):
        swap(RankSwap(columns=["x"]), frame)
    with pytest.raises(ColumnError, match="rank-swap"):
        swap(RankSwap(columns=["z"]), frame)
    with pytest.raises(ParameterError, match="p must be"):
        RankSwap(columns=["x"], p=0)
    with pytest.raises(ParameterError, match="at least one column"):
        swap(RankSwap(), frame)
    with pytest.raises(ParameterError, match="form the groups"):
        swap(RankSwap(columns=["x"], strata="x"), frame)


rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 5))),
    min_size=1,
    max_size=60,
)


@settings(deadline=None)
@given(rows, st.floats(0.01, 1))
def test_random_swapping_keeps_joint_counts_within_groups_and_missing_values(records, share):
    frame = pl.DataFrame(records, schema={"g": pl.Int64, "x": pl.String, "y": pl.Int64}, orient="row")
    made = swap(RandomSwap(columns=["x", "y"], share=share, within=["g"]), frame)
    assert made.sort("g", "x", "y").equals(frame.sort("g", "x", "y"))
    assert made["y"].is_null().to_list() == frame["y"].is_null().to_list()


def test_random_swapping_takes_the_share_it_is_given():
    frame = pl.DataFrame({"x": range(10_000), "g": [i % 1000 for i in range(10_000)]})
    for within in (None, "g"):
        moved = (swap(RandomSwap(columns="x", share=0.3, within=within), frame)["x"] != frame["x"]).sum()
        assert moved == pytest.approx(3000, abs=150)


def test_random_swapping_refuses_a_share_of_nothing():
    with pytest.raises(ParameterError, match="share"):
        RandomSwap(columns=["x"], share=0)


def test_swaps_repeat_with_their_seed_and_come_back_from_a_plan_file():
    frame = pl.DataFrame({"x": range(100), "y": range(100)})
    plan = Plan([RankSwap(columns=["x"], p=10), RandomSwap(columns=["y"], share=0.5)])
    again = Plan.from_dict(plan.to_dict())
    assert swap(plan, frame).equals(swap(again, frame))
    assert not swap(plan, frame).equals(swap(plan, frame, seed=4))
    pandas = plan.apply(Microdata(frame.to_pandas()), seed=3).data.frame
    assert pl.from_pandas(pandas).equals(swap(plan, frame))
