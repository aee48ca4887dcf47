"""Special uniques against a search that looks at every record, set of keys and other record in turn."""

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.risk.key_sets import coded_keys, minimal_uniques
from discreet.risk.suda import special_uniques


def agree(one, other, chosen, *, wild):
    pairs = [(one[key], other[key]) for key in chosen]
    return all(a == b or (wild and (a is None or b is None)) for a, b in pairs)


def by_brute_force(rows, max_size, missing):
    """The minimal sample uniques of every record, by definition."""
    rows = [row for row in rows if any(value is not None for value in row)]
    if missing == "drop":
        rows = [row for row in rows if None not in row]
    wild, keys = missing == "wildcard", len(rows[0]) if rows else 0
    found = []
    for i, row in enumerate(rows):
        others = [other for j, other in enumerate(rows) if j != i]
        alone = {
            chosen
            for size in range(1, max_size + 1)
            for chosen in combinations(range(keys), size)
            if not any(agree(row, other, chosen, wild=wild) for other in others)
        }
        found.append({s for s in alone if not any(set(t) < set(s) for t in alone)})
    return rows, found


def frame(rows):
    return pl.DataFrame(
        {f"x{i}": pl.Series([row[i] for row in rows], dtype=pl.Int64) for i in range(len(rows[0]))}
    )


value = st.one_of(st.integers(0, 3), st.none())
tables = st.integers(1, 4).flatmap(
    lambda keys: st.lists(st.tuples(*[value] * keys), min_size=1, max_size=25).filter(
        lambda rows: all(any(row[i] is not None for row in rows) for i in range(keys))
    )
)


@pytest.mark.parametrize("missing", ["category", "wildcard", "drop"])
@given(rows=tables, max_size=st.integers(1, 4))
@settings(max_examples=examples(60), deadline=None)
def test_scores_are_those_of_the_definition(missing, rows, max_size):
    kept, msus = by_brute_force(rows, max_size, missing)
    data = Microdata(frame(rows), keys=[f"x{i}" for i in range(len(rows[0]))])
    if not kept:
        with pytest.raises(ParameterError, match="No record is left"):
            special_uniques(data, max_size=max_size, missing=missing)
        return
    found = special_uniques(data, max_size=max_size, missing=missing)
    keys = len(rows[0])
    expected = [float(sum(math.factorial(keys - len(s)) for s in sets)) for sets in msus]
    records = found.detail["records"].filter(pl.col("suda").is_not_null())
    assert records["suda"].to_list() == expected
    assert records["msus"].to_list() == [len(sets) for sets in msus]
    assert records["smallest_msu"].to_list() == [min(map(len, sets), default=None) for sets in msus]
    assert records["suda_normalized"].is_between(0, 1).all()
    assert records["dis"].is_between(0, 1).all()
    assert found.figures["special_unique_records"] == sum(any(len(s) < keys for s in sets) for sets in msus)
    assert found.figures["msus"] == found.detail["sets"]["msus"].sum()


@given(rows=tables)
@settings(max_examples=examples(40), deadline=None)
def test_with_all_sizes_the_scored_records_are_those_alone_on_all_keys(rows):
    found = special_uniques(Microdata(frame(rows), keys=[f"x{i}" for i in range(len(rows[0]))]))
    assert found.figures["scored_records"] == found.figures["unique_records"]


def test_numbers_of_keys_with_very_many_values_do_not_run_over():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**62, size=(4000, 6))
    values[1::2] = values[::2]
    values[0, 5] += 1
    data = Microdata(pl.DataFrame(values, schema=[f"x{i}" for i in range(6)], orient="row"), keys=["x0"])
    coded = coded_keys(data, [f"x{i}" for i in range(6)], "category")
    found = dict(minimal_uniques(coded, 6))
    assert {chosen: len(rows) for chosen, rows in found.items()} == {(5,): 2}


def people(**roles):
    rows = pl.DataFrame(
        {
            "sex": ["f", "f", "f", "m", "m", "m", "m", "f"],
            "age": [1, 1, 2, 2, 2, 3, 3, 9],
            "w": [10.0] * 8,
        }
    )
    return Microdata(rows, keys=["sex", "age"], **roles)


