"""Households of real surveys: recognized, drawn whole, as large as they say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.synth import Sequential
from discreet.synth.preflighting import preflight

SURVEYS = [
    ("eusilcS.csv.gz", "db030", ["rb050", "db090"]),
    ("laeken_eusilc.csv.gz", "db030", ["rb050", "db090", "rb030"]),
    pytest.param("ghanaS.csv.gz", "hhid", ["weight"], marks=pytest.mark.slow),
    pytest.param("eusilcP.csv.gz", "hid", ["id"], marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("file", "home", "without"), SURVEYS)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.slow
def test_no_household_has_another_size_than_it_says(test_data, file, home, without, declared):
    # Drawn one by one, two thirds of the members lived in a household of another size than theirs.
    frame = pl.read_csv(test_data / file, infer_schema_length=None).drop(without)
    data = Microdata(frame, household=home if declared else None)
    fitted = Sequential().fit(data, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert drawn.height == frame.height
    assert (drawn["hsize"] == drawn.select(pl.len().over(home)).to_series()).all()
    shared = fitted.plan.settings["shared"]
    assert "hsize" in shared
    assert drawn.group_by(home).agg(pl.col(shared).n_unique()).drop(home).max().row(0) == (1,) * len(shared)
    real, made = (f.group_by(home).len()["len"].to_numpy() for f in (frame, drawn))
    sizes = np.arange(1, real.max() + 1)
    apart = [abs((real == size).mean() - (made == size).mean()) for size in sizes]
    assert max(apart) < 0.02
    assert any(f"'{home}' numbers records that belong" in note for note in fitted.plan.warnings) != declared


def test_partners_are_as_old_as_partners_are(test_data):
    frame = pl.read_csv(test_data / "eusilcS.csv.gz", infer_schema_length=None)
    frame = frame.select("db030", "hsize", "db040", "age", "rb090", "pl030", "netIncome")
    drawn = Sequential().fit(Microdata(frame, household="db030"), seed=1).sample(seed=1).frame

    def couples(table):
        pairs = table.filter(pl.col("hsize") == 2).group_by("db030", maintain_order=True).agg("age", "rb090")
        ages = np.array(pairs["age"].to_list(), dtype=float)
        return np.corrcoef(ages.T)[0, 1], pairs["rb090"].list.n_unique().eq(2).mean()

    (real, mixed), (made, mixed_made) = couples(frame), couples(drawn)
    assert made > real - 0.1
    assert abs(mixed - mixed_made) < 0.05


@pytest.mark.slow
def test_preflight_draws_households_and_looks_nothing_up_from_them(test_data):
    frame = pl.read_csv(test_data / "laeken_eusilc.csv.gz", infer_schema_length=None).drop("rb030", "db090")
    data = Microdata(frame, weight="rb050")
    found = preflight(data, probe=False)
    assert found["household:db030"].evidence["counted_by"] == ["hsize"]
    drawn = found.synthesizer().fit(data, seed=1).sample(seed=1).frame
    assert (drawn["hsize"] == drawn.select(pl.len().over("db030")).to_series()).all()
