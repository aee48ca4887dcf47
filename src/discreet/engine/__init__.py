"""The engine room: the only place that knows data-frame engines.

Everything that counts is written once, against Narwhals, and runs where the data is: in Polars (also for
pandas and PyArrow frames, whose columns are handed over through Arrow), in DuckDB or in PySpark. What comes
out is a small Polars table; only what is asked for record by record stays lazy in the engine of the source.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
