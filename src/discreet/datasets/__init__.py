"""Real data that ships with the package, for examples, tests and the demo.

Origin and licence of each file stand in the README beside it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.roles import Columns
from discreet.microdata import Microdata

if TYPE_CHECKING:
    import polars as pl

    from discreet.hierarchy import Hierarchy


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
    usual: dict[str, Columns] = {
        "keys": ["age", "sex", "race", "marital-status", "native-country"],
        "sensitive": "income",
    }
    return Microdata(_adult()).with_roles(**(roles or usual))


@cache
def _adult() -> pl.DataFrame:
    import polars as pl

    return pl.read_csv(adult_path(), null_values="?", infer_schema_length=None)


def adult_path() -> Path:
    """Tell where the file behind `adult` lies, for the command line and for trying out `discreet.read`."""
    return _path("adult.csv.gz")


def social_assistance(**roles: Columns) -> Microdata:
    """Load the people on social assistance by region and main income (Statistics Norway, MIT): 44 counted cells.

    Fictitious counts (`freq`) of 11 regions, which lie in 6 counties and belong to 2 groups of municipalities: a small
    table with overlapping geographies, the usual example of cell suppression.

    Parameters
    ----------
    roles
        Roles as in `Microdata`; none by default.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> Table.from_microdata(social_assistance(), "(region + county + k_group)*main_income", count="freq").cells.height
    100
    """
    import polars as pl

    return Microdata(pl.read_csv(_path("social_assistance.csv"))).with_roles(**roles)


def company_values(**roles: Columns) -> Microdata:
    """Load values of four companies by sector and country (Statistics Norway, MIT): 20 records.

    Fictitious; `company` is the contributor and `value` what it contributes, for rules on dominance.

    Parameters
    ----------
    roles
        Roles as in `Microdata`; without any, `company` is the contributor.

    Examples
    --------
    >>> company_values().roles.contributor
    'company'
    """
    import polars as pl

    usual: dict[str, Columns] = {"contributor": "company"}
    return Microdata(pl.read_csv(_path("company_values.csv"))).with_roles(**(roles or usual))


def turnover() -> pl.DataFrame:
    """Load the turnover of enterprises by activity and size (InseeFrLab rtauargus, MIT): 414 cells with totals.

    Fictitious; an aggregated table of three levels of activity with the number of enterprises (`N_OBS`), their turnover
    (`TOT`) and the largest one (`MAX`). The levels of activity are in `activity_codes`.

    Examples
    --------
    >>> turnover().columns
    ['ACTIVITY', 'SIZE', 'N_OBS', 'TOT', 'MAX']
    """
    import polars as pl

    return pl.read_csv(_path("turnover.csv"), schema_overrides={"ACTIVITY": pl.String})


def activity_codes() -> Hierarchy:
    """Load the hierarchy of the activities in `turnover`: A88 below A21 below A10.

    Examples
    --------
    >>> activity_codes()
    <Hierarchy table: 92 leaves, height 3, labels per level 92, 24, 10, 1>
    """
    import polars as pl

    from discreet.hierarchy import Hierarchy

    codes = pl.read_csv(_path("activity_codes.csv"), infer_schema=False)
    return Hierarchy.from_table(codes.select("A88", "A21", "A10"))


def _path(name: str) -> Path:
    return Path(str(files("discreet.datasets"))) / name
