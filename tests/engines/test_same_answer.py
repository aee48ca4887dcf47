"""Polars, pandas, PyArrow, DuckDB and PySpark give the same answer, to 1e-12, from one code path."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from discreet import Microdata, datasets, risk
from discreet.core.errors import InputError
from engines.agreement import (
    IN_PROCESS,
    KINDS,
    MEASURES,
    assert_engines_agree,
    assert_measures_agree,
    in_kind,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning"),
    pytest.mark.filterwarnings("ignore:.*[Pp]andas.*"),
]
# Shrinking a failure takes minutes on so wide a table and tells little more.
FAST = (Phase.explicit, Phase.reuse, Phase.generate)
RARER = ("wildcard", "drop")
LIKE_POLARS = ("pandas", "pandas-arrow", "pyarrow")
FEW = ("k_anonymity", "l_diversity entropy", "t_closeness")
DAYS = [dt.date(1999, 12, 31), dt.date(2020, 2, 29), dt.date(2020, 3, 1)]
MOMENTS = [dt.datetime(2020, 3, 29, 0, 30), dt.datetime(2020, 10, 25, 1, 30), dt.datetime(1969, 12, 31, 23)]
COLUMNS = {
    "whole": (pl.Int64, [0, 1, -5]),
    "small": (pl.UInt8, [0, 1, 200]),
    "real": (pl.Float64, [0.0, 0.1, -2.5, float("nan")]),
    "text": (pl.String, ["", "a", "A", "b c"]),
    "flag": (pl.Boolean, [True, False]),
    "day": (pl.Date, DAYS),
    "moment": (pl.Datetime("us"), MOMENTS),
    "zoned": (pl.Datetime("us", "UTC"), [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "loose": (pl.Categorical, ["x", "y"]),
    "level": (pl.Enum(["low", "high"]), ["low", "high"]),
}


@st.composite
def tables(draw, max_rows=30):
    rows = draw(st.integers(2, max_rows))
    columns = {}
    for name, (dtype, values) in COLUMNS.items():
        cells = draw(st.lists(st.sampled_from([*values, None]), min_size=rows, max_size=rows))
        if all(cell is None or cell != cell for cell in cells):
            cells[0] = values[0]
        columns[name] = pl.Series(name, cells, dtype=dtype, strict=False)
    keys = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    sensitive = draw(st.sampled_from([name for name in sorted(COLUMNS) if name not in keys]))
    return pl.DataFrame(columns), {"keys": keys, "sensitive": sensitive}


def has_complete_records(table, roles):
    return table.with_columns(pl.col("real").fill_nan(None)).drop_nulls(roles["keys"]).height > 0


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck), phases=FAST)
@given(
    drawn=tables(), chosen=st.lists(st.sampled_from(sorted(MEASURES)), min_size=3, max_size=3, unique=True)
)
@pytest.mark.parametrize("kind", IN_PROCESS)
def test_random_data_with_missing_values_give_the_same_answer(kind, drawn, chosen):
    table, roles = drawn
    # Arrow does not say whether a dictionary is in order, so t takes its values as equally far apart.
    assume(kind in ("polars-lazy", "pandas") or roles["sensitive"] != "level" or "t_closeness" not in chosen)
    ways = ("category", "wildcard", "drop") if has_complete_records(*drawn) else ("category", "wildcard")
    assert_engines_agree(table, roles, kind, missing=ways, measures=tuple(chosen))


MIXED = pl.DataFrame(
    {
        name: pl.Series([*values, None] * 6, dtype=dtype, strict=False)[:12]
        for name, (dtype, values) in COLUMNS.items()
    }
)


@pytest.mark.parametrize(
    ("keys", "sensitive"),
    [
        pytest.param(["whole", "text", "real", "zoned"], "small", marks=pytest.mark.slow),
        (["day", "flag", "moment", "loose"], "whole"),
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_spark_treats_every_type_and_its_missing_values_as_polars_does(keys, sensitive, session_of):
    session = session_of("pyspark")
    roles = {"keys": keys, "sensitive": sensitive}
    assert_engines_agree(MIXED, roles, "pyspark", session, measures=FEW[:2], missing=("category",))


@pytest.mark.slow
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck), phases=FAST)
@given(drawn=tables())
@pytest.mark.filterwarnings("ignore")
def test_random_data_with_missing_values_give_the_same_answer_on_spark(session_of, drawn):
    table, roles = drawn
    assume(roles["sensitive"] != "level")
    ways = ("wildcard", "drop") if has_complete_records(*drawn) else ("wildcard",)
    assert_engines_agree(
        table, roles, "pyspark", session_of("pyspark"), missing=ways, measures=("k_anonymity",)
    )


@pytest.mark.parametrize(
    "missing", ["category", *(pytest.param(way, marks=pytest.mark.slow) for way in RARER)]
)
@pytest.mark.parametrize(
    "kind",
    [
        "polars-lazy",
        "duckdb",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("pyspark", *LIKE_POLARS)),
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_adult_gives_the_same_answer(kind, missing, session_of):
    adult = datasets.adult()
    roles = {"keys": list(adult.roles.keys), "sensitive": ["income", "hours-per-week"]}
    measures = ("uniqueness", "key_contributions", "delta_disclosure", "alpha_k", *FEW)
    few = ("k_anonymity", "t_closeness")
    assert_engines_agree(
        adult.frame,
        roles,
        kind,
        session_of(kind),
        measures=few if kind == "pyspark" else measures,
        missing=(missing,),
    )


@pytest.mark.parametrize("kind", [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_two_files_are_matched_alike(kind, session_of):
    session = session_of(kind)
    people = pl.DataFrame({"sex": ["f", "m", None, "f"] * 5, "age": [30, 40, 40, None] * 5})
    sample = people[::3]
    reference = Microdata(sample, keys=["sex", "age"]), Microdata(people)
    data = (
        Microdata(in_kind(sample, kind, session), keys=["sex", "age"]),
        Microdata(in_kind(people, kind, session)),
    )
    for function in (risk.k_map, risk.delta_presence):
        assert_measures_agree(function(*data), function(*reference), kind, ("classes",))
    for function in (risk.uniqueness, risk.reidentification):
        found, expected = (
            function(data[0], population=data[1]),
            function(reference[0], population=reference[1]),
        )
        assert_measures_agree(found, expected, kind, ("classes", "records"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_names_that_an_engine_might_confuse_are_kept_apart(kind, session_of):
    if kind == "pyspark":
        pytest.skip("Spark itself does not tell a column N from a column n")
    columns = {
        "class_size": [1, 1, 2, 2],
        "records": [1, 1, 1, 2],
        "k0": ["a", "a", "b", None],
        "s": [1, 2, 3, 4],
    }
    table = pl.DataFrame(columns | ({} if kind == "duckdb" else {"N": [1, 1, 1, 1], "n": [1, 1, 2, 2]}))
    data = Microdata(
        in_kind(table, kind), keys=[name for name in table.columns if name != "s"], sensitive="s"
    )
    assert risk.k_anonymity(data).value == 1
    assert len(risk.k_anonymity(data).detail["classes"]) == 3
    assert risk.l_diversity(data).value == 1
    assert risk.t_closeness(data).detail["records"] is not None


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb", "pyspark"])
@pytest.mark.filterwarnings("ignore")
def test_record_detail_of_a_lazy_source_stays_lazy(kind, session_of):
    frame = in_kind(MIXED, kind, session_of(kind))
    data = Microdata(frame, keys=["whole", "text"], sensitive="small")
    for measure in (
        risk.k_anonymity(data),
        risk.k_anonymity(data, missing="wildcard"),
        risk.l_diversity(data),
    ):
        assert type(measure.detail["records"]) is type(frame)


@pytest.mark.parametrize("kind", ["polars-lazy", "pandas", "duckdb"])
def test_ordered_categories_keep_their_order(kind):
    level = pl.Series(["low", "middle", "high", None] * 3, dtype=pl.Enum(["low", "middle", "high"]))
    table = pl.DataFrame({"area": [1, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3], "level": level})
    frame = in_kind(table, kind)
    if kind == "duckdb":
        frame = frame.project("area, level::enum('low', 'middle', 'high') as level")
    roles = {"keys": "area", "sensitive": "level"}
    found, expected = risk.t_closeness(Microdata(frame, **roles)), risk.t_closeness(Microdata(table, **roles))
    assert_measures_agree(found, expected, kind, ("classes", "records"))


def test_pandas_records_keep_the_index_they_came_with():
    frame = MIXED.select("whole", "text").to_pandas().set_index([[f"p{i}" for i in range(12)]])
    records = risk.k_anonymity(Microdata(frame, keys=["whole", "text"])).detail["records"]
    assert list(records.index) == list(frame.index)


def test_a_mixed_pandas_column_is_compared_by_its_text():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"code": pd.Series([1, "1", 1.0, "x", None], dtype=object)})
    found = risk.k_anonymity(Microdata(frame, keys="code"))
    assert found.figures["classes"] == 2
    assert (found.figures["unique_records"], found.figures["all_suppressed"]) == (1, 1)


def test_an_engine_out_of_memory_says_so():
    duckdb = pytest.importorskip("duckdb")
    starved = duckdb.connect(config={"memory_limit": "20MB", "threads": 1, "max_temp_directory_size": "0KB"})
    many = starved.sql("select i as person, i % 7 as ill from range(3000000) as numbers(i)")
    with pytest.raises(InputError, match="out of memory"):
        risk.l_diversity(Microdata(many, keys="person", sensitive="ill"))
