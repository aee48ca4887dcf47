"""What `discreet suggest` prints makes the release that was judged, byte for byte."""

from __future__ import annotations

import shlex

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from discreet.cli import app


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    n = 600
    pl.DataFrame(
        {
            "age": draw.integers(18, 90, n),
            "region": draw.choice(["north", "south", "east", "-99"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "born": pl.Series(draw.integers(-9_000, 9_000, n))
            .cast(pl.Int32)
            .cast(pl.Date)
            .dt.strftime("%d.%m.%Y"),
            "income": np.round(draw.lognormal(7, 1, n), 2),
        }
    ).write_csv("survey.csv", separator=";")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def printed(output: str) -> list[str]:
    line = next(
        line for line in output.splitlines() if line.strip().split(": ")[-1].startswith("discreet protect")
    )
    return shlex.split(line[line.index("discreet protect") :])[1:]


@pytest.mark.slow
def test_the_printed_command_reproduces_the_release_byte_for_byte(survey):
    asked = (
        "--policy",
        "scientific-use-file",
        "--missing-token=-99",
        "--separator=;",
        "--seed",
        "5",
        "--effort",
        "quick",
    )
    with_plan = run("suggest", "survey.csv", *asked, "--out", "plan.toml")
    assert with_plan.exit_code == 0, with_plan.output
    command = printed(with_plan.output)
    assert {"--missing-token", "--separator", "--seed", "--keys"} <= set(command)
    first = run(*(word.replace("RELEASE", "one.csv") for word in command))
    assert first.exit_code == 0, first.output
    without = run("suggest", "survey.csv", *asked)
    assert "--auto" in printed(without.output)
    second = run(*(word.replace("RELEASE", "two.csv") for word in printed(without.output)))
    assert second.exit_code == 0, second.output
    assert (survey / "one.csv").read_bytes() == (survey / "two.csv").read_bytes()
    days = pl.read_csv(survey / "survey.csv", separator=";")["born"]
    released = (survey / "one.csv").read_text(encoding="utf-8")
    assert not any(day in released for day in days)
