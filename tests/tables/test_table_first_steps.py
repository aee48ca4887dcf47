"""What somebody meets who uses tables for the first time and gets something wrong."""

import polars as pl
import pytest

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.tables import Suppression, Table, Threshold, audit, primary

PEOPLE = pl.DataFrame({"place": ["a", "a", "b", "c"], "sex": ["f", "m", "f", "m"], "n": [5, 6, 7, 8]})
CELLS = pl.DataFrame(
    {
        "place": ["a", "b", "c", "Total"] * 2,
        "sex": ["f"] * 4 + ["m"] * 4,
        "n": [5, 7, 9, 21, 6, 6, 8, 20],
        "turnover": [1.5, 2.5, 3.0, 7.0, 4.0, 5.0, 6.0, 15.0],
    }
)


def test_records_without_a_count_are_noted_and_negative_ones_refused():
    gaps = PEOPLE.with_columns(n=pl.Series([5, None, 7, 8]))
    table = Table.from_microdata(gaps, "place*sex", count="n")
    assert "1 records without a number in 'n' count as nobody." in table.notes
    with pytest.raises(ColumnError, match="as a measure"):
        Table.from_microdata(PEOPLE.with_columns(n=-pl.col("n")), "place*sex", count="n")


def test_an_audit_before_the_rules_says_what_comes_first():
    with pytest.raises(ParameterError, match="Flag them first"):
        audit(Table.from_microdata(PEOPLE, "place*sex"))


def test_slips_in_the_names_of_methods_are_found_whatever_the_table():
    with pytest.raises(ParameterError, match="Did you mean 'within'"):
        Suppression(singleton_method="withn")
    with pytest.raises(ParameterError, match="Did you mean 'any_sum'"):
        Suppression(zero_method="anysum")
    assert Suppression(singleton_method=["within"], zero_method="none").method == "gauss"


def test_a_total_under_another_name_is_noticed():
    with pytest.warns(DiscreetWarning, match="One code of column 'place' is the sum of all others"):
        Table.from_cells(CELLS, ["place", "sex"], count="n", total="All")
    Table.from_cells(CELLS.filter(pl.col("place") != "Total"), ["place", "sex"], count="n")


def test_totals_of_a_file_without_counts_are_held_against_sums_only():
    table = Table.from_cells(CELLS, ["place", "sex"], measure="turnover")
    assert table.cells["additive"].all()
    assert table.cells["count"].to_list()[:2] == [3, 3]


def test_an_empty_file_is_called_empty():
    with pytest.raises(InputError, match="no rows"):
        Table.from_cells(CELLS.clear(), ["place", "sex"], count="n")


def test_changes_since_last_year_may_be_left_out_of_the_audit():
    now = primary(Table.from_microdata(PEOPLE, "place*sex", count="n"), Threshold(3))
    before = Table.from_microdata(PEOPLE.with_columns(n=pl.col("n") + 1), "place*sex", count="n")
    assert not Suppression(previous=[(before, [])]).apply(now).audit.safe
    assert Suppression(previous=[(before, [])], successive=0).apply(now).audit.safe
