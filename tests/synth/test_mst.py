"""Private synthesis from a tree of pairs: what it keeps, what it claims, what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from discreet import Microdata, datasets, dp, synth
from discreet.core.errors import DiscreetError, ParameterError
from discreet.synth.graphical_model import agreeing, grouped, on_simplex

NUMBERS = st.floats(-50, 500)


def adult_domain(frame: pl.DataFrame) -> dict:
    numbers = {"age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16)}
    numbers |= {"capital-gain": (0, 100_000), "capital-loss": (0, 5_000), "hours-per-week": (1, 99)}
    return {
        name: numbers.get(name) or sorted(frame[name].drop_nulls().unique().to_list())
        for name in frame.columns
    }


def mean_two_way_distance(one: pl.DataFrame, other: pl.DataFrame) -> float:
    def coded(frame, name):
        if not one[name].dtype.is_numeric():
            return frame[name].fill_null("?")
        cuts = np.unique(np.quantile(one[name].to_numpy(), np.linspace(0, 1, 11)[1:-1]))
        return pl.Series(name, np.searchsorted(cuts, frame[name].to_numpy(), side="right"))

    here, there = (pl.DataFrame([coded(f, n).alias(n) for n in one.columns]) for f in (one, other))
    apart = []
    for a, b in itertools.combinations(one.columns, 2):
        x = here.group_by(a, b).agg(pl.len() / here.height)
        y = there.group_by(a, b).agg((pl.len() / there.height).alias("other"))
        both = x.join(y, on=[a, b], how="full", coalesce=True).fill_null(0.0)
        apart.append(float((both["len"] - both["other"]).abs().sum()) / 2)
    return float(np.mean(apart))


@given(arrays.arrays(np.float64, st.integers(1, 40), elements=NUMBERS), st.floats(0.5, 1e4))
def test_counts_on_the_simplex_are_counts_with_the_total(counts, total):
    made = on_simplex(counts, total)
    assert (made >= 0).all()
    assert made.sum() == pytest.approx(total, rel=1e-9)


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=NUMBERS), st.data()
)
def test_a_table_takes_on_the_margins_it_is_given(table, data):
    positive = st.floats(0.5, 100)
    rows = np.array(data.draw(st.lists(positive, min_size=table.shape[0], max_size=table.shape[0])))
    columns = np.array(data.draw(st.lists(positive, min_size=table.shape[1], max_size=table.shape[1])))
    columns *= rows.sum() / columns.sum()
    made = agreeing(table, [((0,), rows), ((1,), columns)])
    assert (made >= 0).all()
    assert made.sum(axis=1) == pytest.approx(rows, rel=0.05, abs=0.5)
    assert made.sum(axis=0) == pytest.approx(columns, rel=0.05, abs=0.5)


@given(
    arrays.arrays(np.float64, st.integers(1, 60), elements=NUMBERS),
    st.floats(0.1, 100),
    st.integers(2, 20),
    st.booleans(),
)
def test_every_level_has_a_group_and_neighbors_stay_together(counts, spread, groups, ordered):
    made = grouped(counts, max(counts.sum(), 1.0), spread, len(counts) if ordered else 0, groups)
    assert made.size == made.group.max() + 1
    if ordered:
        assert (np.diff(made.group) >= 0).all()
        assert (np.diff(made.group) <= 1).all()


@pytest.mark.slow
def test_adult_comes_back_closer_than_columns_drawn_by_themselves():
    data = datasets.adult()
    model = synth.MST(epsilon=1.0, delta=1e-5, domain=adult_domain(data.frame)).fit(data, seed=1)
    made = model.sample(seed=1).frame
    alone = synth.Independent().fit(data, seed=1).sample(seed=1).frame
    assert made.columns == data.frame.columns
    assert made.schema == data.frame.schema
    assert model.rows == pytest.approx(data.frame.height, rel=0.01)
    near, far = (mean_two_way_distance(data.frame, f) for f in (made, alone))
    # 0.037 on average; columns by themselves without any noise: about 0.09.
    assert near < 0.045
    assert near < 0.6 * far
    assert ("education", "education-num") in model.pairs or ("education-num", "education") in model.pairs


def test_what_is_claimed_depends_on_where_the_noise_comes_from():
    data = Microdata(pl.DataFrame({"a": [True, False] * 200, "b": [True, True, False, False] * 100}))
    assert synth.MST(epsilon=1.0).fit(data).guarantee.startswith("(1, 1e-06)-differential privacy")
    seeded = synth.MST(epsilon=1.0).fit(data, seed=1)
    assert seeded.guarantee is None
    assert "seed" in seeded.why_none


def test_the_ledger_is_asked_first():
    data = Microdata(pl.DataFrame({"a": [True, False] * 200, "b": [True, True, False, False] * 100}))
    ledger = dp.Ledger(1.0, 1e-5)
    synth.MST(epsilon=0.75, delta=1e-6).fit(data, ledger=ledger)
    with pytest.raises(ParameterError, match="does not allow"):
        synth.MST(epsilon=0.75, delta=1e-6).fit(data, ledger=ledger)
    with pytest.raises(ParameterError, match="seed"):
        synth.MST(epsilon=0.1).fit(data, ledger=ledger, seed=1)


def test_missing_values_small_files_and_types_survive(tmp_path):
    frame = pl.DataFrame(
        {
            "kind": pl.Series(["x", "y", None] * 30, dtype=pl.Enum(["x", "y", "z"])),
            "size": pl.Series([1, 2, 3] * 30, dtype=pl.Int64),
            "share": [0.25, None, 0.75] * 30,
        }
    )
    model = synth.MST(epsilon=5.0, domain={"size": (1, 3), "share": (0.0, 1.0)}).fit(Microdata(frame), seed=1)
    made = model.sample(500, seed=2).frame
    assert made.schema == frame.schema
    assert set(made["size"].drop_nulls().to_list()) <= {1, 2, 3}
    assert made["share"].drop_nulls().is_between(0, 1).all()
    model.save(tmp_path / "model")
    again = synth.load(tmp_path / "model")
    assert again.sample(500, seed=2).frame.equals(made)
    assert again.guarantee is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "bins": 1},
        {"epsilon": 1.0, "groups": True},
        {"epsilon": 1.0, "domain": {"c": ["x"]}},
        {"epsilon": 1.0, "leave_out": ["d"]},
        {"epsilon": 1.0, "leave_out": ["a"], "domain": {"b": [1, 2]}},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "domain": {"a": ["x", "y"], "b": (5, 1)}},
        {"epsilon": 1.0, "domain": {"a": ["x", "y"], "b": (0, 5)}, "max_cells": 4},
    ],
)
def test_what_cannot_be_promised_is_refused(wrong):
    frame = pl.DataFrame({"a": ["x", "y"] * 3000, "b": [1, 2, 3, 4, 5] * 1200})
    with pytest.raises(DiscreetError):
        synth.MST(**wrong).fit(Microdata(frame), seed=1)
