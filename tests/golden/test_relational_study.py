"""Worked examples R1 and R2 of methods/relational-vs-single-table-synthesis.md (R3 is in test_generator_studies)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, attack, utility
from discreet.attack.trained_attribute_attack import blind_scores, scores_of

# Percent: real, CART, TVAE, relational, a priori.
STUDY = {
    "no date if bijstand=0": (100, 100, 4.0, 4.0, 4.1),
    "no date if ioaw=0": (100, 100, 96.1, 96.2, 96.1),
    "no date if ioaz=0": (100, 100, 99.5, 99.5, 99.5),
    "date if bijstand=1": (100, 100, 96.1, 95.7, 95.9),
    "date if ioaw=1": (100, 100, 3.3, 4.1, 3.8),
    "date if ioaz=1": (100, 100, 0.0, 0.8, 0.4),
}


@pytest.mark.parametrize("majority", [9612, 5000, 7500])
def test_r1_a_majority_predictor(majority):
    truth = (np.arange(10_000) >= majority).astype(np.int64)
    share = majority / 10_000
    found = scores_of(truth, np.tile([1.0, 0.0], (10_000, 1)))
    assert found["f1"] == pytest.approx(share / (1 + share))
    assert found["mcc"] == 0
    assert blind_scores(truth, 2)["majority"] == pytest.approx(
        max(share, 1 - share) / (1 + max(share, 1 - share))
    )
    if majority == 9612:
        assert round(found["f1"], 4) == 0.4901


@pytest.mark.parametrize("rule", STUDY)
def test_r2_compliance_of_the_study_is_chance(rule):
    real, cart, tvae, relational, chance = STUDY[rule]
    assert utility.compliance_lift(real, chance) == utility.compliance_lift(cart, chance) == 1
    # The published figures have one decimal, which moves the lift by 0.1 / (100 - chance) either way.
    slack = 0.1 / (100 - chance)
    for found, apart in ((tvae, tvae - chance), (relational, relational - chance)):
        assert utility.compliance_lift(found, chance) == pytest.approx(apart / (100 - chance), abs=1e-12)
        assert abs(utility.compliance_lift(found, chance)) <= max(0.05, 2 * slack)


def test_r2_the_first_lift_as_printed():
    assert round(utility.compliance_lift(4.0, 4.1), 3) == -0.001


def test_r2_a_file_with_these_frequencies_has_these_figures():
    rng = np.random.default_rng(1)
    flag = np.repeat([0, 1], [41, 959])
    real = pl.DataFrame({"bijstand": flag, "since": pl.Series(np.where(flag == 1, 7, 0)).replace(0, None)})
    apart = real.with_columns(since=real["since"].gather(rng.permutation(1000)))
    rules = ["if bijstand == 0 then since is missing", "if bijstand == 1 then since is not missing"]
    kept = utility.rule_compliance(Microdata(real), Microdata(real), rules=rules)
    lost = utility.rule_compliance(Microdata(real), Microdata(apart), rules=rules)
    assert kept.value == 1
    table = {row["rule"]: row for row in lost.detail["rules"].iter_rows(named=True)}
    assert [round(table[rule]["baseline"], 1) for rule in rules] == [4.1, 95.9]
    assert [table[rule]["n"] for rule in rules] == [41, 959]
    # 41 records are drawn without replacement from 1,000 of which 41 have no date: five standard errors of the share.
    assert abs(table[rules[0]]["released"] - 4.1) < 5 * 100 * np.sqrt(0.041 * 0.959 / 41)


def test_an_attack_finds_what_the_release_tells_and_nothing_where_it_tells_nothing():
    rng = np.random.default_rng(1)

    def people(n):
        x = rng.integers(0, 10, n)
        return pl.DataFrame({"x": x, "z": rng.integers(0, 5, n), "ill": np.where(x == 9, "yes", "no")})

    real, targets = people(2000), people(1000)
    apart = real.with_columns(ill=real["ill"].gather(rng.permutation(2000)))
    options = {
        "secret": "ill",
        "holdout": Microdata(targets),
        "repeats": 2,
        "seed": 1,
        "fractions": [0.5, 1.0],
        "learners": ["bayes", "tree"],
    }
    told = attack.attribute_attack(Microdata(real), Microdata(real), **options)
    assert told.figures["f1_released"] == told.figures["f1_original"] == 1
    nothing = attack.attribute_attack(Microdata(real), Microdata(apart), **options)
    assert nothing.figures["f1_original"] == 1
    assert nothing.value < 0.1
    assert nothing.detail["scores"].height == 2 * 2 * 2
