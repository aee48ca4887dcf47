from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata, datasets, dp
from discreet.core.errors import DiscreetError, ParameterError
from discreet.dp.sensitivity import Range, bounded_cells


def people(**roles) -> Microdata:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "who": rng.integers(0, 400, 2000),
            "region": rng.choice(["n", "s", "w"], 2000),
            "pay": rng.gamma(2.0, 1000.0, 2000),
        }
    )
    return Microdata(frame, **roles)


def test_answers_are_near_the_truth_by_as_much_as_they_say():
    data = people()
    pay = data.frame["pay"].clip(0, 10_000)
    truths = {
        dp.count: ((), {}, 2000),
        dp.total: (("pay",), {"lower": 0, "upper": 10_000}, pay.sum()),
        dp.mean: (("pay",), {"lower": 0, "upper": 10_000}, pay.mean()),
        dp.variance: (("pay",), {"lower": 0, "upper": 10_000}, pay.var(ddof=0)),
    }
    for query, (arguments, bounds, truth) in truths.items():
        found = [query(data, *arguments, epsilon=1.0, seed=seed, **bounds) for seed in range(40)]
        inside = [abs(one.value - truth) <= one.figures["margin"] + 1e-3 for one in found]
        assert np.mean(inside) >= 0.85, query.__name__
        assert all(one.guarantee is None for one in found)


def test_quantiles_are_ordered_and_near():
    data = people()
    found = dp.quantiles(data, "pay", [0.9, 0.1, 0.5], lower=0, upper=10_000, epsilon=1.0, seed=2)
    values = dict(found.detail["quantiles"].iter_rows())
    assert values[0.1] <= values[0.5] <= values[0.9]
    for share, value in values.items():
        assert (data.frame["pay"] < value).mean() == pytest.approx(share, abs=0.03)


def test_a_table_shows_every_public_cell_also_the_empty_ones():
    data = people()
    found = dp.table(
        data,
        ["region"],
        levels={"region": ["n", "s", "w", "e"]},
        column="pay",
        lower=0,
        upper=10_000,
        epsilon=2.0,
        seed=1,
    )
    cells = found.detail["table"]
    assert cells["region"].to_list() == ["e", "n", "s", "w"]
    truth = data.frame.group_by("region").agg(pl.len(), pl.col("pay").clip(0, 10_000).mean()).sort("region")
    assert cells["count"][1:].to_list() == pytest.approx(truth["len"].to_list(), abs=8)
    assert cells["mean"][1:].to_list() == pytest.approx(truth["pay"].to_list(), rel=0.2)


def test_unknown_cells_are_shown_only_where_many_are():
    frame = pl.DataFrame({"town": ["big"] * 500 + [f"hamlet {i}" for i in range(300)]})
    found = dp.table(Microdata(frame), "town", epsilon=1.0, delta=1e-6, seed=3)
    assert found.detail["table"]["town"].to_list() == ["big"]
    assert found.figures["delta"] == 1e-6


def test_persons_are_held_to_their_bound_and_the_guarantee_is_about_them():
    data = people(person="who")
    found = dp.count(data, max_records=2, epsilon=1.0)
    assert found.guarantee == "1-differential privacy against adding or removing one person."
    kept = bounded_cells(data, ["region"], None, max_records=2, max_groups=1, words=dp.os_words).cells
    assert kept["count"].sum() <= 2 * data.frame["who"].n_unique()


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32))
def test_one_person_never_moves_a_table_by_more_than_was_paid_for(max_records, max_groups, seed):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"who": ["a"] * 12, "cell": rng.integers(0, 4, 12), "pay": rng.normal(0, 50, 12)})
    number = Range("pay", -10.0, 30.0)
    found = bounded_cells(
        Microdata(frame, person="who"),
        ["cell"],
        number,
        max_records=max_records,
        max_groups=max_groups,
        words=dp.seeded_words(rng),
    )
    assert found.cells.height <= max_groups
    assert found.cells["count"].max() <= max_records
    assert found.cells["sum"].abs().sum() <= number.most * max_records * max_groups


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_value_between_the_bounds_is_never_farther_from_the_middle_than_was_paid_for(lower, width):
    number = Range("x", lower, lower + width)
    frame = pl.DataFrame({"x": [lower - 1, lower, lower + width / 3, lower + width, lower + 2 * width]})
    for value in frame["x"]:
        one = bounded_cells(
            Microdata(pl.DataFrame({"x": [value]})),
            (),
            number,
            max_records=1,
            max_groups=1,
            words=dp.os_words,
        )
        assert abs(one.cells["sum"].item()) <= number.most


def test_the_ledger_is_asked_before_the_noise(monkeypatch):
    ledger = dp.Ledger(1.0)
    dp.count(people(), epsilon=0.75, ledger=ledger)
    monkeypatch.setattr(dp.queries, "with_laplace_noise", lambda *_, **__: pytest.fail("noise was drawn"))
    with pytest.raises(ParameterError, match="does not allow"):
        dp.count(people(), epsilon=0.75, ledger=ledger)
    assert ledger.table()["purpose"].to_list() == ["count"]


