"""What every attack tells: rates, the risk beyond the control, and an interval that holds what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attack.success import (
    FEW_TRIES,
    NO_CONTROL,
    SURE_CONTROL,
    WEAK_ATTACK,
    Tally,
    Trial,
    excess,
    measured,
)
from discreet.core.errors import ParameterError
from discreet.core.findings import code_of

TALLIES = st.integers(1, 5_000).flatmap(
    lambda tries: st.integers(0, tries).map(lambda hits: Tally(float(hits), float(tries)))
)


def test_a_wilson_interval_is_the_published_one():
    # Newcombe (1998), Statistics in Medicine 17, 857-872, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    published = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (hits, tries), ends in published.items():
        assert Tally(hits, tries).interval == pytest.approx(ends, abs=5e-5)


@given(TALLIES, TALLIES)
def test_the_interval_holds_the_risk_and_the_risk_is_never_above_one(attack, control):
    found = excess(attack, control)
    if control.rate == 1:
        assert found == (None, None, None)
        return
    assert found.risk == pytest.approx((attack.rate - control.rate) / (1 - control.rate))
    assert found.low <= found.risk + 1e-9
    assert found.risk <= found.high + 1e-9
    assert found.high <= 1


@given(TALLIES)
def test_a_control_that_is_known_for_certain_gives_a_narrower_interval(attack):
    sure, guessed = excess(attack, 0.25), excess(attack, Tally(25, 100))
    assert sure.high - sure.low <= guessed.high - guessed.low + 1e-9


@pytest.mark.parametrize(
    ("attack_rate", "control_rate"), [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9), (0.4, 0.1), (0.02, 0.02)]
)
def test_the_interval_covers_the_true_risk_in_about_95_percent(attack_rate, control_rate):
    draws = np.random.default_rng(1)
    truth = (attack_rate - control_rate) / (1 - control_rate)
    runs = [
        excess(Tally(float(a), 500), Tally(float(c), 300))
        for a, c in zip(
            draws.binomial(500, attack_rate, 1000), draws.binomial(300, control_rate, 1000), strict=True
        )
    ]
    assert 0.93 <= np.mean([run.low <= truth <= run.high for run in runs]) <= 0.985


def test_what_limits_the_answer_is_said_and_no_zero_is_silent():
    few = measured("attack", Trial(Tally(3, 10), Tally(1, 10), 0.1), doing="finds a person")
    assert FEW_TRIES in {code_of(caveat) for caveat in few.caveats}
    alone = measured("attack", Trial(Tally(300, 1000), None, 0.1), doing="finds a person")
    assert {code_of(caveat) for caveat in alone.caveats} == {NO_CONTROL}
    assert alone.value == pytest.approx(0.2 / 0.9)
    assert alone.figures["control_rate"] is None
    sure = measured("attack", Trial(Tally(1000, 1000), Tally(1000, 1000), 0.1), doing="finds a person")
    assert sure.value is None
    assert SURE_CONTROL in {code_of(caveat) for caveat in sure.caveats}
    weak = measured("attack", Trial(Tally(500, 1000), Tally(480, 1000), 0.5), doing="guesses a coin")
    assert WEAK_ATTACK in {code_of(caveat) for caveat in weak.caveats}
    assert "cannot be ruled out" in weak.meaning


def test_a_tally_without_tries_or_with_more_hits_than_tries_is_refused():
    for hits, tries in ((0, 0), (2, 1), (-1, 5)):
        with pytest.raises(ParameterError, match="at least one try"):
            Tally(hits, tries)


def test_a_control_that_fares_worse_clears_nothing():
    found = measured("membership", Trial(Tally(100, 200), Tally(180, 200), 0.5), doing="recognizes a person")
    assert found.figures["risk_high"] < 0
    assert "nothing is known of the risk" in found.meaning
    assert "up to 0 %" not in found.meaning


TRIALS = st.lists(st.tuples(TALLIES, TALLIES), min_size=1, max_size=6).map(
    lambda pairs: {f"way {place}": Trial(*pair, 0.1) for place, pair in enumerate(pairs)}
)


@given(TRIALS)
def test_what_is_sure_is_less_than_what_cannot_be_ruled_out_and_no_way_is_overlooked(trials):
    found = measured("attack", trials, doing="finds a person").figures
    lows = [trial.beyond(len(trials)).low for trial in trials.values()]
    highs = [trial.beyond().high for trial in trials.values() if not trial.is_no_secret]
    assert found["risk_at_least"] == pytest.approx(
        max([low for low in lows if low is not None], default=0), abs=1e-9
    ) or (found["risk_at_least"] == 0)
    assert all(high is None or found["risk_at_most"] >= high - 1e-12 for high in highs)


def test_another_way_that_may_achieve_more_is_not_overlooked():
    trials = {
        "sure": Trial(Tally(300, 10_000), Tally(100, 10_000), 0.0),
        "few": Trial(Tally(2, 20), Tally(1, 20), 0.0),
    }
    found = measured("attack", trials, doing=lambda way: f"finds a person ({way})")
    assert "(sure)" in found.meaning
    assert found.figures["risk_high"] < 0.05 < 0.15 < found.figures["risk_at_most"]


def test_of_forty_ways_that_gain_nothing_hardly_ever_one_seems_sure():
    draws = np.random.default_rng(1)
    wrong = 0
    for _ in range(400):
        rates = draws.uniform(0.02, 0.6, 40)
        hits, others = draws.binomial(800, rates), draws.binomial(800, rates)
        trials = {
            str(at): Trial(Tally(float(a), 800), Tally(float(b), 800), 0.0)
            for at, (a, b) in enumerate(zip(hits, others, strict=True))
        }
        wrong += measured("attack", trials, doing="finds").figures["risk_at_least"] > 0
    assert wrong / 400 <= 0.05


def test_more_attacks_together_make_what_is_sure_smaller_and_nothing_else():
    trial = Trial(Tally(300, 1000), Tally(125, 1000), 0.1)
    alone, four = (measured("attack", trial, doing="finds", jointly=many).figures for many in (1, 4))
    assert four["risk_at_least"] < alone["risk_at_least"]
    assert four["risk_at_most"] == alone["risk_at_most"]


def test_people_of_another_kind_clear_nothing():
    found = measured("membership", Trial(Tally(100, 1000), Tally(500, 1000), 0.5), doing="recognizes")
    assert found.figures["risk_at_most"] == 1


@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_the_interval_about_a_rare_secret_is_narrower_and_still_holds_the_truth(gain):
    draws = np.random.default_rng(2)
    inside, widths = [], []
    for _ in range(400):
        rare = [draws.random(2000) < 0.05 for _ in range(2)]
        # Whoever is not rare is guessed right by saying so; of the rare a tenth of strangers, and more of the others.
        found = [
            np.where(own, draws.random(2000) < 0.1 + 0.9 * more, True)
            for own, more in zip(rare, (gain, 0), strict=True)
        ]
        with_blind = Trial.of_guesses(found[0], found[1], ~rare[0], ~rare[1]).beyond()
        without = Trial(Tally.of(found[0]), Tally.of(found[1]), 0.95).beyond()
        truth = gain
        inside.append(with_blind.low <= truth <= with_blind.high)
        widths.append((with_blind.high - with_blind.low) / (without.high - without.low))
    assert np.mean(inside) >= 0.93
    assert np.median(widths) < 0.75


def test_a_secret_that_follows_from_another_column_is_none_and_a_rare_one_is():
    known = Trial(Tally(990, 1000), Tally(985, 1000), 0.3)
    rare = Trial(Tally(990, 1000), Tally(985, 1000), 0.985)
    assert known.is_no_secret
    assert not rare.is_no_secret
    found = measured("inference", {"a by nearest": known, "b by nearest": rare}, doing="guesses")
    assert any("is no secret: 'a by nearest'" in caveat for caveat in found.caveats)


def test_a_way_that_can_be_tried_on_hardly_anybody_leaves_nothing_open_and_is_sure_where_it_succeeds():
    wide = Trial(Tally(230, 1000), Tally(240, 1000), 0.1)

    def beside(hits, reach):
        few = Trial(Tally(hits, 60), Tally(20, 60), 0.1, reach=reach)
        return measured(
            "singling_out", {"wide": wide, "few": few}, doing=lambda way: f"finds ({way})"
        ).figures

    assert beside(21, 1.0)["risk_at_most"] > 0.1 > beside(21, 0.01)["risk_at_most"] > 0
    assert beside(58, 0.01)["risk_at_least"] > 0.5
    alone = measured("singling_out", {"few": Trial(Tally(21, 60), Tally(20, 60), 0.1, reach=0.01)}, doing=str)
    assert alone.figures["risk_at_most"] > 0.1


def test_the_way_that_leaves_a_rule_open_is_the_one_whose_tries_are_counted():
    trials = {
        "sure": Trial(Tally(300, 10_000), Tally(100, 10_000), 0.0),
        "few": Trial(Tally(3, 20), Tally(2, 20), 0.0),
    }
    found = measured("attack", trials, doing=lambda way: f"finds a person ({way})").figures
    assert (found["attacks"], found["open_attacks"]) == (10_000, 20)
    assert found["open_risk"] == pytest.approx(0.05 / 0.9)
