"""Robin Hood plans on classes and masks the same records of the same file on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.core.randomness import KeyedDraws
from discreet.hierarchy import Hierarchy
from discreet.protect import RobinHood
from discreet.protect.records_of_classes import DrawnRecords
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import cells, nothing_collected

ROLES = {"keys": ["origin", "sex", "age"]}
TREATMENT = RobinHood("origin", k_target=60, hierarchies={"age": Hierarchy.intervals([5, 20])})


def people(rows: int = 1200) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "origin": rng.choice(["a", "b", "c", None], rows, p=[0.8, 0.12, 0.05, 0.03]),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(18, 78, rows),
        }
    )


@pytest.mark.parametrize("named", [None, "id"])
def test_the_same_records_are_masked_on_every_engine(named):
    expected = TREATMENT.apply(Microdata(people(), **ROLES), record_key=named, seed=3)
    assert 0 < expected.log[0].parameters["masked_records"] < 1200
    for kind in ("polars-lazy", "pandas", "pyarrow", "duckdb"):
        lazy = kind in ("polars-lazy", "duckdb")
        with nothing_collected(most=600 if lazy else 2000):
            found = TREATMENT.apply(Microdata(in_kind(people(), kind), **ROLES), record_key=named, seed=3)
            assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells), kind
        assert cells(found.data.frame).equals(cells(expected.data.frame)), kind
        assert found.log[0].parameters == expected.log[0].parameters
        assert found.log[0].internal == expected.log[0].internal
        assert found.log[0].notes == expected.log[0].notes


@settings(max_examples=20, deadline=None)
@given(
    groups=st.lists(st.integers(0, 4), min_size=1, max_size=80),
    seed=st.integers(0, 100),
    chosen=st.data(),
)
def test_as_many_draws_lie_up_to_the_one_that_was_found_as_were_asked_for(groups, seed, chosen):
    table = pl.DataFrame({"g": groups})
    counted = table.group_by("g").len().sort("g")
    sizes = counted["len"].cast(pl.Int64).to_numpy()
    ranks = [chosen.draw(st.integers(1, int(size))) for size in sizes]
    asked = pl.DataFrame({"class": np.arange(len(sizes)), "rank": ranks})
    drawn = DrawnRecords(counted.select("g"), np.arange(len(sizes)), sizes, KeyedDraws.of(seed, "x"))
    last = drawn.last(Microdata(table.lazy()), asked, (), purpose="x")
    owner = drawn.places(table)
    low = drawn.draw(np.arange(table.height, dtype=np.uint64)) <= last[owner]
    assert np.bincount(owner[low], minlength=len(sizes)).tolist() == ranks


def test_a_file_with_other_records_than_were_counted_is_refused():
    data = Microdata(pl.LazyFrame({"g": [1, 1, 2]}))
    fifth = pl.DataFrame({"class": [0], "rank": [5]})
    for values in ([1], [1, 2]):
        counted = np.array([9, 1])[: len(values)]
        drawn = DrawnRecords(
            pl.DataFrame({"g": values}), np.arange(len(values)), counted, KeyedDraws.of(1, "x")
        )
        with pytest.raises(InputError, match="changed between two passes"):
            drawn.last(data, fifth, (), purpose="x")


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_the_same_records_are_masked_on_spark(spark_session):
    expected = TREATMENT.apply(Microdata(people(), **ROLES), record_key="id", seed=3)
    data = Microdata(in_kind(people(), "pyspark", spark_session).repartition(5), **ROLES)
    with pytest.raises(ParameterError, match="record_key='id'"):
        TREATMENT.apply(data, seed=3)
    with nothing_collected(most=600):
        found = TREATMENT.apply(data, record_key="id", seed=3)
        dict(found.log[0].changed_cells)
    assert cells(found.data.frame).sort("id").equals(cells(expected.data.frame).sort("id"))
