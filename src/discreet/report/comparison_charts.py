"""The pictures of a comparison as a whole: the risk-utility map, and releases side by side."""

from __future__ import annotations

from discreet.report.chart_kinds import Map, Place
from discreet.workflow.comparison_results import ComparedRelease, Comparison

_IN_PERCENT = ("repU",)


def map_of(comparison: Comparison) -> Map | None:
    """Draw what each release costs and what it gives away; None where there is no risk to draw."""
    axes = comparison.map_axes
    if axes is None:
        return None
    cost, risk = axes
    places = [_place(release, cost[:2], risk[:2]) for release in comparison.releases.values()]
    first = comparison.main
    reference = {"cap_released": "cap_original", "repU": "UiO"}.get(risk[1])
    held = first.figure(risk[0], reference) if reference else None
    if held is not None:
        places.append(Place("the original itself", 0.0, _scaled(held, risk[1]), reference=True))
    blind = {"cap_released": "baseline", "linked_share": "guess_share"}.get(risk[1])
    mark = first.figure(risk[0], blind) if blind else None
    return Map(
        title="What each release costs, and what it gives away"
        if len(comparison.releases) > 1
        else "What the release costs, and what it gives away",
        places=tuple(places),
        across="Cost: records in other cells, mean of all tables",
        up=f"Risk: {risk[2][:1].lower()}{risk[2][1:].removesuffix(', percent')}",
        axis=(
            "Down and to the left is better; the original costs nothing and gives everything away"
            + ("" if comparison.policy is None else "; red is what does not meet the policy")
        ),
        mark=mark,
        mark_name="guessing without the release",
    )


def _place(release: ComparedRelease, cost: tuple[str, ...], risk: tuple[str, ...]) -> Place:
    return Place(
        release.name,
        release.figure(cost[0], cost[1]) or 0.0,
        _scaled(release.figure(risk[0], risk[1]) or 0.0, risk[1]),
        None if release.verdict is None else release.verdict.meets,
    )


def _scaled(value: float, figure: str) -> float:
    return value / 100 if figure in _IN_PERCENT else value