def test_a_ledger_of_persons_refuses_an_answer_about_records():
    with pytest.raises(ParameterError, match="every person"):
        dp.count(people(), epsilon=0.5, ledger=dp.Ledger(1.0, unit="person"))


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_table(kind):
    frame = people().frame
    if kind == "pandas":
        other = pytest.importorskip("pandas") and frame.to_pandas()
    elif kind == "pyarrow":
        other = frame.to_arrow()
    else:
        other = pytest.importorskip("duckdb").sql("select * from frame")
    question = {"levels": {"region": ["n", "s", "w"]}, "epsilon": 1.0, "seed": 5}
    here = dp.table(Microdata(frame), "region", **question).detail["table"]
    there = pl.DataFrame(dp.table(Microdata(other), "region", **question).detail["table"])
    assert there["count"].to_list() == here["count"].to_list()


def test_an_empty_file_has_about_nobody_in_it():
    empty = Microdata(pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)}))
    assert dp.count(empty, epsilon=5.0, seed=1).value <= 3
    assert 0 <= dp.mean(empty, "x", lower=0, upper=1, epsilon=5.0, seed=1).value <= 1


@pytest.mark.parametrize(
    "call",
    [
        lambda d: dp.count(d, epsilon=0),
        lambda d: dp.count(d, epsilon=1, max_records=0),
        lambda d: dp.mean(d, "pey", lower=0, upper=1, epsilon=1),
        lambda d: dp.mean(d, "region", lower=0, upper=1, epsilon=1),
        lambda d: dp.mean(d, "pay", lower=1, upper=0, epsilon=1),
        lambda d: dp.mean(d, "pay", lower=math.nan, upper=0, epsilon=1),
        lambda d: dp.quantiles(d, "pay", [2], lower=0, upper=1, epsilon=1),
        lambda d: dp.quantiles(d, "pay", [], lower=0, upper=1, epsilon=1),
        lambda d: dp.table(d, [], epsilon=1, delta=1e-6),
        lambda d: dp.table(d, "region", epsilon=1),
        lambda d: dp.table(d, "region", epsilon=1, levels={"region": ["n"]}, delta=1e-6),
        lambda d: dp.table(d, "region", epsilon=1, levels={"town": ["n"]}),
        lambda d: dp.table(d, "region", epsilon=1, levels={"region": []}),
        lambda d: dp.table(d, "region", epsilon=1, levels={"region": ["n"]}, column="pay"),
        lambda d: dp.table(d, "who", epsilon=1, levels={"who": ["many"]}),
    ],
)
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(DiscreetError):
        call(people())


def test_adult_by_education_and_sex():
    data = datasets.adult()
    levels = {name: sorted(data.frame[name].drop_nulls().unique().to_list()) for name in ("education", "sex")}
    found = dp.table(data, ["education", "sex"], levels=levels, epsilon=1.0, seed=1)
    truth = data.frame.group_by("education", "sex").len().rename({"len": "true"})
    both = found.detail["table"].join(truth, on=["education", "sex"])
    assert both.height == 32
    assert (both["count"] - both["true"].cast(pl.Int64)).abs().mean() < 3


def test_records_that_do_not_say_whose_they_are_count_nowhere():
    """Several people may stand behind them: together they would move a table by more than one person may."""
    frame = pl.DataFrame({"who": [1, 2, None, None], "sex": ["f", "m", "m", "m"]})
    told = dp.table(
        Microdata(frame, person="who"), "sex", levels={"sex": ["f", "m"]}, epsilon=50.0, seed=1
    ).detail["table"]
    assert told["count"].to_list() == [1, 1]


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: dp.count(data, epsilon=1.0, seed=5),
        lambda data: dp.mean(data, "age", lower=0, upper=100, epsilon=1.0, seed=5),
        lambda data: dp.variance(data, "age", lower=0, upper=100, epsilon=1.0, seed=5),
        lambda data: dp.quantiles(data, "age", lower=0, upper=100, epsilon=1.0, seed=5),
        lambda data: dp.table(data, "sex", levels={"sex": ["f", "m"]}, epsilon=1.0, seed=5),
    ],
)
def test_a_file_is_counted_once_and_noise_is_drawn_anew(ask, monkeypatch):
    frame = pl.DataFrame({"age": [30.0, 40.0, None, 70.0], "sex": ["f", "m", "f", "f"]})
    first = ask(Microdata(frame))
    data = Microdata(frame)
    ask(data)
    for room in ("sensitivity", "queries"):
        monkeypatch.setattr(f"discreet.dp.{room}.collect", lambda *_: pytest.fail("the file was read again"))
    again = ask(data)
    assert again.to_dict() == first.to_dict()


def test_bounds_that_were_not_asked_before_are_counted_anew():
    data = Microdata(pl.DataFrame({"age": [10.0] * 1000}))
    wide = dp.total(data, "age", lower=0, upper=100, epsilon=100.0, seed=1).value
    held = dp.total(data, "age", lower=0, upper=5, epsilon=100.0, seed=1).value
    assert abs(wide - 10_000) < 50
    assert abs(held - 5_000) < 5


def test_unbiased_noise_of_a_file_that_was_counted_before_differs_every_time():
    data = Microdata(pl.DataFrame({"age": [10.0] * 1000}))
    assert len({dp.total(data, "age", lower=0, upper=100, epsilon=0.01).value for _ in range(20)}) > 10
