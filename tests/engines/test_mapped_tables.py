"""Tables of very many classes go through files, and nothing else changes."""

from __future__ import annotations

import datetime as dt
import errno
import tempfile

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.engine import classes, packing
from discreet.protect import LocalSuppression
from engines.agreement import in_kind
from engines.test_class_wise import ROLES, people


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Take an empty folder for temporary files, and put everything beyond a few classes into files."""
    monkeypatch.setattr(packing, "HELD_IN_MEMORY", 3)
    monkeypatch.setattr(packing, "_PIECE", 5)
    monkeypatch.setattr(classes, "_ROWS_AT_A_TIME", 7)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-3, 3)),
            st.one_of(st.none(), st.text(max_size=20)),
            st.one_of(st.none(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
            st.sampled_from(["b", "a"]),
        ),
        min_size=1,
        max_size=40,
        unique=True,
    ),
    size=st.integers(1, 10),
)
def test_rows_come_out_in_the_order_of_a_sort(rows, size):
    schema = {"a": pl.Int32, "b": pl.String, "c": pl.Date, "d": pl.Enum(["b", "a"])}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    parts = [table[at : at + size] for at in range(0, table.height, size)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packing, "HELD_IN_MEMORY", 2)
        patched.setattr(packing, "_PIECE", 3)
        found = packing.in_order(parts, table.columns, most=100)
    expected = table.sort(table.columns, nulls_last=True)
    assert found.schema == expected.schema
    assert found.equals(expected)


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_more_classes_than_the_limit_are_refused_and_leave_nothing_behind(kind, place, monkeypatch):
    monkeypatch.setattr(classes, "MOST_CLASSES", 50)
    data = Microdata(in_kind(people(), kind), **ROLES)
    with pytest.raises(ParameterError, match=r"more than 50 different combinations.*Coarsen"):
        LocalSuppression(k=3).apply(data)
    assert not list(place.iterdir())
    if kind == "duckdb":
        assert data.frame.aggregate("count(*)").fetchall() == [(900,)]


def test_a_full_disk_is_said_and_leaves_nothing_behind(place, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packing, "_written", full)
    with pytest.raises(InputError, match="the disk is full"):
        LocalSuppression(k=3).apply(Microdata(people().lazy(), **ROLES))
    assert not list(place.iterdir())
