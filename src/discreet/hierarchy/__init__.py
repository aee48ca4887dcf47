"""How can a value be told less precisely? Generalization hierarchies for key columns.

A hierarchy is a chain of ever coarser views of one column: level 0 is the value itself, every level above
merges some labels of the level below, and the top level says nothing (``*``). It comes from a table (an
ARX-style CSV file, a data frame, a nested dictionary) or from a rule (intervals, breaks, prefixes, dates).
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
