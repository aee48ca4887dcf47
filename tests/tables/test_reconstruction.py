"""Rebuilding records from tables: bounds, counts of solutions, contradictions, links."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, ParameterError
from discreet.tables.putative_links import putative_links
from discreet.tables.table_reconstruction import reconstruct

DIMENSIONS = {"sex": ["f", "m"], "age": ["a", "b", "c"]}


def margins(counts):
    full = pl.DataFrame(
        [
            {"sex": s, "age": a, "count": int(counts[i, j])}
            for i, s in enumerate("fm")
            for j, a in enumerate("abc")
        ]
    )
    return [full.group_by("sex").agg(pl.col("count").sum()), full.group_by("age").agg(pl.col("count").sum())]


def brute_force(counts):
    """Every table of whole numbers with the same margins."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    firsts = [first for first in product(*(range(c + 1) for c in columns)) if sum(first) == rows[0]]
    return np.array([[first, columns - np.array(first)] for first in firsts])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_bounds_and_number_of_solutions_are_those_of_all_tables_that_fit(values):
    counts = np.array(values).reshape(2, 3)
    if not counts.any():
        return
    found = reconstruct(margins(counts), dimensions=DIMENSIONS)
    fits = brute_force(counts)
    assert found.units["solutions"][0] == len(fits)
    assert found.cells["lower"].to_list() == fits.min(axis=0).ravel().tolist()
    assert found.cells["upper"].to_list() == fits.max(axis=0).ravel().tolist()
    assert found.units["persons"][0] == counts.sum()


def test_units_are_rebuilt_one_by_one_and_empty_ones_are_counted():
    table = pl.DataFrame(
        {"block": ["x", "x", "y", "y", "z", "z"], "sex": ["f", "m"] * 3, "count": [2, 0, 1, 1, 0, 0]}
    )
    ages = pl.DataFrame({"block": ["x", "y", "y", "z"], "age": ["a", "a", "b", "a"], "count": [2, 1, 1, 0]})
    found = reconstruct([table, ages], dimensions=DIMENSIONS, unit="block")
    assert (found.figures["units"], found.figures["units_empty"]) == (2, 1)
    assert found.figures["units_solved"] == 0.5
    assert found.figures["persons_solved"] == 0.5
    assert found.records().rows() == [("x", "f", "a"), ("x", "f", "a")]
    assert "50 %" in found.meaning or "50%" in found.meaning


def test_suppressed_counts_say_nothing():
    table = pl.DataFrame({"sex": ["f", "m"], "count": [2, None]})
    found = reconstruct([table, pl.DataFrame({"count": [5]})], dimensions={"sex": ["f", "m"]})
    assert found.cells["lower"].to_list() == [2.0, 3.0]


def test_rounded_counts_are_bounded_within_the_tolerance():
    table = pl.DataFrame({"sex": ["f", "m"], "count": [5, 10]})
    found = reconstruct([table, pl.DataFrame({"count": [13]})], dimensions={"sex": ["f", "m"]}, tolerance=2)
    assert found.cells["lower"].to_list() == [3.0, 8.0]
    assert found.cells["upper"].to_list() == [7.0, 12.0]
    assert found.figures["units_contradictory"] == 0


def test_many_solutions_are_not_counted_to_the_end():
    found = reconstruct(margins(np.full((2, 3), 40)), dimensions=DIMENSIONS, max_solutions=50)
    assert found.units["solutions"].to_list() == [None]


def test_unique_people_are_linked_provably_and_the_gain_over_guessing_is_reported():
    truth = pl.DataFrame({"id": range(6), "age": [1, 2, 3, 4, 4, 4], "race": ["w", "w", "b", "w", "w", "w"]})
    rebuilt, people = truth.select("age", "race"), truth.select("id", "age")
    found = putative_links(
        rebuilt, people, on=["age"], identifier="id", truth=truth, confirm=["race"], seed=3
    )
    assert found.value == 0.5
    assert found.figures["putative_rate"] == 0.5
    assert found.figures["new_accuracy"] == 1.0
    assert found.figures["baseline_accuracy"] == pytest.approx(2 / 3)
    assert found.figures["gain_off_mode"] == 1.0
    assert found.figures["random_precision"] == pytest.approx(4 / 6)
    placed = truth.with_columns(block=pl.Series([1, 1, 2, 1, 1, 1]))
    by_place = putative_links(
        placed.drop("id"), placed.drop("race"), on=["block", "age"], identifier="id", truth=placed, confirm=["race"],
        unit="block",
    )  # fmt: skip
    assert by_place.figures["baseline_accuracy"] == 1.0
    assert by_place.figures["gain"] == 0.0


def test_bad_input_is_refused():
    table = pl.DataFrame({"sex": ["f", "x"], "count": [2, 1]})
    with pytest.raises(ParameterError, match="code of 'sex'"):
        reconstruct([table], dimensions={"sex": ["f", "m"]})
    with pytest.raises(ColumnError, match="no column 'count'"):
        reconstruct([table.drop("count")], dimensions={"sex": ["f", "m"]})
    with pytest.raises(ColumnError, match="none of the dimensions"):
        reconstruct([table], dimensions={"age": ["a"]})
    with pytest.raises(ParameterError, match="solver"):
        reconstruct([table], dimensions={"sex": ["f", "x"]}, solver="sat")
    with pytest.raises(ParameterError, match="tolerance"):
        reconstruct([table], dimensions={"sex": ["f", "x"]}, tolerance=-1)
    with pytest.raises(ParameterError, match="nothing to rebuild"):
        reconstruct([table.with_columns(count=0)], dimensions={"sex": ["f", "x"]})
    with pytest.raises(ColumnError, match="external"):
        putative_links(table, table, on=["sex"], identifier="id")
    with pytest.raises(ParameterError, match="policy"):
        putative_links(table, table, on=["sex"], identifier="count", policy="best")


@pytest.mark.slow
def test_several_processes_rebuild_what_one_does():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, (9, 6))
    full = pl.DataFrame(
        [
            {"block": f"b{u}", "sex": s, "age": a, "count": int(counts[u, 3 * i + j])}
            for u in range(9)
            for i, s in enumerate("fm")
            for j, a in enumerate("abc")
        ]
    )
    tables = [
        full.group_by("block", name, maintain_order=True).agg(pl.col("count").sum())
        for name in ("sex", "age")
    ]
    one = reconstruct(tables, dimensions=DIMENSIONS, unit="block")
    two = reconstruct(tables, dimensions=DIMENSIONS, unit="block", workers=2)
    assert one.cells.equals(two.cells)
    assert one.units.equals(two.units)
