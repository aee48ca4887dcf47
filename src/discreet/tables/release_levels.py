"""Who may see which product of a simulation or a data center? A small set of rules, level by level.

Level ``inner`` is for few named people on an isolated machine, ``middle`` for contract users, ``outer`` for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.microdata import Microdata
from discreet.tables.table import Table
from discreet.tables.table_protection import ProtectedTable
from discreet.tables.table_suppression import SuppressionResult


@dataclass(frozen=True)
class ReleaseLevel:
    """What one group of users may get.

    Attributes
    ----------
    microdata, aggregates
        Whether records, and whether tables, may go there.
    synthetic_only
        Whether records must be synthetic; the caller says so.
    least_count
        No published count may lie between 0 and this number.
    rounding
        Whether tables must have been rounded, suppressed or perturbed by a protection.
    deepest
        How far below the total the dimension of geography may go; None is any depth.
    anonymity
        The legal class it corresponds to.
    """

    microdata: bool = False
    aggregates: bool = True
    synthetic_only: bool = True
    least_count: int = 3
    rounding: bool = True
    deepest: int | None = None
    anonymity: str = "absolute"


LEVELS: Mapping[str, ReleaseLevel] = {
    "inner": ReleaseLevel(
        microdata=True, synthetic_only=False, least_count=0, rounding=False, anonymity="formal"
    ),
    "middle": ReleaseLevel(anonymity="factual"),
    "outer": ReleaseLevel(microdata=True, anonymity="absolute"),
}


@dataclass(frozen=True)
class ReleaseCheck:
    """Whether an object may go to a level, and why not."""

    level: str
    passed: bool
    reasons: tuple[str, ...]

    @property
    def line(self) -> str:
        """The answer in one sentence."""
        if self.passed:
            return f"It meets the rules of the level '{self.level}'."
        return f"It does not meet the rules of the level '{self.level}': {' '.join(self.reasons)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, ready for JSON."""
        return {"level": self.level, "passed": self.passed, "reasons": list(self.reasons)}


@checked
def check_release(
    thing: Any,
    level: str,
    *,
    synthetic: bool = False,
    geography: str | None = None,
    levels: Mapping[str, ReleaseLevel] = LEVELS,
) -> ReleaseCheck:
    """May this go to that group of users?

    Parameters
    ----------
    thing
        A `Table`, the result of a protection, or records (a `Microdata` or any frame it takes).
    level
        The name of the level.
    synthetic
        Whether the records are synthetic.
    geography
        The dimension whose depth is limited.
    levels
        The rules; those of a research data center by default.

    Examples
    --------
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 9 + ["b"]}), "place")
    >>> check_release(table, "middle").passed
    False
    """
    if level not in levels:
        raise ParameterError(unknown_name(level, levels, what="release level"))
    rules = levels[level]
    if isinstance(thing, Table | ProtectedTable | SuppressionResult):
        reasons = _of_table(thing, rules, geography)
    else:
        if not isinstance(thing, Microdata):
            Microdata(thing)
        reasons = _of_records(rules, synthetic)
    return ReleaseCheck(level, not reasons, tuple(reasons))


def _of_records(rules: ReleaseLevel, synthetic: bool) -> list[str]:
    if not rules.microdata:
        return ["Records may not go there, only tables."]
    if rules.synthetic_only and not synthetic:
        return ["Only synthetic records may go there."]
    return []


def _of_table(
    thing: Table | ProtectedTable | SuppressionResult, rules: ReleaseLevel, geography: str | None
) -> list[str]:
    if not rules.aggregates:
        return ["Tables may not go there."]
    table = thing if isinstance(thing, Table) else thing.table
    shown = thing.published if isinstance(thing, SuppressionResult) else table.cells
    reasons = []
    if rules.rounding and isinstance(thing, Table):
        reasons.append("The table has not been protected.")
    if rules.least_count and "count" in shown.columns:
        counts = shown["count"].cast(pl.Float64).fill_null(0.0).to_numpy()
        small = int(((counts > 0) & (counts < rules.least_count)).sum())
        if small:
            reasons.append(f"{small:,} published counts lie between 0 and {rules.least_count}.")
    if isinstance(thing, SuppressionResult) and not thing.audit.safe:
        reasons.append("The audit found a disclosure.")
    if geography is not None and rules.deepest is not None:
        if geography not in table.dimensions:
            raise ParameterError(unknown_name(geography, table.dimensions, what="dimension"))
        depth = int(np.max(table.hierarchy[geography].depth[table.codes[geography]]))
        if depth > rules.deepest:
            reasons.append(f"'{geography}' goes {depth} levels deep; {rules.deepest} are allowed.")
    return reasons
