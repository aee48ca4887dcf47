"""Say at the end how many cases were tried."""

from __future__ import annotations

from fuzz.campaign import CASES, SEED


def pytest_terminal_summary(terminalreporter):
    """Add up what every batch has tried; a batch that failed is told above."""
    passed = terminalreporter.stats.get("passed", [])
    tried = sum(count for report in passed for name, count in report.user_properties if name == "fuzzed")
    failed = len(terminalreporter.stats.get("failed", []))
    if CASES:
        terminalreporter.write_line(
            f"{tried:,} new cases without a fault, {failed} batches or tests with one (DISCREET_FUZZ_SEED={SEED})."
        )
