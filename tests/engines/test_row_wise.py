"""Row-wise treatments give the same bytes on every engine and for every partitioning, and stay queries."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, engine
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect import (
    AddNoise,
    Band,
    DonutMask,
    DropIdentifiers,
    Generalize,
    Plan,
    Pram,
    Pseudonymize,
    Recode,
    Round,
    ShiftDates,
    StochasticRound,
    TopBottomCode,
)
from engines.agreement import IN_PROCESS, in_kind, in_polars, why_no_spark

ROLES: dict[str, Any] = {"keys": ["age", "job"], "identifiers": "name"}
TREATMENTS = {
    "band": Band(widths={"age": 10}),
    "breaks": Band(breaks={"age": [18, 65]}),
    "round": Round({"pay": 100}),
    "recode": Recode({"job": {"cook": "kitchen", "nurse": None}}),
    "recode to missing": Recode({"age": {30: 31}}, other="missing"),
    "generalize": Generalize({"age": 1}, {"age": Hierarchy.intervals([5])}),
    "top": TopBottomCode(top={"pay": 900.5}, bottom={"age": 20}),
    "drop": DropIdentifiers(),
    "pseudonyms": Pseudonymize(),
    "noise": AddNoise(["pay", "visits"], level=0.3),
    "laplace": AddNoise("pay", method="laplace"),
    "pram": Pram(["job"], change=0.3),
    "pram by strata": Pram(["job"], change=0.3, strata="sex"),
    "pram jointly": Pram(["job", "sex"], change=0.3, jointly=True, missing="category"),
    "dates": ShiftDates(max_days=20),
    "dates of a household": ShiftDates(max_days=20, by="house"),
    "counts": StochasticRound("visits", k=3, cell=["age", "job"]),
    "donut": DonutMask(r_min=50, r_max=90, location=["x", "y"]),
}
RANDOM = (
    "noise",
    "laplace",
    "pram",
    "pram by strata",
    "pram jointly",
    "dates",
    "dates of a household",
    "donut",
)


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    """Make a file with gaps, skew, texts, numbers and dates."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 95, rows)
    job = rng.choice(["clerk", "cook", "nurse", "spy"], rows, p=[0.6, 0.25, 0.1, 0.05])
    gaps = rng.random((4, rows)) < 0.1
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(rows)],
            "age": pl.Series(age).set(pl.Series(gaps[0]), None),
            "job": pl.Series(job).set(pl.Series(gaps[1]), None),
            "sex": rng.choice(["f", "m"], rows),
            "house": pl.Series(rng.integers(0, max(rows // 3, 1), rows)).set(pl.Series(gaps[2]), None),
            "pay": pl.Series(rng.lognormal(6, 1, rows).round(2)).set(pl.Series(gaps[3]), None),
            "visits": rng.integers(0, 6, rows),
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 900, rows)],
            "x": rng.uniform(0, 1e5, rows),
            "y": rng.uniform(0, 1e5, rows),
        }
    )


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


@contextlib.contextmanager
def nothing_collected(most: int = 200):
    """Fail when more than a table of classes is brought home."""
    from discreet.engine import attributes, classes, frames, packing, shared_tables

    bring, in_batches = frames.in_memory, frames.collected_batches

    def guarded(source, *, named=False):
        table = bring(source, named=named)
        assert table.height <= most, f"{table.height} rows were brought home"
        return table

    def in_guarded_batches(source, rows):
        brought = 0
        for part in in_batches(source, rows):
            brought += part.height
            assert brought <= most, f"{brought} rows were brought home"
            yield part

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(classes, "collected_batches", in_guarded_batches)
        bringing = (attributes, packing, shared_tables)
        for module in (
            frames,
            engine.by_record,
            engine.record_batches,
            engine.rebuild,
            *bringing,
        ):
            patched.setattr(module, "in_memory", guarded)
        yield


def cells(frame: Any) -> pl.DataFrame:
    """Bring a frame home, categories as texts and whole numbers as one type."""
    table = in_polars(frame)
    texts = [name for name, kind in table.schema.items() if isinstance(kind, pl.Enum | pl.Categorical)]
    whole = [name for name, kind in table.schema.items() if kind.is_integer()]
    return table.with_columns(pl.col(texts).cast(pl.String), pl.col(whole).cast(pl.Float64)).with_columns(
        pl.selectors.float().fill_nan(None)
    )


