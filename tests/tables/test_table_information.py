"""What the protection of a table cost."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import ColumnError, ParameterError
from discreet.tables import Table, information_loss


def table() -> Table:
    data = pl.DataFrame({"a": ["x"] * 4 + ["y"] * 6 + ["z"] * 10})
    return Table.from_microdata(data, "a")


def test_nothing_is_lost_where_nothing_changes():
    lost = information_loss(table(), table())
    assert lost.value == 0
    assert lost.figures["hellinger"] == 0
    assert lost.figures["broken_sums"] == 0


def test_suppressed_cells_count_with_their_value():
    cells = table().cells.filter(pl.col("a") != "x")
    lost = information_loss(table(), cells)
    assert (lost.figures["suppressed"], lost.figures["suppressed_value"]) == (1, 4)
    assert lost.figures["suppressed_value_share"] == pytest.approx(4 / 40)
    blanked = table().cells.with_columns(count=pl.when(pl.col("a") != "x").then("count"))
    assert information_loss(table(), blanked).figures == lost.figures


def test_deviations_are_those_of_the_published_cells():
    lost = information_loss(table(), [20, 5, 6, np.nan])
    assert lost.figures["mean_absolute"] == pytest.approx(1 / 3)
    assert lost.figures["mean_relative"] == pytest.approx(0.25 / 3)
    assert lost.figures["root_mean_square"] == pytest.approx(np.sqrt(1 / 3))
    assert lost.detail["levels"]["suppressed"].to_list() == [0, 1]
    assert lost.detail["cells"]["difference"].to_list() == [0, 1, 0, None]


def test_sums_that_no_longer_hold_are_counted():
    lost = information_loss(table(), [21, 5, 6, 11])
    assert lost.figures["broken_sums"] == 1
    assert "no longer" in lost.caveats[-1]
    assert information_loss(table(), [22, 5, 6, 11]).figures["broken_sums"] == 0


def test_hellinger_is_one_between_tables_without_a_common_cell():
    split = Table.from_microdata(pl.DataFrame({"a": ["x", "y"]}), "a", margins=False)
    assert information_loss(split.with_cells(count=[1, 0]), [0, 1]).figures["hellinger"] == pytest.approx(1)


def test_a_release_of_other_cells_is_refused():
    with pytest.raises(ParameterError, match="4 cells"):
        information_loss(table(), [1, 2])
    with pytest.raises(ColumnError, match="no column 'a'"):
        information_loss(table(), pl.DataFrame({"b": [1], "count": [1]}))
    with pytest.raises(ParameterError, match="twice"):
        information_loss(table(), pl.concat([table().cells, table().cells]))
