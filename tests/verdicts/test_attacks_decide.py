"""What attacks find decides about synthetic files, with people who were not used, whatever the files look like."""

from __future__ import annotations

import os
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from verdicts.people_files import FILES, drawn
from verdicts.planted import planted

from discreet import Microdata, compare, judge
from discreet.attack import inference, linkability, membership, singling_out
from discreet.synth import Bootstrap, Independent, Sequential
from discreet.workflow.synthesis_for_policy import synthesize_for_policy

TEMPLATES = ("synthetic-file", "three-attackers")
ATTACKS = ("singling_out", "linkability", "inference", "membership")
GENERATORS = {
    "trees": Sequential(),
    "parametric": Sequential(method="parametric"),
    "independent columns": Independent(),
    "copies": Bootstrap(),
}
FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "/nowhere"))
SURVEYS = {
    "eusilc": ("eusilcS.csv.gz", ["db040", "age", "rb090"], ["netIncome"]),
    "sd2011": ("SD2011.csv", ["sex", "age", "edu"], ["income"]),
}


@cache
def people(name, rows, seed=1):
    """Give an original, people who are set aside, and fresh people of the same law."""
    if name in FILES:
        original, fresh, others, roles = drawn(name, rows, seed)
        return Microdata(original, **roles), Microdata(others, **roles), Microdata(fresh, **roles)
    file, keys, sensitive = SURVEYS[name]
    frame = pl.read_csv(FOLDER / file, infer_schema_length=None, null_values=["NA", ""])
    frame = frame.select([column for column in frame.columns if frame[column].null_count() < frame.height])
    frame = frame.select(frame.columns[:14] + [c for c in (*keys, *sensitive) if c not in frame.columns[:14]])
    frame = frame.sample(fraction=1, shuffle=True, seed=seed)
    size = min(rows, frame.height // 3)
    there = {
        "keys": [name for name in keys if name in frame.columns],
        "sensitive": [name for name in sensitive if name in frame.columns],
    }
    return tuple(Microdata(frame[place * size : (place + 1) * size], **there) for place in range(3))


def attacked_rules(verdict):
    """Give the three results of the attack rules by measure: True, False, and None where it is not decided."""
    found = {check.measure: check.passed for check in verdict.checks if check.measure in ATTACKS}
    open_rules = {rule.rule.partition(".")[0] for rule in verdict.unjudged}
    return found | {name: None for name in ATTACKS if name in open_rules}


def check_no_false_clearance(generator, name, rows):
    original, holdout, _ = people(name, rows)
    made = GENERATORS[generator].fit(original, seed=3).sample(seed=4)
    shown = singling_out(original, made, holdout=holdout, attacks=1_000, seed=5).figures["risk_low"] > 0.1
    for template in TEMPLATES:
        verdict = judge(made, template, original, holdout=holdout, seed=6)
        assert not (shown and verdict.meets), verdict.line
        assert set(attacked_rules(verdict)) == set(ATTACKS), verdict.line
        if generator == "copies" and name != "stays":
            assert verdict.meets is False, verdict.line
        # A bootstrap of stays leaves out whose they are, and nothing is judged before that is known.
        assert not (generator == "copies" and verdict.meets), verdict.line
    return shown


@pytest.mark.parametrize(
    ("generator", "name"),
    [
        ("trees", "firms"),
        ("parametric", "numbers"),
        ("independent columns", "levels"),
        ("copies", "firms"),
    ],
)
def test_no_file_that_singles_people_out_is_cleared(generator, name):
    check_no_false_clearance(generator, name, 900)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::discreet.core.errors.DiscreetWarning"
)  # records of a home are drawn one by one
@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("name", [*FILES, *SURVEYS])
def test_no_file_that_singles_people_out_is_cleared_wherever_it_comes_from(generator, name):
    if name in SURVEYS and not FOLDER.is_dir():
        pytest.skip("DISCREET_TEST_DATA does not name the folder of real data sets")
    for rows in (1_000, 3_000):
        check_no_false_clearance(generator, name, rows)


def test_fresh_people_are_refused_by_no_attack_and_cleared_where_there_are_enough():
    verdicts = []
    for seed in (1, 2, 3):
        original, holdout, fresh = people("numbers", 4_000, seed)
        verdicts.append(judge(fresh, "three-attackers", original, holdout=holdout, seed=0))
    assert all(verdict.meets is not False for verdict in verdicts)
    assert any(verdict.meets for verdict in verdicts), [one.line for one in verdicts]
    few = people("firms", 600)
    assert judge(few[2], "three-attackers", few[0], holdout=few[1], seed=0).meets is not False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_of_twelve_thousand_fresh_people_of_a_census_inference_at_most_is_open(seed):
    """Other columns tell most secrets of a census about strangers too, so that few are left to see a risk by."""
    original, holdout, fresh = people("census", 12_000, seed)
    verdict = judge(fresh, "three-attackers", original, holdout=holdout, seed=0)
    assert verdict.meets is not False, verdict.line
    assert {one.rule for one in verdict.unjudged} <= {"inference.risk"}, verdict.line


