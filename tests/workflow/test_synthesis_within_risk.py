"""A synthesis that passes its own attackers, and says what that cost."""

from __future__ import annotations

import numpy as np
import pytest
from attack.populations import people

from discreet import Microdata, attack
from discreet.errors import ColumnError, ParameterError
from discreet.workflow.synthesis_within_risk import synthesize_within_risk


def test_numbers_that_one_person_has_alone_are_blurred_until_the_limit_holds():
    data = Microdata(people(np.random.default_rng(3), 900).select("pay", "age", "job", "coin"))
    found = synthesize_within_risk(data, 0.2, secrets=["coin"], attacks=400, seed=1)
    first = found.frontier.row(0, named=True)
    assert first["singling_out_risk"] > 0.5
    assert found.holds
    assert found.frontier.filter(found.frontier["chosen"])["singling_out_risk"][0] <= 0.2
    assert any("blurred" in step for step in found.steps)
    assert "keeps the limit of 20 %" in " ".join(found.lines)
    again = attack.singling_out(
        data.with_frame(data.frame.join(found.set_aside.frame, on=data.columns, how="anti")),
        found.file,
        control=found.set_aside,
        predicates="univariate",
        seed=2,
    )
    assert again.figures["risk"] <= 0.2


def test_limits_that_are_none_and_files_too_small_are_refused():
    data = Microdata(people(np.random.default_rng(3), 150))
    with pytest.raises(ParameterError, match="shares"):
        synthesize_within_risk(data, 1.5)
    with pytest.raises(ParameterError, match="set aside"):
        synthesize_within_risk(data, 0.1)
    with pytest.raises(ColumnError, match="shoe"):
        synthesize_within_risk(Microdata(people(np.random.default_rng(3), 900)), 0.1, secrets=["shoe"])
