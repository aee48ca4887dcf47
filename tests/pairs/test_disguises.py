"""A release is read back into the writing of its original, and strangers are not read as anybody."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.pairs.disguises import folded, undisguised, unexplained

TOWNS = ["Ålesund", "Bergen", "Oslo (west)", "Oslo (east)", "Tromsø"]


def people(seed, rows=1000):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "pay": rng.lognormal(8, 1, rows).round(2),
            "town": rng.choice(TOWNS, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "born": pl.date_range(pl.date(1940, 1, 1), pl.date(2000, 1, 1), "1d", eager=True).sample(
                rows, with_replacement=True, seed=seed
            ),
        }
    )


def read_back(original, released):
    """Take the readings together, by the name of the column of the original."""
    return {
        one.column: read.frame[one.column]
        for read in undisguised(original, released)
        for one in read.disguises
    }


WRITINGS = {
    "lower case": ("town", pl.col("town").str.to_lowercase()),
    "blanks and dashes": ("town", pl.concat_str(pl.lit("  "), pl.col("town").str.replace_all(" ", "-"))),
    "accents": ("town", pl.col("town").str.replace_all("Å", "A").str.replace_all("ø", "ø")),
    "codes": ("town", pl.col("town").replace(TOWNS, ["b", "c", "e", "a", "d"])),
    "another currency": ("pay", pl.col("pay") * 11.37),
    "a shift": ("pay", pl.col("pay") + 4321),
    "both": ("pay", pl.col("pay") * 0.4536 - 77),
    "older by some years": ("age", pl.col("age") + 7),
    "other days": ("born", pl.col("born").dt.offset_by("100d")),
    "dates as text": ("born", pl.col("born").dt.strftime("%d.%m.%Y")),
    "amounts as text": ("pay", pl.concat_str(pl.lit("€ "), pl.col("pay").cast(pl.String))),
}


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("renamed", [False, True], ids=["own name", "another name"])
def test_a_column_in_another_writing_is_read_back(writing, renamed):
    original = people(1)
    name, change = WRITINGS[writing]
    written = original.with_columns(change.alias(name))
    released = written.rename({name: "x9"}) if renamed and writing not in ("codes",) else written
    if writing == "accents" and not renamed:
        assert read_back(original, released).keys() <= {"town"}
        return
    read = read_back(original, released)[name]
    if original[name].dtype == pl.String:
        assert read.to_list() == original[name].to_list()
    else:
        ours, theirs = (
            side.cast(pl.Float64, strict=False) if side.dtype.is_numeric() else side
            for side in (original[name], read)
        )
        if ours.dtype == pl.Float64:
            assert np.allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-6)
        else:
            assert ours.cast(pl.Date).to_list() == theirs.cast(pl.Date).to_list()


def test_a_monotone_change_is_read_by_its_ranks():
    original = people(1)
    released = original.with_columns(pay=pl.col("pay").log())
    read = read_back(original, released)["pay"]
    assert np.corrcoef(read.to_numpy(), original["pay"].to_numpy())[0, 1] > 0.999


@settings(deadline=None, max_examples=examples(40))
@given(
    seeds=st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), rows=st.sampled_from([100, 400, 1500])
)
def test_nothing_is_read_into_other_people(seeds, rows):
    assert read_back(people(seeds[0], rows), people(seeds[1] + 20_000, rows)) == {}


def test_labels_that_differ_only_in_signs_are_not_taken_for_one_another():
    pay = pl.DataFrame({"pay": ["<=50K", ">50K"] * 20})
    read = read_back(pay, pay.select(pl.col("pay").str.to_lowercase()))["pay"]
    assert read.to_list() == pay["pay"].to_list()


def test_a_column_that_another_tells_or_that_never_varies_needs_no_explanation():
    ages = people(1).select("age")
    released = ages.with_columns(band=pl.col("age") // 10, source=pl.lit("x"), noise=pl.int_range(pl.len()))
    assert unexplained(ages, released) == ["noise"]


def test_missing_values_stay_missing():
    original = people(1).with_columns(town=pl.when(pl.col("age") > 50).then("town"))
    read = read_back(original, original.with_columns(pl.col("town").str.to_uppercase()))["town"]
    assert read.to_list() == original["town"].to_list()


def test_folding_keeps_letters_and_digits_only():
    assert folded(pl.Series(["Éa 1-2", None, "ß"])).to_list() == ["ea12", None, "ss"]


ODD = {
    "list": pl.Series([[1, 2]] * 60),
    "bytes": pl.Series([b"x", b"y"] * 30),
    "time": pl.Series([0, 1, 2] * 20).cast(pl.Time),
    "infinite": pl.Series([np.inf, 1.0, np.nan] * 20),
    "nothing": pl.Series([None] * 60, dtype=pl.Float64),
    "huge": pl.Series(np.linspace(-1e300, 1e300, 60)),
    "tiny": pl.Series(np.linspace(0, 1e-300, 60)),
    "texts": pl.Series(["a", "b", ""] * 20),
    "days": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 29), "1d", eager=True),
}


@pytest.mark.parametrize("ours", ODD)
def test_columns_of_any_type_are_read_or_left_alone(ours):
    for theirs in ODD.values():
        for name in ("x", "y"):
            released = pl.DataFrame({name: theirs, "k": [1, 2] * 30})
            list(undisguised(pl.DataFrame({"x": ODD[ours], "k": [1, 2] * 30}), released))
