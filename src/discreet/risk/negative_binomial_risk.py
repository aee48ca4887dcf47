"""The chance to be found when a class of the sample stands for an unknown number of people.

Of a class with ``f`` records in the sample and, by its weights, about ``F`` people in the population, the
population count given f is taken as negative binomial with success probability ``p = f / F`` (Benedetti and
Franconi 1998; Polettini 2003). The individual risk is the mean of one over that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, need_known

# From this class size on the series needs no more than `_TERMS` terms even where p is next to nothing:
# its k-th term is at most 1 / C(f + k, k).
_LARGE = 16
_TERMS = 110


def mean_reciprocal(class_size: npt.ArrayLike, population: npt.ArrayLike) -> Floats:
    """Return the individual risk, E[1 / people in the class], for every class.

    The published form is ``p**f / f * 2F1(f, f; f + 1; 1 - p)``, which overflows for large classes. By Euler's
    transformation it is ``p / f * 2F1(1, 1; f + 1; 1 - p)``, a series of positive terms (nothing cancels), used
    for p of a half and above and for large classes. For small p and small f it starts from the closed form of
    f = 1, ``p / (1 - p) * ln(1 / p)``, and steps up by ``r(f + 1) = p / (1 - p) * (1 / f - r(f))``, whose first
    steps are the closed forms of f = 2 and 3 and which damps rounding errors where p is below a half.

    Parameters
    ----------
    class_size
        Records of the class in the sample, f, whole numbers from 1 on.
    population
        Estimated people of the class, F. Where it is f or less, the class is taken as fully observed: 1 / f.

    Examples
    --------
    >>> mean_reciprocal([1, 2], [17, 84.5]).round(8).tolist()
    [0.17707583, 0.02204233]
    """
    f, people = np.broadcast_arrays(
        np.asarray(class_size, dtype=np.float64), np.asarray(population, dtype=np.float64)
    )
    p = np.minimum(f / people, 1.0)
    stepped = (p < 0.5) & (f < _LARGE)
    risk = np.empty(f.shape)
    risk[stepped] = _by_steps(f[stepped], p[stepped])
    risk[~stepped] = _by_series(f[~stepped], p[~stepped])
    return np.clip(risk, 0.0, 1.0 / f)


def class_risks(cells: pl.DataFrame, by: list[str], missing: engine.Missing) -> pl.DataFrame:
    """Gather cells of ``records`` and ``weights`` into classes and give each its individual risk.

    Columns: those of ``by``, ``records`` with exactly that combination, and ``class_size``,
    ``population_estimate`` and ``risk``, which under ``wildcard`` speak of the whole neighborhood.
    """
    classes = cells.group_by(by, maintain_order=True).agg(pl.col("records", "weights").sum())
    size, people = classes["records"], classes["weights"]
    if missing == "wildcard" and any(classes[name].null_count() for name in by):
        size = engine.neighborhood_sizes(classes, by)
        people = engine.neighborhood_sizes(classes.select(*by, records="weights"), by)
    risk = mean_reciprocal(size.to_numpy(), people.to_numpy())
    return classes.select(*by, "records", class_size=size, population_estimate=people, risk=pl.Series(risk))


def _by_series(f: Floats, p: Floats) -> Floats:
    missed = 1.0 - p
    term = np.ones_like(f)
    total = np.ones_like(f)
    for k in range(1, _TERMS):
        term = term * (missed * (k / (f + k)))
        total += term
    risk: Floats = p / f * total
    return risk


def _by_steps(f: Floats, p: Floats) -> Floats:
    odds = p / (1.0 - p)
    risk = -odds * np.log(p)
    for step in range(1, int(f.max(initial=1.0))):
        risk = np.where(f > step, odds * (1.0 / step - risk), risk)
    return risk


# First the employer, then the employee: the risk in files with two levels.
#
# The scenario of Ichim and Franconi (2007, Structure of Earnings Survey): an enterprise is recognized from its
# structural variables, and one of its employees from personal ones. By the chain rule the risk of an employee is
# the risk of the employer times the risk of the employee given the employer.


@dataclass(frozen=True)
class TwoLevel:
    """What the two levels add to the cells (``employer_risk``, ``within_risk``, ``two_level_risk``)."""

    cells: pl.DataFrame
    employer_keys: tuple[str, ...]
    figures: dict[str, Any]
    caveats: list[str]

    nothing: ClassVar[MappingProxyType[str, None]] = MappingProxyType(
        {
            "employers": None,
            "employer_global_risk": None,
            "two_level_expected_reidentifications": None,
            "two_level_global_risk": None,
        }
    )


def two_level(
    cells: pl.DataFrame,
    keys: Sequence[str],
    missing: engine.Missing,
    *,
    employer: str,
    employer_keys: Sequence[str] | None,
    employer_weight: str,
) -> TwoLevel:
    """Add the two-level risks to cells by keys ``k0``… and employer ``e``.

    The cells hold ``records``, ``weights`` and the smallest and largest employer weight, ``v_low`` and
    ``v_high``. Records without an employer get no two-level risk.
    """
    known = cells.filter(pl.col("e").is_not_null())
    if known.is_empty():
        raise ColumnError(
            f"No record names its employer in '{employer}'. Name another column, or leave it out."
        )
    if not known.filter(pl.col("v_low") != pl.col("v_high")).is_empty() or _varies(known, "v_low"):
        raise ColumnError(
            f"The weight '{employer_weight}' differs between records of one employer in '{employer}'; it must be the "
            "weight of the employer, not of the employee."
        )
    names = engine.key_names(keys)
    outer = _employer_keys(known, names, employer, employer_keys)
    inner = [name for name in names if name not in outer]

    employers = known.group_by("e", maintain_order=True).agg(
        pl.col(*outer).first(), records=pl.lit(1, dtype=pl.Int64), weights=pl.col("v_low").first()
    )
    among = class_risks(employers, outer, missing).select(*outer, employer_risk="risk")
    employers = employers.join(among, on=outer, how="left", nulls_equal=True)
    sampled = known.with_columns(weights=pl.col("weights") / pl.col("v_low"))
    within = class_risks(sampled, ["e", *inner], missing).select("e", *inner, within_risk="risk")

    found = (
        cells.join(employers.select("e", "employer_risk"), on="e", how="left")
        .join(within, on=["e", *inner], how="left", nulls_equal=True)
        .with_columns(two_level_risk=pl.col("employer_risk") * pl.col("within_risk"))
    )
    expected = float(found.select((pl.col("records") * pl.col("two_level_risk")).sum()).item())
    records = int(known["records"].sum())
    gone = int(cells["records"].sum()) - records
    caveats = [
        "The two-level risk takes the employer's and the employee's identification one after the other, and the keys "
        f"of the employer to be {', '.join(repr(names[name]) for name in outer)}."
    ]
    if gone:
        caveats.append(f"{gone:,} records name no employer and have no two-level risk.")
    return TwoLevel(
        cells=found,
        employer_keys=tuple(names[name] for name in outer),
        figures={
            "employers": employers.height,
            "employer_global_risk": employers["employer_risk"].mean(),
            "two_level_expected_reidentifications": expected,
            "two_level_global_risk": expected / records,
        },
        caveats=caveats,
    )


def _varies(known: pl.DataFrame, name: str) -> bool:
    """Whether a column takes more than one value within some employer."""
    return bool(known.group_by("e").agg(pl.col(name).n_unique())[name].max() > 1)  # type: ignore[operator]


def _employer_keys(
    known: pl.DataFrame, names: dict[str, str], employer: str, chosen: Sequence[str] | None
) -> list[str]:
    if chosen is None:
        outer = [name for name, key in names.items() if key != employer and not _varies(known, name)]
        if not outer:
            raise ParameterError(
                f"None of the keys is the same for all records of an employer in '{employer}', so nothing would tell "
                "the employers apart. Add what is known of an employer (region, branch, size) to the keys."
            )
        return outer
    places = {key: name for name, key in names.items()}
    chosen = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for key in chosen:
        need_known([key], places, "It was named under 'employer_keys'.", what="key")
        if _varies(known, places[key]):
            raise ColumnError(
                f"The employer key '{key}' differs between records of one employer in '{employer}'; it does not "
                "describe the employer. Leave it out of employer_keys."
            )
    if not chosen:
        raise ParameterError("employer_keys is empty; name what is known of an employer, or leave it out.")
    return [places[key] for key in chosen]
