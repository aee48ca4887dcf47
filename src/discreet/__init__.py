"""discreet: how risky is this data, how can it be protected, and what may be released.

The front door. Sub-packages and verbs are imported when they are first used, so that ``import discreet``
stays quick.

Examples
--------
>>> import discreet
>>> data = discreet.datasets.adult(keys=["age", "sex"], sensitive="income")
>>> discreet.risk.k_anonymity(data).value
1
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet._version import __version__

if TYPE_CHECKING:
    from discreet import (
        attack,
        datasets,
        dp,
        engine,
        federated,
        io,
        outputs,
        protect,
        report,
        risk,
        synth,
        tables,
        utility,
    )
    from discreet.core.errors import DiscreetError, DiscreetWarning
    from discreet.hierarchy import Hierarchy
    from discreet.io import read, write
    from discreet.microdata import Microdata
    from discreet.policy import Policy
    from discreet.protect import Plan
    from discreet.workflow import assess, compare, inspect, judge, plan_grid, search, suggest
    from discreet.workflow.evaluation import Study, evaluate

__all__ = [
    "DiscreetError",
    "DiscreetWarning",
    "Hierarchy",
    "Microdata",
    "Plan",
    "Policy",
    "Study",
    "__version__",
    "assess",
    "attack",
    "compare",
    "datasets",
    "dp",
    "engine",
    "evaluate",
    "federated",
    "inspect",
    "io",
    "judge",
    "outputs",
    "plan_grid",
    "protect",
    "read",
    "report",
    "risk",
    "search",
    "suggest",
    "synth",
    "tables",
    "utility",
    "write",
]

_HOME = {
    "Microdata": "discreet.microdata",
    "Hierarchy": "discreet.hierarchy",
    "Plan": "discreet.protect",
    "Policy": "discreet.policy",
    "DiscreetError": "discreet.core.errors",
    "DiscreetWarning": "discreet.core.errors",
    "read": "discreet.io",
    "write": "discreet.io",
    "Study": "discreet.workflow.evaluation",
    "assess": "discreet.workflow",
    "compare": "discreet.workflow",
    "evaluate": "discreet.workflow.evaluation",
    "inspect": "discreet.workflow",
    "judge": "discreet.workflow",
    "plan_grid": "discreet.workflow",
    "search": "discreet.workflow",
    "suggest": "discreet.workflow",
}
_ROOMS = (
    "attack",
    "datasets",
    "dp",
    "engine",
    "federated",
    "io",
    "outputs",
    "protect",
    "report",
    "risk",
    "synth",
    "tables",
    "utility",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"discreet.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'discreet' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
