"""How many examples a property is tried on: all of them where examples are searched for, a part in every run."""

from __future__ import annotations

import os

SEARCHING = os.environ.get("DISCREET_EXAMPLES", "repeatable") == "searching"
_LEAST, _PART = 5, 8


def examples(many: int) -> int:
    """Give the number of examples: ``many`` in `make test-all`, an eighth of them and five at least in `make test`."""
    return many if SEARCHING else min(many, max(_LEAST, many // _PART))
