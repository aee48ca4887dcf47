"""How many cases are tried, which ones, and how a failure is told.

In ``make test`` every target tries a few cases, always the same ones. ``make fuzz`` sets ``DISCREET_FUZZ_CASES`` (how
many in all) and ``DISCREET_FUZZ_SEED`` (a new one each time): every target then takes its share in batches, which the
two processes divide among them. A batch goes on after a failure, so that one run tells all faults it meets, each by the
smallest case that showed it; nothing is shrunk, which would take minutes where a case takes a second. A failure names
the seed and the batch, prints the whole case, and comes again with the same two variables.
"""

from __future__ import annotations

import hashlib
import math
import os
import traceback
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CASES = int(os.environ.get("DISCREET_FUZZ_CASES", "0"))
SEED = os.environ.get("DISCREET_FUZZ_SEED", "0")
_BATCH = 200


def fuzzed(cases: st.SearchStrategy[Any], *, quick: int, share: float) -> Callable[[Any], Any]:
    """Turn ``check(case)`` into a test: ``quick`` cases in `make test`, a ``share`` of all in `make fuzz`."""

    def decorate(check: Callable[[Any], None]) -> Callable[..., None]:
        wanted = max(1, round(CASES * share)) if CASES else quick

        @pytest.mark.parametrize("batch", range(math.ceil(wanted / _BATCH)))
        def test(batch: int, record_property: Any) -> None:
            size = min(_BATCH, wanted - batch * _BATCH)
            record_property("fuzzed", _tried(check, cases, size, f"{SEED}/{check.__name__}/{batch}"))

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        test.cases, test.check = cases, check  # for a fuzzer that draws by itself
        return test

    return decorate


def _tried(check: Callable[[Any], None], cases: st.SearchStrategy[Any], size: int, label: str) -> int:
    """Try cases and tell at the end what failed; give how many there were."""
    found: dict[str, str] = {}
    number = 0

    @hypothesis.seed(int.from_bytes(hashlib.sha256(label.encode()).digest()[:8]))
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        print_blob=True,
        derandomize=False,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def one(case: Any) -> None:
        nonlocal number
        number += 1
        try:
            check(case)
        except (KeyboardInterrupt, hypothesis.errors.HypothesisException):
            raise
        except BaseException as error:
            if type(error).__module__.startswith("hypothesis"):  # how a strategy ends a case
                raise
            told = f"{case!r}\n{''.join(traceback.format_exception(error, limit=-6))}"
            place = _place(error)
            if place not in found or len(told) < len(found[place]):
                found[place] = told

    one()
    if found:
        heading = f"{len(found)} different failures in batch {label} (DISCREET_FUZZ_SEED={SEED})"
        raise AssertionError(
            "\n\n".join([heading, *(f"== {place}\n{told}" for place, told in found.items())])
        )
    return number


def _place(error: BaseException) -> str:
    """Name a failure by what it is and the last line of discreet that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/discreet/" in frame.filename] or frames
    last = own[-1]
    name = last.filename.rpartition("/discreet/")[2]
    return f"{type(error).__name__} at {name}:{last.lineno} ({last.name}): {str(error)[:80]}"
