"""How near are estimated tables, and households, to a population that is known?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.number_arrays import need_pairs, numbers_of
from discreet.parameters import checked
from discreet.wording import type_name

_HALF = 0.5


@checked
def aitchison(a: npt.ArrayLike, t: npt.ArrayLike) -> float:
    """How far apart are two tables if only the ratios between their cells count?

    The distance of the centered logarithms of the cells. Empty cells are taken for half a person (in the smaller of the
    two totals).

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Examples
    --------
    >>> round(aitchison([110, 190, 280, 420], [100, 200, 300, 400]), 6)
    0.136798
    """
    return float(table_accuracy(a, t)["aitchison"])


@checked
def table_accuracy(a: npt.ArrayLike, t: npt.ArrayLike) -> dict[str, float]:
    """How far are estimated counts from true ones?

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Returns
    -------
    dict
        ``mae``, ``rmse``, ``mape`` (in percent, over cells that are not empty in truth), ``aitchison``, ``empty_truth``
        and ``replaced`` (numbers of cells that are empty in truth, and of zeros that were replaced for the distance).

    Examples
    --------
    >>> found = table_accuracy([110, 190, 280, 420], [100, 200, 300, 400])
    >>> found["mae"], round(found["rmse"], 4), round(found["mape"], 4)
    (15.0, 15.8114, 6.6667)
    """
    here, there = np.atleast_1d(numbers_of(a, "a")), np.atleast_1d(numbers_of(t, "t"))
    need_pairs(here, there, ("a", "t"))
    if not len(here) or (here < 0).any() or (there < 0).any() or not here.sum() or not there.sum():
        raise ParameterError("a and t must be counts that are not negative and not all zero.")
    off = np.abs(here - there)
    known = there > 0
    least = min(float(here.sum()), float(there.sum()))
    zeros = int((here == 0).sum() + (there == 0).sum())
    logs = []
    for counts in (here, there):
        filled = np.where(counts == 0, _HALF * counts.sum() / least, counts)
        own = np.log(filled)
        logs.append(own - own.mean())
    return {
        "mae": float(off.mean()),
        "rmse": float(np.sqrt((off**2).mean())),
        "mape": float(100 * (off[known] / there[known]).mean()),
        "aitchison": float(np.linalg.norm(logs[0] - logs[1])),
        "empty_truth": float((~known).sum()),
        "replaced": float(zeros),
    }


@checked
def household_rules(
    data: Microdata,
    *,
    age: str = "age",
    sex: str | None = None,
    size: str | None = None,
    adult_age: float = 16.0,
    truth: Microdata | None = None,
) -> pl.DataFrame:
    """Are the households of a file plausible, and as many as there should be?

    Parameters
    ----------
    data
        The file, with the role ``household``; its weight counts households where it has one.
    age, sex, size
        Columns of the age, of the sex, and of the number of members.
    adult_age
        From which age on somebody is an adult.
    truth
        The population that the file stands for, to compare with.

    Returns
    -------
    polars.DataFrame
        One row a rule: ``households`` in all, those ``without an adult``, ``mixed`` (an adult of each of two sexes),
        with a ``size that is not its number of members``, in ``more than one stratum``; the estimate, and with
        ``truth`` the true number and the difference.

    Examples
    --------
    >>> people = pl.DataFrame({"home": [1, 1, 2], "age": [40, 10, 9]})
    >>> household_rules(Microdata(people, household="home")).rows()
    [('households', 2.0), ('without an adult', 1.0)]
    """
    found = _counted_rules(data, age, sex, size, adult_age)
    made = pl.DataFrame({"rule": list(found), "estimate": list(found.values())})
    if truth is None:
        return made
    true = _counted_rules(truth, age, sex, size, adult_age)
    return made.with_columns(
        pl.Series("truth", [true.get(rule) for rule in found], dtype=pl.Float64)
    ).with_columns((pl.col("estimate") - pl.col("truth")).alias("difference"))


def _counted_rules(
    data: Microdata, age: str, sex: str | None, size: str | None, adult_age: float
) -> dict[str, float]:
    if data.roles.household is None:
        raise ParameterError("Say which records belong together: the role household is not set.")
    for name in (age, sex, size):
        if name is not None and name not in data.columns:
            raise ColumnError(unknown_name(name, data.columns))
    for name in (age, size):
        if name is not None and not (kind := engine.types_in_polars(data, [name])[name]).is_numeric():
            raise ColumnError(f"Rules of households need numbers, and column '{name}' is {type_name(kind)}.")
    home, weight, strata = data.roles.household, data.roles.weight, list(data.roles.strata)
    frame = engine.collect(data)
    adult = pl.col(age).cast(pl.Float64) >= adult_age
    asked = [
        (pl.col(weight).cast(pl.Float64).mean() if weight else pl.lit(1.0)).alias("weight"),
        (~adult.any()).alias("without an adult"),
    ]
    if sex is not None:
        asked.append((pl.col(sex).filter(adult).drop_nulls().n_unique() >= 2).alias("mixed"))
    if size is not None:
        asked.append(
            (pl.col(size).cast(pl.Float64) != pl.len()).any().alias("size that is not its number of members")
        )
    if strata:
        asked.append((pl.struct(strata).n_unique() > 1).alias("more than one stratum"))
    homes = frame.group_by(home).agg(*asked)
    rules = [name for name in homes.columns if name not in (home, "weight")]
    return {
        "households": float(homes["weight"].sum()),
        **{rule: float(homes.filter(pl.col(rule))["weight"].sum()) for rule in rules},
    }
