"""The verbs of the front door: they call the other rooms in the right order."""

from discreet.workflow.assessment import assess

__all__ = ["assess"]
