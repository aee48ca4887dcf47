import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Policy
from discreet.core.errors import InputError, ParameterError
from discreet.core.results import Measure, Scenario
from discreet.policy import Rule
from discreet.workflow.policy_judgment import held_against


def scenario(value, **figures):
    measure = Measure("k_anonymity", value, figures, "")
    return {
        "all keys": Scenario("all keys", ("age",), {"k_anonymity": measure}, {"l_diversity": "no column"})
    }


def judged(policy, measured):
    return held_against(policy, dict.fromkeys(measured, "nothing else is there"), measured=measured)


def test_every_template_loads_and_survives_a_round_trip():
    for name in Policy.templates():
        policy = Policy.load(name)
        assert Policy.from_dict(policy.to_dict()) == policy


@given(limit=st.integers(1, 50), value=st.integers(1, 50))
def test_a_minimum_holds_exactly_when_the_value_reaches_it(limit, value):
    verdict = judged(Policy("p", rules=[Rule("k_anonymity", at_least=limit)]), scenario(value))
    assert verdict.meets == (value >= limit)


def test_the_verdict_line_names_the_figure_and_the_limit():
    verdict = judged(Policy("Ours", rules=[Rule("k_anonymity", at_least=3)]), scenario(1))
    assert verdict.line == "Does not meet policy 'Ours', because k-anonymity is 1 (policy: at least 3)."


def test_a_rule_that_cannot_be_checked_counts_as_not_met_and_says_why():
    verdict = judged(Policy("p", rules=[Rule("l_diversity", at_least=2)]), scenario(1))
    assert not verdict.meets
    assert verdict.checks[0].passed is None
    assert "no column" in verdict.line


def test_an_undefined_figure_is_not_met():
    rule = Rule("k_anonymity", "share", at_most=0.5)
    assert not judged(Policy("p", rules=[rule]), scenario(1, share=None)).meets


def test_both_limits_may_stand_together():
    policy = Policy("p", rules=[Rule("k_anonymity", at_least=2, at_most=4)])
    assert [judged(policy, scenario(k)).meets for k in (1, 2, 4, 5)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name = 'x'", "no rules"),
        ("[rules]\nk_anonymity = 3", "must be written"),
        ("[rules]\nk_anonymity = { minimum = 3 }", "no entry 'minimum'"),
        ("[rules]\nk_anonymity = { why = 'x' }", "sets no limit"),
        ("[rules]\nk_anonymity = { at_least = 'three' }", "must be a number"),
        ("[rule]\nk_anonymity = { at_least = 3 }", "no entry 'rule'.*'rules'"),
        ("[rules]\nk_anonymity = { at_least = 3 }\n[parameters]\nk = 3", "parameters are tables"),
    ],
)
def test_a_bad_policy_file_is_refused_with_the_reason(tmp_path, text, match):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ParameterError, match=match):
        Policy.load(tmp_path / "p.toml")


def test_invalid_toml_and_a_missing_file_are_input_errors(tmp_path):
    (tmp_path / "p.toml").write_text("name = ")
    with pytest.raises(InputError, match="not valid TOML"):
        Policy.load(tmp_path / "p.toml")
    with pytest.raises(InputError, match="public-use-file"):
        Policy.load("nowhere.toml")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"rules": 3}, "rules are a table"),
        ({"rules": {"k_anonymity": {"at_least": 5, "at_most": 3}}}, "no file can meet"),
        ({"rules": {"k_anonymity": {"at_least": float("nan")}}}, "must be a number"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(document, words):
    with pytest.raises(ParameterError, match=words):
        Policy.from_dict(document)


def test_a_rule_on_an_unknown_figure_reads_as_one_sentence():
    line = judged(Policy("p", rules=[Rule("k_anonymity", "kk", at_least=1)]), scenario(1, k=1)).line
    assert "There is no figure 'kk'" in line
    assert ".." not in line
