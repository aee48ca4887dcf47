"""Measures whose card says class-wise bring home classes, and no record."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, risk, utility
from discreet.core.cards import card_of
from engines.agreement import in_kind
from engines.test_row_wise import nothing_collected

ONE_FILE = ("uniqueness", "k_anonymity", "reidentification", "key_contributions", "l_diversity", "alpha_k")
ONE_FILE += ("t_closeness", "beta_likeness", "delta_disclosure", "individual", "special_uniques", "isolation")
TWO_FILES = ("attribution", "disclosure", "group_disclosure", "replicated_uniques", "k_map", "delta_presence")


def people(seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "age": rng.integers(0, 4, 4000),
            "job": rng.choice(["clerk", "cook"], 4000),
            "ill": rng.choice(["y", "n"], 4000),
            "weight": np.full(4000, 2.5),
        }
    )
    return Microdata(table.lazy(), keys=["age", "job"], sensitive="ill", weight="weight")


@pytest.mark.parametrize("name", ONE_FILE + TWO_FILES)
def test_class_wise_measures_of_risk_collect_classes_only(name):
    files = [people(1), people(2)][: 1 if name in ONE_FILE else 2]
    assert card_of(name).work == "class-wise"
    with nothing_collected():
        getattr(risk, name)(*files)


def test_margins_are_compared_where_the_data_is():
    assert card_of("margins").work == "class-wise"
    with nothing_collected():
        utility.margins(people(1), people(2), columns=["age", "job", "ill"])


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60
    ),
    share=st.floats(0, 1),
)
def test_places_of_a_column_in_order_are_found_by_counting(values, share):
    from discreet.engine import summary_statistics

    known = sorted(value for value in values if value is not None)
    if not known:
        return
    rank = 1 + round(share * (len(known) - 1))
    data = Microdata(pl.LazyFrame({"x": values}, schema={"x": pl.Float64}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(summary_statistics, "_FETCHED", 3)
        patched.setattr(summary_statistics, "_BINS", 4)
        assert summary_statistics.values_at([data], "x", [rank, 1]).tolist() == [known[rank - 1], known[0]]
        twice = summary_statistics.values_at([data, data], "x", [2 * rank, 2 * rank - 1, 1])
        assert twice.tolist() == [known[rank - 1], known[rank - 1], known[0]]


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize(
    "settings_of", [{"ways": [1, 2]}, {"ways": 3}, {"style": "equal"}, {"closed": "left"}]
)
def test_tables_of_files_too_large_to_hold_are_the_same(kind, settings_of, monkeypatch):
    from discreet.engine import shared_tables, summary_statistics

    def frame(seed):
        rng = np.random.default_rng(seed)
        pay = pl.Series(rng.lognormal(size=3000).round(4)).set(pl.Series(rng.random(3000) < 0.1), None)
        return people(seed).frame.head(3000).drop("weight").collect().with_columns(pay=pay)

    frames = [frame(1), frame(2)]
    expected = utility.tabular(*map(Microdata, frames), **settings_of)
    monkeypatch.setattr(shared_tables, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr(shared_tables, "_MOST_LISTED", 30)
    monkeypatch.setattr(summary_statistics, "_FETCHED", 150)
    monkeypatch.setattr(summary_statistics, "_BINS", 100)
    with nothing_collected(most=400):
        found = utility.tabular(*(Microdata(in_kind(frame, kind)) for frame in frames), **settings_of)
    assert found.figures == pytest.approx(expected.figures)
    assert found.detail["groups"].equals(expected.detail["groups"])
