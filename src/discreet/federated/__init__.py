"""Analysis over data that may not be pooled: sums, likelihoods, models and trees over several holders.

A hospital, a registry and a school authority each hold part of the picture and send no records. Protocols give the same
numbers as pooled data would; what they give away beside them is counted in the leakage report of every run, and is part
of the result.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
