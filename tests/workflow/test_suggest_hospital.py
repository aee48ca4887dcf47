"""A messy file such as a hospital hands over: names, birth dates as text, postcodes, diagnoses, free text, -99."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import discreet

FIRST = ("Anna", "Bernd", "Carla", "Dirk", "Eva", "Franz", "Greta", "Hans", "Ida", "Jan", "Klara", "Lars")
LAST = (
    "Maier",
    "Huber",
    "Schmid",
    "Koch",
    "Bauer",
    "Wolf",
    "Vogel",
    "Keller",
    "Lang",
    "Frank",
    "Beck",
    "Roth",
)
NOTES = (
    "patient called twice about the bill and will come back next week",
    "was seen by the doctor on duty, no further findings at this time",
    "allergic to penicillin according to the family, please check again",
)


def hospital(n: int = 2_000, seed: int = 8) -> pl.DataFrame:
    """Draw the file."""
    draw = np.random.default_rng(seed)
    chapters = draw.choice(list("AEFIJK"), n, p=[0.08, 0.22, 0.1, 0.3, 0.2, 0.1])
    born = [date(1930, 1, 1) + timedelta(days=int(days)) for days in draw.integers(0, 29_000, n)]
    admitted = [date(2023, 1, 1) + timedelta(days=int(days)) for days in draw.integers(0, 365, n)]
    weight = np.round(draw.normal(78, 14, n), 1)
    return pl.DataFrame(
        {
            "Fallnummer": np.arange(100_000, 100_000 + n),
            "Name": [f"{draw.choice(LAST)}, {draw.choice(FIRST)} {i}" for i in range(n)],
            "geburtsdatum": [day.strftime("%d.%m.%Y") for day in born],
            "geschlecht": draw.choice(["w", "m", "d"], n, p=[0.52, 0.475, 0.005]),
            "plz": [f"{value:05d}" for value in draw.choice([1067, 1069, 1127, 4103, 4105, 8056, 9111, 9113], n)],
            "aufnahme": [day.isoformat() for day in admitted],
            "diagnose": [f"{chapter}{number:02d}.{sub}" for chapter, number, sub in zip(
                chapters, draw.integers(0, 30, n), draw.integers(0, 10, n), strict=True
            )],
            "raucher": draw.choice(["ja", "nein", "-99"], n, p=[0.25, 0.65, 0.1]),
            "gewicht": np.where(draw.random(n) < 0.05, -99.0, weight),
            "liegedauer": draw.geometric(0.2, n),
            "bemerkung": [f"{draw.choice(NOTES)} ({i})" for i in range(n)],
        }
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["scientific-use-file", "public-use-file"])
def test_a_messy_hospital_file_reaches_the_templates_without_a_hand_written_line(policy, tmp_path):
    file = tmp_path / "hospital.csv"
    hospital().write_csv(file)
    data = discreet.read(file)
    found = discreet.suggest(data, policy, seed=1)
    assert found.proposed
    assert {"Name", "Fallnummer", "bemerkung"} <= set(found.roles.identifiers)
    assert found.meets, found.meaning
    assert found.loss < 0.15
    assert max(found.losses.values()) < 0.5
    made = found.plan.apply(discreet.Microdata(data.frame, **found.roles.to_dict()), seed=found.seed).data
    assert {"Name", "Fallnummer", "bemerkung"}.isdisjoint(made.columns)
    assert discreet.engine.overview(made, ()).rows == 2_000
    # No day of birth or admission, and no value of another patient in its place.
    for name in ("geburtsdatum", "aufnahme"):
        before, after = (discreet.engine.whole_frame(file)[name].cast(pl.String) for file in (data, made))
        assert not after.is_in(before.implode()).any()
