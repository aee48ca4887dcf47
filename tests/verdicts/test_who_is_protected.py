"""What an intruder may know beside the keys: planted into safe releases of four kinds of files, no door clears it."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner
from verdicts.people_files import drawn

from discreet import Microdata, Plan, assess, compare, judge
from discreet.cli import app
from discreet.protect import DropIdentifiers

POLICY = "public-use-file"
RULE = "knowable_uniques"
ROWS = 1_600
SECRETS = {"census": "education", "stays": "diagnosis", "firms": "branch", "levels": "car", "homes": "work"}
PLANTED = {
    "a date of admission": ["admitted_on"],
    "a postcode": ["postal_code"],
    "a pattern of missing answers": [f"q{number}" for number in range(9)],
    "an exact amount": ["amount_paid"],
    "a proxy of a key": ["cohort"],
}


def people(kind: str, seed: int = 1) -> tuple[pl.DataFrame, dict[str, object]]:
    """Records of one kind of file, with two keys and with columns that tell who they are."""
    rng = np.random.default_rng(seed)
    secret = SECRETS[kind]
    frame = drawn(kind, ROWS, seed)[0].select(secret)
    age = rng.integers(20, 80, frame.height)
    answers = {
        name: pl.Series(rng.choice(["a", "b"], frame.height)).set(
            pl.Series(rng.random(frame.height) < 0.4), None
        )
        for name in PLANTED["a pattern of missing answers"]
    }
    planted = {
        "sex": rng.choice(["f", "m"], frame.height),
        "age": age,
        "admitted_on": [
            date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 366, frame.height)
        ],
        "postal_code": [f"{10_000 + 7 * int(number)}" for number in rng.integers(0, 500, frame.height)],
        "amount_paid": rng.lognormal(9, 1, frame.height).round(2),
        "cohort": 12 * (2024 - age) - rng.integers(0, 12, frame.height),
    }
    return frame.with_columns(pl.DataFrame({**planted, **answers})), {
        "keys": ["sex", "age"],
        "sensitive": secret,
    }


def released(original: pl.DataFrame, kept: list[str], seed: int = 2) -> pl.DataFrame:
    """Ages in halves, everything else drawn anew, but for what is kept."""
    rng = np.random.default_rng(seed)
    halves = pl.when(pl.col("age") < 50).then(pl.lit("under 50")).otherwise(pl.lit("50 or more")).alias("age")
    drawn_anew = [
        original[name].gather(rng.permutation(original.height))
        for name in original.columns
        if name not in {"sex", "age", "cohort", *kept}
    ]
    made = original.select("sex", halves, *kept).with_columns(drawn_anew)
    other = pl.Series(rng.lognormal(9, 1, made.height).round(2))
    return made if "amount_paid" in kept else made.with_columns(amount_paid=other)


def verdict_on(rule: str, found) -> bool | None:
    return next((check.passed for check in found.checks if check.measure == rule), None)


@pytest.mark.parametrize("kind", SECRETS)
def test_without_a_planted_column_nobody_is_found(kind):
    original, roles = people(kind)
    verdict = judge(Microdata(released(original, [])), POLICY, Microdata(original, **roles), seed=0)
    assert verdict_on(RULE, verdict), verdict.line


@pytest.mark.parametrize("leak", PLANTED)
@pytest.mark.parametrize("kind", SECRETS)
def test_what_others_may_know_is_not_cleared(kind, leak):
    original, roles = people(kind)
    release = Microdata(released(original, PLANTED[leak]))
    verdict = judge(release, POLICY, Microdata(original, **roles), seed=0)
    assert verdict_on(RULE, verdict) is False, verdict.line
    assert verdict.meets is False


@pytest.mark.parametrize("leak", PLANTED)
def test_another_order_of_the_records_hides_nobody(leak):
    original, roles = people("census")
    release = released(original, PLANTED[leak]).sample(fraction=1, shuffle=True, seed=3)
    verdict = judge(Microdata(release), POLICY, Microdata(original, **roles), seed=0)
    assert verdict_on(RULE, verdict) is False, verdict.line


@pytest.mark.parametrize("role", ["keys", "sensitive", "strata", "none"])
def test_no_role_hides_a_date(role):
    original, roles = people("levels")
    if role in ("keys", "sensitive"):
        roles[role] = [*(roles[role] if isinstance(roles[role], list) else [roles[role]]), "admitted_on"]
    elif role == "strata":
        roles["strata"] = "admitted_on"
    release = Microdata(released(original, ["admitted_on"]))
    assert verdict_on(RULE, judge(release, POLICY, Microdata(original, **roles), seed=0)) is False


def stays(seed: int = 4) -> pl.DataFrame:
    """People who come back four times, in one of twelve months each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(400), 4)
    return pl.DataFrame(
        {
            "patient": 5_000 + 3 * who,
            "sex": rng.choice(["f", "m"], 400)[who],
            "month": rng.integers(1, 13, len(who)),
            "illness": rng.choice(list("ABCD"), len(who)),
        }
    )


