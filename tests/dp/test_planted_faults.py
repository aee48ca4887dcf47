"""An audit finds the false claims that the literature knows, and none in anything of ours that carries a guarantee.

Every bound has a confidence of 1 - 1e-9 (`SURE`): noise comes from the operating system, and a true claim is refuted by
chance less than once in 1e9 runs of a test. Planted faults draw with a fixed seed.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import sys
from pathlib import Path

import pytest

import discreet

_ROOT = Path(discreet.__file__).parent
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
try:
    BENCH, DOORS = importlib.import_module("dp_audit"), importlib.import_module("dp_audit_doors")
    PARTS = importlib.import_module("dp_audit_at_once").CLAIMS
finally:
    sys.path.pop(0)


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
def test_no_mechanism_that_answers_one_by_one_is_refuted(name):
    # They take a part of a millisecond a run; `bench/dp_audit.py` has the hundred thousand.
    assert not BENCH.ONE_BY_ONE[name].audited(20_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS.ONE_BY_ONE)
def test_no_door_that_answers_one_by_one_is_refuted(name):
    # They take milliseconds a run; `bench/dp_audit.py` has more of them.
    assert not DOORS.ONE_BY_ONE[name].audited(2_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS.GENERATORS)
def test_a_generator_of_ours_is_not_refuted(name):
    # A fit takes milliseconds; `bench/dp_audit.py` has more of them.
    assert not DOORS.GENERATORS[name].audited(1_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_no_part_of_one_call_is_refuted(name):
    # Lines and datasets take a part of a millisecond each; `bench/dp_audit.py` has the hundred thousand.
    many = 5_000 if name.endswith(("line by line", "dataset by dataset")) else 100_000
    assert not PARTS[name].audited(many).figures["violated"]


@pytest.mark.parametrize(
    "name",
    ["histogram, level by level", "SmoothHistogram, row by row", "PerturbedHistogram, pairs of cells"],
)
def test_a_claim_of_half_as_much_would_be_refuted(name):
    """What is not found in many parts of one call is not missed for want of looking."""
    half = dataclasses.replace(PARTS[name], epsilon=0.5)
    assert half.audited(50_000).figures["violated"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["protect.LapGraph", "NoisyBayes, dataset by dataset", "quantile regression, kng, line by line"]
)
def test_half_of_the_claim_of_a_door_would_be_refuted(name):
    """The neighbors are near the worst there are: what would be twice too much is found in few runs."""
    claim = {**PARTS, **DOORS.ONE_BY_ONE}[name]
    found = BENCH.dp.audit(claim.draw, claim.neighbors, epsilon=claim.epsilon / 2, runs=10_000, level=0.99)
    assert found.figures["violated"], found.value


def test_everything_that_makes_a_claim_is_audited():
    """Whoever writes a new claim of differential privacy is reminded here to put it to the test."""
    claiming = {
        path.relative_to(_ROOT).as_posix()
        for path in _ROOT.rglob("*.py")
        if re.search("DifferentialPrivacy|Spend", text := path.read_text(encoding="utf-8"))
        if any(
            isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"DifferentialPrivacy", "Spend"}
            for node in ast.walk(ast.parse(text))
        )
    }
    claiming -= {"dp/costs.py", "dp/entropy.py"}  # what a budget claims, and the account that enters it
    assert claiming == set(DOORS.DOORS), "name the audit of a new claim in bench/dp_audit_doors.py"
    audited = {*BENCH.AT_ONCE, *BENCH.ONE_BY_ONE, *DOORS.ONE_BY_ONE, *DOORS.GENERATORS}
    assert {name for own in DOORS.DOORS.values() for name in own} <= audited
