"""Attacks are asked at every door: comparisons, reports, policies, studies and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from attack.populations import people
from discreet import Microdata, Policy, compare
from discreet.cli import app
from discreet.workflow.evaluation.metrics import Metric, measures_known

ATTACKS = ("singling_out", "linkability", "inference", "membership")


@pytest.fixture(scope="module")
def files():
    rng = np.random.default_rng(4)
    roles = {"keys": ["age", "job"], "sensitive": ["coin"]}
    return Microdata(people(rng, 300), **roles), Microdata(people(rng, 300)), Microdata(people(rng, 300))


def test_a_comparison_tries_attacks_where_it_is_asked_and_its_page_has_the_chapter(files, tmp_path):
    original, released, control = files
    assert not set(ATTACKS) & set(compare(original, released, measures=["margins"]).risk)
    found = compare(original, released, holdout=control, measures=["margins"], attacks=True, seed=1)
    assert set(ATTACKS) <= set(found.risk)
    for name in ATTACKS:
        answer = found.risk[name]
        assert answer.figures["control_rate"] is not None
        assert answer.figures["risk_low"] <= 0 <= answer.figures["risk_high"]
    page = found.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What three attackers could do" in page
    assert "singled out" in page


def test_without_people_set_aside_the_policy_of_three_attackers_is_not_judged(files):
    original, released, control = files
    alone = compare(original, released, measures=["margins"], policy="three-attackers", seed=1)
    (one,) = alone.releases.values()
    assert one.verdict.meets is None
    assert {rule.rule.partition(".")[0] for rule in one.verdict.unjudged} == set(ATTACKS)
    judged = compare(
        original, released, holdout=control, measures=["margins"], policy="three-attackers", seed=1
    )
    (two,) = judged.releases.values()
    assert two.verdict.meets is True
    leaked = compare(
        original, original, holdout=control, measures=["margins"], policy="three-attackers", seed=1
    )
    (three,) = leaked.releases.values()
    assert three.verdict.meets is False
    assert "three-attackers" in Policy.templates()


def test_studies_know_attacks_as_risk_and_give_them_the_people_set_aside():
    assert {f"attack.{name}" for name in ATTACKS} <= set(measures_known())
    metric = Metric("singling_out", parameters={"attacks": 50})
    assert metric.layer == "risk"
    assert "risk_high" in metric.headlines


def test_the_command_line_runs_one_attack_and_refuses_what_it_does_not_take(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in zip(("people", "released", "aside"), files, strict=True):
        data.frame.write_csv(f"{name}.csv")

    def run(*words):
        return CliRunner().invoke(app, ["attack", *words])

    common = ("people.csv", "--released", "released.csv", "--control", "aside.csv")
    said = run("linkability", *common, "--columns", "pay,job", "--columns", "age,hours", "--json")
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    assert document["name"] == "linkability"
    assert document["parameters"]["columns"] == [["pay", "job"], ["age", "hours"]]
    assert document == json.loads(
        run("linkability", *common, "--columns", "pay,job", "--columns", "age,hours", "--json").stdout
    )
    member = run("membership", *common, "--attacks", "150", "--detail", "records=records.csv")
    assert member.exit_code == 0, member.output
    assert (tmp_path / "records.csv").exists()
    for words in (
        ("singling_out", "people.csv"),
        ("shoe_size", *common),
        ("linkability", *common, "--columns", "pay"),
        ("inference", *common, "--secret", "shoe"),
        ("singling_out", *common, "--released", "aside.csv"),
        ("singling_out", *common, "--secret", "job"),
    ):
        refused = run(*words)
        assert refused.exit_code != 0, words
