"""An audit finds the false claims that the literature knows, and none among our own mechanisms."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_PLACE = Path(__file__).parents[2] / "bench" / "dp_audit.py"


def _bench():
    spec = importlib.util.spec_from_file_location("dp_audit_bench", _PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BENCH = _bench()


@pytest.mark.parametrize("name", BENCH.PLANTED)
def test_a_planted_fault_is_caught(name):
    # In fewer runs the last digits of floating-point noise are sometimes missed.
    found = BENCH.PLANTED[name].audited(100_000)
    assert found.figures["violated"], (name, found.value)


@pytest.mark.parametrize("name", BENCH.AT_ONCE)
def test_a_mechanism_of_ours_is_not_refuted(name):
    assert not BENCH.AT_ONCE[name].audited(20_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCH.AT_ONCE)
def test_no_mechanism_of_ours_is_refuted_in_a_hundred_thousand_runs(name):
    assert not BENCH.AT_ONCE[name].audited(100_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCH.ONE_BY_ONE)
def test_a_mechanism_that_answers_one_by_one_is_not_refuted(name):
    # They take milliseconds a run; `bench/dp_audit.py` has the hundred thousand.
    assert not BENCH.ONE_BY_ONE[name].audited(5_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCH.GENERATORS)
def test_a_generator_of_ours_is_not_refuted(name):
    # A fit takes milliseconds; `bench/dp_audit.py` has more of them.
    assert not BENCH.GENERATORS[name].audited(1_000).figures["violated"]


def test_every_generator_that_makes_a_claim_is_audited():
    claiming = {"MST", "AIM", "BayesianNetwork", "PerturbedHistogram", "SmoothHistogram", "NoisyBayes"}
    assert claiming <= {name.split(",")[0] for name in BENCH.GENERATORS}
