"""Aggregated tables: sensitive cells, suppression, rounding, cell keys, table synthesis, audit.

A `Table` holds what is to be published and the inner cells it is made of.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
