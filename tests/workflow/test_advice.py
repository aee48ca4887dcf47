from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.workflow.advice import coarser_keys


@pytest.fixture
def clinic(tmp_path):
    draw = np.random.default_rng(5)
    n = 400
    frame = pl.DataFrame(
        {
            "patient name": [f"person {i}" for i in range(n)],
            "age": draw.integers(18, 90, n),
            "geburtsdatum": [date(1940, 1, 1) + timedelta(days=int(d)) for d in draw.integers(0, 25_000, n)],
            "plz": [f"1{x:04d}" for x in draw.integers(0, 3_000, n)],
            "sex": draw.choice(["f", "m"], n),
            "diagnosis": draw.choice(["A01", "B02", "C03"], n),
        }
    )
    file = tmp_path / "clinic.csv"
    frame.write_csv(file)
    return discreet.read(
        file,
        keys=["age", "geburtsdatum", "plz", "sex"],
        sensitive="diagnosis",
        identifiers="patient name",
    )


def test_advice_names_columns_and_numbers_and_no_values(clinic):
    advice = discreet.assess(clinic, "public-use-file").advice
    told = "\n".join(advice)
    assert "Drop the date of birth 'geburtsdatum': 'age' says enough." in advice
    assert any(line.startswith("Cut 'plz' to its first ") for line in advice)
    assert any(line.startswith("Put 'age' into bands of 5") for line in advice)
    assert "'patient name'" in told
    assert "person 1" not in told
    assert "1940" not in told


def test_the_commands_of_the_advice_run_and_do_what_they_say(clinic, tmp_path):
    advice = discreet.assess(clinic, "public-use-file").advice
    [steps] = [line for line in advice if line.startswith("These steps")]
    command = shlex.split(steps.partition(": ")[2])
    assert command[0] == "discreet"
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = pl.read_csv(tmp_path / "release.csv")
    assert {"patient name", "geburtsdatum"}.isdisjoint(made.columns)
    assert made["plz"].str.contains(r"\*").all()
    assert made["age"].n_unique() < 20


def test_who_is_left_alone_is_counted_on_the_proposed_codings(clinic):
    found = coarser_keys(clinic, ["age", "plz", "sex"])
    plan = discreet.Plan.from_dict({"step": list(found.steps)})
    made = plan.apply(clinic, seed=1).data
    alone = discreet.risk.uniqueness(made, keys=["age", "plz", "sex"]).figures["unique_records"]
    assert alone == found.alone_then
    assert found.alone_then < found.alone


@pytest.mark.slow
def test_the_plan_that_is_looked_for_meets_the_policy_on_the_command_line(clinic, tmp_path):
    advice = discreet.assess(clinic, "scientific-use-file").advice
    [auto] = [line for line in advice if line.startswith("A plan that meets")]
    command = shlex.split(auto.partition(": ")[2])
    done = subprocess.run(
        [sys.executable, "-m", *command, "--effort", "quick", "--seed", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Meets policy 'Scientific use file'" in done.stdout
    assert (tmp_path / "release.csv").exists()
