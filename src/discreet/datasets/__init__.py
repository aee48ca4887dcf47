"""Real data that ships with the package, for examples, tests and the demo.

Origin and licence of each file stand in the README beside it.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from discreet.microdata import Columns, Microdata


def adult(**roles: Columns) -> Microdata:
    """Load UCI Adult (1994 US census extract, CC BY 4.0): 48,842 records, 15 columns.

    Parameters
    ----------
    roles
        Roles as in `Microdata`; without any, the usual ones: what a neighbor may know as keys, income as
        sensitive.

    Examples
    --------
    >>> data = adult()
    >>> data.roles.sensitive, data.frame.height
    (('income',), 48842)
    """
    import polars as pl

    usual: dict[str, Columns] = {
        "keys": ["age", "sex", "race", "marital-status", "native-country"],
        "sensitive": "income",
    }
    frame = pl.read_csv(adult_path(), null_values="?", infer_schema_length=None)
    return Microdata(frame).with_roles(**(roles or usual))


def adult_path() -> Path:
    """Tell where the file behind `adult` lies, for the command line and for trying out `discreet.read`."""
    return Path(str(files("discreet.datasets"))) / "adult.csv.gz"
