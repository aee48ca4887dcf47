"""Tables that are too large for the work are refused with their number of cells, before the work."""

import time

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import ParameterError
from discreet.tables import ControlledRounding, Suppression, Table, Threshold, audit, primary, table_cells


@pytest.fixture(scope="module")
def wide():
    """A table of observed cells from three columns of 20,000 codes each."""
    rng = np.random.default_rng(1)
    people = pl.DataFrame({name: rng.integers(0, 20_000, 60_000) for name in "abc"})
    return primary(Table.from_microdata(people, "a*b*c"), Threshold(3))


@pytest.mark.parametrize(
    "work", [Suppression().apply, Suppression(method="optimal").apply, audit, ControlledRounding().apply]
)
def test_three_columns_of_many_codes_are_refused_with_the_number_of_cells_before_the_work(wide, work):
    assert wide.cells.height > 250_000
    began = time.process_time()
    with pytest.raises(ParameterError, match=f"has {wide.cells.height:,} cells, more than 150,000"):
        work(wide)
    assert time.process_time() - began < 1


def test_whoever_can_wait_raises_the_limit():
    table = primary(
        Table.from_microdata(pl.DataFrame({"a": list("xxyy"), "b": list("pqpq")}), "a*b"), Threshold(2)
    )
    with pytest.raises(ParameterError, match="9 cells, more than 8"):
        Suppression(max_cells=8).apply(table)
    with pytest.warns(match="Every cell is suppressed"):
        assert Suppression(max_cells=9, intervals=False).apply(table).audit.safe
    with pytest.raises(ParameterError, match="max_cells must be a whole number of at least 1"):
        audit(table, max_cells=0)


def test_a_table_that_grows_too_large_while_it_is_added_up_is_refused(monkeypatch):
    monkeypatch.setattr(table_cells, "MOST_CELLS", 1_000)
    people = pl.DataFrame({name: np.arange(400) for name in "abc"})
    with pytest.raises(ParameterError, match=r"Adding up the table a\*b\*c over 'b' takes 1,600 cells"):
        Table.from_microdata(people, "a*b*c")
