"""Which picture helps: chosen by what a measure holds."""

from __future__ import annotations

from discreet.core.errors import ParameterError
from discreet.core.results import Measure
from discreet.report.chart_kinds import Chart
from discreet.report.cost_charts import of_cost
from discreet.report.group_charts import of_groups
from discreet.report.release_charts import of_release
from discreet.report.sample_charts import of_sample
from discreet.report.utility_charts import of_propensity, of_utility

__all__ = ["Chart", "chart_of", "charts_of"]


def charts_of(measure: Measure) -> tuple[Chart, ...]:
    """Choose the pictures for a measure, the most telling first; none where no picture helps.

    Examples
    --------
    >>> import polars as pl
    >>> keys = pl.DataFrame({"key": ["age", "sex"], "contribution": [0.9, 0.2]})
    >>> sizes = pl.DataFrame({"size": [1, 2], "msus": [3, 40]})
    >>> scored = Measure("special_uniques", 0.1, {}, "Found.", detail={"variables": keys, "sizes": sizes})
    >>> [chart.title for chart in charts_of(scored)]
    ['Which keys make people stand out', 'How many key values it takes to stand alone']
    """
    for choose in (of_propensity, of_utility, of_cost, of_sample, of_release, of_groups):
        charts = tuple(choose(measure))
        if charts:
            return charts
    return ()


def chart_of(measure: Measure) -> Chart:
    """Choose the most telling picture for a measure.

    Raises
    ------
    ParameterError
        When the measure holds nothing that a picture makes clearer.

    Examples
    --------
    >>> import polars as pl
    >>> sizes = pl.DataFrame({"class_size": [1, 4], "classes": [5, 5], "records": [5, 20]})
    >>> k = Measure("k_anonymity", 1, {"k": 1}, "k is 1.", detail={"sizes": sizes})
    >>> chart_of(k).values[:3]
    (0.2, 0.0, 0.8)
    """
    charts = charts_of(measure)
    if not charts:
        raise ParameterError(
            f"A picture does not help with '{measure.name}': it holds no class sizes, no figures by class or "
            "variable, and fewer than two shares to compare. Read its value and figures instead."
        )
    return charts[0]
