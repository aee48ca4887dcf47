"""What simulations publish: means of counts over many runs and how sure they are, and who may see which product."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.constraints import AtLeast, Entries
from discreet.core.errors import DiscreetWarning, ParameterError, need_known, unknown_name
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata
from discreet.tables.table import Table
from discreet.tables.table_protection import ProtectedTable
from discreet.tables.table_suppression import SuppressionResult


class RunningSummary:
    """Add up runs one after the other, keeping sums and sums of squares of each cell and never the runs themselves.

    A cell that a run does not list counts as 0 in it.

    Parameters
    ----------
    cell
        The columns that say what is counted.
    value
        The column of the published counts.
    true
        The column of the counts before rounding, where it is at hand: then the part of rounding is shown apart.
    k
        The least count shown, of the rounding.

    Examples
    --------
    >>> summary = RunningSummary(["age"], "deaths")
    >>> summary.add(pl.DataFrame({"age": [1, 2], "deaths": [3, 0]}))
    >>> summary.add(pl.DataFrame({"age": [2], "deaths": [4]}))
    >>> summary.frame().sort("age")["mean"].to_list()
    [1.5, 2.0]
    """

    @checked
    def __init__(
        self,
        cell: Annotated[Sequence[str], Entries(1)],
        value: str,
        *,
        true: str | None = None,
        k: Annotated[int, AtLeast(2)] | None = None,
    ) -> None:
        if true is not None and k is None:
            raise ParameterError("Counts before rounding need k, the least count that rounding shows.")
        self.cell, self.value, self.true, self.k = list(cell), value, true, k
        self.runs = 0
        self._sums: pl.DataFrame | None = None

    def add(self, run: Any) -> None:
        """Add one run: a frame with the cell columns and the value, each cell once."""
        frame = nw.from_native(run, eager_only=True).to_polars()
        need_known([*self.cell, self.value, *([self.true] if self.true else [])], frame.columns)
        if frame.select(self.cell).is_duplicated().any():
            raise ParameterError(f"Run {self.runs + 1} lists some cells twice. Keep one row a cell and run.")
        self.runs += 1
        shown = pl.col(self.value).cast(pl.Float64).fill_null(0.0)
        parts = {"s": shown, "s2": shown**2}
        if self.true and self.k:
            z = pl.col(self.true).cast(pl.Float64).fill_null(0.0)
            small = (z > 0) & (z < self.k)
            parts |= {
                "z": z,
                "z2": z**2,
                "added": pl.when(small).then(z * (self.k - z)).otherwise(0.0),
                "rounded": small.cast(pl.Float64),
            }
        here = frame.select(*self.cell, **parts)
        both = here if self._sums is None else pl.concat([self._sums, here], how="vertical_relaxed")
        self._sums = both.group_by(self.cell, maintain_order=True).agg(pl.exclude(self.cell).sum())

    def frame(self, level: float = 0.95) -> pl.DataFrame:
        """One row a cell: ``mean``, ``standard_error``, ``low`` and ``high``.

        Where counts before rounding are known also ``rounding_variance`` (the known part of the variance of one run)
        and ``rounded_share``.
        """
        from scipy.special import ndtri

        if self._sums is None:
            raise ParameterError("There are no runs yet.")
        runs = self.runs
        spread = (
            (pl.col("s2") - pl.col("s") ** 2 / runs) / (runs - 1)
            if runs > 1
            else pl.lit(None, dtype=pl.Float64)
        )
        wide = float(ndtri(0.5 + level / 2))
        made = self._sums.with_columns(
            mean=pl.col("s") / runs, standard_error=(spread.clip(lower_bound=0.0) / runs).sqrt()
        ).with_columns(
            low=pl.col("mean") - wide * pl.col("standard_error"),
            high=pl.col("mean") + wide * pl.col("standard_error"),
        )
        columns = [*self.cell, "mean", "standard_error", "low", "high"]
        if self.true:
            made = made.with_columns(
                rounding_variance=pl.col("added") / runs,
                rounded_share=pl.col("rounded") / runs,
                same_in_all_runs=(pl.col("z2") * runs == pl.col("z") ** 2) & (pl.col("rounded") > 0),
            )
            columns += ["rounding_variance", "rounded_share", "same_in_all_runs"]
        return made.select(columns)


@checked
def monte_carlo_summary(
    runs: Any,
    *,
    cell: str | Sequence[str],
    value: str,
    run: str | None = None,
    true: str | None = None,
    k: int | None = None,
    level: float = 0.95,
) -> Measure:
    """What do many runs of a simulation say about each cell, and how surely?

    Also known as: MikroSim; Monte Carlo runs.

    Parameters
    ----------
    runs
        A long table with a column ``run``, or one frame a run; these are taken one after the other and not kept.
    cell
        The columns that say what is counted. A cell that a run does not list counts as 0 in it.
    value
        The column of the published (rounded) counts.
    run
        The column of the run, in a long table.
    true, k
        The column of counts before rounding and the least count of the rounding, where they are at hand.
    level
        The level of the intervals.

    Returns
    -------
    Measure
        ``value`` is the largest standard error; ``detail["cells"]`` has one row a cell. The mean is unbiased for
        any number of runs, and its standard error includes the noise of rounding.

    Examples
    --------
    >>> long = pl.DataFrame({"run": [1, 1, 2, 2], "age": [1, 2, 1, 2], "deaths": [3, 5, 0, 7]})
    >>> monte_carlo_summary(long, run="run", cell="age", value="deaths").detail["cells"]["mean"].to_list()
    [1.5, 6.0]
    """
    columns = [cell] if isinstance(cell, str) else list(cell)
    summary = RunningSummary(columns, value, true=true, k=k)
    for part in _each(runs, run):
        summary.add(part)
    found = summary.frame(level)
    still = (
        int(found["same_in_all_runs"].sum())
        if "same_in_all_runs" in found.columns and summary.runs > 1
        else 0
    )
    caveats = []
    if summary.runs == 1:
        caveats.append("One run has no standard error across runs; only the part of rounding is known.")
    if still:
        text = (
            f"{still:,} small cells have the same count in every run before rounding: the mean over runs gives it "
            f"away. "
            "Treat these means like small counts."
        )
        caveats.append(text)
        warnings.warn(text, DiscreetWarning, stacklevel=2)
    largest = found["standard_error"].max()
    return Measure(
        "monte_carlo_summary",
        largest if isinstance(largest, float) else None,
        {"runs": summary.runs, "cells": found.height, "same_in_all_runs": still},
        f"{found.height:,} cells were averaged over {summary.runs:,} runs"
        + (
            f"; the least certain mean has a standard error of {largest:.3g}."
            if isinstance(largest, float)
            else "."
        ),
        caveats=caveats,
        parameters={"cell": columns, "value": value, "k": k, "level": level},
        detail=Detail(cells=lambda: found),
    )


def _each(runs: Any, run: str | None) -> Iterable[Any]:
    if run is None:
        return [runs] if hasattr(runs, "columns") else runs
    frame: pl.DataFrame = nw.from_native(runs, eager_only=True).to_polars()
    need_known([run], frame.columns)
    return frame.partition_by(run, maintain_order=True, include_key=False)


def repeated_by_chance(chance: float, runs: int) -> float:
    """The chance that an event of this chance happens to the same unit in all runs.

    Examples
    --------
    >>> f"{repeated_by_chance(0.3, 10):.2g}"
    '5.9e-06'
    """
    return float(np.power(chance, runs))


# Who may see which product of a simulation or a data center? Level ``inner`` is for few named people on an isolated
# machine, ``middle`` for contract users, ``outer`` for everybody.


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
        reasons = [] if rules.microdata else ["Records may not go there, only tables."]
        if rules.microdata and rules.synthetic_only and not synthetic:
            reasons = ["Only synthetic records may go there."]
    return ReleaseCheck(level, not reasons, tuple(reasons))


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