@pytest.mark.parametrize("kind", IN_PROCESS)
@pytest.mark.parametrize("name", TREATMENTS)
def test_row_wise_treatments_give_the_same_bytes_on_every_engine(name, kind):
    table = people(700)
    expected = TREATMENTS[name].apply(Microdata(table, **ROLES), seed=3)
    found = TREATMENTS[name].apply(Microdata(in_kind(table, kind), **ROLES), seed=3)
    assert cells(found.data.frame).equals(cells(expected.data.frame))
    assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells)
    assert dict(found.log[0].suppressed_cells) == dict(expected.log[0].suppressed_cells)


@pytest.mark.parametrize("name", TREATMENTS)
def test_polars_queries_keep_the_types_of_frames(name):
    table = people(300)
    expected = TREATMENTS[name].apply(Microdata(table, **ROLES), seed=3).data.frame
    found = TREATMENTS[name].apply(Microdata(table.lazy(), **ROLES), seed=3).data.frame
    assert isinstance(found, pl.LazyFrame)
    assert found.collect().equals(expected)
    assert found.collect_schema() == expected.schema


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize("name", TREATMENTS)
def test_no_record_is_collected(name, kind):
    with nothing_collected():
        release = TREATMENTS[name].apply(Microdata(in_kind(people(3000), kind), **ROLES), seed=3)
        dict(release.log[0].changed_cells)


@pytest.mark.parametrize("kind", ["polars", "polars-lazy", "duckdb"])
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(1, 399), max_size=4), name=st.sampled_from(RANDOM), named=st.booleans())
def test_the_bytes_do_not_depend_on_how_the_file_is_cut(kind, cuts, name, named):
    table = people(400)
    places = sorted({0, *cuts, 400})
    parts = [table[start:stop] for start, stop in itertools.pairwise(places)]
    cut = pl.concat(parts, rechunk=False)
    key = "name" if named else None
    whole = TREATMENTS[name].apply(Microdata(table, **ROLES), record_key=key, seed=5).data.frame
    found = TREATMENTS[name].apply(Microdata(in_kind(cut, kind), **ROLES), record_key=key, seed=5).data.frame
    assert cells(found).equals(cells(whole))


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(60)), name=st.sampled_from(RANDOM))
def test_a_record_key_makes_the_order_of_the_records_irrelevant(order, name):
    table = people(60).with_columns(pl.col("house").fill_null(0))
    first, second = (
        TREATMENTS[name].apply(Microdata(each, **ROLES), record_key="name", seed=5).data.frame.sort("name")
        for each in (table, table[list(order)])
    )
    assert first.equals(second)


def test_a_plan_of_row_wise_steps_goes_from_file_to_file(tmp_path):
    from discreet import read, write

    table = people(2000)
    table.write_parquet(tmp_path / "in.parquet")
    plan = Plan([TREATMENTS["pram"], TREATMENTS["noise"], TREATMENTS["band"], DropIdentifiers()])
    release = plan.apply(read(tmp_path / "in.parquet", **ROLES), seed=1)
    assert isinstance(release.data.frame, pl.LazyFrame)
    write(release.data, tmp_path / "out.parquet")
    whole = plan.apply(Microdata(table, **ROLES), seed=1).data.frame
    assert pl.read_parquet(tmp_path / "out.parquet").equals(whole)


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_a_refusal_inside_an_engine_is_said_in_its_own_words(kind, tmp_path):
    from discreet import write

    data = Microdata(in_kind(people(50), kind), **ROLES)
    release = Recode({"job": {"cook": "kitchen"}}, other="error").apply(data)
    with pytest.raises(ColumnError, match="does not name"):
        write(release.data, tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())


def test_a_record_key_that_does_not_tell_records_apart_is_refused():
    data = Microdata(people(50), **ROLES)
    with pytest.raises(ColumnError, match="2 different values for 50 records"):
        TREATMENTS["noise"].apply(data, record_key="sex", seed=1)
    with pytest.raises(ColumnError, match="missing in"):
        TREATMENTS["noise"].apply(data, record_key="house", seed=1)
    with pytest.raises(ColumnError, match="stand before"):
        Plan([DropIdentifiers(), TREATMENTS["noise"]]).apply(data, record_key="name", seed=1)


