"""Suppressed tables of the same people, one after the other: nothing is computed from all of them together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.tables import Suppression, Table, Threshold, audit, primary
from discreet.tables.earlier_tables import EarlierTable, cell_marks, suppressed_beside

ROWS = [("n", "y")] * 94 + [("n", "o")] * 110 + [("s", "y")] * 95 + [("s", "o")] * 2 + [("m", "o")] * 60
PEOPLE = pl.DataFrame([*ROWS, *[("m", "y")] * 70], schema=["region", "age"], orient="row")


def flagged(frame, formula, least=3):
    return primary(Table.from_microdata(frame, formula), Threshold(least))


def left_out(table, codes, name="first.csv"):
    """A table in which some cells were left out, by their codes."""
    gone = np.array([row in codes for row in table.cells.select(table.dimensions).rows()])
    return EarlierTable(table, ~gone, gone, name)


def known_together(new, suppressed, earlier):
    """Which suppressed cells follow from all published ones, by plain linear algebra over records of one crossing."""
    inner = pl.concat([new.inner.select(new.dimensions), earlier.table.inner.select(new.dimensions)]).unique()
    places = {row: at for at, row in enumerate(inner.rows())}

    def columns(table):
        made = np.zeros((inner.height, table.cells.height))
        dense = np.asarray(table.x.todense())
        for at, row in enumerate(table.inner.select(new.dimensions).rows()):
            made[places[row]] += dense[at]
        return made

    mine, theirs = columns(new), columns(earlier.table)
    out = np.hstack([mine[:, ~suppressed], theirs[:, earlier.published]])
    rank = np.linalg.matrix_rank(out)
    hidden = np.hstack([mine[:, suppressed], theirs[:, earlier.suppressed]])
    return [
        at
        for at in range(hidden.shape[1])
        if np.linalg.matrix_rank(np.column_stack([out, hidden[:, at]])) == rank
    ]


def test_a_table_that_is_safe_alone_gives_the_cell_of_an_earlier_one_away_and_is_mended():
    """301 - 205 - 94 = 2: one table leaves out the cells of the north for it, the other those of the middle."""
    table = flagged(PEOPLE, "region*age")
    earlier = left_out(table, [("s", "o"), ("s", "y"), ("n", "o"), ("n", "y")])
    alone = Suppression(forced=[("n", "o"), ("n", "y")]).apply(table)
    assert alone.audit.safe
    assert known_together(table, alone.suppressed, earlier)
    found = suppressed_beside(Suppression(), table, [earlier])
    assert found.audit.safe
    assert not known_together(table, found.suppressed, earlier)
    assert found.audit.figures["releases"] == 2
    assert "no combination of all published cells gives a suppressed cell" in found.audit.sentences[0]


def test_what_no_choice_closes_is_named_and_the_result_is_not_safe():
    table = flagged(PEOPLE, "region*age")
    everything = EarlierTable(table, np.ones(12, dtype=bool), np.zeros(12, dtype=bool), "first.csv")
    found = suppressed_beside(Suppression(), table, [everything])
    assert not found.audit.safe
    assert "these cells remain open: region s, age o" in found.audit.line
    assert found.table.cells.select("region", "age").rows()[found.unsafe[0]] == ("s", "o")


def test_cells_that_were_left_out_stay_so_under_laxer_rules():
    strict, lax = flagged(PEOPLE, "region*age", least=75), flagged(PEOPLE, "region*age", least=1)
    before = Suppression().apply(strict)
    earlier = EarlierTable(before.table, ~before.suppressed, before.suppressed)
    assert not Suppression().apply(lax).suppressed.any()
    assert not known_together(lax, suppressed_beside(Suppression(), lax, [earlier]).suppressed, earlier)


def test_a_table_of_fewer_and_one_of_more_dimensions_are_held_together():
    frame = PEOPLE.with_columns(sex=pl.Series(["f", "m", "f"] * 200)[: PEOPLE.height])
    before = Suppression().apply(flagged(frame, "region*age"))
    earlier = EarlierTable(before.table, ~before.suppressed, before.suppressed)
    for formula in ("age*region*sex", "sex*region", "age*sex"):
        table = flagged(frame, formula)
        found = suppressed_beside(Suppression(), table, [earlier])
        assert found.audit.safe
        both = audit(
            before.table, before.suppressed, primary=before.suppressed, previous=[(table, found.suppressed)],
        )  # fmt: skip
        assert both.safe, formula


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 9)), min_size=7, max_size=14
    ),
    st.sampled_from([2, 3, 4]),
    st.integers(0, 2**9 - 1),
)
def test_what_is_called_safe_follows_from_no_combination_of_published_cells(cells, least, forced):
    frame = pl.DataFrame(
        [(a, b) for a, b, n in cells for _ in range(n)], schema=["place", "kind"], orient="row"
    )
    table = flagged(frame, "place*kind", least)
    inner = [row for row in table.cells.select(table.dimensions).rows() if "Total" not in row]
    kept = [row for at, row in enumerate(inner) if forced >> at & 1]
    before = Suppression(forced=kept, intervals=False).apply(table)
    if known_together(table, before.suppressed, EarlierTable(table, ~before.suppressed, before.suppressed)):
        return
    earlier = EarlierTable(table, ~before.suppressed, before.suppressed)
    found = suppressed_beside(Suppression(intervals=False), table, [earlier])
    if found.audit.safe:
        assert not known_together(table, found.suppressed, earlier)


def test_a_published_file_is_read_by_its_codes_and_must_be_of_these_records():
    table = flagged(PEOPLE, "region*age")
    before = Suppression().apply(table)
    earlier = EarlierTable.of(table, before.published, "first.csv")
    assert (earlier.suppressed == before.suppressed).all()
    assert (earlier.published == ~before.suppressed).all()
    by_marks = EarlierTable.of_marks(table, cell_marks(table, before.suppressed))
    assert (by_marks.suppressed == before.suppressed).all()
    changed = before.published.with_columns(count=pl.col("count") + (pl.col("count") == 130).cast(pl.Int64))
    with pytest.raises(ParameterError, match=r"1 cells of 'first[.]csv' are not what these records say"):
        EarlierTable.of(table, changed, "first.csv")


def test_other_people_and_other_measures_are_not_combined():
    table = flagged(PEOPLE, "region*age")
    other = flagged(PEOPLE[1:], "region*age")
    nothing = np.zeros(12, dtype=bool)
    with pytest.raises(ParameterError, match="not about the records of this table"):
        suppressed_beside(Suppression(), table, [EarlierTable(other, ~nothing, nothing)])
    paid = Table.from_microdata(PEOPLE.with_columns(pay=1.0), "region*age", measure="pay")
    with pytest.raises(ParameterError, match="publishes 'pay' and this table 'count'"):
        suppressed_beside(Suppression(), table, [EarlierTable(paid, ~nothing, nothing)])
