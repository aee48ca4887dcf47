"""Worked examples: dominance and p% of the smart-meter spec (section 5), and the tables of the suppression spec."""

from __future__ import annotations

import polars as pl
import pytest

from discreet.tables import Dominance, PPercent, Table, Zeros, primary

# Contributions, then whether (1, 60%), (2, 60%) and p% with p = 2/3 flag the cell.
CELLS = {
    "five": ([50, 30, 10, 6, 4], (False, True, True)),
    "even": ([30, 20, 20, 15, 15], (False, False, False)),
    "three": ([60, 20, 20], (False, True, True)),
    "pair": ([10, 10], (False, True, True)),
    "one": ([5, 0, 0], (True, True, True)),
    "zeros": ([0, 0, 0], (False, False, False)),
}


@pytest.mark.parametrize(
    ("place", "rule"), list(enumerate([Dominance(1, 60), Dominance(2, 60), PPercent(200 / 3)]))
)
def test_the_worked_cells_are_judged_as_in_the_spec(place, rule):
    rows = [(cell, value) for cell, (values, _) in CELLS.items() for value in values]
    data = pl.DataFrame(rows, schema=["cell", "value"], orient="row")
    table = Table.from_microdata(data, "cell", measure="value", margins=False)
    found = dict(primary(table, rule).cells.select("cell", "primary").iter_rows())
    assert found == {cell: flags[place] for cell, (_, flags) in CELLS.items()}


def test_table_1_has_its_margins_and_two_zeros():
    counts = {"Iceland": (0, 6), "Portugal": (0, 3), "Spain": (5, 4)}
    rows = [
        (age, geo, n) for geo, both in counts.items() for age, n in zip(("Young", "Old"), both, strict=True)
    ]
    data = pl.DataFrame(rows, schema=["age", "geo", "freq"], orient="row")
    table = primary(Table.from_microdata(data, "age*geo", count="freq"), Zeros())
    margins = {key: n for key, n in zip(table.keys, table.values.tolist(), strict=True) if "Total" in key}
    assert margins == {
        ("Total", "Total"): 18,
        ("Total", "Iceland"): 6,
        ("Total", "Portugal"): 3,
        ("Total", "Spain"): 9,
        ("Young", "Total"): 5,
        ("Old", "Total"): 13,
    }
    assert table.cells.filter("primary").select("age", "geo").rows() == [
        ("Young", "Iceland"),
        ("Young", "Portugal"),
    ]


def test_table_3_has_its_margins_without_the_structural_zeros():
    sales = {
        "Iceland": (None, 2.7, None, 45.6),
        "Portugal": (3.9, 12.2, 64.8, 83.9),
        "Spain": (122.3, 109.1, 15.5, 2.3),
    }
    sectors = ("Agr", "Ent", "Gov", "Ind")
    rows = [
        (geo, sector, value)
        for geo, values in sales.items()
        for sector, value in zip(sectors, values, strict=True)
        if value is not None
    ]
    data = pl.DataFrame(rows, schema=["geo", "sector", "sales"], orient="row")
    table = Table.from_cells(data, ["geo", "sector"], measure="sales")
    assert (table.inner.height, table.cells.height) == (10, 18)
    wide = table.wide(rows="geo", columns="sector")
    assert wide.row(0)[1:] == pytest.approx((462.3, 126.2, 124.0, 80.3, 131.8))
    assert wide["Total"].to_list() == pytest.approx([462.3, 48.3, 164.8, 249.2])
