"""Attacks are asked at every door: comparisons, reports, policies, studies and the command line."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from attack.populations import people
from discreet import Microdata, Policy, compare
from discreet.attack import linkability
from discreet.cli import app
from discreet.core.errors import DiscreetError, ParameterError
from discreet.workflow.evaluation.study_metrics import Metric, measures_known

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
    assert two.verdict.meets is None  # three hundred people are too few to show that nothing is given away
    assert not any(rule.decided for rule in two.verdict.unjudged)
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

    common = ("people.csv", "--released", "released.csv", "--holdout", "aside.csv")
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


def test_several_releases_and_shadow_models_run_from_the_shell_and_refuse_in_words(
    files, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frames = dict(zip(("people", "first", "second"), (one.frame for one in files), strict=True))
    frames["narrow"] = frames["first"].drop("pay")
    frames["silent"] = frames["first"].with_columns(job=pl.lit(None, dtype=pl.String))
    frames["nobody"] = frames["first"][:0]
    for name, frame in frames.items():
        frame.write_csv(f"{name}.csv")

    def run(*words):
        return CliRunner().invoke(app, ["attack", *map(str, words)])

    def several(*files, secret, more=()):
        released = [word for file in files for word in ("--released", f"{file}.csv")]
        return run("attribute_reconstruction", "people.csv", *released, "--secret", secret, *more)

    rebuilt = several("first", "second", secret="job", more=("--set", "method=nearest", "--json"))
    assert rebuilt.exit_code == 0, rebuilt.output
    assert json.loads(rebuilt.stdout)["parameters"]["secret"] == "job"
    shadows = ("shadow_membership", "people.csv", "--set", "synthesizer=bootstrap", "--set", "records=50")
    told = run(*shadows, "--set", "shadows=8", "--set", "targets=5", "--json")
    assert told.exit_code == 0, told.output
    for refused, word in (
        (several("first", "second", secret="shoe"), "shoe"),
        (several("first", "second", secret="job,coin"), "one column"),
        (several("first", "second", secret="job", more=("--known", "shoe")), "shoe"),
        (several("first", secret="job"), "two releases"),
        (several("second", "narrow", secret="pay"), "pay"),
        (several("second", "silent", secret="job"), "release 2"),
        (several("first", "nobody", secret="job"), "no records"),
        (run(*shadows[:-1], "records=500"), "records"),
        (run(*shadows[:2]), "synthesizer"),
        (run("shadow_membership", "nobody.csv", *shadows[2:]), "no records"),
        (run(*shadows, "--columns", "shoe"), "columns"),
    ):
        assert refused.exit_code != 0, refused.output
        assert isinstance(refused.exception, DiscreetError), refused.exception
        assert word in str(refused.exception)


def test_the_old_name_of_the_holdout_is_refused_with_the_new_one(files):
    original, released, holdout = files
    with pytest.raises(ParameterError, match="linkability: 'control' is called 'holdout' now"):
        linkability(original, released, columns=[["age"], ["job"]], control=holdout)
