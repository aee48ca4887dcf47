"""A map of risk and cost, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.report.chart_kinds import Map, Place
from discreet.report.chart_scale import nice_ticks
from discreet.report.ink import BAR, INK, MUTED, RISK, RULE, clean, compact, shortened
from discreet.results import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOT = 9.0


def map_height(chart: Map) -> float:
    """Say how high the picture is to be, in inches."""
    return 3.6


def draw_places(axes: Axes, chart: Map) -> None:
    """Draw every place with its name; what does not keep the rules is darker."""
    across = nice_ticks(0.0, max([place.across for place in chart.places] + [1e-3]))
    heights = [place.up for place in chart.places] + ([chart.mark] if chart.mark is not None else [])
    up = nice_ticks(min(heights), max(heights))
    span = up[-1] - up[0]
    low, high = up[0] - 0.12 * span, up[-1] + 0.12 * span
    axes.set_xlim(-0.03 * across[-1], across[-1] * 1.03)
    axes.set_ylim(low, high)
    axes.set_xticks(across, [compact(percent(tick)) for tick in across])
    axes.set_yticks(up, [compact(percent(max(tick, 0.0))) for tick in up])
    taken: list[tuple[float, float]] = []
    if chart.mark is not None:
        mark = chart.mark
        axes.axhline(mark, color=MUTED, linewidth=1)
        # The name of the line stands at the end where no place is near.
        near = [place.across for place in chart.places if abs(place.up - mark) < 0.15 * (high - low)]
        left = any(x > across[-1] / 2 for x in near)
        end, side = (0.0, "left") if left else (across[-1], "right")
        axes.text(end, mark, clean(chart.mark_name), ha=side, va="bottom", color=MUTED, fontsize=9)
        taken.append((end, mark + 0.03 * (high - low)))
    for place in sorted(chart.places, key=lambda place: (place.up, place.across)):
        _draw(axes, place)
        _name(axes, place, (across[-1], high - low), taken)
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(clean(chart.across), color=MUTED, fontsize=10)
    axes.set_ylabel(clean(chart.up), color=MUTED, fontsize=10)


def _draw(axes: Axes, place: Place) -> None:
    color = MUTED if place.reference else RISK if place.kept is False else BAR
    axes.plot(
        [place.across],
        [place.up],
        linestyle="none",
        marker="o",
        markersize=_DOT,
        color=color,
        markerfacecolor="none" if place.reference else color,
        markeredgewidth=1.8,
        clip_on=False,
    )


def _name(axes: Axes, place: Place, sizes: tuple[float, float], taken: list[tuple[float, float]]) -> None:
    """Write the name beside a place, on the side where there is room, and not over another name."""
    width, height = sizes
    right = place.across > 0.55 * width
    level = place.up
    while any(
        abs(level - other) < 0.08 * height and abs(place.across - x) < 0.5 * width for x, other in taken
    ):
        level += 0.04 * height
    taken.append((place.across, level))
    axes.text(
        place.across + (-0.03 if right else 0.03) * width,
        level,
        shortened(place.name),
        ha="right" if right else "left",
        va="center",
        color=MUTED if place.reference else INK,
        fontsize=10,
    )
