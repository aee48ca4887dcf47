"""What already went out of a source: releases, tables and outputs, in a register that every door asks.

A `Register` lies beside the data (``people.register.jsonl``) and holds one line a release, none of which can be changed
unnoticed. `people_sketch` knows sets of people again, and says how few make the difference between two of them.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
