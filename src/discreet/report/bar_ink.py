"""Bars, drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.report.chart_kinds import Bars
from discreet.report.ink import BAR, INK, MUTED, RISK, clean, compact, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST_PLACES = 5


def bars_height(chart: Bars) -> float:
    """Say how high the picture is to be, in inches."""
    return 0.25 + 0.36 * len(chart.labels) if chart.horizontal else 2.3


def draw_bars(axes: Axes, chart: Bars) -> None:
    """Draw bars that stand or lie."""
    if chart.horizontal:
        _lying_bars(axes, chart)
    else:
        _standing_bars(axes, chart)


def _standing_bars(axes: Axes, chart: Bars) -> None:
    places = range(len(chart.labels))
    lengths = _lengths(chart)
    axes.bar(places, lengths, width=0.72, color=_colors(chart), clip_on=False)
    top = max(*lengths, 1e-9)
    crowded = len(chart.labels) > 8
    for place, length, words in zip(places, lengths, chart.value_labels, strict=True):
        axes.text(
            place,
            length + top * 0.03,
            compact(words),
            ha="center",
            va="bottom",
            color=INK,
            fontsize=8.5 if crowded else 10.5,
        )
    axes.hlines(0, -0.5, len(chart.labels) - 0.5, color=MUTED, linewidth=0.8, clip_on=False)
    axes.set_xticks(list(places), [clean(label) for label in chart.labels])
    if max(len(label) for label in chart.labels) * len(chart.labels) > 56:
        axes.tick_params(axis="x", rotation=40)
    axes.set_xlim(-0.6, max(len(chart.labels), _FEWEST_PLACES) - 0.4)
    axes.set_ylim(0, top * 1.12)
    axes.set_yticks([])


def _lying_bars(axes: Axes, chart: Bars) -> None:
    places = range(len(chart.labels))
    lengths = _lengths(chart)
    axes.barh(places, lengths, height=0.62, color=_colors(chart), clip_on=False)
    low, high = min(*lengths, 0), max(*lengths, 1e-9)
    for place, length, words in zip(places, lengths, chart.value_labels, strict=True):
        axes.text(max(length, 0) + high * 0.015, place, compact(words), va="center", color=INK, fontsize=10.5)
    axes.axvline(0, color=MUTED, linewidth=0.8, clip_on=False)
    axes.set_yticks(list(places), [shortened(label, 34) for label in chart.labels])
    axes.invert_yaxis()
    axes.set_xlim(low, high * 1.18)
    axes.set_xticks([])


def _lengths(chart: Bars) -> list[float]:
    # One is added before taking the logarithm, so that one record still has a bar and none has not.
    return [math.log10(1 + value) for value in chart.values] if chart.by_tens else list(chart.values)


def _colors(chart: Bars) -> list[str]:
    return [RISK if risky else BAR for risky in chart.at_risk]
