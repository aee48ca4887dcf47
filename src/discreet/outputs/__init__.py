"""Checking research outputs before they leave the safe setting.

`Session` makes statistics that come back with their status; `check` looks at a finished file; `review` serves the page
of a human checker; `classify` says which rules a statistic falls under.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
