"""Lines along an axis, and grids, drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.core.wording import percent, shown
from discreet.report.chart_kinds import Grid, Lines
from discreet.report.chart_scale import nice_ticks
from discreet.report.ink import BAR, INK, MUTED, RULE, SERIES_COLORS, clean, compact, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", "dashed", "dotted", "dashdot")
_FEW_PLACES = 8
_MOST_NUMBERS = 120
_MOST_LETTERS = 60
_FEW_ROWS = 12
_SMALLEST = 0.01


def lines_height(chart: Lines) -> float:
    """Say how high the picture is to be, in inches."""
    return 2.5 + 0.22 * len(chart.lines)


def draw_lines(axes: Axes, chart: Lines) -> None:
    """Draw lines that differ in color and in dashes."""
    for at, line in enumerate(chart.lines):
        heights = [math.nan if height is None else height for height in line.values]
        axes.plot(
            chart.places,
            heights,
            color=SERIES_COLORS[at % len(SERIES_COLORS)],
            linestyle=_DASHES[at % len(_DASHES)],
            drawstyle="steps-post" if chart.stepped else "default",
            linewidth=2.2 if at == 0 else 1.8,
            marker="o" if len(chart.places) <= _FEW_PLACES else None,
            markersize=5,
            label=clean(line.name),
            clip_on=False,
        )
    known = [height for line in chart.lines for height in line.values if height is not None]
    ticks = nice_ticks(min([*known, 0.0]), max([*known, 0.0]))
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_yticks(ticks, [_tick(tick, chart.as_share) for tick in ticks])
    places = list(chart.places)
    if len(places) > _FEW_PLACES:
        places = [
            places[0],
            places[len(places) // 4],
            places[len(places) // 2],
            places[3 * len(places) // 4],
            places[-1],
        ]
    if chart.ends is not None:
        axes.set_xticks([places[0], places[-1]], [clean(end) for end in chart.ends])
        first, last = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
    else:
        axes.set_xticks(places, [_tick(place, chart.places_as_share) for place in places])
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    if chart.lines:
        legend(axes, handlelength=1.8)


def grid_height(chart: Grid) -> float:
    """Say how high the picture is to be, in inches."""
    if len(chart.row_labels) == 1:
        return 0.9
    return (
        0.7 + 0.3 * len(chart.row_labels)
        if len(chart.row_labels) <= _FEW_ROWS
        else 1.2 + 0.2 * len(chart.row_labels)
    )


def draw_grid(axes: Axes, chart: Grid) -> None:
    """Draw a grid of cells, the stronger the color, the larger; the figures stand in the cells where there is room."""
    from matplotlib.patches import Rectangle

    known = [value for row in chart.values for value in row if value is not None]
    scaled = _by_tens if chart.by_tens else float
    low, high = (scaled(min(known)), scaled(max(known))) if known else (0.0, 1.0)
    spread = (high - low) or 1.0
    numbered = len(known) <= _MOST_NUMBERS and len(chart.row_labels) > 1
    for up, row in enumerate(chart.values):
        for across, value in enumerate(row):
            if value is None:
                continue
            strength = round(0.08 + 0.82 * (scaled(value) - low) / spread, 2)
            axes.add_patch(Rectangle((across, up), 1, 1, facecolor=BAR, alpha=strength, linewidth=0))
            if numbered:
                text = f"{value * 100:.0f}" if chart.as_share else shown(value)
                axes.text(across + 0.5, up + 0.52, text, ha="center", va="center", color=INK, fontsize=9)
    axes.set_xlim(0, max(len(chart.column_labels), 1))
    axes.set_ylim(len(chart.row_labels), 0)
    chosen = (
        sorted({0, len(chart.column_labels) - 1})
        if len(chart.row_labels) == 1
        else range(len(chart.column_labels))
    )
    words = (
        ["first", "last"] if len(chart.row_labels) == 1 else [clean(chart.column_labels[at]) for at in chosen]
    )
    crowded = len(words) * max(len(word) for word in words) > _MOST_LETTERS if words else False
    axes.set_xticks(
        [at + 0.5 for at in chosen],
        words[: len(list(chosen))],
        rotation=90 if crowded else 0,
        fontsize=8 if crowded else None,
    )
    axes.set_yticks(
        [at + 0.5 for at in range(len(chart.row_labels))], [clean(label) for label in chart.row_labels]
    )
    axes.set_xlabel(clean(chart.across), color=MUTED, fontsize=10)
    axes.set_ylabel(clean(chart.up), color=MUTED, fontsize=10)


def _by_tens(value: float) -> float:
    """Give the place of a value on a scale by tens, on which nothing lies further down than one hundredth."""
    return math.log10(max(value, _SMALLEST))


def _tick(value: float, as_share: bool) -> str:
    return compact(percent(value)) if as_share else shown(float(f"{value:.3g}"))
