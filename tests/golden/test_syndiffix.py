"""Worked examples of SynDiffix with noise off (methods/syndiffix-multi-table-synthesis.md, section 5)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, synth
from discreet.synth.syndiffix.file_coding import null_code
from discreet.synth.syndiffix.hashing import hash_numbers
from discreet.synth.syndiffix.range_forest import Anonymizing, Forest, Persons

PLAIN = Anonymizing(b"a salt of sixteen").without_noise()


def buckets(*columns, persons=None):
    values = [np.asarray(column, dtype=float) for column in columns]
    names = ["x", "y", "z"][: len(values)]
    forest = Forest(values, names, persons or Persons.records(len(values[0])), PLAIN)
    found = forest.buckets(range(len(values)))
    return {
        tuple(float(a) if a == b else (float(a), float(b)) for a, b in zip(low, high, strict=True)): int(
            count
        )
        for low, high, count in zip(found.low, found.high, found.count, strict=True)
    }, forest


@pytest.mark.parametrize(
    ("ends", "snapped"),
    [
        ((3, 7), (0, 8)), ((11, 21), (8, 24)), ((11, 14), (10, 14)), ((-6, 2), (-8, 8)), ((0, 0), (0, 1)),
        ((0.2, 0.4), (0, 0.5)), ((-1.4, -0.3), (-2, 0)),
    ],
)  # fmt: skip
def test_ranges_are_snapped(ends, snapped):
    assert synth.snap_range(*ends) == snapped


def test_missing_values_lie_outside_the_range():
    assert [null_code(1.2, 1.3), null_code(-4, -2.5), null_code(0, 0)] == [2.6, -8.0, 1.0]


def test_e1_one_value():
    assert buckets([1] * 12)[0] == {(1.0,): 12}


def test_e2_a_run_of_numbers():
    assert buckets(range(12))[0] == {((0.0, 4.0),): 4, ((4.0, 8.0),): 4, ((8.0, 12.0),): 4}


def test_e3_an_outlier_is_folded_in():
    found, forest = buckets([*range(8), 1000])
    assert forest.range_of(0) == (0, 8)
    assert found == {((0.0, 4.0),): 4, ((6.0, 8.0),): 5}


def test_e4_missing_values_are_a_value_where_they_are_enough():
    def found(missing):
        data = Microdata(pl.DataFrame({"x": [10] * 3 + [20] * 4 + [None] * missing}))
        fitted = synth.SynDiffix(noise=False).fit(data, seed=1)
        return dict(fitted.sample(seed=1).frame["x"].value_counts().iter_rows()), fitted

    assert found(3)[0] == {10: 3, 20: 4, None: 3}
    counted, fitted = found(2)
    assert counted == {10: 3, 20: 6}
    assert fitted.suppression["x"].folded == 2


def test_e5_values_and_a_range():
    found, _ = buckets([10] * 3 + [20] * 4 + list(range(35, 40)))
    assert found == {(10.0,): 3, (20.0,): 4, ((36.0, 40.0),): 5}


def test_e6_two_columns():
    found, _ = buckets([row % 12 for row in range(60)], [row % 3 + 1 for row in range(60)])
    assert found == {(float(x), float(x % 3 + 1)): 5 for x in range(12)}


@pytest.mark.parametrize(
    ("rows", "nobody", "shown"),
    [([1] * 10 + [10], 0, {(1.0,): 11}), ([1] * 10 + [10], 10, {(1.0,): 12}), ([7], 0, {})],
)
def test_contributions_of_persons_are_flattened(rows, nobody, shown):
    owner = [person for person, own in enumerate(rows) for _ in range(own)] + [-1] * nobody
    persons = Persons(np.array([owner], dtype=np.int64), hash_numbers(0, len(rows))[np.newaxis])
    assert buckets([1] * len(owner), persons=persons)[0] == shown


def test_a_value_that_all_people_of_a_range_share_is_theirs():
    """Section 3.6: where all records of a node have one value, its refinement mixes in none of its neighbors."""
    x = [2] * 4 + [3] * 4 + [100] * 60
    y = [0, 2, 4, 6, 8, 10, 12, 14, *range(8), 1, 5, *range(8, 16), 9, 13, *[16, 20, 24, 28] * 10]
    found, _ = buckets(x, y)
    few = {key: count for key, count in found.items() if key[0] in (2.0, 3.0)}
    assert {value for value, _ in few} == {2.0, 3.0}
    for value, where in few:
        start = where if isinstance(where, float) else where[0]
        assert value == (2.0 if start < 8 else 3.0)
