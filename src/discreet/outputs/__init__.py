"""Checking research outputs before they leave the safe setting.

`Session` makes statistics that come back with their status; `check` looks at a finished file; `review` serves the page
of a human checker; `classify` says which rules a statistic falls under.
"""

from discreet.outputs.acro import read_acro, write_acro
from discreet.outputs.decisions import append_decision, read_decisions, verify_register
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.finished import check, check_many
from discreet.outputs.package import Package
from discreet.outputs.places import Place
from discreet.outputs.register import OutputRegister
from discreet.outputs.result import Output
from discreet.outputs.reviewing import Reviewer, review
from discreet.outputs.session import Session
from discreet.outputs.settings import OutputPolicy
from discreet.outputs.statbarns import Barn, StatbarnInfo, barns, classify, registry

__all__ = [
    "Barn",
    "CheckResult",
    "Finding",
    "Output",
    "OutputPolicy",
    "OutputRegister",
    "Package",
    "Place",
    "Reviewer",
    "Session",
    "StatbarnInfo",
    "append_decision",
    "barns",
    "check",
    "check_many",
    "classify",
    "read_acro",
    "read_decisions",
    "registry",
    "review",
    "verify_register",
    "write_acro",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
