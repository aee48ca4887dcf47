"""An audit of the training of private networks: honest noise is not refuted, too little of it is found."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet import dp
from discreet.synth import DPGAN

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
try:
    NETWORKS = importlib.import_module("dp_audit_networks")
finally:
    sys.path.pop(0)
CLAIMS = NETWORKS.claims()
REAL_NOISE = dp.discrete_gaussian
REAL_SHARE = 0.04


def seeded_noise(share):
    """The noise of the training, drawn with a seed, with a share of its variance."""
    words = dp.seeded_words(np.random.default_rng(3))
    return lambda variance, size, _: REAL_NOISE(variance * share, size, words)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_a_fifth_of_the_noise_is_found(name, monkeypatch):
    monkeypatch.setattr(dp, "discrete_gaussian", seeded_noise(REAL_SHARE))
    found = CLAIMS[name].audited(4000)
    assert found.figures["violated"], (name, found.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_the_training_of_a_private_network_is_not_refuted_in_many_steps(name):
    assert not CLAIMS[name].audited(20_000).figures["violated"]


def test_a_file_without_a_record_to_draw_gives_noise_alone():
    plan = DPGAN(200.0, delta=1e-3, steps=5, rate=0.5, critic=1, width=1, noise=1)
    assert np.shape(NETWORKS.noisy_gradients(plan, 0, 5)) == (5,)
