"""A drawn picture, turned into small SVG text that follows the colors of the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from discreet.report.chart_kinds import Chart
from discreet.report.ink import COLOR_VARIABLES, MUTED, clean

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
