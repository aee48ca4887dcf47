"""Does a line through two columns still rise as steeply, in every group of people?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.small_tables.table_codes import Released

_FEWEST = 3


@measure(
    title="Slopes by group",
    question="Does a line through two columns rise as steeply in every group?",
    headline="mean change of a slope",
    chapter="specific",
    place=40,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Mean change of a slope", better="lower", summary=True),
        "highest_change": Figure("Largest change of a slope", better="lower"),
        "groups": Figure("Groups compared"),
        "lost": Figure("Groups in which the release has no slope", better="lower"),
    },
)
@checked
def subgroup_slopes(original: Microdata, released: Any, *, y: str, x: str, by: str | None = None) -> Measure:
    """Does a line through two columns rise as steeply in every group of people?

    Parameters
    ----------
    original, released
        The file before and after, or a release of many tables.
    y, x
        The columns of numbers: what is explained, and by what.
    by
        The column that says the group; everybody is one unless given.

    Returns
    -------
    Measure
        ``value`` is the mean absolute difference of the slopes. ``figures``: ``highest_change``, ``groups``, ``lost``
        (groups that have a slope in the original and none in the release). ``detail``: ``groups``.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"school": [8, 10, 12, 14], "pay": [1, 2, 3, 4]}))
    >>> made = Microdata(pl.DataFrame({"school": [8, 10, 12, 14], "pay": [1, 3, 5, 7]}))
    >>> subgroup_slopes(real, made, y="pay", x="school").value
    0.5
    """
    if len({y, x, by}) < 3:
        raise ParameterError("y, x and by must be different columns.")
    files = Released(original, released)
    names = files.named([y, x, *([by] if by else [])])
    for name in (y, x):
        if not files.real.schema[name].is_numeric():
            raise ColumnError(f"Column '{name}' holds no numbers; a line needs two columns of numbers.")
    before, after = _slopes(files.real, y, x, by), _slopes(files.table(names), y, x, by)
    if not before.height:
        raise ParameterError("No group has enough different values for a line. Name a coarser group with by.")
    both = before.join(after, on="group", how="left", suffix="_released", maintain_order="left")
    both = both.with_columns((pl.col("slope_released") - pl.col("slope")).abs().alias("change"))
    known = both.drop_nulls("change")["change"].to_numpy()
    lost = both["change"].null_count()
    value = float(known.mean()) if len(known) else float("nan")
    return Measure(
        "subgroup_slopes",
        value if np.isfinite(value) else None,
        {
            "highest_change": float(known.max()) if len(known) else None,
            "groups": both.height,
            "lost": lost,
        },
        f"The slope of '{y}' on '{x}' differs by {value:.3g} on average over {len(known)} groups."
        if len(known)
        else f"The release has no slope of '{y}' on '{x}' in any group.",
        detail={"groups": both.sort("change", descending=True, nulls_last=True)},
        parameters={"y": y, "x": x, "by": by},
    )


def _slopes(frame: pl.DataFrame, y: str, x: str, by: str | None) -> pl.DataFrame:
    """Fit a line by group; groups of fewer than three records, or of one value, have none."""
    group = pl.col(by).cast(pl.String) if by else pl.lit("all")
    plain = frame.select(
        group.alias("group"), pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y")
    ).drop_nulls(["x", "y"])
    found = plain.group_by("group").agg(
        pl.len().alias("records"), pl.cov("x", "y").alias("both"), pl.col("x").var().alias("spread")
    )
    found = found.filter((pl.col("records") >= _FEWEST) & (pl.col("spread") > 0)).sort("group")
    return found.select("group", "records", (pl.col("both") / pl.col("spread")).alias("slope"))
