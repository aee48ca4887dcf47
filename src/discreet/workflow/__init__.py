"""The verbs of the front door: they call the other rooms in the right order."""

from discreet.workflow.assessment import assess
from discreet.workflow.comparison import compare
from discreet.workflow.inspection import inspect
from discreet.workflow.judging import judge
from discreet.workflow.plan_search import plan_grid, search
from discreet.workflow.suggesting import Suggestion, suggest
from discreet.workflow.treatment_report import ReleaseReport, document_plan, document_release

__all__ = [
    "ReleaseReport",
    "Suggestion",
    "assess",
    "compare",
    "document_plan",
    "document_release",
    "inspect",
    "judge",
    "plan_grid",
    "search",
    "suggest",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
