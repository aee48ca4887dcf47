"""Counts of many simulation runs: their mean and how sure it is, with the noise of rounding in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.constraints import AtLeast, Entries
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure


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
        for name in [*self.cell, self.value, *([self.true] if self.true else [])]:
            if name not in frame.columns:
                raise ColumnError(unknown_name(name, frame.columns))
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
    if run not in frame.columns:
        raise ColumnError(unknown_name(run, frame.columns))
    return frame.partition_by(run, maintain_order=True, include_key=False)


def repeated_by_chance(chance: float, runs: int) -> float:
    """The chance that an event of this chance happens to the same unit in all runs.

    Examples
    --------
    >>> f"{repeated_by_chance(0.3, 10):.2g}"
    '5.9e-06'
    """
    return float(np.power(chance, runs))
