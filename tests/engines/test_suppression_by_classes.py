"""Local suppression of a query is solved on its classes, and its records stay where they are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, write
from discreet.core.errors import DiscreetError, ParameterError
from discreet.protect import LocalSuppression
from discreet.protect.suppression_counts import Demand
from discreet.protect.suppression_solving import Problem, solve
from engines.agreement import in_kind, why_no_spark
from engines.test_class_wise import ROLES, people
from engines.test_row_wise import cells, nothing_collected

SUPPRESSIONS = {
    "k": LocalSuppression(k=3),
    "within strata": LocalSuppression(k=2, strata="ill"),
    "on subsets": LocalSuppression(k=3, subsets={1: 6}),
    "by importance": LocalSuppression(k=4, importance=["sex", "age"]),
}


@pytest.mark.parametrize("name", SUPPRESSIONS)
def test_suppression_reads_classes_only_and_reaches_the_same_on_every_engine(name):
    # Sorted by keys and strata the search meets the records in the same order in memory.
    table = people(1500).sort("age", "sex", "ill", nulls_last=True)
    treatment = SUPPRESSIONS[name]
    expected = treatment.apply(Microdata(table, **ROLES))
    found = {}
    for kind in ("polars-lazy", "duckdb"):
        with nothing_collected(most=400):
            release = treatment.apply(Microdata(in_kind(table, kind), **ROLES))
            assert dict(release.log[0].changed_cells) == dict(release.log[0].suppressed_cells)
        found[kind] = cells(release.data.frame)
        assert release.guarantee == expected.guarantee
        assert sum(release.log[0].suppressed_cells.values()) == sum(expected.log[0].suppressed_cells.values())
        assert release.log[0].notes == expected.log[0].notes
    assert found["polars-lazy"].equals(found["duckdb"])
    keys = ["age", "sex", "ill"] if name == "within strata" else ["age", "sex"]
    ours, theirs = (frame.select(keys).sort(keys) for frame in (found["duckdb"], cells(expected.data.frame)))
    assert ours.equals(theirs)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=3, max_size=60),
    k=st.integers(2, 3),
    named=st.booleans(),
)
def test_every_record_of_a_suppressed_query_has_company(rows, k, named):
    table = pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row").with_row_index("id")
    data = Microdata(table.lazy(), keys=["x", "y"])
    release = LocalSuppression(k=k).apply(data, record_key="id" if named else None)
    left = release.data.frame.collect()
    sizes = left.group_by("x", "y").len().filter(pl.any_horizontal(pl.col("x", "y").is_not_null()))
    assert left.height == table.height
    assert sizes.is_empty() or sizes["len"].min() >= k
    kept = left.join(table, on="id")
    assert kept.filter((pl.col("x") != pl.col("x_right")) | (pl.col("y") != pl.col("y_right"))).is_empty()


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_suppression_on_spark_needs_a_record_key_and_gives_the_same_cells(spark_session):
    # Two rare records give up 'y' and borrow one of a class whose other records keep it.
    rows = [(1, "a"), (1, "c"), *[(1, "b")] * 10, *[(2, "b")] * 5]
    table = pl.DataFrame(rows, schema=["x", "y"], orient="row").with_columns(id=pl.int_range(pl.len()))
    frame = in_kind(table, "pyspark", spark_session).repartition(4)
    treatment = SUPPRESSIONS["k"]
    with pytest.raises(ParameterError, match="record_key='id'"):
        treatment.apply(Microdata(frame, keys=["x", "y"]))
    expected = treatment.apply(Microdata(table.lazy(), keys=["x", "y"]), record_key="id")
    assert expected.data.frame.collect()["y"].null_count() == 3
    with nothing_collected():
        found = treatment.apply(Microdata(frame, keys=["x", "y"]), record_key="id")
    ours, theirs = (cells(release.data.frame).sort("id") for release in (found, expected))
    assert ours.equals(theirs)


@settings(max_examples=40, deadline=None)
@given(
    classes=st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 3), st.integers(1, 2), st.sampled_from([1, 1, 2, 3, 7, 400])
        ),
        min_size=1,
        max_size=40,
    ),
    subsets=st.booleans(),
)
def test_classes_and_their_records_are_solved_alike(classes, subsets):
    rows = np.array([row for row in sorted(classes) if any(row[:2])] or [(1, 1, 1, 7)])
    codes, first = np.unique(rows[:, :3].astype(np.int32), axis=0, return_index=True)
    many = rows[first, 3] + 3
    many[: len(many) // 2] -= 3
    demands = (Demand(np.arange(3), 3),)
    demands = (*(Demand(np.array([key, 2]), 4) for key in range(2) if subsets), *demands)
    problem = Problem(codes, np.zeros(len(codes)), np.ones(2), demands, wildcard=False, many=many)
    owner = np.repeat(np.arange(len(codes)), many)
    expanded = Problem(codes[owner], np.zeros(len(owner)), np.ones(2), demands, wildcard=False)
    try:
        expanded.check()
    except ParameterError:
        with pytest.raises(ParameterError):
            problem.check()
        return
    found, expected = solve(problem), solve(expanded)
    source = np.arange(len(codes)) if found.source is None else found.source
    ours = np.repeat(np.column_stack([source, found.codes]), found.many, axis=0)
    theirs = np.column_stack([owner, expected.codes])
    assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.tolist()))


def test_a_record_that_nobody_counted_is_not_written(tmp_path):
    people(1500).write_parquet(tmp_path / "in.parquet")
    data = Microdata(pl.scan_parquet(tmp_path / "in.parquet"), **ROLES)
    release = LocalSuppression(k=3).apply(data)
    one_other = people(1500).with_columns(age=pl.when(pl.col("id") == 7).then(999).otherwise("age"))
    one_other.write_parquet(tmp_path / "in.parquet")
    with pytest.raises(DiscreetError, match="changed"):
        write(release.data, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
