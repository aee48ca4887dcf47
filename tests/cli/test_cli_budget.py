"""The privacy budget of a file, from the command line."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import dp
from discreet.cli import app

PLAN = 'synthesizer = "mst"\nepsilon = 0.75\n\n[domain]\nsex = ["f", "m"]\nage = [0, 100]\n'


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"sex": ["f", "m"] * 200, "age": list(range(100)) * 4}).write_csv("survey.csv")
    (tmp_path / "mst.toml").write_text(PLAN, encoding="utf-8")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_a_budget_is_opened_spent_shown_and_closed(survey):
    assert run("budget", "open", "survey.csv", "--epsilon", "1", "--delta", "1e-5").exit_code == 0
    made = ("synthesize", "survey.csv", "--plan", "mst.toml", "--ledger", "survey.privacy.toml", "--out")
    first = run(*made, "one.csv")
    assert first.exit_code == 0, first.output
    assert "Guarantee: (0.75, 1e-06)-differential privacy" in " ".join(first.output.split())
    second = run(*made, "two.csv")
    assert second.exit_code != 0
    assert not (survey / "two.csv").exists()
    shown = json.loads(run("budget", "show", "survey.csv", "--json").output)
    assert shown["left"] == pytest.approx(0.25)
    assert [record["mechanism"] for record in shown["records"]] == ["mst"]
    assert "closed" in run("budget", "close", "survey.csv").output
    assert "Left: 0.25" in run("budget", "show", "survey.privacy.toml").output


def test_a_changed_file_has_no_budget(survey):
    run("budget", "open", "survey.csv", "--epsilon", "1")
    (survey / "survey.csv").write_text("sex,age\nf,1\n", encoding="utf-8")
    assert run("budget", "show", "survey.csv").exit_code != 0


def test_a_model_without_a_guarantee_cannot_spend(survey):
    run("budget", "open", "survey.csv", "--epsilon", "1")
    asked = run("synthesize", "survey.csv", "--ledger", "survey.privacy.toml", "--out", "one.csv")
    assert asked.exit_code != 0
    assert not (survey / "one.csv").exists()


@pytest.mark.parametrize("method", ["mst", "aim"])
def test_a_private_synthesizer_is_a_method_like_others(survey, method):
    made = run(
        *(
            "synthesize",
            "survey.csv",
            "--method",
            method,
            "--epsilon",
            "2",
            "--delta",
            "1e-5",
            "--out",
            "one.csv",
        ),
        *("--set", "domain={sex=['f', 'm'], age=[0, 100]}", "--set", "never_missing=['sex', 'age']"),
    )
    assert made.exit_code == 0, made.output
    assert "Guarantee: (2, 1e-05)-differential privacy" in " ".join(made.output.split())
    assert set(pl.read_csv("one.csv")["sex"]) == {"f", "m"}
    refused = run("synthesize", "survey.csv", "--plan", "mst.toml", "--epsilon", "2", "--out", "two.csv")
    assert refused.exit_code != 0


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("perturbed-histogram", ["bins_per_dim=5", "domain={sex=['f', 'm'], age=[0, 100]}"]),
        ("smooth-histogram", ["bins_per_dim=2", "domain={sex=['f', 'm'], age=[0, 100]}"]),
        ("noisy-bayes", ["bounds={age=[0, 100]}", "n_datasets=1", "leave_out='sex'"]),
        (
            "pmse-mechanism",
            ["prior={age=[50, 30]}", "leave_out='sex'", "sampler=candidates", "candidates=50", "depth=1"],
        ),
    ],
)
def test_simple_private_generators_spend_from_a_budget_for_replacing_a_record(survey, method, settings):
    dp.Ledger(10.0, path="survey.privacy.toml", source="survey.csv", adjacency="replace")
    asked = [part for setting in settings for part in ("--set", setting)]
    made = run(
        *("synthesize", "survey.csv", "--method", method, "--epsilon", "8", *asked),
        *("--ledger", "survey.privacy.toml", "--out", "one.csv"),
    )
    assert made.exit_code == 0, made.output
    assert "Guarantee: 8-differential privacy against replacing one record" in " ".join(made.output.split())
    assert dp.Ledger.load("survey.privacy.toml").left == pytest.approx(2.0)


def test_treatments_and_tables_spend_from_the_same_budget(survey):
    run("budget", "open", "survey.csv", "--epsilon", "2", "--delta", "1e-2")
    spending = ("--ledger", "survey.privacy.toml")
    step = '{treatment = "sample-and-anonymize", epsilon = 1.0, delta = 1e-3}'
    kept = run("protect", "survey.csv", "--keys", "sex", "--step", step, *spending, "--out", "one.csv")
    assert kept.exit_code == 0, kept.output
    noisy = ("--method", "noisy-counts", "--set", "epsilon=1.0", "--set", 'domain="public"')
    (survey / "codes.csv").write_text("sex\nf\nm\n", encoding="utf-8")
    public = ("--hierarchy", "sex=codes.csv", "--zeros")
    table = ("table", "protect", "survey.csv", "-t", "sex", *public, *noisy, *spending, "--out")
    told = run(*table, "two.csv")
    assert told.exit_code == 0, str(told.exception)
    assert run(*table, "three.csv").exit_code != 0
    assert not (survey / "three.csv").exists()
    shown = json.loads(run("budget", "show", "survey.csv", "--json").output)
    assert [record["mechanism"] for record in shown["records"]] == ["sample-and-anonymize", "noisy-counts"]


@pytest.mark.parametrize("more", ["--dry-run", "--auto"])
def test_what_makes_no_release_or_many_takes_no_ledger(survey, more):
    run("budget", "open", "survey.csv", "--epsilon", "2")
    asked = ("protect", "survey.csv", "--keys", "sex", "--ledger", "survey.privacy.toml", "--out", "one.csv")
    plan = ("--policy", "safe-setting") if more == "--auto" else ("--step", '{treatment = "reorder-records"}')
    assert run(*asked, more, *plan).exit_code != 0
    assert json.loads(run("budget", "show", "survey.csv", "--json").output)["records"] == []


def test_a_column_that_is_not_there_is_named_before_its_bounds(survey):
    asked = run(
        "dp", "regression", "survey.csv", "--y", "age", "--x", "sx", "--bounds", "sex=0,1", "--epsilon", "1"
    )
    assert "There is no column 'sx'" in str(asked.exception)
