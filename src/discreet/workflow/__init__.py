"""The verbs of the front door: they call the other rooms in the right order."""

from discreet.workflow.assessment import assess
from discreet.workflow.inspection import inspect
from discreet.workflow.plan_search import plan_grid, search

__all__ = ["assess", "inspect", "plan_grid", "search"]
