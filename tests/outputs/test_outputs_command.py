from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet.cli.outputs import outputs
from discreet.core.errors import DiscreetError
from discreet.outputs import Session, append_decision, read_decisions
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
    assert run("check", file).exit_code == 4


def test_check_takes_many_files_and_folders_and_says_where_it_fails(tmp_path):
    bad, fine = tmp_path / "a" / "bad.csv", tmp_path / "b" / "fine.csv"
    for file, text in ((bad, "region,n\nnorth,40\nsouth,3\n"), (fine, "region,n\nnorth,40\nsouth,30\n")):
        file.parent.mkdir()
        file.write_text(text)
    done = run("check", bad, fine)
    assert done.exit_code == 3
    assert "at B3 (row 3), column 'n'" in done.stdout
    assert "2 files: 1 fail, 1 review" in done.stdout
    assert run("check", fine.parent).exit_code == 4
    assert run("check", tmp_path).exit_code == 3
    document = json.loads(run("check", tmp_path, "--json").stdout)
    assert document["status"] == "fail"
    assert [f["status"] for f in document["files"]] == ["fail", "review"]
    assert document["files"][0]["findings"][0]["places"][0]["cell"] == "B3"
    assert ": 3" not in done.stdout
    assert "column 'n': 3" in run("check", bad, "--show-values").stdout


def test_a_package_that_passes_ends_with_0(tmp_path):
    with Session(data=pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 50})) as s:
        s.crosstab("sex")
        assert run("check", s.save(tmp_path / "pack.zip")).exit_code == 0


def test_an_extract_of_200_people_fails(tmp_path):
    import numpy as np

    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"sex": rng.choice(["f", "m"], 200), "age": rng.integers(18, 80, 200), "pay": rng.normal(50, 9, 200)}
    )
    frame.write_csv(tmp_path / "extract.csv")
    done = run("check", tmp_path / "extract.csv")
    assert done.exit_code == 3
    assert "records" in done.stdout


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


def test_decide_needs_a_reason_to_accept_what_fails(package):
    refused = run("decide", package, "output_1", "accept", "--checker", "C")
    assert isinstance(refused.exception, DiscreetError)
    assert "although its status is 'fail'" in str(refused.exception)
    done = run("decide", package, "output_1", "accept", "--checker", "C", "--reason", "public since 2020")
    assert done.exit_code == 0
    assert read_decisions(register_of(package))[0]["note"] == "public since 2020"


def test_classify_and_registry():
    assert "Hazard and survival" in run("classify", "kaplan", "meier").stdout
    assert json.loads(run("classify", "gini", "--json").stdout)["barn"] == "l"
    assert "kaplan-meier" in run("registry", "survival", "curve").stdout
    assert len(json.loads(run("registry", "--json").stdout)) >= 150
    assert "Nothing" in run("registry", "zzzz").stdout
