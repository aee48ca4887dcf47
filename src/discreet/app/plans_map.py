"""The risk-utility map: every plan that was tried is a point that can be pressed, and says what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.core.wording import percent

MEETS = {True: "meets the policy", False: "does not meet it", None: "not all judged"}
_CLOSE = (0.06, 0.09)  # points nearer than these shares of the picture, across and upward, are one point
_TONES = {True: "pass", False: "fail", None: "open"}


def plans_map(plans: Sequence[Mapping[str, Any]], take: Callable[[Mapping[str, Any]], None]) -> None:
    """Draw the map; a point that is pressed shows its plans below, each to be taken over."""
    widest = _end([plan["loss"] for plan in plans])
    highest = _end([plan["risk"] for plan in plans])
    widgets.words(
        "Every point is a plan. Down and to the left is better. Press a point to see its plan.", "small"
    )
    drawn = ui.element("div")
    chosen = ui.element("div").classes("part").props('aria-live="polite"').mark("chosen-plans")
    with drawn, ui.element("div").classes("plans-map").props('role="group" aria-label="Risk-utility map"'):
        widgets.words("Risk: average chance of being found", "up small", tag="span")
        with ui.element("div").classes("field").mark("map"):
            for share in (0.0, 0.5, 1.0):
                _rule("across", share, percent(share * highest))
                _rule("upward", share, percent(share * widest))
            for spot in spots_of(plans, widest, highest):
                _point(spot, partial(_shown, spot["plans"], take, chosen))
        widgets.words("Cost: information loss", "along small", tag="span")
    with drawn, ui.element("p").classes("small legend"):
        for meets, words in MEETS.items():
            if any(plan["meets"] is meets for plan in plans):
                ui.element("span").classes(f"dot {_TONES[meets]}").props('aria-hidden="true"')
                widgets.words(words, tag="span")


def _shown(
    held: Sequence[Mapping[str, Any]], take: Callable[[Mapping[str, Any]], None], place: ui.element
) -> None:
    place.clear()
    with place:
        for plan in held:
            plan_card(plan, take)


def plan_card(plan: Mapping[str, Any], take: Callable[[Mapping[str, Any]], None]) -> None:
    """One plan in words, and the button that takes it over."""
    with ui.element("div").classes("choice"):
        widgets.words(
            f"{plan['letter']}. {plan['name']}: {MEETS[plan['meets']]}, risk {percent(plan['risk'])}, "
            f"cost {percent(plan['loss'])}."
        )
        widgets.listed(plan["reasons"])
        if plan["steps"]:
            widgets.plain(f"Take plan {plan['letter']}", lambda: take(plan)).classes("low").mark(
                f"take-{plan['letter']}"
            )


def spots_of(plans: Sequence[Mapping[str, Any]], widest: float, highest: float) -> list[dict[str, Any]]:
    """Gather plans that would lie on each other; no plan is left out.

    Examples
    --------
    >>> plans = [{"loss": 0.1, "risk": 0.2}, {"loss": 0.1, "risk": 0.2}, {"loss": 0.4, "risk": 0.0}]
    >>> [(spot["x"], spot["y"], len(spot["plans"])) for spot in spots_of(plans, 0.4, 0.2)]
    [(0.25, 1.0, 2), (1.0, 0.0, 1)]
    """
    found: list[dict[str, Any]] = []
    for plan in plans:
        x, y = plan["loss"] / widest, plan["risk"] / highest
        near = next(
            (one for one in found if abs(one["x"] - x) < _CLOSE[0] and abs(one["y"] - y) < _CLOSE[1]), None
        )
        if near is None:
            found.append({"x": x, "y": y, "plans": [plan]})
        else:
            near["plans"].append(plan)
    return found


def _point(spot: Mapping[str, Any], press: Callable[[], None]) -> None:
    held = spot["plans"]
    named = held[0]["letter"] if len(held) == 1 else f"{held[0]['letter']}+{len(held) - 1}"
    told = "; ".join(
        f"plan {plan['letter']}: {MEETS[plan['meets']]}, risk {percent(plan['risk'])}, cost {percent(plan['loss'])}"
        for plan in held
    )
    best = next(meets for meets in (True, None, False) if any(plan["meets"] is meets for plan in held))
    point = ui.element("button").classes(f"point {_TONES[best]}").on("click", press)
    point.style(f"left: {100 * spot['x']:.2f}%; bottom: {100 * spot['y']:.2f}%")
    point.props('type="button"').mark(f"point-{held[0]['letter']}")
    point.props["aria-label"] = f"{named}: {told}"
    point.props["title"] = point.props["aria-label"]
    with point:
        widgets.words(named, tag="span")


def _rule(way: str, share: float, words: str) -> None:
    side = "bottom" if way == "across" else "left"
    with ui.element("div").classes(f"rule {way}").style(f"{side}: {100 * share:g}%"):
        widgets.words(words, "small", tag="span")


def _end(values: Sequence[float]) -> float:
    """Return where an axis ends: a little beyond the largest value, at most at one where nothing lies beyond."""
    largest = max(values, default=0.0)
    return max(0.02, min(1.0, largest * 1.08) if largest <= 1 else largest * 1.08)
