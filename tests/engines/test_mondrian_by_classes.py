"""Mondrian cuts a query by its classes into the groups it would cut the file in memory into."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.hierarchy import Hierarchy
from discreet.protect import Mondrian
from discreet.protect.privacy_models import KAnonymity, KMap, LDiversity, TCloseness
from engines.agreement import in_kind, why_no_spark
from engines.test_class_wise import ROLES, people
from engines.test_row_wise import cells, nothing_collected

CUTS = {
    "k": Mondrian(k=5),
    "by a hierarchy": Mondrian(k=4, hierarchies={"age": Hierarchy.intervals([5, 20])}),
    "sensitive values": Mondrian(models=[KAnonymity(3), LDiversity("ill", 2), TCloseness("ill", 0.3)]),
}


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize("name", CUTS)
def test_groups_of_a_query_are_those_of_the_file_in_memory(name, kind):
    expected = CUTS[name].apply(Microdata(people(), **ROLES))
    with nothing_collected(most=400):
        found = CUTS[name].apply(Microdata(in_kind(people(), kind), **ROLES))
        assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells)
    assert cells(found.data.frame).equals(cells(expected.data.frame))
    assert found.log[0].parameters == expected.log[0].parameters
    assert found.log[0].notes == expected.log[0].notes
    assert found.guarantee == expected.guarantee


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from("abc"), st.sampled_from("xy")),
        min_size=4,
        max_size=60,
    ),
    k=st.integers(1, 4),
)
def test_any_file_is_cut_alike_by_its_classes(rows, k):
    rows.append((1, "a", "x"))
    table = pl.DataFrame(rows, schema={"age": pl.Int64, "sex": pl.String, "ill": pl.String}, orient="row")
    ours, theirs = (
        Mondrian(k=k).apply(Microdata(frame, **ROLES)).data.frame for frame in (table.lazy(), table)
    )
    assert cells(ours).equals(cells(theirs))


def test_what_looks_at_records_says_so():
    assert Mondrian(k=3).work == "class-wise"
    assert Mondrian(k=3, strict=False).work == "whole-file"
    assert Mondrian(models=[KMap(3, weight="w")]).work == "whole-file"
    release = Mondrian(k=3, strict=False).apply(Microdata(people().lazy(), **ROLES))
    whole = Mondrian(k=3, strict=False).apply(Microdata(people(), **ROLES))
    assert cells(release.data.frame).equals(cells(whole.data.frame))


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_groups_on_spark_are_those_of_the_file_in_memory(spark_session):
    for treatment in CUTS.values():
        expected = treatment.apply(Microdata(people(), **ROLES))
        with nothing_collected(most=400):
            release = treatment.apply(
                Microdata(in_kind(people(), "pyspark", spark_session).repartition(3), **ROLES)
            )
            dict(release.log[0].changed_cells)
        ours, theirs = (cells(each.data.frame).sort("id") for each in (release, expected))
        assert ours.equals(theirs)
