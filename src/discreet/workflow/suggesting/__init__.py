"""Suggest a plan from the file alone: codings of columns, a search over them, and sentences about what was found."""

from discreet.workflow.suggesting.result import Alternative, StepEffect, Suggestion
from discreet.workflow.suggesting.suggestion import suggest

__all__ = ["Alternative", "StepEffect", "Suggestion", "suggest"]
