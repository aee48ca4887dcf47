"""The worked examples of the spec ``smart-meter-attribute-disclosure``, section 5, recomputed there.

Source: Navarro-Arribas and Torra, Attribute disclosure risk in smart meter data. The cell-by-cell examples of the
rules are in ``tests/test_dominance.py``; the published p% counts need data of restricted access.
"""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.numerics.mdav import groups_of_at_least
from discreet.risk.averaged_series import series

EIGHT = np.array(
    [(1, 10, 0), (2, 12, 1), (1, 50, 2), (100, 5, 9), (110, 1, 10), (105, 2, 1), (300, 3, 30), (120, 2, 11)]
)
MDAV = {"Tarragona.csv": 16.9326, "CASCrefmicrodata.csv": 5.6922, "EIA.csv": 0.59193}


def long(values):
    n, m = values.shape
    table = {
        "meter": np.repeat(np.arange(1, n + 1), m),
        "slot": np.tile(np.arange(m), n),
        "kwh": values.ravel(),
    }
    return Microdata(pl.DataFrame(table), sensitive="kwh", contributor="meter", time="slot")


def test_the_eight_series_form_the_stated_groups_means_and_flags():
    found = series(long(EIGHT), k=3)
    groups = found.detail["attackers"].group_by("group", maintain_order=True).agg("contributor")
    assert {frozenset(members) for members in groups["contributor"].to_list()} == {
        frozenset({5, 7, 8}),
        frozenset({1, 2, 3, 4, 6}),
    }
    means = found.detail["cells"].sort("group", "time")["mean"].round(3).to_list()
    assert means == [176.667, 2, 17, 41.8, 15.8, 2.6]
    assert {name: found.figures[f"cells_{name}"] for name in ("dominance_1", "dominance_2", "p")} == {
        "dominance_1": 2,
        "dominance_2": 6,
        "p": 6,
    }
    assert found.figures["insider_success"] == 1


@pytest.mark.parametrize(
    ("n", "cells"),
    [
        (79, {2: 1872, 4: 912, 6: 624, 8: 432, 10: 336, 15: 240, 20: 144, 30: 96}),
        (983, {2: 23568, 4: 11760, 6: 7824, 8: 5856, 10: 4704, 15: 3120, 20: 2352, 30: 1536}),
    ],
)
def test_the_number_of_cells_is_that_of_the_published_table(n, cells):
    curves = np.random.default_rng(n).lognormal(size=(n, 48))
    assert {k: (groups_of_at_least(curves, k).max() + 1) * 48 for k in cells} == cells


def test_the_others_of_a_group_of_five_with_mean_ten_used_42():
    """An insider who used 8 knows that the others used 42 together, 10.5 each on average."""
    found = series(long(np.array([[8.0], [21.0], [7.0], [7.0], [7.0]])), k=5)
    insider = found.detail["attackers"].row(0, named=True)
    assert insider["others_mean"] == pytest.approx(10.5)
    assert insider["smallest_width"] == pytest.approx(42 / 21)


@pytest.mark.parametrize(("file", "loss"), MDAV.items())
def test_mdav_loses_exactly_what_the_literature_reports(test_data, file, loss):
    """Spec ``classical-methods``: SSE/SST in percent for k = 3 on standardized data."""
    table = pl.read_csv(test_data / file, infer_schema_length=None)
    values = (table if file != "EIA.csv" else table[:, 5:15]).to_numpy().astype(float)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    groups = groups_of_at_least(values, 3)
    sums = np.zeros((groups.max() + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    centers = (sums / np.bincount(groups)[:, None])[groups]
    assert 100 * ((values - centers) ** 2).sum() / (values**2).sum() == pytest.approx(loss, rel=1e-5)
