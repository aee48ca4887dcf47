"""Ordered categories keep their order in every kind of frame, and every answer that depends on it is the same."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, engine, protect, risk

LEVELS = {"pay": ["low", "medium", "high", "very high"], "place": ["south", "north", "east"]}


def texts(n=800):
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "job": rng.choice(list("abcd"), n),
            "place": rng.choice(LEVELS["place"], n),
            "pay": rng.choice(LEVELS["pay"], n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )


def as_enum(frame):
    return frame.with_columns(pl.col(name).cast(pl.Enum(levels)) for name, levels in LEVELS.items())


def as_pandas(frame):
    made = frame.to_pandas()
    for name, levels in LEVELS.items():
        made[name] = pd.Categorical(made[name], levels, ordered=True)
    return made


def as_arrow(frame, *, ordered=True, chunks=1):
    parts = []
    for part in np.array_split(np.arange(frame.height), chunks):
        columns = {"job": pa.array(frame["job"][part].to_list())}
        for name, levels in LEVELS.items():
            codes = [None if value is None else levels.index(value) for value in frame[name][part]]
            columns[name] = pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int8()), levels, ordered=ordered
            )
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def as_duckdb(frame):
    ordered = as_pandas(frame)  # noqa: F841
    return duckdb.sql("SELECT * FROM ordered")


KINDS = {"pandas": as_pandas, "arrow": as_arrow, "duckdb": as_duckdb}


def file(frame):
    return Microdata(frame, keys=["job", "place"], sensitive="pay")


@pytest.mark.parametrize("kind", KINDS)
def test_measures_that_use_an_order_agree(kind):
    wanted, data = file(as_enum(texts())), file(KINDS[kind](texts()))
    assert engine.collect(data).schema["pay"] == pl.Enum(LEVELS["pay"])
    assert risk.t_closeness(data).value == risk.t_closeness(wanted).value
    for measure in (risk.population, risk.log_linear):
        ours, theirs = (measure(d, sampling_fraction=0.05, seed=3) for d in (wanted, data))
        assert dict(ours.figures) == dict(theirs.figures)


def test_an_arrow_dictionary_without_order_is_told_from_one_with():
    ordered, plain = (file(as_arrow(texts(), ordered=flag)) for flag in (True, False))
    assert risk.t_closeness(ordered).value < risk.t_closeness(plain).value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "treatment",
    [protect.Pram(columns=["pay", "place"]), protect.RandomSwap(columns=["pay"], share=0.5)],
    ids=["pram", "random-swap"],
)
def test_treatments_draw_the_same_and_keep_the_type(kind, treatment):
    wanted = treatment.apply(file(as_enum(texts())), seed=1).data.frame
    made = treatment.apply(file(KINDS[kind](texts())), seed=1).data
    assert engine.collect(made)["pay"].cast(pl.String).equals(wanted["pay"].cast(pl.String))
    if kind == "arrow":
        assert made.frame.schema.field("pay").type.ordered


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), *(st.sampled_from([*v, None]) for v in LEVELS.values())), min_size=1
    ),
    st.integers(1, 3),
)
def test_any_file_is_the_same_from_arrow_in_pieces(rows, chunks):
    frame = pl.DataFrame(rows, schema={"job": pl.String, "pay": pl.String, "place": pl.String}, orient="row")
    arrow = file(as_arrow(frame, chunks=min(chunks, frame.height)))
    assert engine.collect(arrow, ["job", "pay", "place"]).equals(as_enum(frame).select("job", "pay", "place"))
