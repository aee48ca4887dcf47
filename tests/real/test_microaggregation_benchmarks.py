"""Microaggregation on the benchmark files of its literature; figures obtained with sdcMicro 5.8.1."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.protect.microaggregation import Microaggregate

FILES = {
    "Tarragona.csv": ("16.9326", "2.2402"),
    "CASCrefmicrodata.csv": ("5.6922", "0.10734"),
    "EIA.csv": ("0.59193", "0.025913"),
}


def numbers(test_data, name):
    table = pl.read_csv(test_data / name)
    return table.select(table.columns[table.columns.index("RESREVENUE") :]) if name == "EIA.csv" else table


def as_printed(value, figure):
    """Round to as many decimals as the published figure has."""
    return f"{value:.{len(figure.split('.')[1])}f}"


def lost(table, **options):
    release = Microaggregate(k=3, columns=table.columns, **options).apply(Microdata(table), seed=1)
    return 100 * release.log[0].parameters["sse_share"], release


@pytest.mark.parametrize("name", FILES)
def test_mdav_and_individual_ranking_lose_what_sdcmicro_loses(test_data, name):
    table = numbers(test_data, name)
    mdav, ranking = FILES[name]
    found, release = lost(table)
    assert as_printed(found, mdav) == mdav
    assert release.log[0].notes[0].startswith(f"{table.height // 3:,} groups of 3 to ")
    assert as_printed(lost(table, method="ranking")[0], ranking) == ranking
    assert lost(table, method="univariate")[0] < float(ranking)
    for column in table.columns:
        assert release.data.frame[column].mean() == pytest.approx(table[column].mean(), rel=1e-12)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("method", ["v-mdav", "clustering", "projection"])
def test_the_other_methods_lose_less_than_random_groups(test_data, name, method):
    table = numbers(test_data, name)
    assert lost(table, method=method)[0] < lost(table, method="random")[0] / 2


@pytest.mark.slow
def test_incomes_of_a_population_are_grouped_by_region(test_data):
    people = pl.read_csv(test_data / "eusilcP.csv.gz", infer_schema_length=None)
    columns = ["py010n", "py050n", "py090n", "py100n"]
    release = Microaggregate(k=3, columns=columns, strata="region").apply(Microdata(people))
    shown = release.data.frame
    # Children have no personal income: their pattern of gaps is theirs alone.
    assert shown.select(pl.col(columns).is_null().sum()).row(0) == (10_169,) * 4
    assert shown.group_by(["region", *columns]).len()["len"].min() >= 3
    assert shown["py010n"].sum() == pytest.approx(people["py010n"].sum())
    assert shown.drop(columns).equals(people.drop(columns))


def test_mixed_columns_of_a_survey_are_grouped_with_gower(test_data):
    pay = pl.read_csv(test_data / "laeken_ses.csv.gz", infer_schema_length=None).head(5000)
    columns = ["earningsHour", "age", "education", "sex"]
    release = Microaggregate(k=5, columns=columns).apply(Microdata(pay))
    assert release.data.frame.group_by(columns).len()["len"].min() >= 5
    assert release.data.frame.schema == pay.schema
    assert release.log[0].parameters["sse_share"] < 0.1


def test_half_hourly_meters_are_averaged_over_whole_series(test_data):
    readings = pl.read_csv(test_data / "energy" / "smart_meter10.csv.gz").with_columns(
        day=pl.col("reading_datetime").str.slice(0, 7)
    )
    month = readings.filter(pl.col("day") == "2013-06")
    data = Microdata(month, sensitive="general_supply_kwh", time="reading_datetime")
    release = Microaggregate(k=3, series="customer_id").apply(data)
    by_time = release.data.frame.group_by("reading_datetime").agg(
        pl.col("general_supply_kwh").drop_nulls().value_counts().struct.field("count").min()
    )
    assert by_time["count"].min() >= 3
    assert np.isfinite(release.log[0].parameters["sse_share"])
