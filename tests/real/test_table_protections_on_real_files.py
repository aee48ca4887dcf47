"""Cell keys, rounding and synthesis on tables of EU-SILC, Statistics Norway and rtauargus."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.tables import (
    CellKey,
    ControlledRounding,
    PoissonSynthesis,
    RandomRounding,
    SmallCountRounding,
    Table,
    equations,
    expanded,
)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


@pytest.fixture
def silc(test_data):
    return pl.read_csv(test_data / "laeken_eusilc.csv.gz", infer_schema_length=None, null_values="NA")


def test_cell_keys_of_eu_silc_agree_between_tables(silc):
    people = silc.with_columns(band=(pl.col("age") // 10).cast(pl.String)).with_row_index("record")
    small = CellKey(id="record").apply(Table.from_microdata(people, "db040*rb090"))
    large = CellKey(id="record").apply(Table.from_microdata(people, "db040*rb090*band"))
    both = small.published.join(
        large.published.filter(pl.col("band") == "Total"), on=["db040", "rb090"], suffix="_large"
    )
    assert both.height == 30
    assert (both["count"] == both["count_large"]).all()
    assert large.figures["largest_move"] <= 5
    assert not large.published["count"].is_in([1, 2]).any()


def test_controlled_rounding_of_norwegian_tables_keeps_overlapping_geographies(test_data):
    d2 = pl.read_csv(test_data / "ssb_d2.csv")
    table = Table.from_microdata(
        d2, "region*main_income", count="freq", hierarchies={"region": ["county", "k_group"]}
    )
    made = ControlledRounding(base=5).apply(table)
    assert made.figures["beyond"] == 0
    assert made.figures["proved_optimal"]
    assert made.figures["deviation"] == 140
    assert np.abs(equations(table) @ made.table.values).max() == 0


def test_controlled_rounding_of_enterprise_turnover_keeps_two_hierarchies(test_data):
    firms = pl.read_csv(test_data / "rtauargus_indiv_dt.csv.gz", infer_schema_length=None).head(3000)
    table = Table.from_microdata(firms, "A21*NUTS2", hierarchies={"A21": "A10", "NUTS2": "NUTS1"})
    made = ControlledRounding(base=5, time_limit=20).apply(table)
    assert made.figures["beyond"] == 0
    assert np.abs(equations(table) @ made.table.values).max() == 0
    assert np.abs(made.table.values - table.values).max() < 5


def test_small_count_rounding_of_four_dimensions_publishes_no_small_count(test_data):
    d4 = pl.read_csv(test_data / "ssb_d4.csv", infer_schema_length=None)
    dimensions = [name for name in d4.columns if name != "freq"][:4]
    table = Table.from_microdata(d4, "*".join(f"`{name}`" for name in dimensions), count="freq")
    for make, least in ((SmallCountRounding(k=5), 5), (RandomRounding(base=3), 3)):
        made = make.apply(table)
        shown = made.table.values
        assert not ((shown > 0) & (shown < least)).any()
        assert np.abs(equations(table) @ shown).max() == 0
        assert shown[0] == pytest.approx(table.values[0], rel=0.05)


def test_synthetic_eu_silc_table_has_its_size_and_becomes_records(silc):
    table = Table.from_microdata(silc, "db040*rb090*pl030", zeros="all", missing="category")
    made = PoissonSynthesis(alpha=0.5, epsilon=2, domain="public").apply(table, seed=1)
    assert made.guarantee is None
    assert "read from the data" in made.why_none
    assert round(made.figures["delta"], 4) == 0.0848
    records = expanded(made.table)
    assert records.height == made.table.values[0]
    assert records.height == pytest.approx(silc.height, rel=0.05)


def test_a_table_of_women_in_silc_shows_what_the_table_by_sex_shows(test_data, monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")
    survey = pl.read_csv(test_data / "laeken_eusilc.csv.gz", infer_schema_length=None, null_values="NA")
    rounding = RandomRounding(base=5, margins="independent")
    women = rounding.apply(
        Table.from_microdata(survey.filter(pl.col("rb090") == "female"), "db040*pl030")
    ).table
    by_sex = rounding.apply(Table.from_microdata(survey, "db040*pl030*rb090")).table
    both = women.cells.join(
        by_sex.cells.filter(pl.col("rb090") == "female"), on=["db040", "pl030"], suffix="_by_sex"
    )
    assert both.height == women.cells.height > 50
    assert (both["count"] == both["count_by_sex"]).all()
