"""Bars, dots, points, lines, grids and contours, drawn; with the colors, words and scales that all pictures share."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from discreet.core.charts import Bars, Contours, Dots, Grid, Lines, Points
from discreet.core.wording import percent, shown

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


# Round numbers for the steps of an axis.


def nice_step(spread: float, most: int) -> float:
    """Return the smallest round step that covers a spread in at most so many steps.

    Examples
    --------
    >>> nice_step(0.33, 8), nice_step(66, 4)
    (0.05, 20.0)
    """
    power = math.floor(math.log10(spread)) - 1
    steps = (factor * 10.0**exponent for exponent in range(power, power + 4) for factor in (1, 2, 5))
    return next(step for step in steps if spread / step <= most)


def nice_ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Return round numbers from at or below ``low`` to at or above ``high``.

    Examples
    --------
    >>> nice_ticks(0, 0.33), nice_ticks(-0.07, 65)
    ([0.0, 0.1, 0.2, 0.3, 0.4], [-20.0, 0.0, 20.0, 40.0, 60.0, 80.0])
    """
    # A flat picture still needs an axis that is long enough to carry two different numbers.
    step = nice_step(max(high - low, 1e-9, 1e-4 * max(abs(low), abs(high))), most)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return [float(f"{place * step:.10g}") for place in range(first, max(last, first + 1) + 1)]


# Bars.


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


# Dots on one scale, and points on two.


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


# Lines along an axis, and grids.


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


# Contours of densities.


_CONTOUR_DASHES = ("solid", "dashed")
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
        color, dash = SERIES_COLORS[at % len(SERIES_COLORS)], _CONTOUR_DASHES[at % len(_CONTOUR_DASHES)]
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
