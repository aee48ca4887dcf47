"""People alone with what is known: a copy gives them away, columns thrown together do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, attack
from discreet.core.errors import ParameterError
from discreet.synth import MultiTableRelease


def people(seed, n=600):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 2000, n),
            "town": rng.integers(0, 40, n),
            "ill": rng.choice(["a", "b", "c"], n),
        }
    )


def test_a_copy_gives_everybody_away_and_shuffled_secrets_nobody():
    real = people(1)
    data = Microdata(real, keys=["age", "town"])
    copied = attack.quasi_identifier_attack(data, data, seed=1)
    assert copied.value == 1
    assert copied.figures["coverage"] > 0.9
    assert copied.figures["full_matches"] > 500
    rng = np.random.default_rng(2)
    apart = Microdata(real.with_columns(ill=real["ill"].gather(rng.permutation(real.height))))
    found = attack.quasi_identifier_attack(data, apart, seed=1)
    # A third is right by chance, of about 590 people: five standard errors of the share, over two thirds.
    assert abs(found.value) < 5 * np.sqrt(2 / 9 * (1 / 590 + 1 / 180)) * 1.5
    tables = MultiTableRelease({frozenset(real.columns): Microdata(real)})
    assert attack.quasi_identifier_attack(data, tables, seed=1).value == 1


def test_too_few_matches_are_no_headline_and_keys_are_needed():
    real, others = people(1), people(3)
    found = attack.quasi_identifier_attack(Microdata(real, keys=["age", "town"]), Microdata(others), seed=1)
    assert found.value is None
    assert found.figures["matches"] < 30
    with pytest.raises(ParameterError, match="known"):
        attack.quasi_identifier_attack(Microdata(real), Microdata(real))
