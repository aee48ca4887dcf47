"""Let atheris choose the cases: it keeps those that reach new lines of discreet, and changes them further.

Run: ``python tests/fuzz/guided.py expressions -max_total_time=600`` (a target, then any options of libFuzzer). The
cases are those of the other fuzz tests, read from bytes; what must hold of them is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

Target = Callable[[bytes], Any]


def targets() -> dict[str, Target]:
    """What can be tried, by name; each takes bytes and raises where a promise is broken."""
    from fuzz import test_documents, test_expressions, test_files

    tests: dict[str, Any] = {
        "expressions": test_expressions.test_an_expression_is_computed_or_refused,
        "documents": test_documents.test_a_toml_file_is_taken_or_refused,
        "files": test_files.test_a_file_is_read_or_refused,
    }
    return {name: _from_bytes(test) for name, test in tests.items()}


def _from_bytes(test: Any) -> Target:
    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=test.cases)
    def one(case: Any) -> None:
        test.check(case)

    taken: Target = one.hypothesis.fuzz_one_input
    return taken


def main() -> None:
    """Fuzz one target until libFuzzer is told to stop."""
    import atheris

    sys.path.insert(0, str(Path(__file__).parents[1]))
    with atheris.instrument_imports(include=["discreet"]):
        target = targets()[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
