"""Maps of risk and cost, drawn: of releases side by side, and of the plans of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.core.charts import Map, Place
from discreet.core.wording import percent
from discreet.report.ink import BAR, INK, MUTED, RISK, RULE, clean, compact, nice_ticks, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.workflow.plan_search import Search
    from discreet.workflow.trials import Trial


_Box = tuple[float, float, float, float]
"""The left and the right end of a name, and the lower and the upper."""

_DOT = 9.0
_LETTER, _LINE = 5.8, 13.0
_DRAWN = 0.8
_MIDDLE = 0.55
_NEXT = 1.5


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
    labels = _Labels.of(axes, chart)
    if chart.mark is not None:
        mark = chart.mark
        axes.axhline(mark, color=MUTED, linewidth=1)
        # The name of the line stands at the end where no place is near.
        near = [place.across for place in chart.places if abs(place.up - mark) < 0.15 * (high - low)]
        left = any(x > across[-1] / 2 for x in near)
        end, side = (0.0, "left") if left else (across[-1], "right")
        axes.text(end, mark, clean(chart.mark_name), ha=side, va="bottom", color=MUTED, fontsize=9)
        labels.take(clean(chart.mark_name), end, mark + 0.03 * (high - low), side)
    for place in chart.places:
        _draw(axes, place)
    for place in sorted(chart.places, key=lambda place: (place.up, -place.across)):
        labels.write(place)
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


@dataclass
class _Labels:
    """The names of the places, each where there is room: boxes are in shares of the picture."""

    axes: Axes
    letter: float
    line: float
    taken: list[_Box]

    @classmethod
    def of(cls, axes: Axes, chart: Map) -> _Labels:
        """Start with the dots, which no name may cover."""
        wide, high = (inches * 72 for inches in axes.get_figure().get_size_inches())  # type: ignore[union-attr]
        labels = cls(axes, _LETTER / (_DRAWN * wide), _LINE / (_DRAWN * high), [])
        round_dot = (0.7 * _DOT / (_DRAWN * wide), 0.7 * _DOT / (_DRAWN * high))
        for place in chart.places:
            x, y = labels.share(place.across, place.up)
            labels.taken.append((x - round_dot[0], x + round_dot[0], y - round_dot[1], y + round_dot[1]))
        return labels

    def share(self, across: float, up: float) -> tuple[float, float]:
        """Tell where in the picture a place is."""
        (left, right), (low, high) = self.axes.get_xlim(), self.axes.get_ylim()
        return (across - left) / (right - left), (up - low) / (high - low)

    def take(self, name: str, across: float, up: float, side: str) -> None:
        """Keep the room of something that is written already."""
        x, y = self.share(across, up)
        self.taken.append(self._box(name, x, y, side))

    def write(self, place: Place) -> None:
        """Write a name beside its place, or as near as there is room, with a line to it where it is not next to it."""
        name = shortened(place.name)
        x, y = self.share(place.across, place.up)
        spots = list(self._spots(x, y))
        boxes = [self._box(name, *spot[:3]) for spot in spots]
        chosen = min(range(len(spots)), key=lambda at: (self._cost(boxes[at]), at))
        at_x, at_y, side, far = spots[chosen]
        self.taken.append(boxes[chosen])
        if far:
            end = at_y - (self.line / 2 if at_y > y else -self.line / 2)
            middle = sum(boxes[chosen][:2]) / 2
            ends = [*zip((x, y), (min(max(middle, x - 0.03), x + 0.03), end), strict=True)]
            self.axes.plot(*ends, transform=self.axes.transAxes, color=MUTED, linewidth=0.7, zorder=1)
        self.axes.text(
            at_x,
            at_y,
            name,
            transform=self.axes.transAxes,
            ha=side,
            va="center",
            color=MUTED if place.reference else INK,
            fontsize=10,
        )

    def _spots(self, x: float, y: float) -> Iterator[tuple[float, float, str, bool]]:
        """List where a name may stand, the best first: beside its place, above or below, and farther off."""
        sides = ("right", "left") if x > _MIDDLE else ("left", "right")
        away = {"left": 0.03, "right": -0.03, "center": 0.0}
        for side in sides:
            yield x + away[side], y, side, False
        for lift in (1.2, 2.2, 3.2, 4.2):
            for side in ("center", *sides):
                for way in (1, -1):
                    yield x + away[side] / 2, y + way * lift * self.line, side, lift > _NEXT

    def _box(self, name: str, x: float, y: float, side: str) -> _Box:
        width = self.letter * len(name)
        left = x - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width
        return left, left + width, y - self.line / 2, y + self.line / 2

    def _cost(self, box: _Box) -> float:
        """Say how much of what is there a name would cover, and how much of it would stand outside the picture."""
        left, right, low, high = box
        outside = max(0.0, -left) + max(0.0, right - 1.03) + max(0.0, -low) + max(0.0, high - 1.06)
        covered = sum(
            max(0.0, min(right, r) - max(left, le)) * max(0.0, min(high, h) - max(low, lo))
            for le, r, lo, h in self.taken
        )
        return round(outside + 10 * covered, 6)


# What each plan of a search leaves of the risk, and what it costs.


def draw_map(search: Search) -> Figure:
    """Draw every plan by its loss and its risk, the frontier as a line, the recommended plan named.

    Plans that could not be measured have no place on the map; the title counts them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    kinds = (
        (True, "o", "#1b6e3c", "meets the policy"),
        (None, "D", "#8a6d1d", "meets what was judged"),
        (False, "x", "#9c2a1f", "does not"),
    )
    for meets, marker, color, label in kinds:
        losses, risks = _points([trial for trial in search.trials if trial.meets is meets])
        if losses:
            axes.scatter(losses, risks, marker=marker, color=color, label=label, zorder=3)
    # No plan on the frontier beats its neighbors, so between two of them the map is a step, not a slope.
    losses, risks = _points(sorted(search.frontier, key=lambda trial: trial.loss or 0.0))
    axes.step(losses, risks, where="post", color="#5a6b7d", linewidth=1, label="frontier", zorder=2)
    best = search.recommended
    if best is not None and best.loss is not None and best.risk is not None:
        _name(axes, best.name, (best.loss, best.risk))
    axes.set_xlabel(f"What it costs ({search.loss})")
    axes.set_ylabel(f"What is left of the risk ({search.risk})")
    unmeasured = sum(trial.risk is None or trial.loss is None for trial in search.trials)
    beside = f"\n({unmeasured} could not be measured)" if unmeasured else ""
    axes.set_title(f"{len(search.trials)} plans held against policy '{search.policy}'{beside}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(0.08)
    axes.legend(frameon=False)
    return figure


def _points(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    known = [(t.loss, t.risk) for t in trials if t.loss is not None and t.risk is not None]
    return [loss for loss, _ in known], [risk for _, risk in known]


def _name(axes: Axes, name: str, at: tuple[float, float]) -> None:
    """Write the name beside a point, on the side where there is room."""
    low, high = axes.get_xlim()
    right = at[0] > (low + high) / 2
    axes.annotate(
        name,
        at,
        textcoords="offset points",
        xytext=(-8 if right else 8, 8),
        ha="right" if right else "left",
        fontweight="bold",
    )
