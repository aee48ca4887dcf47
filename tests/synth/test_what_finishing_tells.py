"""No finishing step tells who was in the original: members and strangers look alike in the finished file."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.synth import Sequential, finish
from discreet.synth.release_preparation import without_single_records

LEAKS = "lookalikes of the original"
STEPS = {
    "nothing": lambda made, original: made,
    "smoothing": lambda made, original: finish(made, smoothing={"pay": "adaptive"}, seed=1).data,
    "smoothing with the original": lambda made, original: (
        finish(made, original, smoothing={"pay": "adaptive"}, seed=1).data
    ),
    "top and bottom": lambda made, original: finish(made, top={"pay": 4_000}, bottom={"age": 25}).data,
    "constraints": lambda made, original: finish(made, original, constraints="age >= 20", seed=1).data,
    "label": lambda made, original: finish(made, label="synthetic").data,
    "suffix": lambda made, original: finish(made, suffix="").data,
    LEAKS: lambda made, original: finish(made, original, remove_uniques=True).data,
    "single records": lambda made, original: without_single_records(made, ["age", "town"])[0],
}


def people(rng: np.random.Generator, number: int) -> pl.DataFrame:
    age = rng.integers(20, 90, number)
    return pl.DataFrame(
        {
            "age": age,
            "town": rng.zipf(1.7, number).clip(1, 40),
            "pay": np.round(np.exp(rng.normal(7 + age / 100, 0.8)), 0),
        }
    )


def independent(original: pl.DataFrame, rng: np.random.Generator) -> Microdata:
    """A synthetic file that knows no person: values of a larger population, drawn anew."""
    return Microdata(people(rng, original.height))


def statistics(asked: pl.DataFrame, finished: pl.DataFrame) -> np.ndarray:
    """What an attacker can compute of each person: how many records agree on what, and how near the next pay is."""
    counts = []
    for columns in (["age", "town"], ["age"], ["town"], ["pay"], ["age", "town", "pay"]):
        sizes = finished.group_by(columns).agg(pl.len().alias("·"))
        met = asked.join(sizes, on=columns, how="left", maintain_order="left")["·"].fill_null(0).to_numpy()
        rare = asked["town"].to_numpy() > 5
        counts += [
            side.mean() for who in (met, met[rare]) for side in (who == 0, who == 1, who == 2, who > 2)
        ]
    pay = np.sort(finished["pay"].to_numpy())
    place = np.clip(np.searchsorted(pay, asked["pay"].to_numpy()), 1, len(pay) - 1)
    away = np.minimum(np.abs(pay[place] - asked["pay"]), np.abs(pay[place - 1] - asked["pay"]))
    counts += [(away < limit).mean() for limit in (0.5, 2, 10, 50)]
    return np.array(counts, dtype=float)


def largest_difference(step: str, runs: int = 12) -> float:
    """The largest difference of members and strangers over all statistics, in standard errors."""
    sides: list[list[np.ndarray]] = [[], []]
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        original, strangers = people(rng, 1_000), people(rng, 1_000)
        made = independent(original, rng)
        real = Microdata(original, keys=["age", "town"])
        finished = pl.DataFrame(STEPS[step](made, real).frame)
        for side, asked in zip(sides, (original, strangers), strict=True):
            side.append(statistics(asked, finished))
    members, outside = (np.array(side) for side in sides)
    apart = members - outside
    error = apart.std(axis=0, ddof=1) / np.sqrt(runs) + 1e-3
    return float(np.abs(apart.mean(axis=0) / error).max())


@pytest.mark.parametrize("step", STEPS)
def test_only_the_step_that_warns_of_it_tells_members_from_strangers(step):
    assert (largest_difference(step) > 6) == (step == LEAKS)


def single_matches(finished: pl.DataFrame, asked: pl.DataFrame) -> int:
    single = finished.filter(pl.struct("age", "town").is_unique()).select("age", "town")
    return asked.join(single, on=["age", "town"], how="semi").height


def test_dropping_lookalikes_proves_absence_and_says_so():
    rng = np.random.default_rng(3)
    original, strangers = people(rng, 1_500), people(rng, 1_500)
    real = Microdata(original, keys=["age", "town"])
    release = finish(Microdata(people(rng, 1_500)), real, remove_uniques=True)
    members = original.filter(pl.struct("age", "town").is_unique())
    assert single_matches(release.data.frame, members) == 0
    assert single_matches(release.data.frame, strangers) > 20
    assert any("proves" in note for note in release.log[0].notes)
    assert "prove" in (finish.__doc__ or "")


def test_the_step_of_a_policy_looks_at_the_synthetic_file_alone():
    rng = np.random.default_rng(4)
    original = people(rng, 800)
    made = Sequential().fit(Microdata(original, keys=["age", "town"]), seed=1).sample(seed=1)
    kept, step = without_single_records(made, ["age", "town"])
    expected = pl.DataFrame(made.frame).filter(~pl.struct("age", "town").is_unique())
    assert kept.frame.equals(expected)
    assert step.removed_records == made.frame.height - expected.height > 0
