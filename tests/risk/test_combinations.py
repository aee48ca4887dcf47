"""Unsafe combinations against a count of every set of keys from the records."""

from itertools import combinations

import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.risk.unsafe_combinations import unsafe_combinations

value = st.one_of(st.integers(0, 3), st.none())
tables = st.integers(1, 4).flatmap(
    lambda keys: st.lists(st.tuples(*[value] * keys), min_size=1, max_size=30).filter(
        lambda rows: all(any(row[i] is not None for row in rows) for i in range(keys))
    )
)


def frame(rows):
    return pl.DataFrame(
        {f"x{i}": pl.Series([row[i] for row in rows], dtype=pl.Int64) for i in range(len(rows[0]))}
    )


def agreeing(rows, combination, chosen, *, wild):
    return sum(
        all(
            a == b or (wild and None in (a, b))
            for a, b in zip(combination, (row[i] for i in chosen), strict=True)
        )
        for row in rows
    )


def by_brute_force(rows, max_size, threshold, *, wild):
    """Unsafe combinations by set, and the records in some unsafe one; who tells nothing is left out."""
    unsafe, exposed = {}, set()
    everyone, rows = rows, [row for row in rows if any(value is not None for value in row)]
    for size in range(1, max_size + 1):
        for chosen in combinations(range(len(rows[0])), size):
            met = {tuple(row[i] for i in chosen) for row in rows}
            if wild:
                met = {c for c in met if any(v is not None for v in c)}
            low = {c for c in met if agreeing(rows, c, chosen, wild=wild) < threshold}
            unsafe[", ".join(f"x{i}" for i in chosen)] = (len(met), len(low))
            exposed |= {
                j for j, row in enumerate(everyone) if row in rows and tuple(row[i] for i in chosen) in low
            }
    return unsafe, exposed


@pytest.mark.parametrize("missing", ["category", "wildcard"])
@given(rows=tables, threshold=st.integers(2, 4), max_size=st.integers(1, 3))
@settings(max_examples=examples(60), deadline=None)
def test_counts_are_those_of_the_definition(missing, rows, threshold, max_size):
    keys = [f"x{i}" for i in range(len(rows[0]))]
    found = unsafe_combinations(
        Microdata(frame(rows), keys=keys), threshold=threshold, max_size=max_size, missing=missing
    )
    size = min(max_size, len(keys))
    unsafe, exposed = by_brute_force(rows, size, threshold, wild=missing == "wildcard")
    sets = found.detail["sets"]
    counted = dict(zip(sets["keys"], sets.select("combinations", "unsafe_combinations").rows(), strict=True))
    assert counted == unsafe
    records = found.detail["records"]
    assert {j for j, n in enumerate(records["unsafe_sets"]) if n} == exposed
    assert found.figures["unsafe_records"] == len(exposed)
    assert (sets["newly_unsafe_records"] <= sets["unsafe_records"]).all()


TOWN = pl.DataFrame(
    {
        "sex": ["f"] * 4 + ["m"] * 4,
        "job": ["nurse", "nurse", "clerk", "clerk", "clerk", "clerk", "clerk", "mayor"],
        "age": [30, 30, 30, 30, 40, 40, 40, 40],
    }
)
town = Microdata(TOWN, keys=["sex", "job", "age"])


def test_newly_unsafe_leaves_out_who_is_unsafe_on_fewer_keys_already():
    found = unsafe_combinations(town, threshold=2)
    by_set = {row["keys"]: row for row in found.detail["sets"].to_dicts()}
    assert by_set["job"]["unsafe_combinations"] == 1
    assert by_set["sex, job"]["unsafe_combinations"] == 1
    assert by_set["sex, job"]["newly_unsafe_records"] == 0
    assert found.figures["minimal_unsafe_combinations"] == 1
    assert found.detail["records"]["smallest_unsafe_set"].to_list() == [None] * 7 + [1]
    assert found.detail["variables"].row(0) == ("job", 1, 0.125)
    assert found.detail["sizes"]["unsafe_combinations"].to_list() == [1, 2, 1]


def test_the_combinations_are_listed_only_when_values_are_asked_for():
    assert "combinations" not in unsafe_combinations(town).detail
    listed = unsafe_combinations(town, threshold=2, show_values=True).detail["combinations"]
    assert ("job", "mayor", 1) in listed.rows()
    assert ("sex, job, age", "m, mayor, 40", 1) in listed.rows()
    assert "mayor" not in str(unsafe_combinations(town, show_values=True))


def test_dropped_records_are_counted():
    data = Microdata(pl.DataFrame({"a": [1, 1, None], "b": [1, 1, 1]}), keys=["a", "b"])
    found = unsafe_combinations(data, missing="drop", threshold=2)
    assert found.figures["records_left_out"] == 1
    assert found.value == 0
    assert found.detail["records"]["unsafe_sets"].to_list() == [0, 0, None]


def test_more_keys_than_there_are_means_all_of_them():
    assert unsafe_combinations(town, max_size=9).figures["max_size"] == 3


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="threshold"):
        unsafe_combinations(town, threshold=1)
    with pytest.raises(ParameterError, match="max_size"):
        unsafe_combinations(town, max_size=0)
    with pytest.raises(ParameterError, match="missing"):
        unsafe_combinations(town, missing="none")
    with pytest.raises(ParameterError, match="No keys"):
        unsafe_combinations(Microdata(TOWN))


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_counts(kind):
    pytest.importorskip(kind)
    arrow = TOWN.to_arrow()
    if kind == "duckdb":
        import duckdb

        source = duckdb.connect().from_arrow(arrow)
    else:
        source = arrow.to_pandas() if kind == "pandas" else arrow
    found = unsafe_combinations(Microdata(source, keys=["sex", "job", "age"]))
    assert dict(found.figures) == dict(unsafe_combinations(town).figures)
