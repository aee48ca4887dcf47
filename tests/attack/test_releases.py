"""Attacks against a release find what was planted, and nothing where nothing was."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attack.populations import copying, people
from discreet import Microdata, attack
from discreet.attack.attribute_inference import Secret, blind_guess, is_right
from discreet.attack.membership_inference import Scores, recognized
from discreet.attack.singling_out_attack import at_size
from discreet.attack.success import FEW_TRIES, NO_CONTROL, SURE_CONTROL, WEAK_ATTACK, measured
from discreet.attack.victims import OVERLAP
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.core.findings import code_of

SIDES = (["pay", "job"], ["age", "hours", "town"])
ATTACKS = {
    "one column": lambda original, released, control, seed: attack.singling_out(
        original, released, holdout=control, predicates="univariate", attacks=300, seed=seed
    ),
    "several columns": lambda original, released, control, seed: attack.singling_out(
        original, released, holdout=control, predicates="multivariate", attacks=300, seed=seed
    ),
    "linkability": lambda original, released, control, seed: attack.linkability(
        original, released, columns=SIDES, holdout=control, seed=seed
    ),
    "inference": lambda original, released, control, seed: attack.inference(
        original, released, secret="job", holdout=control, method="nearest", seed=seed
    ),
    "inference of a number": lambda original, released, control, seed: attack.inference(
        original, released, secret="pay", holdout=control, method="nearest", seed=seed
    ),
    "membership": lambda original, released, control, seed: attack.membership(
        original, released, holdout=control, seed=seed
    ),
}


def three(seed, rows=500, others=None, share=0.0):
    rng = np.random.default_rng(seed)
    original, control, fresh = people(rng, rows), people(rng, others or rows), people(rng, rows)
    released = copying(original, fresh, share, rng)
    return Microdata(original), Microdata(released), Microdata(control)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.slow
def test_a_release_of_fresh_draws_has_an_interval_that_covers_zero(name):
    """Twenty seeded runs; at 95 % each, four or more misses come in about one of sixty such tests."""
    found = [ATTACKS[name](*three(seed), seed) for seed in range(20)]
    assert sum(not run.figures["risk_low"] <= 0 <= run.figures["risk_high"] for run in found) <= 3
    assert abs(np.mean([run.figures["risk"] for run in found])) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("others", [500, 250, 900])
@pytest.mark.parametrize("name", ATTACKS)
def test_fresh_draws_are_covered_in_95_of_100_runs_whatever_the_size_of_the_control(name, others):
    found = [ATTACKS[name](*three(seed, others=others), seed) for seed in range(100)]
    assert sum(run.figures["risk_low"] <= 0 <= run.figures["risk_high"] for run in found) >= 90


@pytest.mark.parametrize("name", ["one column", "membership"])
def test_a_release_that_copies_a_tenth_of_the_people_has_a_risk_of_a_tenth(name):
    found = [ATTACKS[name](*three(seed, rows=1000, share=0.1), seed) for seed in range(5)]
    assert np.mean([run.figures["risk"] for run in found]) == pytest.approx(0.1, abs=0.03)
    assert all(run.figures["risk_low"] <= 0.1 <= run.figures["risk_high"] for run in found)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_release_that_is_the_original_is_found_out_by_every_attack(name):
    original, _, control = three(1)
    assert ATTACKS[name](original, original, control, 1).figures["risk_low"] > 0.3


@pytest.mark.parametrize("method", ["nearest", "forest", "boosted"])
def test_a_fair_coin_has_a_blind_guess_of_one_half_and_no_risk(method):
    original, released, control = three(3, rows=800)
    found = attack.inference(original, released, secret="coin", holdout=control, method=method, seed=3)
    assert found.figures["baseline_rate"] == pytest.approx(0.5, abs=0.05)
    assert found.figures["attack_rate"] == pytest.approx(0.5, abs=0.07)
    assert found.figures["risk_low"] <= 0 <= found.figures["risk_high"]


def test_a_guess_is_as_wrong_above_as_it_is_below():
    """Anonymeter divides by the guess with its sign, so that a guess below zero is right, however far off."""
    truth = np.array([100.0, 100.0, 100.0, 0.0, -50.0, 100.0])
    guess = np.array([106.0, 94.0, 104.0, 0.0, -52.0, -7.0])
    right = [False, False, True, True, True, False]
    assert is_right(guess, truth, Secret(truth, 0), 0.05, 0.0).tolist() == right


@settings(max_examples=40)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.sampled_from([0.0, 0.05, 0.3]))
def test_no_constant_answer_is_right_more_often_than_the_blind_guess(values, tolerance):
    secret = Secret(np.array(values, dtype=float), 0)

    def right(answer):
        return is_right(np.full(len(values), answer), secret.values, secret, tolerance, 0.0).sum()

    best = right(blind_guess(secret, tolerance, 0.0))
    assert best >= max(right(answer) for answer in np.unique(secret.values))


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0]))
def test_rates_are_shares_and_the_interval_holds_the_risk(seed, share):
    files = three(seed, rows=80, share=share)
    for name in ("one column", "linkability", "membership"):
        figures = ATTACKS[name](*files, seed).figures
        assert all(0 <= figures[rate] <= 1 for rate in ("attack_rate", "control_rate", "baseline_rate"))
        if figures["risk"] is not None:
            assert figures["risk_low"] - 1e-9 <= figures["risk"] <= figures["risk_high"] + 1e-9 <= 1 + 1e-8


@pytest.mark.parametrize("name", ATTACKS)
def test_the_same_seed_gives_the_same_answer_and_the_files_need_not_be_of_one_kind(name):
    original, released, control = three(5)
    once = ATTACKS[name](original, released, control, 7)
    again = ATTACKS[name](
        Microdata(original.frame.to_pandas()), Microdata(released.frame.to_arrow()), control, 7
    )
    assert once.to_dict() == again.to_dict()


def test_a_smaller_control_is_brought_to_the_size_of_the_original():
    rng = np.random.default_rng(2)
    rates = np.concatenate([rng.exponential(0.3, 4000), rng.exponential(8, 1000), np.zeros(1000)])
    truth = np.mean(rates * np.exp(-rates))
    for times in (1.5, 2, 4):
        seen = at_size(rng.poisson(rates / times), 1000, int(1000 * times), rng)
        assert seen.rate == pytest.approx(truth, abs=0.03)
        assert seen.tries <= 6000
    exact = at_size(np.array([1, 1, 0, 5]), 100, 100, rng)
    assert (exact.hits, exact.tries) == (2, 4)


def test_a_control_that_is_part_of_the_original_is_refused_and_one_that_overlaps_is_named():
    original, released, control = three(1)
    with pytest.raises(ParameterError, match="part of the original"):
        attack.linkability(original, released, columns=SIDES, holdout=Microdata(original.frame[:200]))
    with pytest.raises(ParameterError, match="holdout is part of the original"):
        attack.membership(original, released, holdout=Microdata(original.frame[:200]))
    mixed = Microdata(pl.concat([original.frame[:100], control.frame[:400]]))
    found = attack.linkability(original, released, columns=SIDES, holdout=mixed, seed=1)
    assert OVERLAP in {code_of(caveat) for caveat in found.caveats}


def test_few_targets_and_a_missing_control_are_said():
    original, released, control = three(1, rows=60)
    codes = {
        code_of(c) for c in attack.linkability(original, released, columns=SIDES, holdout=control).caveats
    }
    assert FEW_TRIES in codes
    singled = attack.singling_out(original, released, holdout=control, predicates="univariate", seed=1)
    assert FEW_TRIES in {code_of(caveat) for caveat in singled.caveats}
    alone = attack.inference(original, released, secret="coin", method="nearest", seed=1)
    assert NO_CONTROL in {code_of(caveat) for caveat in alone.caveats}
    assert alone.figures["control_rate"] is None


def test_a_secret_that_everybody_shares_has_no_risk_and_no_silent_zero():
    files = [data.with_frame(data.frame.with_columns(pl.lit("x").alias("same"))) for data in three(1)]
    found = attack.inference(files[0], files[1], secret="same", holdout=files[2], method="nearest", seed=1)
    assert found.value is None
    assert {SURE_CONTROL, WEAK_ATTACK} <= {code_of(caveat) for caveat in found.caveats}


BAD = {
    "a column on both sides": (
        ColumnError, lambda o, r, c: attack.linkability(o, r, columns=(["pay"], ["pay", "age"])),
    ),
    "an empty side": (ParameterError, lambda o, r, c: attack.linkability(o, r, columns=([], ["age"]))),
    "an unknown column": (ColumnError, lambda o, r, c: attack.linkability(o, r, columns=(["shoe"], ["age"]))),
    "more neighbors than records": (
        ParameterError, lambda o, r, c: attack.linkability(o, r, columns=SIDES, neighbors=500),
    ),
    "an unknown secret": (ColumnError, lambda o, r, c: attack.inference(o, r, secret="shoe")),
    "a tolerance of one": (ParameterError, lambda o, r, c: attack.inference(o, r, secret="pay", tolerance=1.0)),
    "no attacks": (ParameterError, lambda o, r, c: attack.singling_out(o, r, attacks=0)),
    "one condition": (ParameterError, lambda o, r, c: attack.singling_out(o, r, conditions=1)),
    "no hold-out": (ParameterError, lambda o, r, c: attack.membership(o, r)),
    "a hold-out of three": (
        ParameterError, lambda o, r, c: attack.membership(o, r, holdout=c.with_frame(c.frame[:3])),
    ),
    "a number that is a text": (
        InputError,
        lambda o, r, c: attack.singling_out(
            o, r.with_frame(r.frame.with_columns(pl.format("{} z", "age").alias("age")))
        ),
    ),
    "a secret that is missing everywhere": (
        InputError,
        lambda o, r, c: attack.inference(
            o, r.with_frame(r.frame.with_columns(pl.lit(None, dtype=pl.String).alias("job"))), secret="job"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_makes_no_sense_is_refused_with_a_way_out(case):
    kind, run = BAD[case]
    with pytest.raises(DiscreetError) as caught:
        run(*three(1))
    assert isinstance(caught.value, kind)
    assert len(str(caught.value)) > 20


def test_the_tables_name_columns_and_records_but_no_values():
    original, released, control = three(1)
    found = attack.singling_out(original, released, holdout=control, attacks=50, seed=1)
    assert set(found.detail["searches"]["search"]) <= {"univariate", "greedy", "tree"}
    table = found.detail["predicates"]
    assert set(", ".join(table["columns"]).split(", ")) <= set(original.columns)
    secrets = attack.inference(
        original, released, holdout=control, secret=["job", "coin"], attacks=50, seed=1
    )
    assert secrets.detail["secrets"].height == 6
    assert secrets.detail["records"].columns == ["record", "guessed"]


@pytest.mark.parametrize(
    ("gain", "truth"), [(0.0, 0.0), (0.3, 0.2358)], ids=["strangers", "a shift of a third"]
)
def test_what_is_sure_of_memberships_is_hardly_ever_more_than_the_truth(gain, truth):
    rng = np.random.default_rng(1)
    sure = []
    for _ in range(200):
        scores = {
            name: Scores(rng.normal(size=600) + gain, rng.normal(size=400))
            for name in ("distance", "density")
        }
        sure.append(
            measured("membership", recognized(scores), doing="recognizes").figures["risk_at_least"] > truth
        )
    assert np.mean(sure) <= 0.05


def test_other_records_of_a_person_do_not_make_strangers_of_members():
    """The reference data once held records of the very people who were attacked, so that these seemed at home there."""
    rng = np.random.default_rng(3)

    def patients():
        who = rng.integers(0, 400, 900)
        lasting = rng.normal(size=(400, 3))[who]
        columns = {name: lasting[:, place] for place, name in enumerate("abc")}
        return pl.DataFrame({"patient": who, **columns, "stay": rng.normal(size=900)})

    for seed in range(3):
        original, released, others = (patients() for _ in range(3))
        found = attack.membership(
            Microdata(original, person="patient"),
            Microdata(released.drop("patient")),
            holdout=Microdata(others, person="patient"),
            method="density",
            seed=seed,
        )
        assert found.figures["risk_at_least"] == 0


def test_a_column_that_is_gone_wherever_the_secret_is_known_stops_no_attack():
    original, released, control = three(4)
    gaps = released.frame.with_columns(
        pl.when(pl.col("coin") == "heads").then("pay"),
        job=pl.when(pl.col("coin") == "tails").then("job"),
    )
    found = attack.inference(original, Microdata(gaps), secret="job", holdout=control, seed=1)
    assert found.figures["risk_at_least"] == 0


def test_several_noisy_releases_give_away_what_one_hides():
    rng = np.random.default_rng(6)
    real = people(rng, 400)
    noisy = [
        Microdata(real.with_columns(pl.col("pay") * (1 + pl.Series(rng.normal(0, 0.15, 400)))))
        for _ in range(9)
    ]
    control = Microdata(people(rng, 400))
    found = attack.attribute_reconstruction(Microdata(real), noisy, secret="pay", holdout=control, seed=1)
    assert found.figures["gain"] > 0.2
    assert found.figures["risk_low"] > 0.3
    with pytest.raises(ParameterError, match="two releases"):
        attack.attribute_reconstruction(Microdata(real), noisy[:1], secret="pay")
    fresh = [Microdata(people(rng, 400)) for _ in range(3)]
    blind = attack.attribute_reconstruction(Microdata(real), fresh, secret="job", holdout=control, seed=1)
    assert blind.figures["risk_low"] <= 0 <= blind.figures["risk_high"]


def test_shadow_models_tell_a_copying_generator_from_one_that_gives_nobody_away():
    data = Microdata(people(np.random.default_rng(8), 300))
    copied = attack.shadow_membership(
        data, synthesizer="bootstrap", targets=20, shadows=24, records=100, seed=1
    )
    assert copied.figures["auc"] > 0.7
    assert copied.figures["risk_low"] > 0.2
    assert copied.figures["baseline_rate"] == 0.5
    alone = attack.shadow_membership(
        data, synthesizer="independent", targets=20, shadows=24, records=100, seed=1
    )
    assert alone.figures["auc"] < copied.figures["auc"] - 0.1
    for wrong in ({"shadows": 7}, {"records": 200}, {"targets": 0}):
        with pytest.raises(ParameterError):
            attack.shadow_membership(data, synthesizer="bootstrap", **{"records": 100, **wrong})
