"""The risk-utility map: what each plan leaves of the risk, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.workflow.plan_search import Search
    from discreet.workflow.trials import Trial


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
