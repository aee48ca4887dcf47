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
