"""The ink: a chart as a Matplotlib figure, or as small SVG text that follows the colors of the page.

Nothing here touches Matplotlib's global state. The same measure gives the same bytes.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from discreet.report.charts import Chart, chart_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.results import Measure

INK, MUTED, RULE, BAR, RISK = "#1b2733", "#55626f", "#c9d1d8", "#4f7ea8", "#a8321f"

_VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", BAR: "--bar", RISK: "--risk"}
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "axes.unicode_minus": False,
}
_SVG = "http://www.w3.org/2000/svg"
_PLACES = ("d", "x", "y", "transform")
_WIDTH = 5.6
_FEWEST_PLACES = 5
_LONGEST_LABEL = 24


def draw(measure: Measure) -> Figure:
    """Draw a measure, where a picture helps.

    Raises
    ------
    ParameterError
        When the measure holds nothing that a picture makes clearer.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.results import Measure
    >>> sizes = pl.DataFrame({"class_size": [1, 4], "classes": [5, 5], "records": [5, 20]})
    >>> picture = draw(Measure("k_anonymity", 1, {"k": 1}, "k is 1.", detail={"sizes": sizes}))
    >>> picture.get_suptitle()
    'Records by size of their group'
    """
    return draw_chart(chart_of(measure))


def svg(measure: Measure, *, name: str = "picture") -> str:
    """Return a measure's picture as SVG text to stand inside an HTML page.

    Colors are CSS variables with a fallback, so that the picture follows a light or a dark page. ``name``
    makes the ids of the picture unique on the page.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.results import Measure
    >>> sizes = pl.DataFrame({"class_size": [1, 4], "classes": [5, 5], "records": [5, 20]})
    >>> svg(Measure("k_anonymity", 1, {"k": 1}, "k is 1.", detail={"sizes": sizes}))[:15]
    '<svg xmlns="htt'
    """
    return chart_svg(chart_of(measure), name=name)


def draw_chart(chart: Chart, *, titled: bool = True) -> Figure:
    """Turn a chart into a Matplotlib figure, with its title and axis note or (on a page) without."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    height = 0.25 + 0.36 * len(chart.labels) if chart.horizontal else 2.3
    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(_WIDTH, height + 0.7 * titled), facecolor="none", layout="constrained")
        axes = figure.add_subplot(facecolor="none")
        if chart.horizontal:
            _lying_bars(axes, chart)
        else:
            _standing_bars(axes, chart)
        if titled:
            title = "\n".join(textwrap.wrap(_clean(chart.title), 52))
            figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12, fontweight="bold")
            note = "\n".join(textwrap.wrap(_clean(chart.axis), 60))
            figure.supxlabel(note, x=0.01, ha="left", color=MUTED, fontsize=10)
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0, colors=MUTED, labelcolor=INK)
    return figure


def chart_svg(chart: Chart, *, name: str) -> str:
    """Turn a chart into SVG text; see `svg`."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():  # type: ignore[arg-type]
        # The page's font draws the letters, so it does not matter that Matplotlib's own lacks some.
        warnings.filterwarnings("ignore", message="Glyph")
        draw_chart(chart, titled=False).savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None}
        )
    return _for_page(buffer.getvalue(), chart, name)


def _standing_bars(axes: Axes, chart: Chart) -> None:
    places = range(len(chart.labels))
    axes.bar(places, chart.values, width=0.72, color=_colors(chart), clip_on=False)
    top = max(*chart.values, 1e-9)
    crowded = len(chart.labels) > 8
    for place, value, words in zip(places, chart.values, chart.value_labels, strict=True):
        text = _compact(words)
        axes.text(
            place,
            value + top * 0.03,
            text,
            ha="center",
            va="bottom",
            color=INK,
            fontsize=9 if crowded else 10.5,
        )
    axes.hlines(0, -0.5, len(chart.labels) - 0.5, color=MUTED, linewidth=0.8, clip_on=False)
    axes.set_xticks(list(places), [_clean(label) for label in chart.labels])
    if max(len(label) for label in chart.labels) * len(chart.labels) > 56:
        axes.tick_params(axis="x", rotation=40)
    axes.set_xlim(-0.6, max(len(chart.labels), _FEWEST_PLACES) - 0.4)
    axes.set_ylim(0, top * 1.12)
    axes.set_yticks([])


def _lying_bars(axes: Axes, chart: Chart) -> None:
    places = range(len(chart.labels))
    axes.barh(places, chart.values, height=0.62, color=_colors(chart), clip_on=False)
    low, high = min(*chart.values, 0), max(*chart.values, 1e-9)
    for place, value, words in zip(places, chart.values, chart.value_labels, strict=True):
        axes.text(max(value, 0) + high * 0.015, place, _compact(words), va="center", color=INK, fontsize=10.5)
    axes.axvline(0, color=MUTED, linewidth=0.8, clip_on=False)
    axes.set_yticks(list(places), [_shortened(label) for label in chart.labels])
    axes.invert_yaxis()
    axes.set_xlim(low, high * 1.18)
    axes.set_xticks([])


def _colors(chart: Chart) -> list[str]:
    return [RISK if risky else BAR for risky in chart.at_risk]


def _compact(words: str) -> str:
    return words.replace("under ", "<").replace("over ", ">").replace(" %", "%")


def _clean(label: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", " ", label)


def _shortened(label: str) -> str:
    label = _clean(label)
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"


def _for_page(drawn: str, chart: Chart, name: str) -> str:
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
    ET.SubElement(root, "title", {"id": f"{name}-title"}).text = _clean(chart.title)
    ET.SubElement(root, "desc", {"id": f"{name}-text"}).text = _clean(chart.text)
    # Groups, ids and clip paths of Matplotlib go: several pictures share a page, and each numbers from one.
    for element in parsed.iter():
        tag = element.tag.removeprefix(f"{{{_SVG}}}")
        style = element.attrib.get("style", "")
        if tag not in ("path", "text") or style == "fill: none" or ("d" in element.attrib and not style):
            continue
        kept = {place: _rounded(element.attrib[place]) for place in _PLACES if place in element.attrib}
        if kept.get("transform", "").startswith("rotate(-0 "):
            del kept["transform"]
        ET.SubElement(root, tag, {**kept, "style": _style(style)}).text = element.text
    return ET.tostring(root, encoding="unicode")


def _rounded(numbers: str) -> str:
    return " ".join(re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", numbers).split())


def _style(style: str) -> str:
    for color, variable in _VARIABLES.items():
        style = style.replace(color, f"var({variable}, {color})")
    # The page's own font is used; Matplotlib would name the one it measured with.
    style = re.sub(r"font-family:[^;]*;?|font-style: normal;?|font-variant: normal;?", "", style)
    style = re.sub(r"font:\s*(?:(bold|\d+)\s+)?([\d.]+px)[^;]*", r"font-weight: \1; font-size: \2", style)
    return style.replace("font-weight: ;", "").strip()
