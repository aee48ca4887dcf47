"""Ten Australian households, half-hourly over two years."""

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.averaged_series import series


@pytest.fixture(scope="module")
def meters(test_data):
    return pl.read_csv(test_data / "energy" / "smart_meter10.csv.gz", try_parse_dates=True)


def roles(table):
    return Microdata(
        table, sensitive="general_supply_kwh", contributor="customer_id", time="reading_datetime"
    )


def test_groups_of_three_households_hide_hardly_anything(meters):
    found = series(roles(meters), k=[3, 5])
    figures = found.figures
    assert (figures["contributors"], figures["times"]) == (10, 36_105)
    assert figures["cells"] <= 3 * 36_105
    assert figures["share_p"] > 0.9
    assert figures["cells_p"] <= figures["cells_dominance_2"]
    assert figures["cells_dominance_1"] <= figures["cells_dominance_2"]
    assert figures["insider_success"] > figures["insider_chance"]
    table = found.detail["by_k"].sort("k")
    assert table["share_p"][0] > table["share_p"][1]
    assert table["information_loss"][0] < table["information_loss"][1]


def test_the_cells_agree_with_a_group_by(meters):
    found = series(roles(meters), k=5)
    groups = found.detail["attackers"].select(pl.col("contributor").alias("customer_id"), "group")
    kwh = pl.col("general_supply_kwh")
    expected = (
        meters.join(groups, on="customer_id")
        .group_by("group", time="reading_datetime")
        .agg(total=kwh.sum(), top=kwh.top_k(2).sum(), largest=kwh.max(), size=pl.len())
    )
    joined = found.detail["cells"].join(expected, on=["group", "time"], suffix="_expected")
    assert joined.height == found.figures["cells"] == expected.height
    assert (joined["size"] == joined["size_expected"]).all()
    assert ((joined["total"] - joined["total_expected"]).abs() < 1e-9).all()
    rest = pl.col("total") - pl.col("top")
    # Cells on the very edge of the rule are left to its own rounding.
    clear = joined.filter((rest - 2 / 3 * pl.col("largest")).abs() > 1e-9)
    assert clear.height > 0.99 * joined.height
    assert clear.filter(pl.col("p") != (rest < 2 / 3 * pl.col("largest"))).is_empty()


def test_one_day_gives_an_answer_for_each_half_hour(meters):
    day = meters.filter(pl.col("reading_datetime").dt.date() == pl.date(2013, 7, 1))
    found = series(roles(day), k=3)
    assert found.detail["times"].height == 48
    assert found.detail["attackers"]["peak_needed"].null_count() == 0