def test_a_person_is_not_found_by_the_set_of_their_records():
    frame = stays()
    original = Microdata(frame, keys="sex", sensitive="illness", person="patient")
    pseudonyms = frame.with_columns(pl.col("patient").rank("dense").cast(pl.String))
    verdict = judge(Microdata(pseudonyms), POLICY, original, seed=0)
    assert verdict_on(RULE, verdict) is False, verdict.line
    apart = judge(Microdata(frame.drop("patient")), POLICY, original, seed=0)
    assert verdict_on(RULE, apart), apart.line


def test_a_household_is_not_found_by_its_composition():
    rng = np.random.default_rng(5)
    home = np.repeat(np.arange(500), rng.choice([1, 2, 3, 4, 5], 500))
    frame = pl.DataFrame(
        {
            "home": home,
            "sex": rng.choice(["f", "m"], len(home)),
            "age": rng.choice(["0-19", "20-39", "40-59", "60+"], len(home)),
            "vote": rng.choice(list("abc"), len(home)),
        }
    )
    original = Microdata(frame, keys=["sex", "age"], sensitive="vote", household="home")
    verdict = judge(Microdata(frame), POLICY, original, seed=0)
    assert verdict_on(RULE, verdict) is False, verdict.line
    apart = judge(Microdata(frame.drop("home")), POLICY, original, seed=0)
    assert verdict_on(RULE, apart), apart.line


def test_a_person_whom_nobody_named_leaves_the_verdict_open_until_denied():
    from discreet.core.verdicts import Acceptance

    frame = stays().with_columns(pl.lit("x").alias("illness"), month=pl.lit(1))
    loose = {"name": "Loose", "rules": {"k_anonymity": {"at_least": 3}}}
    from discreet.policy import Policy

    policy = Policy.from_dict(loose)
    found = assess(Microdata(frame, keys="sex", sensitive="illness"), policy)
    assert found.verdict.outcome == "open"
    assert found.verdict.unjudged[0].rule == "person"
    assert "'patient'" in found.advice[0]
    named = assess(Microdata(frame, keys="sex", sensitive="illness", person="patient"), policy)
    assert named.verdict.meets
    denied = Acceptance("person", because="these are case numbers", by="A. Steward")
    other = assess(Microdata(frame, keys="sex", sensitive="illness"), policy, accept=[denied])
    assert other.verdict.outcome == "accepted"


@pytest.mark.parametrize("kind", ["census", "stays", "firms", "levels"])
def test_no_door_clears_a_date_kept_to_the_day(kind, tmp_path):
    original, roles = people(kind)
    frame = original.select("sex", "age", "admitted_on", roles["sensitive"])
    real = Microdata(frame, **roles)
    made = released(original, ["admitted_on"]).select("sex", "age", "admitted_on", roles["sensitive"])
    assert compare(real, Microdata(made), policy=POLICY, seed=0).meets is False
    assert assess(Microdata(made, **roles), POLICY).verdict.meets is not True
    frame.write_csv(tmp_path / "original.csv")
    made.write_csv(tmp_path / "released.csv")
    given = ["--keys", "sex,age", "--sensitive", str(roles["sensitive"]), "--policy", POLICY]
    run = CliRunner().invoke
    done = run(
        app, ["compare", str(tmp_path / "original.csv"), str(tmp_path / "released.csv"), *given, "--json"]
    )
    assert done.exit_code == 3
    failed = [c["measure"] for c in _checks(done.stdout) if not c["passed"]]
    assert RULE in failed
    assert run(app, ["assess", str(tmp_path / "released.csv"), *given]).exit_code in (3, 4)
    step = '{treatment = "drop-identifiers", columns = ["age"]}'
    out = ["--step", step, "--out", str(tmp_path / "out.csv")]
    assert run(app, ["protect", str(tmp_path / "original.csv"), *out, *given]).exit_code == 3
    treated = Plan([DropIdentifiers(["age"])]).apply(real, seed=1)
    assert verdict_on(RULE, judge(treated, POLICY, real, seed=0)) is False


def _checks(printed: str) -> list[dict[str, object]]:
    return json.loads(printed)["verdict"]["checks"]
