"""Do tables of a synthesis hang on how numbers were grouped, and on the order in which columns were made?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import pictured
from discreet.core.charts import Chart, Line, Lines, number, rows_of
from discreet.core.constraints import AtLeast, Public
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT
from discreet.utility.tabular import tabular

if TYPE_CHECKING:
    from discreet.synth import Sequential


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
        nw.from_native(measures[number].detail["tables"], eager_only=True)
        .to_polars()
        .select("variables", pl.col("S_pMSE").alias(str(number)))
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
        detail=engine.tables_like(original, groups=table, tables=joined),
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


# What does the order of a sequential synthesis cost?


_USUAL = ("file", "auto", "dependence-tree", "backward")


@checked
def cost_of_order(
    data: Microdata,
    *,
    synthesizer: Sequential | None = None,
    orders: Sequence[str] | Mapping[str, Sequence[str] | str] = _USUAL,
    copies: Annotated[int, AtLeast(1)] = 3,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """What does the order of a sequential synthesis cost?

    The file is synthesized in each order, several times, and all its two-way tables are compared.

    Parameters
    ----------
    data
        The file.
    synthesizer
        How it is synthesized; only its order is changed. CART unless given.
    orders
        Ways of `discreet.synth.choose_order`, or ``{name: order}``.
    copies
        Synthetic files drawn in each order.
    seed
        Same data, same seed: same figures.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is how many times worse the worst pair is in the worst order than in the best.
        ``detail["orders"]`` has, for each order, the mean and the worst standardized pMSE over all pairs and the
        seconds it took, best first.

    How to read it
    --------------
    A value near 1 says that the order does not matter for this file; take whichever is quickest. A large one says
    that some orders lose relations: take the first of the table. Standardized values around 1 are as good as a
    correct model could be.

    When not to trust it
    --------------------
    Only pairs of columns are looked at; what happens between three columns is not seen. The figures vary from copy to
    copy: differences of a few tenths say nothing. The best of these orders need not be the best of all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=400)
    >>> data = Microdata(pl.DataFrame({"x": x, "y": x + rng.normal(size=400)}))
    >>> found = cost_of_order(data, orders={"as it is": ["x", "y"], "reversed": ["y", "x"]}, copies=1, seed=1)
    >>> found.detail["orders"].columns
    ['order', 'mean_S_pMSE', 'worst_S_pMSE', 'worst_pair', 'seconds', 'columns']
    """
    from discreet.synth import Sequential

    named = orders if isinstance(orders, Mapping) else {name: name for name in orders}
    if len(named) < 2:
        raise ParameterError("Give at least two orders to compare.")
    base = Sequential() if synthesizer is None else synthesizer
    if not isinstance(base, Sequential):
        raise ParameterError("synthesizer must be a Sequential: the others have no order of columns.")
    root = int(generator(seed).integers(2**62))
    rows = [
        _tried(data, replace(base, visit_sequence=order), name, copies, root)
        for name, order in track(named.items(), len(named), "Trying orders", progress=progress)
    ]
    table = pl.DataFrame(rows).sort("worst_S_pMSE")
    ratio = float(table["worst_S_pMSE"][-1] / table["worst_S_pMSE"][0])
    best, worst = table["order"][0], table["order"][-1]
    return Measure(
        "cost_of_order",
        ratio,
        {
            "best": best,
            "worst": worst,
            **{f"worst_S_pMSE_{row['order']}": row["worst_S_pMSE"] for row in rows},
        },
        meaning=(
            f"In the order '{best}' the worst pair of columns is {table['worst_S_pMSE'][0]:.1f} times as far off as a "
            f"correct model would be; in the order '{worst}' {table['worst_S_pMSE'][-1]:.1f} times."
        ),
        caveats=(
            "Only pairs of columns were compared.",
            "The figures vary between copies; small differences between orders mean nothing.",
        ),
        parameters={"copies": copies, "orders": list(named)},
        detail=Detail(orders=lambda: table),
    )


def _tried(data: Microdata, synthesizer: Sequential, name: str, copies: int, root: int) -> dict[str, Any]:
    began = time.perf_counter()
    fitted = synthesizer.fit(data, seed=root)
    drawn = fitted.sample(copies=copies, seed=root)
    seconds = time.perf_counter() - began
    files = drawn if isinstance(drawn, list) else [drawn]
    tables = [tabular(data, file, ways=2).detail["tables"] for file in files]
    worst = [table.sort("S_pMSE", descending=True, nulls_last=True).row(0, named=True) for table in tables]
    return {
        "order": name,
        "mean_S_pMSE": sum(float(table["S_pMSE"].mean()) for table in tables) / copies,
        "worst_S_pMSE": sum(float(row["S_pMSE"]) for row in worst) / copies,
        "worst_pair": worst[0]["variables"],
        "seconds": seconds,
        "columns": ", ".join(fitted.plan.order),
    }
