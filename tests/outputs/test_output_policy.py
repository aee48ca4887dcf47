from __future__ import annotations

import json

import pytest

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.outputs import OutputPolicy


def test_templates_load_and_write_back():
    assert OutputPolicy.templates() == ("business-data", "health-records", "research-data-centre")
    for name in OutputPolicy.templates():
        policy = OutputPolicy.load(name)
        assert OutputPolicy.from_dict(policy.to_dict()) == policy
    assert (
        OutputPolicy.load("research-data-centre").but(name="Research data center", description="")
        == OutputPolicy()
    )


def test_a_policy_file_for_microdata_may_hold_the_table_too(tmp_path):
    file = tmp_path / "ours.toml"
    file.write_text('name = "Ours"\n[rules]\nk_anonymity = { at_least = 3 }\n[outputs]\nthreshold = 7\n')
    policy = OutputPolicy.load(file)
    assert (policy.name, policy.threshold, policy.difference_threshold) == ("Ours", 7, 7)


def test_an_acro_configuration_is_read(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"safe_threshold": 5, "safe_nk_k": 0.8, "zeros_are_disclosive": False}))
    policy = OutputPolicy.load(file)
    assert (policy.threshold, policy.nk_k, policy.zeros_are_disclosive) == (5, 0.8, False)
    assert OutputPolicy.from_dict(policy.to_acro()).threshold == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 0}, {"threshold": 2.5}, {"nk_k": 1.5}, {"nk_k": 90}, {"p_ratio": 0}, {"negative": "no"},
        {"zeros_are_disclosive": "yes"}, {"dof_threshold": -1}, {"difference_threshold": 0},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        OutputPolicy(**wrong)


def test_mistakes_in_a_file_are_named(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text("[outputs]\nthresold = 5\n")
    with pytest.raises(ParameterError, match="threshold"):
        OutputPolicy.load(file)
    file.write_text("name = 'no table'\n")
    with pytest.raises(ParameterError, match=r"\[outputs\]"):
        OutputPolicy.load(file)
    with pytest.raises(InputError, match="business-data"):
        OutputPolicy.load("no-such-policy")
    with pytest.raises(DiscreetError):
        OutputPolicy.load(3)


@pytest.mark.parametrize("name", ["a.svg", "b.PDF", "c.pkl", "d.joblib", "e.eps", "f.svg.gz", "g.rds"])
def test_vector_graphics_and_pickles_are_blocked(name):
    assert OutputPolicy().blocks(name)


def test_other_files_are_not_blocked():
    assert OutputPolicy().blocks("a.csv") is None
    assert OutputPolicy(blocked=(".csv",)).blocks("a.csv")