@pytest.mark.parametrize(("rows", "seed"), [(300, 101), (1_000, 100)])
def test_labels_that_were_exchanged_for_codes_make_no_strangers_of_fresh_people_and_hide_no_copies(
    rows, seed
):
    """Codes were read by the labels of the people in the file alone, so that rare ones fell on rare ones."""
    original, fresh, others, roles = drawn("levels", rows, seed=seed)
    given = {"original": Microdata(original, **roles), "holdout": Microdata(others, **roles), "seed": 0}
    strangers = judge(
        Microdata(planted("with codes", 0.0, original, fresh, seed)), "three-attackers", **given
    )
    assert strangers.meets is not False, strangers.line
    copies = judge(Microdata(planted("with codes", 0.5, original, fresh, seed)), "three-attackers", **given)
    assert copies.meets is not True, copies.line


def test_without_strangers_the_attack_rules_are_open_and_say_what_would_judge_them():
    original, _, fresh = people("levels", 600)
    verdict = judge(fresh, "synthetic-file", original, seed=0)
    assert attacked_rules(verdict) == dict.fromkeys(ATTACKS)
    assert verdict.meets is not True
    assert any("--holdout" in command for command in verdict.commands)
    assert any("cross-fitting" in line for line in verdict.left_lines)


def test_every_column_is_a_secret_when_a_policy_judges_and_the_sensitive_ones_come_first():
    original, holdout, fresh = people("levels", 600)
    found = compare(original, fresh, holdout=holdout, policy="three-attackers", measures=[])
    secrets = found["inference"].parameters["secret"]
    assert secrets[0] == "party"
    assert set(secrets) == set(original.columns)
    assert found["inference"].parameters["jointly"] == 4


def test_what_an_attack_finds_is_the_first_sentence():
    original, holdout, fresh = people("levels", 900)
    half = Microdata(pl.concat([original.frame[:600], fresh.frame[:300]]))
    found = compare(original, half, holdout=holdout, attacks=True, seed=0)
    assert found.worst.sentences[0].startswith("An attacker ")
    assert "The risk that the release adds is" in found.worst.sentences[0]


def test_a_release_in_which_every_record_has_a_twin_singles_nobody_out():
    original, holdout, _ = people("levels", 600)
    twins = Microdata(pl.concat([original.frame, original.frame]))
    found = singling_out(original, twins, holdout=holdout, seed=1)
    assert found.value == found.figures["risk_at_most"] == 0
    assert "every record has a twin" in found.meaning


def stays(rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    days = age * 365 + rng.integers(0, 365, rows)
    return pl.DataFrame(
        {
            "age": age,
            "born": [date(2024, 1, 1) - timedelta(days=int(many)) for many in days],
            "zip": [f"{10_000 + int(place) * 37}" for place in rng.integers(0, 400, rows)],
            "icd": [f"{'ABCDE'[code % 5]}{code:02d}" for code in rng.integers(0, 60, rows)],
            "pay": rng.lognormal(8, 1, rows).round(0),
        }
    )


def coarser(frame, born):
    decade = pl.col("age") // 10 * 10
    return frame.with_columns(
        pl.format("{}-{}", decade, decade + 9).alias("age"),
        pl.col("zip").str.slice(0, 2) + "***",
        pl.col("icd").str.slice(0, 1),
        born(pl.col("born")),
    )


BORN = {
    "year": lambda column: column.dt.year(),
    "month": lambda column: column.dt.strftime("%Y-%m"),
    "first of the month": lambda column: column.dt.truncate("1mo"),
    "decade": lambda column: pl.format("{}-{}", column.dt.year() // 10 * 10, column.dt.year() // 10 * 10 + 9),
}


@pytest.mark.parametrize("born", BORN)
def test_attacks_run_on_coarser_releases_and_find_copies_there(born):
    original, others = stays(800, 1), Microdata(stays(800, 2))
    real = Microdata(original, keys=["age", "zip", "born"], sensitive="icd")
    copies = Microdata(coarser(original, BORN[born]).sample(fraction=1, shuffle=True, seed=3))
    fresh = Microdata(coarser(stays(800, 4), BORN[born]))
    for attack in (singling_out, linkability, inference, membership):
        assert attack(real, copies, holdout=others, seed=1).figures["risk_at_least"] > 0.1, attack.__name__
        assert attack(real, fresh, holdout=others, seed=1).figures["risk_at_least"] < 0.05, attack.__name__
    refused = judge(copies, "three-attackers", real, holdout=others, seed=0)
    assert refused.meets is False
    assert all(check.actual is not None for check in refused.checks), refused.line
    assert judge(fresh, "three-attackers", real, holdout=others, seed=0).meets is not False


def test_suppressed_cells_hide_no_copies_from_attacks():
    original, others = stays(800, 1), Microdata(stays(800, 2))
    gone = original.with_columns(age=pl.when(pl.col("age") > 60).then(None).otherwise("age"))
    verdict = judge(Microdata(gone), "three-attackers", Microdata(original), holdout=others, seed=0)
    assert verdict.meets is False


def test_cross_fitting_judges_attacks_where_a_file_is_made():
    original, _, _ = people("levels", 600)
    three = synthesize_for_policy(original, "three-attackers", Independent(), seed=1)
    assert set(attacked_rules(three.verdicts[0])) == set(ATTACKS)
    assert any("half as strangers" in step for step in three.steps)
    copied = synthesize_for_policy(original, "three-attackers", Bootstrap(), seed=1)
    assert copied.meets is False
