"""Decimal numbers that groups of people share are no warning: the density of a region tells of nobody (NIST DCE)."""

from __future__ import annotations

import warnings

import polars as pl

from discreet import Microdata, engine, risk


def test_the_density_of_a_region_is_no_number_of_one_person(test_data):
    table = pl.read_csv(test_data / "nist-dce" / "ma2019.csv", null_values="N", infer_schema_length=None)
    data = Microdata(table, keys=["AGEP", "SEX", "DENSITY"])
    assert table["DENSITY"].n_unique() == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = risk.k_anonymity(data)
    assert not any("decimal numbers" in caveat for caveat in found.caveats)
    alone = table.with_columns(POVPIP=pl.int_range(pl.len()) / 7)
    assert engine.seldom_repeated(Microdata(alone), ["DENSITY", "POVPIP"]) == ["POVPIP"]
