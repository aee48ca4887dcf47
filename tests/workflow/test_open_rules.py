"""Rules that are open: what would decide them, who may accept them, and policies that no file could break."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet import Microdata, compare, judge
from discreet.cli import app
from discreet.core.errors import ParameterError
from discreet.core.results import Measure, Scenario
from discreet.core.verdicts import Acceptance, Check, Unjudged
from discreet.policy import MAIN, Policy, Rule
from discreet.workflow.pairing import pair_of
from discreet.workflow.policy_judgment import held_against

ATTACKS = Policy(
    "Attacks",
    comparison=[Rule("singling_out", "risk", at_most=0.1), Rule("margins", "max_distance", at_most=0.5)],
)


def people(seed, rows=300):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "pay": rng.lognormal(8, 1, rows).round(2),
            "job": rng.choice(["a", "b"], rows),
        }
    )
    return Microdata(frame, keys=["age", "job"], sensitive="pay")


def held(low, actual, high, limit=0.1, tries=500):
    figures = {"risk": actual, "risk_at_least": low, "risk_at_most": high, "open_attacks": tries}
    found = Measure("singling_out", actual, figures, "")
    return Rule("singling_out", "risk", at_most=limit).check(Scenario(MAIN, (), {"singling_out": found}))


def test_an_interval_below_the_limit_holds_and_one_above_it_fails():
    assert held(0.0, 0.03, 0.08).passed is True
    assert held(0.12, 0.2, 0.3).passed is False


def test_an_interval_that_crosses_the_limit_is_not_decided_and_says_how_many_people_it_would_take():
    found = held(0.01, 0.05, 0.15)
    assert isinstance(found, Unjudged)
    assert found.decided is False
    # The upper end lies 0.1 away where 0.05 would do: four times as many people.
    assert found.needs == "about 2,000 people to be decided (500 were attacked)"
    assert "MORE_PEOPLE" in found.command


def test_a_risk_on_the_limit_cannot_be_decided_by_any_number_of_people():
    assert held(0.05, 0.1, 0.15).needs == "more people to be decided"


def test_a_cost_that_chance_explains_is_not_decided_and_asks_for_no_strangers():
    def of(beyond):
        figures = {"mean_change": 0.08, "beyond_chance": beyond, "records": 300}
        measures = {"dependence": Measure("dependence", 0.08, figures, "")}
        return Rule("dependence", at_most=0.05).check(Scenario(MAIN, (), measures))

    assert of(0.06).passed is False
    assert of(0.02).needs == "about 1,200 people to be decided (300 were compared)"
    assert of(0.02).command == ""


@given(ends=st.lists(st.floats(0, 1), min_size=3, max_size=3), limit=st.floats(0.01, 0.99))
def test_one_of_three_results_always_comes_out(ends, limit):
    low, actual, high = sorted(ends)
    found = held(low, actual, high, limit)
    if isinstance(found, Check):
        assert found.passed is (high <= limit or bool(np.isclose(high, limit, rtol=1e-9, atol=1e-12)))
    else:
        assert low <= limit * (1 + 1e-9)
        assert high > limit


def test_what_an_attack_found_is_said_first_wherever_its_rule_stands_in_the_policy():
    rules = [Rule("margins", "max_distance", at_most=0.01), Rule("singling_out", "risk", at_most=0.1)]
    figures = {"risk": 0.4, "risk_at_least": 0.3, "risk_at_most": 0.5, "attacks": 500}
    found = {
        "margins": Measure("margins", 0.5, {"max_distance": 0.5}, ""),
        "singling_out": Measure("singling_out", 0.4, figures, ""),
    }
    pair = pair_of(people(1), [people(2)], people(3))
    judged = held_against(Policy("Both", comparison=rules), {}, pair, measured_pair=Scenario(MAIN, (), found))
    assert [check.measure for check in judged.failed] == ["singling_out", "margins"]


def test_an_open_rule_can_be_accepted_by_a_person_and_is_never_a_clearance():
    accepted = Acceptance("singling_out.risk", because="nobody else can be asked", by="A. Steward")
    verdict = judge(people(2), ATTACKS, people(1), accept=[accepted])
    assert (verdict.outcome, verdict.meets) == ("accepted", None)
    assert verdict.line.startswith(
        "singling_out.risk (at most 10 %) was not judged and is accepted by A. Steward"
    )
    assert verdict.heading == "Accepted by A. Steward: 1 rule of policy 'Attacks' not judged"
    assert json.loads(json.dumps(verdict.to_dict()))["accepted"][0]["by"] == "A. Steward"


def test_a_failed_rule_cannot_be_accepted():
    strict = Policy("Strict", comparison=[Rule("margins", "max_distance", at_most=0.0)])
    accepted = Acceptance("margins.max_distance", because="I want to", by="A. Steward")
    verdict = judge(people(2), strict, people(1), accept=[accepted])
    assert (verdict.outcome, verdict.accepted) == ("not met", ())


def test_accepting_a_rule_that_the_policy_does_not_have_is_refused():
    with pytest.raises(ParameterError, match=r"singling_out\.risk"):
        judge(people(2), ATTACKS, people(1), accept=[Acceptance("singling_out.rsk", because="x", by="y")])


@pytest.mark.parametrize("field", ["rule", "because", "by"])
def test_an_acceptance_without_a_rule_a_reason_or_a_name_is_refused(field):
    with pytest.raises(ParameterError, match=field):
        Acceptance(**{"rule": "r", "because": "b", "by": "n", field: " "})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule("k_anonymity", at_most=5), "at_most protects nobody"),
        (Rule("uniqueness", "unique_share", at_least=0.5), "at_least protects nobody"),
        (Rule("uniqueness", "unique_share", at_most=5), "write 5 percent as 0.05"),
        (Rule("uniqueness", "unique_share", at_most=1), "every file keeps"),
        (Rule("k_anonymity", at_least=0), "every file keeps"),
        (Rule("k_anonymity", at_least=1), "every file keeps"),
        (Rule("l_diversity", at_least=1), "every file keeps"),
        (Rule("k_anonymity", at_least=float("-inf")), "infinite"),
        (Rule("uniqueness", "unique_share", at_most=float("inf")), "infinite"),
    ],
)
def test_a_policy_that_no_file_could_break_is_refused(rule, words):
    with pytest.raises(ParameterError, match=words):
        judge(people(1), Policy("Lax", rules=[rule]))


@pytest.mark.parametrize(
    ("name", "figure", "limit", "settings"),
    [
        ("reidentification", "share_above_threshold", 0.05, {"threshold": 1.0}),
        ("alpha_k", "value", 0.9, {"common": 0.01}),
    ],
)
def test_settings_under_which_nobody_is_ever_at_risk_are_refused(name, figure, limit, settings):
    policy = Policy("Lax", rules=[Rule(name, figure, at_most=limit)], parameters={name: settings})
    with pytest.raises(ParameterError, match="even a file in which everybody is alone"):
        judge(people(1), policy)


def test_a_percentage_that_no_file_could_exceed_is_refused():
    with pytest.raises(ParameterError, match="every file keeps"):
        judge(
            people(2), Policy("Lax", comparison=[Rule("replicated_uniques", "repU", at_most=100)]), people(1)
        )


def test_one_copy_that_is_the_original_is_not_averaged_away():
    original = people(1)
    copies = [people(seed) for seed in range(2, 12)]
    policy = Policy("Copies", comparison=[Rule("near_copies", "copied_share", at_most=0.1)])
    assert judge(copies, policy, original).meets is True
    found = judge([*copies, original], policy, original)
    assert found.meets is False
    assert "in copy 11" in found.line
    assert compare(original, [*copies, original], policy=policy).meets is False


def files(folder):
    for name, seed in (("a.csv", 1), ("b.csv", 2)):
        people(seed).frame.write_csv(folder / name)
    policy = folder / "policy.toml"
    policy.write_text(
        'name = "P"\n[comparison]\n"singling_out.risk" = { at_most = 0.1 }\n'
        '"margins.max_distance" = { at_most = 0.5 }\n'
    )
    return [
        str(folder / "a.csv"),
        str(folder / "b.csv"),
        "--keys",
        "age,job",
        "--sensitive",
        "pay",
        "--policy",
        str(policy),
    ]


def test_exit_4_prints_the_command_that_would_judge_the_open_rule(tmp_path):
    done = CliRunner().invoke(app, ["compare", *files(tmp_path)])
    assert done.exit_code == 4
    assert "To judge it: discreet compare" in done.stdout
    assert "--holdout OTHER_PEOPLE --keys age,job --sensitive pay" in done.stdout


def test_an_accepted_rule_ends_with_5_and_a_name_and_a_reason_are_asked_for(tmp_path):
    given = ["compare", *files(tmp_path), "--accept", "singling_out.risk"]
    done = CliRunner().invoke(app, [*given, "--because", "a pilot", "--by", "A. Steward", "--check"])
    assert done.exit_code == 5
    assert done.stdout.startswith(
        "singling_out.risk (at most 10 %) was not judged and is accepted by A. Steward"
    )
    refused = CliRunner().invoke(app, given)
    assert isinstance(refused.exception, ParameterError)


def test_the_paper_says_first_who_accepted_what(tmp_path):
    accepted = Acceptance("singling_out.risk", because="nobody else can be asked", by="A. Steward")
    found = compare(people(1), people(2), policy=ATTACKS, accept=[accepted])
    page = found.to_html(tmp_path / "paper.html").read_text(encoding="utf-8")
    assert "Accepted by A. Steward" in page
    assert page.index("Accepted by A. Steward") < page.index('<section id="wrong"')


def test_a_figure_whose_interval_is_missing_clears_nothing():
    found = Measure("singling_out", 0.0, {"risk": 0.0, "attacks": 100}, "")
    checked = Rule("singling_out", "risk", at_most=0.1).check(Scenario(MAIN, (), {"singling_out": found}))
    assert isinstance(checked, Unjudged)
    assert checked.decided is False
