"""The same records have the same fingerprint on every engine."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from discreet import Microdata
from discreet.io.fingerprints import content_of
from engines.agreement import IN_PROCESS, in_kind

TABLE = pl.DataFrame(
    {
        "place": ["a", None, "é", "01", ""],
        "many": [1, 2, None, -4, 2**53 + 1],
        "pay": [0.5, float("nan"), 1e300, -0.0, 3.0],
        "born": [dt.date(1990, 1, 2), None, dt.date(1600, 1, 1), dt.date(2020, 2, 29), dt.date(1970, 1, 1)],
        "old": [True, False, None, True, True],
    }
)


@pytest.mark.parametrize("kind", [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)])
def test_content_is_the_same_on_every_engine(kind, session_of):
    # pandas without Arrow has no whole number beside a missing one beyond 2^53.
    table = TABLE if kind != "pandas" else TABLE.with_columns(pl.col("many").clip(upper_bound=2**53))
    same = Microdata(in_kind(table, kind, session_of(kind)))
    assert content_of(same) == content_of(Microdata(table))
    assert content_of(same) != content_of(Microdata(table.head(4)))
