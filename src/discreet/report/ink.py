"""Colors and words that all pictures share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, RULE, BAR, RISK = "#1b2733", "#55626f", "#c9d1d8", "#4f7ea8", "#a8321f"

COLOR_VARIABLES = {INK: "--ink", MUTED: "--muted", RULE: "--rule", BAR: "--bar", RISK: "--risk"}
"""The variable of the page that each color follows."""

SERIES_COLORS = (RISK, BAR, MUTED, INK)
"""The first series is the one to look at."""

_LONGEST_LABEL = 24


def compact(words: str) -> str:
    """Shorten the words of a figure to what fits beside a bar."""
    return words.replace("under ", "<").replace("over ", ">").replace(" %", "%")


def clean(label: str) -> str:
    """Take out what cannot stand in a picture."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", label)


def shortened(label: str, longest: int = _LONGEST_LABEL) -> str:
    """Cut a label that is too long."""
    label = clean(label)
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def legend(axes: Axes, *, above: float = 1.02, **spacing: Any) -> None:
    """Name what was drawn, at the left above the picture."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, above),
        frameon=False,
        labelcolor=INK,
        fontsize=10,
        borderaxespad=0,
        labelspacing=0.2,
        **spacing,
    )
