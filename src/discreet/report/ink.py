"""Colors and words that all pictures share."""

from __future__ import annotations

import re

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
