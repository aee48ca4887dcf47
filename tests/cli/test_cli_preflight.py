"""The command line of the preflight."""

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(1)
    n = 600
    path = tmp_path / "survey.csv"
    height, weight = rng.integers(150, 200, n), rng.integers(50, 110, n)
    pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / (height / 100) ** 2, 4),
            "pay": np.where(rng.random(n) < 0.2, -8, rng.integers(500, 5000, n)),
        }
    ).write_csv(path)
    return path


def test_findings_are_shown_and_a_plan_is_written_that_synthesizes(discreet, survey, tmp_path):
    plan = tmp_path / "plan.toml"
    done = discreet("preflight", survey, "--save-plan", plan)
    assert done.returncode == 0
    assert "coded-missing:pay" in done.stdout
    assert "Expected with CART" in done.stdout
    done = discreet("synthesize", survey, "--plan", plan, "--out", tmp_path / "s.csv", "--seed", 1)
    assert done.returncode == 0, done.stderr
    drawn = pl.read_csv(tmp_path / "s.csv")
    assert np.allclose(drawn["bmi"], drawn["weight"] / (drawn["height"] / 100) ** 2, atol=1e-4)


def test_findings_are_json_on_request(discreet, survey):
    found = json.loads(discreet("preflight", survey, "--json").stdout)
    assert {"finding", "expected"} <= set(found)


def test_an_unknown_confidence_is_refused(discreet, survey):
    done = discreet("preflight", survey, "--accept", "hihg")
    assert done.returncode == 2
    assert "Did you mean 'high'" in done.stderr
