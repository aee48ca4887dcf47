"""Dots on one scale, and points on two, drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.core.wording import percent, shown
from discreet.report.chart_kinds import Dots, Points
from discreet.report.chart_scale import nice_ticks
from discreet.report.ink import BAR, MUTED, RISK, RULE, SERIES_COLORS, clean, compact, legend, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT = 8.0
_LARGE = 2
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def dots_height(chart: Dots) -> float:
    """Say how high the picture is to be, in inches."""
    return 0.75 + 0.33 * len(chart.rows) + (0.3 * len(chart.series) if len(chart.series) > 1 else 0)


def draw_dots(axes: Axes, chart: Dots) -> None:
    """Draw one line of dots a row; a row's dots are joined, so that the eye sees their distance."""
    colors = SERIES_COLORS if len(chart.series) > 1 else (BAR,)
    for place, row in enumerate(chart.rows):
        known = [value for value in row.values if value is not None]
        if row.interval is not None:
            axes.plot(row.interval, (place, place), color=BAR, linewidth=2.5)
        elif len(known) > 1:
            axes.plot((min(known), max(known)), (place, place), color=RULE, linewidth=2.5)
    for at, name in enumerate(chart.series):
        points = [(row.values[at], place) for place, row in enumerate(chart.rows)]
        seen = [(value, place) for value, place in points if value is not None]
        axes.plot(
            [value for value, _ in seen],
            [place for _, place in seen],
            linestyle="none",
            marker="o",
            markersize=_DOT if at < _LARGE else _DOT / 2,
            color=colors[at % len(colors)],
            # The second is hollow and the third small, for whoever cannot tell the colors apart.
            markerfacecolor="none" if at == 1 else colors[at % len(colors)],
            markeredgewidth=1.8,
            label=clean(name),
            clip_on=False,
        )
    if chart.mark is not None:
        axes.axvline(chart.mark, color=MUTED, linewidth=1)
    axes.set_yticks(range(len(chart.rows)), [shortened(row.label, 34) for row in chart.rows])
    axes.set_ylim(len(chart.rows) - 0.5, -0.5)
    _scale(axes, chart)
    if len(chart.series) > 1:
        legend(axes, above=1, handletextpad=0.3)


def _scale(axes: Axes, chart: Dots) -> None:
    values = [
        value for row in chart.rows for value in (*row.values, *(row.interval or ())) if value is not None
    ]
    ticks = nice_ticks(min([*values, 0.0]), max([*values, 0.0]))
    axes.set_xlim(ticks[0], ticks[-1])
    words = [percent(tick) if chart.as_share else shown(tick) for tick in ticks]
    axes.set_xticks(ticks, [compact(word) for word in words])
    axes.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)


def points_height(chart: Points) -> float:
    """Say how high the picture is to be, in inches."""
    return 3.2


def draw_points(axes: Axes, chart: Points) -> None:
    """Draw points on two scales by tens; what is risky lies on top."""
    for point in sorted(chart.points, key=lambda point: (point.risky, -point.count)):
        axes.plot(
            [point.across],
            [point.up],
            linestyle="none",
            marker="o",
            markersize=min(4 + 2.5 * math.log10(point.count), 13),
            markeredgewidth=0,
            color=RISK if point.risky else BAR,
            alpha=1 if point.risky else 0.6,
            clip_on=False,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    across = _tens([point.across for point in chart.points])
    axes.set_xlim(across[0], across[-1])
    axes.set_xticks(across, [_rarity(tick) for tick in across])
    up = _tens([point.up for point in chart.points])
    axes.set_ylim(up[0], up[-1] * 1.2)
    axes.set_yticks(up, [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in up])
    if chart.mark is not None and across[0] <= chart.mark <= across[-1]:
        axes.axvline(chart.mark, color=MUTED, linewidth=1)
        axes.text(chart.mark, up[-1] * 1.3, clean(chart.mark_name), ha="center", color=MUTED, fontsize=10)
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", pad=7)
    axes.set_xlabel(clean(chart.across), color=MUTED, fontsize=10)
    axes.set_ylabel(clean(chart.up), color=MUTED, fontsize=10)


def _tens(values: list[float]) -> list[float]:
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    step = max(1, math.ceil((high - low) / 5))
    return [10.0**power for power in range(low, max(high, low + 1) + step, step)]


def _rarity(chance: float) -> str:
    power = round(-math.log10(chance))
    if power <= 2:
        return f"{chance:.0%}"
    return f"1 in {10**power:,}" if power <= 5 else f"1 in 10{str(power).translate(_RAISED)}"
