from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError
from discreet.risk import replicated_special_uniques

KEYS = ["key1", "key2", "target"]
SYNTHETIC = [(1, 2, 3), (1, 2, 5), (4, 12, 4), (4, 12, 4), (4, 12, 4), (5, 12, 10)]
ORIGINAL = [(1, 2, 3), (1, 2, 3), (4, 12, 4), (4, 12, 4), (4, 12, 9), (5, 12, 10)]


def file(rows):
    return Microdata(pl.DataFrame(rows, schema=KEYS, orient="row"), keys=KEYS)


def msus(rows, size):
    """Minimal sample uniques by the definition: (columns, values) -> position of the record."""
    found = {}
    for n in range(1, size + 1):
        for columns in combinations(range(len(KEYS)), n):
            parts = [tuple(row[c] for c in columns) for row in rows]
            for i, part in enumerate(parts):
                smaller = any(
                    (sub, tuple(rows[i][c] for c in sub)) in found
                    for m in range(1, n)
                    for sub in combinations(columns, m)
                )
                if parts.count(part) == 1 and not smaller:
                    found[columns, part] = i
    return found


def test_the_published_example_shares_key1_5_and_target_10():
    """Table 2 of Kolb et al.: the minimal uniques of the original are Key1=5, target=9 and target=10."""
    assert set(msus(ORIGINAL, 3)) == {((0,), (5,)), ((2,), (9,)), ((2,), (10,))}
    figures = replicated_special_uniques(file(ORIGINAL), file(SYNTHETIC)).figures
    assert figures["msu_records_original"] == 2
    assert figures["shared_records"] == 1
    assert figures["msu_risk"] == pytest.approx(1 / 3)


rows = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=10)


@given(rows, rows, st.integers(1, 3))
def test_it_equals_the_definition(original, synthetic, size):
    ours, theirs = msus(original, size), msus(synthetic, size)
    standing_out = set(theirs.values())
    shared = {theirs[msu] for msu in theirs if msu in ours}
    found = replicated_special_uniques(file(original), file(synthetic), max_size=size)
    assert found.figures["msu_records_released"] == len(standing_out)
    assert found.figures["shared_records"] == len(shared)
    assert found.value == (len(shared) / len(standing_out) if standing_out else None)


def test_a_column_that_the_release_lacks_is_refused():
    with pytest.raises(ColumnError, match="key2"):
        replicated_special_uniques(file(ORIGINAL), Microdata(file(SYNTHETIC).frame.drop("key2")))
