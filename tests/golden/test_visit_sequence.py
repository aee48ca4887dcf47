"""Worked examples of choosing the synthesis order by backward selection, with corrected readings."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Sequential, choose_order


def derived(seed, n=1000):
    rng = np.random.default_rng(seed)
    x1 = rng.exponential(5, n)
    x2 = x1 / 2 + rng.normal(0, 0.1, n)
    return Microdata(pl.DataFrame({"X1": x1, "X2": x2, "X3": 2 * x1 + 3 * x2 + rng.normal(0, 0.1, n)}))


def pairs(seed, n=1000):
    rng = np.random.default_rng(seed)
    x1, x3 = rng.exponential(2, n), rng.beta(0.5, 0.5, n)
    return Microdata(
        pl.DataFrame(
            {"X1": x1, "X2": 2 * x1 + rng.normal(0, 0.1, n), "X3": x3, "X4": 5 * x3 + rng.normal(0, 0.1, n)}
        )
    )


def test_the_p_values_of_the_first_example_have_the_printed_size():
    rng = np.random.default_rng(1)
    x1 = rng.exponential(0.5, 100)
    x2 = 2 * x1 + rng.normal(0, 1, 100)
    data = Microdata(pl.DataFrame({"X1": x1, "X2": x2, "X3": 3 * x1 + 5 * x2 + rng.normal(0, 1, 100)}))
    choice = choose_order(data, by="backward", criterion="p_value")
    first = choice.trace.filter(pl.col("step") == 1)
    assert first.filter("chosen")["column"].to_list() == ["X3"]
    assert choice.order[-1] == "X3"
    for column, printed in (("X1", -32), ("X2", -87), ("X3", -93)):
        assert first.filter(pl.col("column") == column)["log10_p"].item() == pytest.approx(printed, abs=14)


def test_a_derived_column_comes_last_in_every_replication():
    assert {choose_order(derived(seed), by="backward").order[-1] for seed in range(40)} == {"X3"}


def test_two_unrelated_pairs_are_two_blocks():
    for seed in range(20):
        choice = choose_order(pairs(seed), by="backward")
        assert choice.blocks == (("X1", "X2"), ("X3", "X4"))
        assert choice.order[-1] in ("X1", "X2")
        assert all(
            set(predictors) <= set(block)
            for block in choice.blocks
            for name, predictors in choice.predictors.items()
            if name in block
        )


@pytest.mark.parametrize(("method", "worst"), [("norm", 0.2), ("normrank", 0.16), ("cart", 0.06)])
def test_the_order_of_the_third_example_costs_little_when_noise_is_added(method, worst):
    data = pairs(1)
    fitted = Sequential(method=method, visit_sequence=["X2", "X4", "X3", "X1"]).fit(data, seed=1)
    drawn = fitted.sample(20_000, seed=1).frame
    ks = []
    for name in data.columns:
        ours, theirs = np.sort(data.frame[name]), np.sort(drawn[name])
        at = np.concatenate([ours, theirs])
        gap = np.searchsorted(ours, at, "right") / len(ours) - np.searchsorted(theirs, at, "right") / len(
            theirs
        )
        ks.append(np.abs(gap).max())
    assert max(ks) < worst


@pytest.mark.parametrize("by", ["auto", "dependence-tree", "mutual-information", "levels", "backward"])
def test_every_way_gives_all_columns_once(by):
    data = derived(3)
    mixed = Microdata(
        data.frame.with_columns(k=pl.lit(1), town=pl.Series([f"t{i % 40}" for i in range(1000)]))
    )
    order = choose_order(mixed, by=by).order
    assert sorted(order) == sorted(mixed.columns)
    assert order[0] == "k"
    assert Sequential(visit_sequence=by).plan(mixed).order == order


def test_places_that_are_known_are_kept_and_contradictions_refused():
    choice = choose_order(derived(1), by="backward", fixed_first=["X3"], fixed_last=["X1"])
    assert choice.order == ("X3", "X2", "X1")
    with pytest.raises(ParameterError, match="Decide for one"):
        choose_order(derived(1), fixed_first=["X3"], fixed_last=["X3"])
    with pytest.raises(ColumnError, match="Did you mean"):
        choose_order(derived(1), fixed_first=["X33"])


def test_exactly_collinear_columns_are_explained_in_full():
    frame = derived(1).frame.with_columns(X4=pl.col("X1") + pl.col("X2"))
    choice = choose_order(Microdata(frame), by="backward")
    assert choice.trace.filter((pl.col("step") == 1) & pl.col("chosen"))["r2"].item() == 1.0
    assert "Collinear, each of them following exactly from the others: X1, X2, X4" in choice.notes[0]


@pytest.mark.parametrize("order", [["X1", "X2", "X3"], ["X3", "X1", "X2"], ["X2", "X3", "X1"]])
def test_p_values_that_no_float_can_hold_still_find_the_derived_column(order):
    choice = choose_order(Microdata(derived(1).frame.select(order)), by="backward", criterion="p_value")
    assert choice.order[-1] == "X3"
    first = choice.trace.filter(pl.col("step") == 1)
    assert first["log10_p"].is_finite().all()
    assert first["log10_p"].max() < -1000
    # To leading order p is (1 - R2) to the power of half the degrees of freedom.
    rough = 997 / 2 * np.log10(1 - first["r2"].to_numpy())
    assert first["log10_p"].to_numpy() == pytest.approx(rough, rel=0.01)


def test_categories_of_many_levels_come_last():
    towns = pl.Series([f"t{i % 300}" for i in range(1000)])
    frame = derived(1).frame.insert_column(0, towns.alias("town"))
    assert choose_order(Microdata(frame), by="backward").order[-2:] == ("X3", "town")


def test_fewer_records_than_columns_do_not_explain_each_other_in_full():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 40))
    x[:, 7] = x[:, 3] + 0.01 * rng.normal(size=20)
    wide = Microdata(pl.DataFrame(x, schema=[f"c{i}" for i in range(40)]))
    choice = choose_order(wide, by="backward")
    assert choice.trace["r2"].max() < 1
    assert set(choice.order[-2:]) & {"c3", "c7"}
    assert any("shrunk" in note for note in choice.notes)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"columns": ["X1", "X9"]}, ColumnError, "named under columns"),
        ({"columns": ["X1", "X1"]}, ColumnError, "stands twice in columns"),
        ({"fixed_first": ["X1", "X1"]}, ColumnError, "stands twice in fixed_first"),
        ({"fixed_last": 5}, ParameterError, "fixed_last must be the name"),
        ({"block_threshold": "high"}, ParameterError, "block_threshold must be a number"),
    ],
)
def test_what_cannot_be_ordered_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        choose_order(derived(1), by="backward", **options)


def test_one_column_may_be_named_without_a_list():
    assert choose_order(derived(1), by="backward", fixed_last="X1").order[-1] == "X1"
    with pytest.raises(ParameterError, match="must be Microdata"):
        choose_order(derived(1).frame)


def test_few_values_come_first_and_numbers_of_many_keep_their_order():
    n = 3000
    frame = pl.DataFrame(
        {
            "name": [f"n{i % 2500}" for i in range(n)],
            "paid": np.arange(n),
            "billed": np.arange(n) % 1200,
            "age": np.arange(n) % 80,
            "sex": np.arange(n) % 2,
        }
    )
    assert choose_order(Microdata(frame)).order == ("sex", "age", "paid", "billed", "name")
