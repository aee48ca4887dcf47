"""Dates and parts of the year: a release that tells them more coarsely is laid beside its original."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from discreet import Microdata, compare
from discreet.pairs.coarser_labels import coarsening


@pytest.mark.parametrize(
    ("released", "of_march"),
    [
        (["2023-Q1", "2023-Q3"], "2023-Q1"),
        (["2023Q1", "2023Q3"], "2023Q1"),
        (["2023 Q1", "2023 Q3"], "2023 Q1"),
        (["2023-H1", "2023-H2"], "2023-H1"),
    ],
)
def test_parts_of_a_year_are_read_off_their_labels(released, of_march):
    days = pl.Series([dt.date(2023, 3, 17), dt.date(2023, 8, 2)])
    way = coarsening(days, pl.Series(released))
    assert way is not None
    assert way(days)[0] == of_march


def test_dates_beside_labels_that_nobody_can_read_leave_a_rule_open_and_fail_none():
    days = pl.date_range(dt.date(2023, 1, 1), dt.date(2023, 12, 31), eager=True)
    frame = pl.DataFrame({"seen": days, "sex": ["f", "m", "m"] * 121 + ["f", "m"], "pay": range(365)})
    labels = (
        pl.when(pl.col("seen") < dt.date(2023, 7, 1)).then(pl.lit("first half")).otherwise(pl.lit("rest"))
    )
    released = frame.with_columns(seen=labels).sample(fraction=1.0, shuffle=True, seed=1)
    found = compare(Microdata(frame, keys=["seen", "sex"]), Microdata(released, keys=["seen", "sex"]), seed=1)
    asked = next(iter(found.releases.values())).utility
    assert any("'seen'" in caveat for caveat in asked["dependence"].caveats)
