"""Which picture helps, and a chart as a Matplotlib figure, or as small SVG text that follows the colors of the page.

Nothing here touches Matplotlib's global state. The same measure gives the same bytes.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
import xml.etree.ElementTree as ET
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.core.cards import pictures_of
from discreet.core.charts import Bars, Chart, Contours, Dots, Lines, Map, Points
from discreet.core.errors import ParameterError
from discreet.core.results import Measure
from discreet.report.group_charts import of_groups
from discreet.report.ink import (
    COLOR_VARIABLES,
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
from discreet.report.page_words import chapters_of, leading_of
from discreet.report.risk_utility_map import draw_places, map_height

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from discreet.core.results import Assessment


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


# Which picture helps: by the card of a measure, or else by what it holds.


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
    return own_charts(measure) or tuple(of_groups(measure))


def own_charts(measure: Measure, *, show_values: bool = False) -> tuple[Chart, ...]:
    """Draw what the card of a measure says; with ``show_values`` also data values, such as the ends of a scale."""
    pictures = pictures_of(measure.name)
    return tuple(pictures(measure, show_values)) if pictures else ()


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


# A drawn picture, turned into small SVG text that follows the colors of the page.


_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_PLACES = ("d", "x", "y", "transform")


def for_page(drawn: str, chart: Chart, name: str) -> str:
    """Strip what a page does not need, and add what a reader without eyes does."""
    parsed = ET.fromstring(drawn)
    root = ET.Element(
        "svg",
        {
            "xmlns": _SVG,
            "viewBox": parsed.attrib["viewBox"],
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-text",
            "class": "picture",
        },
    )
    ET.SubElement(root, "title", {"id": f"{name}-title"}).text = clean(chart.title)
    ET.SubElement(root, "desc", {"id": f"{name}-text"}).text = clean(chart.text)
    shapes = {
        element.attrib["id"]: element.attrib["d"]
        for element in parsed.iter(f"{{{_SVG}}}path")
        if "id" in element.attrib
    }
    # Groups, ids and clip paths of Matplotlib go: several pictures share a page, and each numbers from one.
    for element in parsed.iter():
        tag = element.tag.removeprefix(f"{{{_SVG}}}")
        style = element.attrib.get("style", "")
        if tag == "use":
            _dot(root, element, shapes)
            continue
        if tag not in ("path", "text") or "id" in element.attrib or style == "fill: none":
            continue
        if "d" in element.attrib and not style:
            continue
        kept = {place: _rounded(element.attrib[place]) for place in _PLACES if place in element.attrib}
        if kept.get("transform", "").startswith("rotate(-0 "):
            del kept["transform"]
        ET.SubElement(root, tag, {**kept, "style": _styled(style)}).text = element.text
    return ET.tostring(root, encoding="unicode")


def _dot(root: ET.Element, element: ET.Element, shapes: dict[str, str]) -> None:
    """Write a marker as the circle it is; the ticks of an axis, which are markers too, are left out."""
    style = element.attrib.get("style", "")
    shape = shapes.get(element.attrib.get(_LINK, "").removeprefix("#"), "")
    corners = [abs(float(part)) for part in re.findall(r"-?\d+\.?\d*", shape)]
    if "C" not in shape or not corners or style == f"stroke: {MUTED}; stroke-width: 0.8":
        return
    place = {"cx": _rounded(element.attrib["x"]), "cy": _rounded(element.attrib["y"])}
    ET.SubElement(root, "circle", {**place, "r": f"{max(corners):.1f}", "style": _styled(style)})


def _rounded(numbers: str) -> str:
    return " ".join(re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", numbers).split())


def _styled(style: str) -> str:
    for color, variable in COLOR_VARIABLES.items():
        style = style.replace(color, f"var({variable}, {color})")
    # The page's own font is used; Matplotlib would name the one it measured with.
    style = re.sub(r"font-family:[^;]*;?|font-style: normal;?|font-variant: normal;?", "", style)
    style = re.sub(r"font:\s*(?:(bold|\d+)\s+)?([\d.]+px)[^;]*", r"font-weight: \1; font-size: \2", style)
    return style.replace("font-weight: ;", "").strip()
