"""First the employer, then the employee: the risk in files with two levels.

The scenario of Ichim and Franconi (2007, Structure of Earnings Survey): an enterprise is recognized from its
structural variables, and one of its employees from personal ones. By the chain rule the risk of an employee is
the risk of the employer times the risk of the employee given the employer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.engine import Missing
from discreet.engine.classes import key_names
from discreet.risk.sample.negative_binomial import class_risks


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
    missing: Missing,
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
    names = key_names(keys)
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
        if key not in places:
            raise ColumnError(f"{unknown_name(key, places, what='key')} It was named under 'employer_keys'.")
        if _varies(known, places[key]):
            raise ColumnError(
                f"The employer key '{key}' differs between records of one employer in '{employer}'; it does not "
                "describe the employer. Leave it out of employer_keys."
            )
    if not chosen:
        raise ParameterError("employer_keys is empty; name what is known of an employer, or leave it out.")
    return [places[key] for key in chosen]