def test_dis_is_the_skinner_elliot_chance_shared_out_by_score():
    found = special_uniques(people(), sampling_fraction=0.2)
    # Alone: (f, 2) by both keys, (f, 9) by age alone; three pairs.
    chance = 0.2 * 2 / (0.2 * 2 + 0.8 * 6)
    assert found.figures["dis_file"] == pytest.approx(chance)
    records = found.detail["records"]
    assert records["suda"].to_list() == [0, 0, 1, 0, 0, 0, 0, 1]
    assert records["dis"].to_list() == pytest.approx([0, 0, chance, 0, 0, 0, 0, chance])
    assert records["dis"].sum() == pytest.approx(chance * found.figures["unique_records"])


def test_the_sampling_fraction_comes_from_the_weights_where_there_are_some():
    found = special_uniques(people(weight="w"))
    assert found.figures["sampling_fraction"] == pytest.approx(0.1)
    assert not any("not known" in caveat for caveat in found.caveats)
    assert any("not known" in caveat for caveat in special_uniques(people()).caveats)


def test_a_share_of_dis_above_one_is_cut_off_and_said():
    rows = [(0, 0, 0)] * 2 + [(i, 1, i % 7) for i in range(1, 40)]
    rows += [(1, 9, 5)]
    found = special_uniques(Microdata(frame(rows), keys=["x0", "x1", "x2"]), sampling_fraction=0.9)
    assert found.figures["max_dis"] == 1
    assert any("cut off" in caveat for caveat in found.caveats)


def test_values_are_numbered_unless_they_are_asked_for():
    hidden = special_uniques(people()).detail["values"]
    assert set(hidden["value"]) <= {f"value {i}" for i in range(1, 9)}
    shown = special_uniques(people(), show_values=True).detail["values"]
    assert "9" in shown.filter(pl.col("key") == "age")["value"]
    assert shown["contribution"].to_list() == hidden["contribution"].to_list()
    total = special_uniques(people()).detail["variables"]
    for key in ("sex", "age"):
        assert shown.filter(pl.col("key") == key)["contribution"].sum() == pytest.approx(
            total.filter(pl.col("key") == key)["contribution"].item()
        )


def test_the_contributions_of_a_record_are_shares_of_its_own_score():
    table = special_uniques(people()).detail["contributions"]
    assert table["contribution of sex"].to_list() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert table["contribution of age"].to_list() == [0, 0, 1, 0, 0, 0, 0, 1]


def test_a_file_without_uniques_scores_nobody():
    found = special_uniques(Microdata(pl.DataFrame({"a": [1, 1], "b": [2, 2]}), keys=["a", "b"]))
    assert found.value == 0
    assert found.figures["smallest_msu"] is None
    assert found.detail["records"]["dis"].to_list() == [0, 0]
    assert found.detail["variables"]["contribution"].to_list() == [0, 0]


def test_many_keys_shorten_the_search_and_the_result_says_so():
    rng = np.random.default_rng(1)
    table = pl.DataFrame(rng.integers(0, 2, size=(60, 20)), schema=[f"x{i}" for i in range(20)], orient="row")
    found = special_uniques(Microdata(table, keys=table.columns))
    assert found.figures["max_size"] == 3
    assert any("up to 3 of the 20 keys" in caveat for caveat in found.caveats)


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="max_size"):
        special_uniques(people(), max_size=0)
    with pytest.raises(ParameterError, match="sampling_fraction"):
        special_uniques(people(), sampling_fraction=0)
    with pytest.raises(ParameterError, match="missing"):
        special_uniques(people(), missing="ignore")
    wide = pl.DataFrame({f"x{i}": [1, 2] for i in range(40)})
    with pytest.raises(ParameterError, match="Lower max_size"):
        special_uniques(Microdata(wide, keys=wide.columns), max_size=10)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_scores(kind):
    pytest.importorskip(kind)
    source = pl.DataFrame({"sex": ["f", "f", "m", None], "age": ["a", "b", "b", "b"]})
    arrow = source.to_arrow()
    if kind == "duckdb":
        import duckdb

        frame_in = duckdb.connect().from_arrow(arrow)
    else:
        frame_in = arrow.to_pandas() if kind == "pandas" else arrow
    found = special_uniques(Microdata(frame_in, keys=["sex", "age"]), missing="wildcard")
    expected = special_uniques(Microdata(source, keys=["sex", "age"]), missing="wildcard")
    assert dict(found.figures) == pytest.approx(dict(expected.figures))
