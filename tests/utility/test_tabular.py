"""Tables of two files: what must hold whatever the data, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import generator
from discreet.utility import cells, grouping_sensitivity, tabular


def people(rows=400, seed=1):
    random = generator(seed, "tabular")
    age = random.integers(18, 90, rows)
    return pl.DataFrame(
        {
            "age": age,
            "pay": np.where(random.random(rows) < 0.1, np.nan, random.lognormal(7, 1, rows)),
            "sex": pl.Series(["f", "m", None])[random.choice(3, rows, p=[0.5, 0.45, 0.05])],
            "old": age > 60,
        }
    ).with_columns(pl.col("pay").fill_nan(None))


OURS, THEIRS = people(), people(300, 2)


def figures(measure):
    return measure.detail["tables"].drop("variables")


def close(a, b):
    for row, other in zip(a.iter_rows(named=True), b.iter_rows(named=True), strict=True):
        for name, value in row.items():
            expected = other[name]
            assert value == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-12)), name


def test_identical_files_give_zero():
    found = tabular(Microdata(OURS), Microdata(OURS), ways=[1, 2, 3])
    assert found.value == 0
    assert found.detail["tables"]["JSD"].max() == 0
    assert found.figures["tables"] == 4 + 6 + 4


def test_the_worst_table_comes_first_and_the_headline_is_its_value():
    found = tabular(Microdata(OURS), Microdata(THEIRS))
    values = found.detail["tables"]["S_pMSE"].to_list()
    assert values == sorted(values, reverse=True)
    assert found.value == values[0] == found.figures["max_S_pMSE"]


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_rows_and_columns_and_names_of_levels_change_nothing(seed):
    random = generator(seed, "shuffle")
    columns = list(random.permutation(OURS.columns))
    shuffled = THEIRS[random.permutation(THEIRS.height).tolist()].select(columns)
    plain = tabular(Microdata(OURS), Microdata(THEIRS))
    close(figures(tabular(Microdata(OURS), Microdata(shuffled))), figures(plain))
    names = {"f": "z", "m": "a"}
    renamed = [t.with_columns(pl.col("sex").replace(names)) for t in (OURS, THEIRS)]
    close(figures(tabular(*map(Microdata, renamed))), figures(plain))
    mirrored = tabular(Microdata(OURS.select(columns)), Microdata(shuffled)).detail["tables"]
    assert mirrored["S_pMSE"].to_list() == pytest.approx(plain.detail["tables"]["S_pMSE"].to_list())


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=2, max_size=12))
def test_bounds_hold_for_any_two_tables(pairs):
    o, s = zip(*pairs, strict=True)
    if sum(o) == 0 or sum(s) == 0:
        return
    found = cells(o, s).figures
    assert 0 <= found["JSD"] <= 1 + 1e-12
    assert 0 <= found["SPECKS"] <= 1 + 1e-12
    assert found["SPECKS"] >= found["KS"] - 1e-12
    assert 0.5 - 1e-12 <= found["AUC"] <= 1 + 1e-12
    assert abs(found["PO50"]) <= 50 + 1e-9
    assert found["pMSE"] <= 0.25 + 1e-12
    assert 0 <= found["ROC"] <= 1
    assert found["VW"] == pytest.approx(
        np.nansum(cells(o, s).detail["cells"]["z"].fill_null(0).to_numpy() ** 2)
    )


def test_the_breaks_are_those_of_both_files_together():
    ours, theirs = (pl.DataFrame({"x": np.arange(k, k + 100.0)}) for k in (0, 100))
    found = tabular(Microdata(ours), Microdata(theirs), ways=1, groups=4)
    assert found.detail["groups"]["label"].to_list() == ["≤ 49", "49 to 99", "99 to 149", "> 149"]
    assert found.detail["tables"]["SPECKS"].to_list() == [1.0]


def test_a_column_of_mostly_one_value_is_cut_into_equally_wide_groups():
    x = pl.DataFrame({"x": [0.0] * 95 + [1.0, 2.0, 3.0, 4.0, 10.0]})
    found = tabular(Microdata(x), Microdata(x), ways=1)
    assert found.detail["groups"]["label"].to_list()[0] == "≤ 2"
    assert found.detail["groups"].height == 5


def test_few_distinct_numbers_stay_apart():
    found = tabular(
        Microdata(pl.DataFrame({"x": [1, 2, 3]})), Microdata(pl.DataFrame({"x": [1, 3, 3]})), ways=1
    )
    assert found.detail["cells"].sort("original").height == 3


def test_missing_values_and_special_codes_are_groups_of_their_own():
    ours = pl.DataFrame({"x": [*range(20), -9, -9, None], "y": ["a"] * 23})
    theirs = pl.DataFrame({"x": [*range(20), -9, None, None], "y": ["a"] * 23})
    found = tabular(Microdata(ours), Microdata(theirs), ways=1, special_codes={"x": [-9]})
    counts = {row["cell"]: (row["original"], row["released"]) for row in found.detail["cells"].to_dicts()}
    assert (counts["-9"], counts["missing"]) == ((2.0, 1.0), (1.0, 2.0))
    assert any("'y'" in caveat and "onstant" in caveat for caveat in found.caveats)


def test_weights_are_worth_as_many_records_as_their_spread_allows():
    frame = OURS.with_columns(w=pl.Series(np.tile([1.0, 3.0], 200)))
    found = tabular(Microdata(frame, weight="w"), Microdata(frame, weight="w"), ways=1)
    assert found.figures["records"] == pytest.approx(800**2 / (200 * 1 + 200 * 9))
    assert found.value == 0
    even = OURS.with_columns(w=pl.lit(2.5))
    other = THEIRS.with_columns(w=pl.lit(7.0))
    weighted = tabular(Microdata(even, weight="w"), Microdata(other, weight="w"))
    close(figures(weighted), figures(tabular(Microdata(OURS), Microdata(THEIRS))))


def test_copies_are_averaged_and_listed():
    copies = [Microdata(people(300, seed)) for seed in (2, 3, 4)]
    found = tabular(Microdata(OURS), copies)
    alone = [tabular(Microdata(OURS), copy).figures["mean_S_pMSE"] for copy in copies]
    assert found.figures["copies"] == 3
    assert found.detail["copies"]["mean_S_pMSE"].to_list() == pytest.approx(alone)
    assert found.figures["mean_S_pMSE"] == pytest.approx(np.mean(alone))


def test_levels_that_one_file_alone_has_are_counted():
    ours, theirs = pl.DataFrame({"x": ["a", "b", "b"]}), pl.DataFrame({"x": ["b", "c"]})
    found = tabular(Microdata(ours), Microdata(theirs), ways=1).detail["tables"].row(0, named=True)
    assert (found["cells"], found["pearson_syn"], found["KL"]) == (3, float("inf"), float("inf"))


def test_tables_crossed_by_region_and_the_one_of_three_variables_that_pairs_cannot_see():
    random = generator(5, "parity")
    a, b = random.integers(0, 2, (2, 2000))
    ours = pl.DataFrame({"a": a, "b": b, "c": a ^ b})
    theirs = ours.with_columns(c=pl.Series(random.integers(0, 2, 2000)))
    pairs = tabular(Microdata(ours), Microdata(theirs), ways=2)
    triples = tabular(Microdata(ours), Microdata(theirs), ways=2, by="a", columns=["b", "c"])
    assert pairs.value < 10 < tabular(Microdata(ours), Microdata(theirs), ways=3).value
    assert triples.detail["tables"]["variables"][0] == "a × b × c"


def test_only_ordered_variables_have_a_distance_along_their_order():
    sizes = pl.Enum(["small", "large", "huge"])
    ours = pl.DataFrame({"size": pl.Series(["small", "large", "huge"], dtype=sizes), "sex": ["f", "m", "m"]})
    theirs = pl.DataFrame({"size": pl.Series(["huge", "large", "huge"], dtype=sizes), "sex": ["f", "f", "m"]})
    found = {
        row["variables"]: row["KS"]
        for row in tabular(Microdata(ours), Microdata(theirs), ways=1).detail["tables"].to_dicts()
    }
    assert found == {"size": pytest.approx(1 / 3), "sex": None}


def test_large_tables_are_left_out_and_sparse_ones_are_said():
    found = tabular(Microdata(OURS), Microdata(THEIRS), ways=[1, 3], max_cells=40)
    assert found.figures["tables_left_out"] > 0
    assert any("left out" in caveat for caveat in found.caveats)
    sparse = tabular(Microdata(OURS.head(20)), Microdata(THEIRS.head(20)), ways=3)
    assert sparse.figures["sparse_tables"] > 0


def test_sparse_counting_gives_what_dense_counting_gives(monkeypatch):
    dense = tabular(Microdata(OURS), Microdata(THEIRS), ways=[2, 3])
    monkeypatch.setattr("discreet.engine.shared_tables._DENSE", 4)
    assert figures(tabular(Microdata(OURS), Microdata(THEIRS), ways=[2, 3])).equals(figures(dense))


def test_numbers_and_text_are_compared_as_numbers_where_they_can_be_and_it_is_said():
    text = THEIRS.with_columns(pl.col("age").cast(pl.String))
    found = tabular(Microdata(OURS), Microdata(text))
    assert any("compared as numbers" in caveat for caveat in found.caveats)
    close(figures(found), figures(tabular(Microdata(OURS), Microdata(THEIRS))))


def test_the_grouping_changes_the_answer_and_the_helper_says_by_how_much():
    found = grouping_sensitivity(Microdata(OURS), Microdata(THEIRS), groups=(3, 10))
    assert found.value >= 1
    assert found.detail["groups"]["groups"].to_list() == [3, 10]
    assert set(found.detail["tables"].columns) == {"variables", "3", "10"}


def test_bad_input_is_refused_with_the_way_out():
    ours, theirs = Microdata(OURS), Microdata(THEIRS)
    with pytest.raises(InputError, match="no column in common"):
        tabular(ours, Microdata(pl.DataFrame({"other": [1, 2]})))
    with pytest.raises(ColumnError, match="Did you mean 'age'"):
        tabular(ours, theirs, columns=["agee"])
    with pytest.raises(ColumnError, match="Copy 2"):
        tabular(ours, [theirs, Microdata(THEIRS.drop("sex"))])
    with pytest.raises(ParameterError, match="empty list"):
        tabular(ours, [])
    with pytest.raises(ParameterError, match="ways"):
        tabular(ours, theirs, ways=6)
    with pytest.raises(ParameterError, match="set ways=1"):
        tabular(ours, theirs, columns="age")
    with pytest.raises(ParameterError, match="style"):
        tabular(ours, theirs, style="nice")
    with pytest.raises(ColumnError, match="does not hold numbers"):
        tabular(ours, theirs, breaks={"sex": [1]})
    with pytest.raises(ColumnError, match="cannot be compared"):
        tabular(ours, Microdata(THEIRS.with_columns(age=pl.lit("2020-01-01").str.to_date())))
    with pytest.raises(InputError, match="no records"):
        tabular(ours, Microdata(THEIRS.head(0)))
    with pytest.raises(ParameterError, match="constant"):
        tabular(Microdata(pl.DataFrame({"x": [1]})), Microdata(pl.DataFrame({"x": [1]})), ways=1)
    with pytest.raises(ParameterError, match="give as many of both"):
        cells([1, 2], [1])
