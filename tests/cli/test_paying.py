"""A budget that lies beside a file knows of every release with a guarantee that a command makes of it."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import dp
from discreet.cli import app

MEAN = ("--column", "age", "--lower", "0", "--upper", "100", "--epsilon", "0.1")
MST = ("--method", "mst", "--epsilon", "0.5", "--set", "domain={sex=['f', 'm'], age=[0, 100], w=[0, 9]}")
SAMPLED = ("--keys", "sex", "--step", '{treatment = "sample-and-anonymize", epsilon = 0.5, delta = 1e-3}')
NOISY = ("-t", "sex", "--hierarchy", "sex=codes.csv", "--zeros", "--method", "noisy-counts")
POISSON = ("-t", "sex", "--hierarchy", "sex=codes.csv", "--zeros", "--alpha", "3", "--epsilon", "0.5")
UNPAID = {
    "an answer": ("dp", "mean", "survey.csv", *MEAN),
    "a line": (
        "dp",
        "regression",
        "survey.csv",
        "--y",
        "age",
        "--x",
        "w",
        "--bounds",
        "w=0,9",
        "--epsilon",
        "1",
    ),
    "a synthetic file": ("synthesize", "survey.csv", *MST, "--out", "made.csv"),
    "a sample": ("protect", "survey.csv", *SAMPLED, "--out", "made.csv"),
    "a noisy table": (
        *("table", "protect", "survey.csv", *NOISY, "--set", "epsilon=0.5"),
        *("--set", 'domain="public"', "--out", "made.csv"),
    ),
    "a synthetic table": (
        "table",
        "synthesize",
        "survey.csv",
        *POISSON,
        "--public-domain",
        "--out",
        "made.csv",
    ),
}


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = pl.DataFrame({"sex": ["f", "m"] * 200, "age": list(range(100)) * 4, "w": [1, 2, 3, 4] * 100})
    people.write_csv("survey.csv")
    (tmp_path / "codes.csv").write_text("sex\nf\nm\n", encoding="utf-8")
    dp.Ledger.beside("survey.csv", 1.0, 1e-2)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def refused(told, words: str) -> bool:
    return told.exit_code != 0 and words in f"{told.output}{told.exception}"


def untouched(folder) -> bool:
    return dp.Ledger.load("survey.privacy.toml").left == 1 and not (folder / "made.csv").exists()


@pytest.mark.parametrize("release", UNPAID)
def test_a_release_that_the_ledger_beside_the_file_would_not_know_of_is_refused(survey, release):
    assert refused(run(*UNPAID[release]), "survey.privacy.toml")
    assert untouched(survey)


@pytest.mark.parametrize("release", UNPAID)
def test_without_a_ledger_beside_the_file_nobody_is_asked_for_one(survey, release):
    (survey / "survey.privacy.toml").unlink()
    told = run(*UNPAID[release])
    assert told.exit_code == 0, f"{told.output}{told.exception}"


def test_a_release_that_claims_nothing_needs_no_ledger(survey):
    assert run("synthesize", "survey.csv", "--method", "bootstrap", "--out", "made.csv").exit_code == 0


def test_the_ledger_of_another_file_is_refused(survey):
    pl.read_csv("survey.csv").head(7).write_csv("part.csv")
    told = run("dp", "mean", "part.csv", *MEAN, "--ledger", "survey.privacy.toml")
    assert refused(told, "belongs to another file")
    assert untouched(survey)


def test_a_second_ledger_of_a_file_is_refused(survey):
    shutil.copy("survey.privacy.toml", "second.toml")
    assert refused(run("dp", "mean", "survey.csv", *MEAN, "--ledger", "second.toml"), "survey.privacy.toml")
    assert untouched(survey)


def test_a_copy_of_the_file_spends_from_the_same_ledger(survey):
    shutil.copy("survey.csv", "copy.csv")
    assert run("dp", "mean", "copy.csv", *MEAN, "--ledger", "survey.privacy.toml").exit_code == 0
    assert dp.Ledger.load("survey.privacy.toml").left == pytest.approx(0.9)


def test_a_damaged_ledger_beside_the_file_stops_every_answer(survey):
    ledger = survey / "survey.privacy.toml"
    ledger.write_text(ledger.read_text().replace("epsilon = 1.0", "epsilon = 9.0"), encoding="utf-8")
    assert refused(run("dp", "mean", "survey.csv", *MEAN), "checksum")


def test_a_ledger_without_a_source_can_be_named_for_any_file(survey):
    (survey / "survey.privacy.toml").unlink()
    dp.Ledger(1.0, path="ours.toml")
    assert run("dp", "mean", "survey.csv", *MEAN, "--ledger", "ours.toml").exit_code == 0
    assert dp.Ledger.load("ours.toml").left == pytest.approx(0.9)


def test_weights_of_a_regression_need_a_public_maximum(survey):
    line = (*UNPAID["a line"], "--weight", "w", "--ledger", "survey.privacy.toml")
    assert refused(run(*line), "max_weight")
    assert untouched(survey)
    assert run(*line, "--max-weight", "4").exit_code == 0


def test_an_answer_says_that_weights_do_not_count(survey):
    told = run("dp", "mean", "survey.csv", *MEAN, "--weight", "w", "--ledger", "survey.privacy.toml")
    assert "Weights do not count here" in " ".join(told.output.split())