def test_duckdb_without_an_order_needs_a_record_key():
    relation = in_kind(people(50), "duckdb")
    relation._con.execute("SET preserve_insertion_order = false")
    with pytest.raises(ParameterError, match="record_key"):
        TREATMENTS["noise"].apply(Microdata(relation, **ROLES), seed=1)


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_gives_the_same_bytes_and_collects_nothing(spark_session):
    table = people(3000)
    data = Microdata(in_kind(table, "pyspark", spark_session).repartition(7), **ROLES)
    with pytest.raises(ParameterError, match="record_key='id'"):
        TREATMENTS["noise"].apply(data, seed=3)
    for name, treatment in TREATMENTS.items():
        expected = treatment.apply(Microdata(table, **ROLES), record_key="name", seed=3)
        with nothing_collected():
            found = treatment.apply(data, record_key="name", seed=3)
            assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells), name
        order = "name" if name not in ("drop", "pseudonyms") else ["day", "x"]
        ours, theirs = (cells(each.data.frame).sort(order) for each in (found, expected))
        assert ours.equals(theirs), name


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_steps_that_follow_one_another_share_a_pass_on_spark(spark_session):
    plan = Plan([TREATMENTS[name] for name in ("top", "band", "pram", "noise")])
    table = people(800)
    expected = plan.apply(Microdata(table, **ROLES), record_key="name", seed=3)
    frame = in_kind(table, "pyspark", spark_session).repartition(3)
    found = plan.apply(Microdata(frame, **ROLES), record_key="name", seed=3)
    plan_of_spark = found.data.frame._jdf.queryExecution().executedPlan().toString()
    assert plan_of_spark.count("ArrowEvalPython [") == 1
    assert cells(found.data.frame).sort("name").equals(cells(expected.data.frame).sort("name"))


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_asks_once_whether_a_key_tells_records_apart(spark_session):
    from discreet.engine.spark import different_whole_numbers

    def keyed(ids: list[int | None]) -> Microdata:
        table = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64), "pay": np.arange(len(ids)) * 1.0})
        return Microdata(in_kind(table, "pyspark", spark_session).repartition(3))

    near = list(range(-20_000, 20_000))
    assert different_whole_numbers(keyed(near), "id") == (40_000, 0, 40_000)
    assert different_whole_numbers(keyed([*near, None, 7]), "id") == (40_002, 1, 40_000)
    assert different_whole_numbers(keyed([n * 10**9 for n in range(99)]), "id") is None
    plan = Plan([AddNoise("pay"), AddNoise("pay")])
    for ids, told in (
        ([*near, 7], "40,000 different values for 40,001 records"),
        ([*near, None], "missing in 1 records"),
        ([0, 10**15, 10**15], "2 different values for 3 records"),
    ):
        with pytest.raises(ColumnError, match=told):
            plan.apply(keyed(ids), record_key="id", seed=1)
    for ids in (near, [n * 10**15 for n in range(9)]):
        counting = engine.by_record._counted_keys
        with mock.patch.object(engine.by_record, "_counted_keys", wraps=counting) as asked:
            release = plan.apply(keyed(ids), record_key="id", seed=1)
        assert asked.call_count == 1
        assert release.data.frame.count() == len(ids)


@pytest.mark.parametrize("engine_of", ["polars", "duckdb"])
@pytest.mark.parametrize(
    "other", [pl.DataFrame({"age": ["ancient"], "job": ["cook"]}), pl.DataFrame({"age": [3]})]
)
def test_parts_of_unequal_schema_are_refused_and_nothing_is_written(engine_of, other, tmp_path):
    from discreet import write

    (tmp_path / "parts").mkdir()
    pl.DataFrame({"age": [31, 42], "job": ["cook", "clerk"]}).write_parquet(tmp_path / "parts" / "0.parquet")
    other.write_parquet(tmp_path / "parts" / "1.parquet")
    files = str(tmp_path / "parts" / "*.parquet")
    frame = pl.scan_parquet(files)
    if engine_of == "duckdb":
        frame = pytest.importorskip("duckdb").connect().read_parquet(files)
    with pytest.raises(DiscreetError) as said:
        write(Band(widths={"age": 10}).apply(Microdata(frame)).data, tmp_path / "out.parquet")
    assert "ancient" not in str(said.value)
    told = ("parts have other columns or types", "of another type further down")
    assert any(words in str(said.value) for words in told)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("engine_of", ["polars", "duckdb"])
def test_a_value_that_was_not_counted_is_not_released_as_it_is(engine_of, tmp_path):
    from discreet import write

    source = tmp_path / "in.parquet"
    pl.DataFrame({"job": ["cook", "clerk", None] * 9}).write_parquet(source)
    frame = pl.scan_parquet(source)
    if engine_of == "duckdb":
        frame = pytest.importorskip("duckdb").connect().read_parquet(str(source))
    release = Pram(["job"], change=0.3).apply(Microdata(frame), seed=1)
    pl.DataFrame({"job": ["cook", "clerk", "spy"] * 9}).write_parquet(source)
    with pytest.raises(InputError, match="was changed or removed since it was opened"):
        write(release.data, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    if engine_of == "duckdb":  # who asks for the records without us meets the treatment itself
        with pytest.raises(Exception, match="changed between two passes"):
            release.data.frame.fetchall()
