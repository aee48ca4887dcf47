"""What could somebody do with what is about to be released? Attacks, run before an intruder runs them.

Risk measures count; attacks try. Every attack is a function of what the intruder has, and answers with a `Measure`: how
often it succeeded against the people in the file, how often the same attack succeeds against people who are not in it
(the control), how often a blind guess does, and the risk that is left: the part of the successes that only the release
explains (`discreet.attack.success`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.attack.success import Tally, measured

_HOME = {
    "Tally": "success",
    "measured": "success",
}
"""Public names and the modules that they live in, which are imported when they are first used."""

__all__ = [
    "Tally",
    "measured",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"discreet.attack.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.attack' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
