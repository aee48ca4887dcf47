"""Tables of Statistics Norway, Insee and sdcTable: the numbers of cells and sensitive cells that are published."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Hierarchy
from discreet.core.errors import DiscreetWarning
from discreet.tables import (
    Dominance,
    KDisclosure,
    PPercent,
    Table,
    Threshold,
    argus,
    equations,
    information_loss,
    primary,
)


def sensitive(table: Table, *rules) -> int:
    return int(primary(table, *rules).cells["primary"].sum())


def assert_adds_up(table: Table) -> None:
    for column in ("count", *table.measures):
        np.testing.assert_allclose(
            table.x.T @ table.inner[column].to_numpy(), table.cells[column].to_numpy(), rtol=1e-9, atol=1e-6
        )


def test_the_social_assistance_of_norway_has_a_hundred_cells(test_data):
    d2 = pl.read_csv(test_data / "ssb_d2.csv")
    table = Table.from_microdata(d2, "(region + county + k_group)*main_income", count="freq")
    assert (table.cells.height, table.inner.height) == (100, 44)
    assert sensitive(table, Threshold.up_to(3, zeros=True)) == 11
    assert_adds_up(table)
    nested = Table.from_microdata(d2, "region*main_income", count="freq", hierarchies={"region": "county"})
    assert (nested.cells.height, sensitive(nested, Threshold.up_to(3))) == (90, 8)


def test_six_dimensions_of_norway_have_the_published_number_of_sensitive_cells(test_data):
    d4 = pl.read_csv(test_data / "ssb_d4.csv")
    linked = Table.from_microdata(
        d4, "(region + county + k_group)*main_income*(months + months2)", count="freq"
    )
    assert (linked.cells.height, sensitive(linked, Threshold.up_to(10))) == (14_160, 4_928)
    nested = Table.from_microdata(
        d4,
        "region*main_income*months",
        count="freq",
        hierarchies={"region": ["county", "k_group"], "months": "months2"},
    )
    assert (nested.cells.height, sensitive(nested, Threshold.up_to(10))) == (14_160, 4_928)
    assert_adds_up(linked)
    assert_adds_up(nested)


def test_french_enterprises_have_the_published_number_of_dominated_cells(test_data):
    firms = pl.read_csv(test_data / "rtauargus_indiv_dt.csv.gz", infer_schema_length=None)
    table = Table.from_microdata(
        firms,
        "A88*NUTS3",
        measure="TURNOVER",
        hierarchies={"A88": ("A21", "A10"), "NUTS3": ("NUTS2", "NUTS1")},
    )
    assert (table.cells.height, sensitive(table, Dominance(1, 85))) == (1_805, 382)
    assert_adds_up(table)
    assert not np.abs(equations(table) @ table.values).max() > 1e-6
    weighted = Table.from_microdata(firms, "A10*NUTS1", measure="TURNOVER", weight="WEIGHT")
    assert sensitive(weighted, Dominance(1, 85)) <= sensitive(
        Table.from_microdata(firms, "A10*NUTS1", measure="TURNOVER"), Dominance(1, 85)
    )


@pytest.mark.parametrize(
    ("file", "dimensions", "cells"),
    [
        ("act_size", ["ACTIVITY", "SIZE"], 414),
        ("act_cj", ["ACTIVITY", "CJ"], 406),
        ("nuts_size", ["NUTS", "SIZE"], 460),
        ("nuts_cj", ["NUTS", "CJ"], 452),
    ],
)
def test_aggregated_french_tables_add_up(test_data, file, dimensions, cells):
    activity = pl.read_csv(test_data / "rtauargus_activity_corr_table.csv", infer_schema=False)
    nuts = pl.read_csv(test_data / "rtauargus_nuts23_fr_corr_table.csv", infer_schema=False)
    known = {
        "ACTIVITY": Hierarchy.from_table(activity.select("A88", "A21", "A10")),
        "NUTS": Hierarchy.from_table(nuts.select("NUTS3", "NUTS2")),
    }
    frame = pl.read_csv(test_data / f"rtauargus_turnover_{file}.csv", infer_schema_length=None)
    table = Table.from_cells(
        frame,
        dimensions,
        count="N_OBS",
        measure="TOT",
        largest="MAX",
        hierarchies={name: way for name, way in known.items() if name in dimensions},
        tolerance=0.01,
    )
    assert table.cells.height == cells
    assert table.cells["additive"].all()
    flagged = frame.filter((pl.col("MAX") > 0.85 * pl.col("TOT")) | pl.col("N_OBS").is_between(1, 2)).height
    assert sensitive(table, Dominance(1, 85), Threshold(3)) == flagged


def test_the_flags_of_a_french_table_are_found_again(test_data):
    frame = pl.read_csv(test_data / "rtauargus_datatest1.csv", infer_schema_length=None)
    dimensions = ["treff", "cj", "type_distrib", "A10"]
    with pytest.warns(DiscreetWarning, match="15 of 689"):
        table = Table.from_cells(
            frame,
            dimensions,
            count="nb_obs_rnd",
            measure="pizzas_tot_abs",
            largest="pizzas_max",
            tolerance=1000,
        )
    found = primary(table, Dominance(1, 85)).cells
    flags = found.select(dimensions).join(frame, on=dimensions, how="left", maintain_order="left")
    # The total of one cell is negative; the file flags it, though no contribution comes near its absolute value.
    assert (found["primary"] != flags["is_secret_dom"]).sum() == 1


def test_companies_count_once_however_many_records_they_have(test_data):
    values = pl.read_csv(test_data / "ssb_magnitude1.csv")
    table = Table.from_microdata(
        values,
        "sector4*geo",
        measure="value",
        hierarchies={"sector4": "sector2", "geo": "eu"},
        contributor="company",
    )
    assert table.cells["contributors"][0] == 4
    assert table.cells["value"][0] == pytest.approx(462.3)
    assert sensitive(table, PPercent(10)) >= table.cells.filter(pl.col("contributors") <= 2).height


def test_overlapping_activity_codes_of_sdctable_are_linked_in_one_table(test_data):
    data = pl.read_csv(test_data / "sdctable_microdata2.csv")
    table = Table.from_microdata(data, "region*gender*(ecoOld + ecoNew)", measure="numVal")
    assert set(table.tables) == {"region*gender*ecoOld", "region*gender*ecoNew"}
    assert_adds_up(table)
    simple = Table.from_microdata(
        pl.read_csv(test_data / "sdctable_microdata1.csv"), "region*gender", measure="val"
    )
    assert simple.cells["count"][0] == 100


def test_k_disclosure_on_accidents_finds_what_group_disclosure_finds_and_more(test_data):
    accidents = pl.read_csv(test_data / "ssb_mun_accidents.csv")
    table = Table.from_microdata(accidents, "mun*inj", count="freq")
    found = [sensitive(table, KDisclosure(k, ["inj"])) for k in range(4)]
    assert found == sorted(found)
    assert found[1] > 0


def test_a_survey_table_is_weighted_and_counted_at_once(test_data):
    survey = pl.read_csv(test_data / "laeken_eusilc.csv.gz", infer_schema_length=None, null_values="NA")
    table = Table.from_microdata(survey, "db040*rb090", measure="eqIncome", weight="rb050")
    assert table.cells["count"][0] == survey.height
    assert table.cells["weighted"][0] == pytest.approx(survey["rb050"].sum())
    assert_adds_up(table)


def test_a_whole_table_goes_through_tau_argus_files_and_back(test_data, tmp_path):
    d2 = pl.read_csv(test_data / "ssb_d2.csv")
    table = primary(
        Table.from_microdata(d2, "region*main_income", count="freq", hierarchies={"region": "county"}),
        Threshold.up_to(3),
    )
    file = argus.write_hierarchy(table.hierarchy["region"], tmp_path / "region.hrc")
    again = Table.from_microdata(d2, "region*main_income", count="freq", hierarchies={"region": file})
    assert sorted(again.cells["count"]) == sorted(table.cells["count"])
    jj = argus.read_jj(argus.write_jj(table, tmp_path / "d2.jj"))
    assert jj.check() == 0
    assert jj.cells.filter(pl.col("status") == "u").height == 8
    lost = information_loss(table, table.cells.filter(~pl.col("primary")))
    assert lost.figures["suppressed"] == 8
