"""What is published under a guarantee has the types, levels and columns that were declared, whatever the file holds."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, dp, protect, synth
from discreet.core.declared_types import as_declared, is_range
from discreet.core.errors import ColumnError
from discreet.microdata import Metadata

DOMAIN = {"age": (0, 100), "rooms": [1, 2, 3], "sex": ["f", "m"], "share": (0.0, 1.0)}
USUAL = pl.DataFrame(
    {
        "age": [20, 30, 40, 50] * 30,
        "rooms": [1, 2, 3, 2] * 30,
        "sex": ["f", "m"] * 60,
        "share": [0.25, 0.5, 0.75, 1.0] * 30,
    }
)
UNUSUAL = {
    "a decimal": {"age": pl.Float64, "rooms": pl.Float64},
    "a gap": {},
    "a word": {"age": pl.String, "rooms": pl.String, "share": pl.String},
    "a small type": {"age": pl.Int16, "rooms": pl.Int8, "share": pl.Float32},
    "a category": {"sex": pl.Categorical},
}
ODD = {"a decimal": 2.5, "a word": "n/a"}
PLANS = {
    "mst": lambda: synth.MST(1.0, domain=DOMAIN),
    "aim": lambda: synth.AIM(1.0, domain=DOMAIN, max_seconds=0.01),
    "bayesian-network": lambda: synth.BayesianNetwork(epsilon=1.0, domain=DOMAIN),
    "perturbed-histogram": lambda: synth.PerturbedHistogram(3, 1.0, domain=DOMAIN),
    "smooth-histogram": lambda: synth.SmoothHistogram(3, 1.0, domain=DOMAIN),
    "pmse-mechanism": lambda: synth.PMSEMechanism(
        50.0, prior={"age": (0, 100), "share": (0, 1)}, domain={n: DOMAIN[n] for n in ("rooms", "sex")},
        gaps=["age", "share"], depth=1, sampler="candidates", candidates=5,
    ),
}  # fmt: skip


def unusual(kind: str) -> pl.DataFrame:
    """The usual file as it would be read if one more record were of another kind."""
    frame = USUAL.with_columns(pl.col(name).cast(dtype) for name, dtype in UNUSUAL[kind].items())
    odd = {name: [ODD.get(kind)] for name in UNUSUAL[kind]} or {"age": [None]}
    if kind in ("a small type", "a category"):
        return frame
    one = pl.DataFrame({name: odd.get(name, [USUAL[name][0]]) for name in USUAL.columns}, strict=False)
    return pl.concat([frame, one.cast(dict(frame.schema))])


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@pytest.mark.parametrize("kind", [kind for kind in UNUSUAL if kind != "a category"])
@pytest.mark.parametrize("name", PLANS)
def test_one_record_does_not_change_the_types_of_a_private_generator(name, kind):
    if name == "pmse-mechanism" and kind == "a word":
        pytest.skip("a prior is for a column of numbers, which is stated with it")
    usual, other = (PLANS[name]().fit(Microdata(file)).sample(50).frame for file in (USUAL, unusual(kind)))
    assert other.schema == usual.schema
    if name != "pmse-mechanism":
        assert usual.schema == {"age": pl.Int64, "rooms": pl.Int64, "sex": pl.String, "share": pl.Float64}
    assert set(other["rooms"].drop_nulls()) <= {1, 2, 3}


@pytest.mark.parametrize("kind", ["a decimal", "a word", "a gap"])
@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_types_are_declared_in_every_kind_of_frame(convert, kind):
    made = [
        synth.PerturbedHistogram(3, 9.0, domain=DOMAIN, never_missing=USUAL.columns if kind == "a decimal" else None)
        .fit(Microdata(convert(file)))
        for file in (USUAL, unusual(kind) if kind != "a decimal" else unusual(kind).filter(pl.col("rooms") != 2.5))
    ]  # fmt: skip
    empty = [model.like.frame for model in made]
    if isinstance(empty[0], pd.DataFrame):
        assert dict(empty[0].dtypes) == dict(empty[1].dtypes)
        assert empty[0]["age"].dtype == "int64"
    else:
        assert empty[0].schema == empty[1].schema
        assert empty[0].schema.field("age").type == pa.int64()


def test_levels_of_a_category_are_the_declared_ones_in_declared_order():
    listed = USUAL.with_columns(pl.col("sex").cast(pl.Enum(["x", "m", "f"])))
    made = synth.MST(1.0, domain=DOMAIN).fit(Microdata(listed)).sample(20).frame
    assert made.schema["sex"] == pl.Enum(["f", "m"])
    known = USUAL.to_pandas().astype({"sex": pd.CategoricalDtype(["rare", "m", "f"])})
    other = synth.MST(1.0, domain=DOMAIN).fit(Microdata(known)).sample(20).frame
    assert list(other["sex"].cat.categories) == ["f", "m"]


@pytest.mark.parametrize("known", [["rare", "m", "f"], ["f", "m"]])
def test_levels_of_randomized_values_are_those_of_the_matrix(known):
    stay = {"f": {"f": 0.7, "m": 0.3}, "m": {"f": 0.3, "m": 0.7}}
    asked = protect.Pram(columns=["sex"], matrix={"sex": stay}, invariant=False)
    listed = USUAL.select(pl.col("sex").cast(pl.Enum(known)))
    assert asked.apply(Microdata(listed)).data.frame.schema["sex"] == pl.Enum(["f", "m"])
    for ordered in (True, False):
        frame = USUAL.select("sex").to_pandas().astype({"sex": pd.CategoricalDtype(known, ordered=ordered)})
        made = asked.apply(Microdata(frame))
        assert made.guarantee
        assert list(made.data.frame["sex"].cat.categories) == ["f", "m"]


def test_a_private_file_knows_neither_checksum_nor_size_of_its_original():
    data = Microdata(USUAL).with_metadata(Metadata("a.csv", checksum="ab", reading={"rows": 120}))
    for name in ("mst", "bayesian-network", "perturbed-histogram"):
        assert PLANS[name]().fit(data).sample(5).metadata == Metadata("a.csv")


LEVELS = {"rooms": [1, 2, 3], "sex": ["f", "m"]}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_one_record_does_not_change_the_types_of_a_private_table(kind):
    usual, other = (
        dp.table(Microdata(file), ["rooms", "sex"], levels=LEVELS, epsilon=1.0).detail["table"]
        for file in (USUAL, unusual(kind))
    )
    assert other.schema == usual.schema == {"rooms": pl.Int64, "sex": pl.String, "count": pl.Int64}
    assert other.select("rooms", "sex").equals(usual.select("rooms", "sex"))


@pytest.mark.parametrize("kind", UNUSUAL)
def test_without_public_levels_cells_are_texts(kind):
    usual, other = (
        dp.table(Microdata(file), ["rooms", "sex"], delta=1e-3, epsilon=5.0).detail["table"]
        for file in (USUAL, unusual(kind))
    )
    assert other.schema == usual.schema == {"rooms": pl.String, "sex": pl.String, "count": pl.Int64}
    assert set(usual["rooms"]) == set(other["rooms"]) == {"1", "2", "3"}


def test_counts_do_not_depend_on_how_a_column_is_typed():
    seeded = [
        dp.table(
            Microdata(file.head(120)), "rooms", levels={"rooms": [1, 2, 3]}, column="share",
            lower=0.0, upper=1.0, epsilon=1.0, seed=4,
        ).detail["table"]
        for file in (USUAL, USUAL.cast({"rooms": pl.Float64}), USUAL.cast({"rooms": pl.String}))
    ]  # fmt: skip
    assert seeded[0].equals(seeded[1])
    assert seeded[0].equals(seeded[2])


scalars = st.one_of(
    st.integers(-3, 8), st.floats(-3, 8), st.sampled_from(["1", "2", "2.0", "n/a", ""]), st.none()
)


@settings(deadline=None, max_examples=examples(80))
@given(
    st.lists(scalars, min_size=1, max_size=12),
    st.sampled_from([pl.Int64, pl.Float64, pl.String]),
    st.sampled_from([(0, 5), [1, 2, 3], ["1", "2"], (0.0, 5.0), [0.5, 1]]),
)
def test_the_type_of_a_column_is_that_of_its_domain_alone(values, dtype, domain):
    series = pl.Series("x", [None if v is None else str(v) for v in values]).cast(dtype, strict=False)
    made = as_declared(series, domain)
    assert made.dtype == as_declared(pl.Series("x", [1]), domain).dtype
    assert len(made) == len(series)
    if is_range(domain) and made.dtype == pl.Int64 and not dtype.is_integer():
        assert made.drop_nulls().is_between(domain[0], domain[1]).all()


def test_dates_and_truth_values_are_read_as_declared():
    day = dt.date(2020, 5, 1)
    asked = (dt.date(2000, 1, 1), dt.date(2030, 1, 1))
    assert as_declared(pl.Series("d", ["2020-05-01", "soon"]), asked).to_list() == [day, None]
    assert as_declared(pl.Series("d", [dt.datetime(2020, 5, 1, 7)]), asked).to_list() == [day]
    assert as_declared(pl.Series("b", ["True", "no"]), [True, False]).to_list() == [True, None]
    assert as_declared(pl.Series("b", [0, 1, 2]), [True, False]).to_list() == [False, True, None]
    with pytest.raises(ColumnError, match="of the type of the column"):
        as_declared(pl.Series("d", [day]), (0, 5))
    with pytest.raises(ColumnError, match="one type"):
        as_declared(pl.Series("d", [1]), [1, "a"])
