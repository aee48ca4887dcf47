from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet.cli.outputs import outputs
from discreet.outputs import Session, append_decision
from discreet.outputs.reviewing import register_of


def run(*arguments):
    return CliRunner().invoke(outputs, [str(a) for a in arguments])


def test_check_ends_with_3_where_something_fails(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("region,count\nnorth,40\nsouth,3\n")
    done = run("check", file)
    assert done.exit_code == 3
    assert "below the threshold" in done.stdout
    assert run("check", file, "--policy", "business-data").exit_code == 3
    assert json.loads(run("check", file, "--json").stdout)["status"] == "fail"
    file.write_text("region,count\nnorth,40\nsouth,30\n")
    assert run("check", file).exit_code == 0


@pytest.fixture
def package(tmp_path):
    with Session(data=pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 5})) as s:
        s.crosstab("sex")
        return s.save(tmp_path / "pack")


def test_check_says_how_a_package_stands(package):
    assert run("check", package).exit_code == 3
    assert json.loads(run("check", package, "--json").stdout)["outputs"][0]["name"] == "output_1"


def test_review_can_only_verify_the_register(package):
    append_decision(register_of(package), output="output_1", decision="accept", checker="C", note="public")
    assert "1 decision," in run("review", package, "--verify").stdout


def test_classify_and_registry():
    assert "Hazard and survival" in run("classify", "kaplan", "meier").stdout
    assert json.loads(run("classify", "gini", "--json").stdout)["barn"] == "l"
    assert "kaplan-meier" in run("registry", "survival", "curve").stdout
    assert len(json.loads(run("registry", "--json").stdout)) >= 150
    assert "Nothing" in run("registry", "zzzz").stdout
