"""Contours of densities, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.report.chart_kinds import Contours
from discreet.report.ink import MUTED, RULE, SERIES_COLORS, clean, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", "dashed")
_WIDEST = 2.4


def contours_height(chart: Contours) -> float:
    """Say how high the picture is to be, in inches."""
    return 3.6 + 0.22 * len(chart.layers)


def draw_contours(axes: Axes, chart: Contours) -> None:
    """Draw the contours of each layer, the inner ones thicker; layers differ in color and in dashes."""
    from contourpy import contour_generator

    for at, layer in enumerate(chart.layers):
        columns = [list(row) for row in zip(*layer.heights, strict=True)]
        lines = contour_generator(z=columns)
        color, dash = SERIES_COLORS[at % len(SERIES_COLORS)], _DASHES[at % len(_DASHES)]
        for place, height in enumerate(layer.levels):
            for line in lines.lines(height):
                axes.plot(
                    line[:, 0],  # type: ignore[call-overload]
                    line[:, 1],  # type: ignore[call-overload]
                    color=color,
                    linestyle=dash,
                    linewidth=max(0.8, _WIDEST - 0.6 * place),
                )
        axes.plot([], [], color=color, linestyle=dash, linewidth=_WIDEST, label=clean(layer.name))
    axes.set_xlim(0, len(chart.layers[0].heights) - 1)
    axes.set_ylim(0, len(chart.layers[0].heights[0]) - 1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.axhline(0, color=RULE, linewidth=1)
    axes.axvline(0, color=RULE, linewidth=1)
    axes.set_xlabel(clean(chart.across), color=MUTED, fontsize=10)
    axes.set_ylabel(clean(chart.up), color=MUTED, fontsize=10)
    legend(axes, handlelength=1.8)
