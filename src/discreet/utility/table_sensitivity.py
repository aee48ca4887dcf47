"""Do the answers hang on how numbers were grouped? The same tables with few and with many groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import pictured
from discreet.core.charts import Chart, Line, Lines
from discreet.core.constraints import Public
from discreet.core.detail_rows import number, rows_of
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT
from discreet.utility.tabular import tabular


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    rows = sorted(
        rows_of(found, "groups", "groups", "max_S_pMSE", "mean_S_pMSE"), key=lambda row: row["groups"]
    )
    if len(rows) > 1:
        yield Lines(
            title="The same tables with other groups",
            places=tuple(float(row["groups"]) for row in rows),
            lines=(
                Line("Worst table", tuple(number(row["max_S_pMSE"]) for row in rows)),
                Line("Mean of all", tuple(number(row["mean_S_pMSE"]) for row in rows)),
            ),
            axis="Standardized difference, upwards, by number of groups of a numeric column",
            as_share=False,
        )


@pictured(_pictures)
@checked
def grouping_sensitivity(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    groups: Annotated[Sequence[int], Public()] = (3, 5, 10),
    **options: Any,
) -> Measure:
    """How much do the answers of `tabular` depend on how numbers are grouped?

    Parameters
    ----------
    original, released
        As in `tabular`.
    groups
        The numbers of groups to try.
    options
        Anything else that `tabular` takes.

    Returns
    -------
    Measure
        ``value`` is the largest factor between two groupings of the worst ``S_pMSE``. ``figures``: ``max_S_pMSE_3``,
        ``mean_S_pMSE_3`` and so on for each number of groups; ``agreement``, the smallest rank correlation between
        the tables' ``S_pMSE`` under two groupings; ``same_worst``. ``detail``: ``groups``, one row a number of groups;
        ``tables``, the ``S_pMSE`` of each table by number of groups.

    How to read it
    --------------
    A factor near 1 and an agreement near 1 say that the ranking of tables does not hang on the grouping. Where a
    table turns bad only with many groups, the release got the coarse shape right and the fine one wrong. Report the
    grouping together with the number in any case.

    When not to trust it
    --------------------
    Tables of categories alone do not change with the number of groups, and pull the agreement towards 1. With many
    groups and few records the tables get sparse, and the differences are then those of chance. A file that repeats
    the original gives 0 for every grouping, and the factor is undefined.

    Examples
    --------
    >>> import discreet
    >>> adult = discreet.datasets.adult()
    >>> grouping_sensitivity(adult, adult, columns=["age", "sex"]).figures["same_worst"]
    True
    """
    tried = list(dict.fromkeys(groups))
    if len(tried) < 2:
        raise ParameterError("groups must name at least two numbers of groups, e.g. (3, 5, 10).")
    measures = {number: tabular(original, released, groups=number, **options) for number in tried}
    frames = [
        pl.DataFrame(
            _polars(measures[number].detail["tables"]).select(
                "variables", pl.col("S_pMSE").alias(str(number))
            )
        )
        for number in tried
    ]
    joined = frames[0]
    for frame in frames[1:]:
        joined = joined.join(frame, on="variables", how="full", coalesce=True)
    joined = joined.sort(
        pl.max_horizontal([str(number) for number in tried]), descending=True, nulls_last=True
    )
    worst = [measure.value for measure in measures.values()]
    known = [float(value) for value in worst if value is not None]
    factor = max(known) / min(known) if known and min(known) > 0 else None
    agreement = _agreement(joined.drop("variables").drop_nulls().to_numpy())
    first = {frame["variables"][0] for frame in frames if frame.height}
    table = pl.DataFrame(
        [
            {"groups": number, **{name: measure.figures[name] for name in _SUMMARY}}
            for number, measure in measures.items()
        ]
    )
    summed = {
        f"{name}_{number}": measure.figures[name]
        for number, measure in measures.items()
        for name in ("max_S_pMSE", "mean_S_pMSE")
    }
    return Measure(
        name="grouping_sensitivity",
        value=factor,
        figures={**summed, "agreement": agreement, "same_worst": len(first) == 1 or not any(known)},
        meaning=(
            f"With {', '.join(map(str, tried))} groups the worst standardized difference is "
            f"{', '.join(shown(value) for value in worst)}"
            + (
                "."
                if factor is None
                else f": a factor of {shown(factor)} between the largest and the smallest."
            )
        ),
        caveats=[
            DEPENDENT,
            *([] if factor is not None else ["A worst value of 0 has no factor to another one."]),
        ],
        parameters={
            **measures[tried[0]].parameters,
            "groups": tried,
        },
        detail=Detail(
            groups=lambda: engine.like(original, table), tables=lambda: engine.like(original, joined)
        ),
    )


_SUMMARY = ("max_S_pMSE", "mean_S_pMSE", "median_S_pMSE", "mean_JSD", "mean_SPECKS", "sparse_tables")


def _agreement(values: Floats) -> float | None:
    """Give the smallest rank correlation between two columns; None with fewer than three rows."""
    if len(values) < 3:
        return None
    from scipy.stats import rankdata

    ranks = np.column_stack([rankdata(column) for column in values.T])
    if (np.ptp(ranks, axis=0) == 0).any():
        return None
    return float(np.corrcoef(ranks.T).min())


def _polars(table: Any) -> pl.DataFrame:
    frame: pl.DataFrame = nw.from_native(table, eager_only=True).to_polars()
    return frame
