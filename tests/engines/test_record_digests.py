"""Equal records of two files are counted by digests as they are in memory, on every engine."""

from __future__ import annotations

import datetime as dt
import errno

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, compare
from discreet.engine import record_digests
from discreet.engine.record_digests import EqualRecords, Matched, RecordDigests, equal_records
from discreet.utility.row_novelty import equal_rows, new_rows
from engines.agreement import in_kind, why_no_spark

KINDS = ("polars", "polars-lazy", "pandas", "pyarrow", "duckdb")
DAY = dt.date(2020, 2, 29)
SCHEMA = {"x": pl.Float64, "k": pl.Int64, "c": pl.String, "d": pl.Date, "b": pl.Boolean}
RECORDS = st.lists(
    st.tuples(
        st.sampled_from([0.0, -0.0, 0.5, -3.0, float("nan"), None]),
        st.sampled_from([0, 3, None]),
        st.sampled_from(["", "3", "null", None]),
        st.sampled_from([DAY, None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=30,
)


def frame(records):
    return pl.DataFrame(records, schema=SCHEMA, orient="row")


def in_other_types(table):
    """Write the same values as another program would."""
    return table.with_columns(
        pl.col("k").cast(pl.Float64), pl.col("c").cast(pl.Categorical), pl.col("d").cast(pl.Datetime("us"))
    )


def counted(ours, theirs, unused, kind, **asked):
    """Ask past memory, with the files themselves for their sample."""
    sample = Microdata(ours), Microdata(theirs), Microdata(unused)
    files = [Microdata(in_kind(table, kind)) for table in (ours, theirs, unused)]
    return equal_rows(sample, tuple(files), {"columns": list(SCHEMA), **asked})


@settings(max_examples=examples(60), deadline=None)
@given(real=RECORDS, made=RECORDS, unused=RECORDS, kind=st.sampled_from(KINDS), other=st.booleans())
def test_what_is_counted_equals_what_is_measured_in_memory(real, made, unused, kind, other):
    ours, theirs, rest = frame(real), frame(made), frame(unused)
    if other:
        theirs = in_other_types(theirs)
    whole = new_rows(*map(Microdata, (ours, theirs)), tolerance=0, holdout=Microdata(rest))
    found = counted(ours, theirs, rest, kind, tolerance=0)
    for name in ("new_share", "new_share_exact", "copied_share", "new_share_holdout", "excess_matches"):
        assert found.figures[name] == pytest.approx(whole.figures[name], abs=1e-12), name
    assert found.value == whole.value


@settings(max_examples=examples(30), deadline=None)
@given(real=RECORDS, made=RECORDS, unused=RECORDS)
def test_counting_where_the_data_is_and_at_home_are_one(real, made, unused):
    files = [Microdata(frame(records).lazy()) for records in (real, made, unused)]
    digests = RecordDigests.of(files[0], list(SCHEMA))
    at_home = equal_records(files[0], files[1:], digests)
    assert (
        record_digests._counted_there([record_digests._as_query(data, digests) for data in files]) == at_home
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_digests, "_AT_ONCE", 4)
        assert equal_records(files[0], files[1:], digests) == at_home


def test_a_gap_is_no_value_and_stays_in_its_column():
    real = Microdata(pl.DataFrame({"a": ["", None, "x"], "b": [0.0, 0.0, None]}))
    made = Microdata(pl.DataFrame({"a": [None, "", "x", None], "b": [0.0, None, 0.0, None]}))
    found = equal_records(real, [made], RecordDigests.of(real, ["a", "b"]))
    assert found == EqualRecords(3, 3, 0, (Matched(4, 1, 1, 1),))


def test_values_do_not_change_places_between_columns():
    real = Microdata(pl.DataFrame({"a": [1, 2], "b": [2, 3]}))
    made = Microdata(pl.DataFrame({"a": [2, 3], "b": [1, 2]}))
    assert equal_records(real, [made], RecordDigests.of(real, ["a", "b"])).others[0].equal == 0


def test_numbers_in_single_precision_meet_their_doubles():
    pay = np.random.default_rng(1).lognormal(8, 1, 3000)
    ours = pl.DataFrame({"pay": pay, "n": np.arange(3000)})
    theirs = ours.with_columns(pl.col("pay").cast(pl.Float32))
    files = (Microdata(ours.lazy()), Microdata(theirs.lazy()), None)
    sample = (Microdata(ours[:500]), Microdata(theirs[1000:1500]), None)
    found = equal_rows(sample, files, {"columns": ["pay", "n"]})
    assert found.figures["copied"] == 3000
    assert any("'pay' (single precision)" in said for said in found.caveats)
    exact = equal_rows(sample, files, {"columns": ["pay", "n"], "precision": "exact"})
    assert exact.figures["copied"] == 0


def test_what_depends_on_a_tolerance_is_undefined():
    table = pl.DataFrame({"x": range(50)})
    files = (Microdata(table), Microdata(table.lazy()), Microdata(table))
    found = equal_rows(files, files, {"columns": ["x"], "tolerance": 0.05, "scale": "range"})
    assert found.value is found.figures["new_share"] is found.figures["excess_matches"] is None
    assert found.figures["new_share_exact"] == 0
    assert any("Not used here: tolerance, scale" in said for said in found.caveats)
    assert "almost unchanged" in found.caveats[0]


def test_only_digests_come_home_a_batch_at_a_time(monkeypatch):
    bring = record_digests.collected_batches

    def guarded(source, rows):
        for part in bring(source, rows):
            assert part.schema == {record_digests._DIGEST: pl.Int64}
            yield part

    monkeypatch.setattr(record_digests, "collected_batches", guarded)
    table = pl.DataFrame({"x": range(1000), "c": ["a", "b"] * 500})
    for kind in ("polars-lazy", "duckdb"):
        ours, theirs = (Microdata(in_kind(table, kind)) for _ in range(2))
        found = equal_records(ours, [theirs], RecordDigests.of(ours, ["x", "c"]))
        assert found.others[0].singles == 1000


def test_types_that_only_a_database_has_are_counted_too():
    connection = pytest.importorskip("duckdb").connect()
    query = """select (i % 7)::decimal(10, 2) a, (i % 5)::hugeint b, (if(i % 2 = 0, 'x', 'y'))::enum('x', 'y') c,
        time '10:00:00' + interval (i % 50) minute t, timestamptz '2020-01-01 00:00:00+00' + interval (i % 90) day z,
        (i % 11)::float g, i from range({}, {}) r(i)"""
    ours, theirs = (connection.sql(query.format(*ends)) for ends in ((0, 500), (400, 900)))
    held = Microdata(ours.pl())
    digests = RecordDigests.of(held, held.columns)
    expected = EqualRecords(500, 500, 0, (Matched(500, 100, 100, 100),))
    assert equal_records(Microdata(ours), [Microdata(theirs)], digests) == expected
    assert equal_records(held, [Microdata(theirs)], digests) == expected


def test_a_full_disk_leaves_the_measure_out_by_name(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(record_digests, "_written", full)
    table = pl.DataFrame({"x": range(3000), "c": ["a", "b"] * 1500}).lazy()
    found = compare(Microdata(table), Microdata(table), rows=1000, measures="new_rows", aligned=False)
    (release,) = found.releases.values()
    assert "disk" in release.skipped["new_rows"]


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_counts_equal_records_on_its_executors(spark_session):
    rng = np.random.default_rng(4)
    pick = [0.0, -0.0, 0.5, float("nan"), None]
    tables = [
        frame(
            [
                (pick[a], [0, 3, None][b], ["", "3", None][c], [DAY, None][d], [True, None][e])
                for a, b, c, d, e in rng.integers(0, [5, 3, 3, 2, 2], (90, 5))
            ]
        )
        for _ in range(3)
    ]
    here = [Microdata(table) for table in tables]
    digests = RecordDigests.of(here[0], list(SCHEMA))
    there = [Microdata(in_kind(table, "pyspark", spark_session).repartition(3)) for table in tables]
    known = equal_records(here[0], here[1:], digests)
    assert known.others[0].singles > 0
    assert equal_records(there[0], there[1:], digests) == known
    # Files of two engines meet at home.
    assert equal_records(there[0], here[1:], digests) == known
