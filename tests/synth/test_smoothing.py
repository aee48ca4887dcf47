"""Blurred numbers: nobody's, within the range, and no heap at its ends."""

from __future__ import annotations

import numpy as np
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.synth.smoothing import SMOOTHINGS, own_values, smoothed


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.sampled_from(SMOOTHINGS), st.integers(3, 200))
def test_blurred_numbers_stay_within_the_range(seed, kind, size):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(8, 1.5, size)
    fresh = smoothed(values, kind, low=values.min(), high=values.max(), rng=rng)
    assert len(fresh) == size
    assert fresh.min() >= values.min() - 1e-9
    assert fresh.max() <= values.max() + 1e-9


def test_the_largest_are_moved_as_far_as_they_stand_apart():
    rng = np.random.default_rng(1)
    values = np.sort(rng.pareto(1.1, 3000) * 1000)
    gaps = np.minimum(np.diff(values)[-50:-1], np.diff(values)[-49:])
    moved = {
        kind: np.abs(smoothed(values, kind, low=values[0], high=values[-1], rng=rng)[-50:-1] - values[-50:-1])
        for kind in ("density", "adaptive")
    }
    next_to = {kind: float((far <= 0.05 * gaps).mean()) for kind, far in moved.items()}
    assert next_to["adaptive"] < 0.08 < next_to["density"]


def test_most_numbers_are_ones_own_or_not():
    assert own_values(np.arange(100.0))
    assert not own_values(np.repeat(np.arange(50.0), 2))
    assert not own_values(np.empty(0))


def test_between_leaves_heaps_alone_and_draws_other_numbers_between_their_neighbors():
    rng = np.random.default_rng(5)
    own = np.round(np.exp(rng.normal(8, 1, 500)), 2)
    values = np.concatenate([np.full(200, 1000.0), own])
    fresh = smoothed(values, "between", low=0.0, high=1e9, rng=np.random.default_rng(1))
    assert (fresh[:200] == 1000.0).all()
    ranked = np.sort(own)
    place = np.searchsorted(ranked, own)
    assert (fresh[200:] >= ranked[np.maximum(place - 10, 0)]).all()
    assert (fresh[200:] <= ranked[np.minimum(place + 11, 499)]).all()
    assert not set(fresh[200:]) & set(own)
    assert fresh.max() <= own.max()
