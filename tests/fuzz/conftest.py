"""Say at the end how many cases were tried."""

from __future__ import annotations

import polars as pl
import pytest

import discreet
from discreet import Microdata
from discreet.protect import LocalSuppression, Microaggregate
from discreet.synth import Sequential
from fuzz.campaign import CASES, SEED


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Compile what the first cases would: on a fresh install that takes longer than a case may."""
    if not CASES:
        return
    ages, sexes = list(range(20, 60)) * 3, ["f", "m", "f"] * 40
    people = Microdata(
        pl.DataFrame({"age": ages, "sex": sexes, "pay": [float(age) for age in ages]}), keys=["age", "sex"]
    )
    made = Sequential().fit(people, seed=1).sample(seed=1)
    Microaggregate(k=3, columns=["age", "pay"]).apply(people, seed=1)
    LocalSuppression(k=3).apply(people, seed=1)
    discreet.compare(people, made)


def pytest_terminal_summary(terminalreporter):
    """Add up what every batch has tried; a batch that failed is told above."""
    passed = terminalreporter.stats.get("passed", [])
    tried = sum(count for report in passed for name, count in report.user_properties if name == "fuzzed")
    failed = len(terminalreporter.stats.get("failed", []))
    if CASES:
        terminalreporter.write_line(
            f"{tried:,} new cases without a fault, {failed} batches or tests with one (DISCREET_FUZZ_SEED={SEED})."
        )
