"""A synthesis that takes the steps a policy asks for, and no others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.synth import Bootstrap, Sequential, finish
from discreet.workflow.judging import judge
from discreet.workflow.synthesis_for_policy import synthesize_for_policy


def people(number=1500, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, number)
    return pl.DataFrame(
        {
            "age": age,
            "town": rng.integers(0, 30, number),
            "pay": np.round(np.exp(rng.normal(7 + age / 100, 0.8)), 2),
            "ill": rng.choice(["yes", "no"], number, p=[0.4, 0.6]),
        }
    )


DATA = Microdata(people(), keys=["age", "town"], sensitive="ill")


def test_numbers_are_blurred_and_lookalikes_removed_until_the_policy_is_met():
    found = synthesize_for_policy(DATA, "synthetic-file", seed=1)
    assert found.meets
    assert judge(found.files[0], "synthetic-file", DATA, seed=1).meets
    assert found.synthesizer.smoothing == {"pay": "adaptive"}
    assert len(found.steps) == 2
    assert 0.98 * DATA.frame.height < found.files[0].frame.height <= DATA.frame.height


def test_what_no_step_helps_is_said():
    found = synthesize_for_policy(DATA, "synthetic-file", Bootstrap(), seed=1)
    assert found.meets is False
    assert "Does not meet" in found.verdicts[0].line


def test_every_copy_is_judged():
    found = synthesize_for_policy(DATA, "synthetic-file", Sequential(smoothing="adaptive"), copies=2, seed=1)
    assert len(found.files) == len(found.verdicts) == len(found.logs) == 2
    assert found.meets


def test_a_household_that_loses_a_lookalike_is_counted_anew():
    rng = np.random.default_rng(2)
    sizes = rng.choice([1, 2, 3], 200)
    home = np.repeat(np.arange(200), sizes)
    frame = pl.DataFrame(
        {
            "home": home,
            "size": np.repeat(sizes, sizes),
            "age": rng.integers(0, 90, len(home)),
            "town": home % 9,
        }
    )
    data = Microdata(frame, keys=["age", "town"], household="home")
    drawn = Sequential().fit(data, seed=1).sample(seed=1)
    release = finish(drawn, data, remove_uniques=True)
    left = release.data.frame
    assert release.log[0].removed_records == drawn.frame.height - left.height > 0
    assert (left["size"] == left.select(pl.len().over("home")).to_series()).all()
    assert "'size'" in release.log[0].notes[-1]


@pytest.mark.parametrize("keys", [["age", "town"], ["age", "town", "size"]])
def test_no_lookalike_is_left_in_households(keys):
    from discreet.risk import replicated_uniques

    rng = np.random.default_rng(3)
    sizes = rng.choice([1, 2, 4], 150)
    home = np.repeat(np.arange(150), sizes)
    frame = pl.DataFrame(
        {
            "home": home,
            "size": np.repeat(sizes, sizes),
            "age": rng.integers(0, 60, len(home)),
            "town": home % 5,
        }
    )
    data = Microdata(frame, keys=keys, household="home")
    drawn = Sequential().fit(data, seed=1).sample(seed=1)
    assert replicated_uniques(data, finish(drawn, data, remove_uniques=True).data).figures["repU"] == 0
