"""The ink: a chart as a Matplotlib figure, or as small SVG text that follows the colors of the page.

Nothing here touches Matplotlib's global state. The same measure gives the same bytes.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.core.errors import ParameterError
from discreet.report.chapters import chapters_of, leading_of
from discreet.report.chart_kinds import Bars, Chart, Contours, Dots, Lines, Map, Points
from discreet.report.charts import chart_of, charts_of
from discreet.report.ink import (
    INK,
    MUTED,
    bars_height,
    clean,
    contours_height,
    dots_height,
    draw_bars,
    draw_contours,
    draw_dots,
    draw_grid,
    draw_lines,
    draw_points,
    grid_height,
    lines_height,
    points_height,
)
from discreet.report.page_svg import for_page
from discreet.report.risk_utility_map import draw_places, map_height

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from discreet.core.results import Assessment, Measure

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "axes.unicode_minus": False,
}
_WIDTH = 5.6
_TITLE_HEIGHT = 0.7
_MOST_CHARTS = 4


def draw(measure: Measure) -> Figure:
    """Draw a measure, where a picture helps.

    Raises
    ------
    ParameterError
        When the measure holds nothing that a picture makes clearer.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.core.results import Measure
    >>> sizes = pl.DataFrame({"class_size": [1, 4], "classes": [5, 5], "records": [5, 20]})
    >>> picture = draw(Measure("k_anonymity", 1, {"k": 1}, "k is 1.", detail={"sizes": sizes}))
    >>> picture.get_suptitle()
    'Records by size of their group'
    """
    first, *more = charts_of(measure) or (chart_of(measure),)
    return draw_charts([first, *more])


def draw_assessment(assessment: Assessment) -> Figure:
    """Draw the pictures that lead the chapters of a report, those of the main scenario, each once.

    Raises
    ------
    ParameterError
        When nothing was measured that a picture makes clearer.
    """
    measures = assessment.measures
    leading = [name for _, names in chapters_of(measures) for name in leading_of(names)]
    charts = {chart.text: chart for name in leading for chart in charts_of(measures[name])[:1]}
    if not charts:
        raise ParameterError("There is nothing to draw: no measure of this assessment has a picture.")
    return draw_charts(list(charts.values())[:_MOST_CHARTS])


def svg(measure: Measure, *, name: str = "picture") -> str:
    """Return a measure's picture as SVG text to stand inside an HTML page.

    Colors are CSS variables with a fallback, so that the picture follows a light or a dark page. ``name``
    makes the ids of the picture unique on the page.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.core.results import Measure
    >>> sizes = pl.DataFrame({"class_size": [1, 4], "classes": [5, 5], "records": [5, 20]})
    >>> svg(Measure("k_anonymity", 1, {"k": 1}, "k is 1.", detail={"sizes": sizes}))[:15]
    '<svg xmlns="htt'
    """
    return chart_svg(chart_of(measure), name=name)


def draw_charts(charts: list[Chart], *, titled: bool = True) -> Figure:
    """Turn charts into one Matplotlib figure, one below the other, with titles or (on a page) without."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    heights = [_height(chart) + _TITLE_HEIGHT * titled for chart in charts]
    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(_WIDTH, sum(heights)), facecolor="none", layout="constrained")
        if len(charts) == 1:
            _fill(figure, charts[0], titled)
        else:
            parts = figure.subfigures(len(charts), 1, squeeze=False, height_ratios=heights)
            for part, chart in zip(parts[:, 0], charts, strict=True):
                part.set_facecolor("none")
                _fill(part, chart, titled)
    return figure


def chart_svg(chart: Chart, *, name: str) -> str:
    """Turn a chart into SVG text; see `svg`."""
    return for_page(_drawn(chart), chart, name)


@lru_cache(maxsize=200)  # drawing is most of the time of a page, and pages and reports show the same charts
def _drawn(chart: Chart) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():  # type: ignore[arg-type]
        # The page's font draws the letters, so it does not matter that Matplotlib's own lacks some.
        warnings.filterwarnings("ignore", message="Glyph")
        draw_charts([chart], titled=False).savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None}
        )
    return buffer.getvalue()


def _height(chart: Chart) -> float:
    if isinstance(chart, Bars):
        return bars_height(chart)
    if isinstance(chart, Dots):
        return dots_height(chart)
    if isinstance(chart, Lines):
        return lines_height(chart)
    if isinstance(chart, Contours):
        return contours_height(chart)
    if isinstance(chart, Map):
        return map_height(chart)
    return points_height(chart) if isinstance(chart, Points) else grid_height(chart)


def _fill(figure: FigureBase, chart: Chart, titled: bool) -> None:
    axes = figure.add_subplot(facecolor="none")
    _draw(axes, chart)
    if titled:
        title = "\n".join(textwrap.wrap(clean(chart.title), 52))
        figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12, fontweight="bold")
        note = "\n".join(textwrap.wrap(clean(chart.axis), 60))
        figure.supxlabel(note, x=0.01, ha="left", color=MUTED, fontsize=10)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, colors=MUTED, labelcolor=INK)


def _draw(axes: Axes, chart: Chart) -> None:
    if isinstance(chart, Bars):
        draw_bars(axes, chart)
    elif isinstance(chart, Dots):
        draw_dots(axes, chart)
    elif isinstance(chart, Lines):
        draw_lines(axes, chart)
    elif isinstance(chart, Points):
        draw_points(axes, chart)
    elif isinstance(chart, Contours):
        draw_contours(axes, chart)
    elif isinstance(chart, Map):
        draw_places(axes, chart)
    else:
        draw_grid(axes, chart)
