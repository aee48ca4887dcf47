"""The reference points of secondary suppression: as many cells left out as the R packages, and a clean audit.

GaussSuppression 1.2.3 leaves out 18, 1,170 and 234 cells on these three tables.
"""

import polars as pl
import pytest

from discreet.tables import Dominance, PPercent, Suppression, Table, Threshold, primary


def test_ssb_d2_with_three_overlapping_geographies(test_data):
    data = pl.read_csv(test_data / "ssb_d2.csv")
    table = Table.from_microdata(data, "(region+county+k_group)*main_income", count="freq")
    result = Suppression(intervals=True).apply(primary(table, Threshold.up_to(3, zeros=True)))
    assert (result.figures["cells"], result.figures["primary"]) == (100, 11)
    assert result.figures["secondary"] <= 18
    assert result.audit.safe


def test_ssb_d4_in_six_dimensions(test_data):
    data = pl.read_csv(test_data / "ssb_d4.csv")
    table = Table.from_microdata(data, "(region+county+k_group)*main_income*(months+months2)", count="freq")
    result = Suppression().apply(primary(table, Threshold.up_to(10, zeros=False)))
    assert (result.figures["cells"], result.figures["primary"]) == (14_160, 4_928)
    assert result.figures["secondary"] <= 1_170
    assert result.audit.safe
    # Too large for intervals without being asked: the verdict itself says so.
    assert "was not tested" in result.summary()


def turnover(test_data, formula, hierarchies, rule=None):
    data = pl.read_csv(test_data / "rtauargus_indiv_dt.csv.gz")
    table = Table.from_microdata(data, formula, measure="TURNOVER", hierarchies=hierarchies)
    return primary(table, rule or Dominance(1, 85))


@pytest.mark.slow
def test_turnover_by_activity_and_region_with_single_contributors(test_data):
    table = turnover(test_data, "A88*NUTS3", {"A88": ("A21", "A10"), "NUTS3": ("NUTS2", "NUTS1")})
    result = Suppression(intervals=False).apply(table)
    assert (result.figures["cells"], result.figures["primary"]) == (1_805, 382)
    assert result.figures["secondary"] <= 234
    assert result.audit.safe
    assert "was not tested" in result.audit.line
    # Three cells are bounded more closely than the rule allows; the default leaves out what that takes.
    wide = Suppression().apply(table)
    assert wide.audit.figures["narrow"] == 0
    assert wide.audit.safe
    assert wide.figures["secondary"] <= 240


@pytest.mark.slow
def test_turnover_by_activity_region_and_size_needs_no_more_cells_than_the_peer(test_data):
    """GaussSuppression leaves out 442. Here contributors compute nothing with so many, and intervals hold as well."""
    table = turnover(
        test_data, "A88*NUTS2*SIZE", {"A88": ("A21", "A10"), "NUTS2": "NUTS1"}, rule=PPercent(10)
    )
    for plan in (Suppression(intervals=False), Suppression()):
        result = plan.apply(table)
        assert (result.figures["cells"], result.figures["primary"]) == (1_803, 541)
        assert result.figures["secondary"] <= 442
        assert result.audit.safe
    assert result.audit.figures["narrow"] == 0


@pytest.mark.slow
def test_repair_costs_little_in_the_finest_table_of_turnover(test_data):
    """762 cells went for the repair of 1,186 once, now about fifty."""
    finest = {"A88": ("A21", "A10"), "NUTS3": ("NUTS2", "NUTS1")}
    table = turnover(test_data, "A88*NUTS3*SIZE", finest, rule=PPercent(10))
    result = Suppression(intervals=False).apply(table)
    assert result.figures["primary"] == 1_963
    assert result.figures["secondary"] <= 1_240
    assert result.audit.safe


def test_the_optimum_of_ssb_d2_is_twelve_cells(test_data):
    """The method note gives twelve cells and a total count of 139: the eight primary cells (16) are in it."""
    data = pl.read_csv(test_data / "ssb_d2.csv")
    table = Table.from_microdata(data, "region*main_income", count="freq", hierarchies={"region": "county"})
    result = Suppression(method="optimal").apply(primary(table, Threshold.up_to(3, zeros=False)))
    assert (result.figures["cells"], result.figures["primary"]) == (90, 8)
    assert result.figures["proved_optimal"]
    assert len(result.secondary) == 12
    suppressed = result.table.cells.filter(pl.col("suppressed").is_not_null())["count"].sum()
    assert suppressed == 139
    assert result.audit.safe


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
def test_the_optimum_of_turnover_by_activity_and_size_is_proved(test_data):
    table = turnover(test_data, "A88*SIZE", {"A88": ("A21", "A10")})
    best = Suppression(method="optimal", singleton_method="none").apply(table)
    quick = Suppression(intervals=True, singleton_method="none").apply(table)
    assert (best.figures["cells"], best.figures["primary"]) == (192, 25)
    assert best.figures["proved_optimal"]
    assert best.audit.safe
    assert best.figures["secondary_value"] == pytest.approx(616_220.1, abs=0.1)
    assert best.figures["secondary_value"] <= quick.figures["secondary_value"] + 1e-6
