"""What is to be done? Suggested plans on the risk-utility map, or step by step, each step with its effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.forms import DROP, FORMS, TAKES_NAMES, policy_choice, step_form
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import Journey
from discreet.core.value_gate import gated
from discreet.core.wording import percent

_SETTINGS = {
    "columns": "Columns",
    "mapping": "Values that are told otherwise",
    "breaks": "Limits of the bands",
    "by": "Within groups of",
    "keys": "Keys",
}
_PASSES = {True: "It meets the policy.", False: "It does not meet the policy.", None: "Not all was judged."}
_EFFORTS = {"quick": "quick", "normal": "normal", "thorough": "thorough"}


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "How is it to be protected?",
        "Let discreet look for plans that meet the policy at the lowest cost, or put a plan together yourself. Nothing "
        "is written yet.",
    ):
        return
    widgets.heading("Suggested plans", 2)
    _asking(journey, watch)
    watch.part(lambda: _suggested(journey), lambda: Held(journey.suggestion), watch.of_task("suggest_plan"))
    widgets.heading("The plan, step by step", 2).props('id="plan"')
    watch.part(
        lambda: _steps(journey),
        lambda: repr(journey.steps),
        lambda: len(journey.undone),
        lambda: Held(journey.effects),
        lambda: Held(journey.preview),
        watch.of_task("try_steps"),
        watch.of_task("preview_step"),
    )
    widgets.heading("Add a step", 3)
    step_form(journey, lambda step: change_steps(journey, [*journey.steps, step]))
    watch.part(lambda: _onward(journey), lambda: bool(journey.steps))
    if journey.steps and not journey.effects and not journey.running("try_steps"):
        try_steps(journey)


def suggest(journey: Journey, effort: str, keep: list[str]) -> None:
    """Look for plans in the background."""

    def then(found: dict[str, Any]) -> None:
        journey.suggestion = found
        journey.log(f"Looked for plans: {found['tried']} were tried. {found['sentences'][0]}")

    journey.work(
        "suggest_plan",
        "Looking for plans that meet the policy",
        then,
        policy=journey.policy,
        effort=effort,
        keep=keep,
    )


def change_steps(
    journey: Journey, steps: list[dict[str, Any]], *, redo: list[dict[str, Any]] | None = None
) -> None:
    """Take other steps and say what each does; what was taken back can be done again."""
    journey.steps = steps
    journey.undone = redo or []
    journey.preview, journey.comparison, journey.release = {}, {}, {}
    journey.effects = []
    journey.signed.pop("decision", None)  # it was about another plan
    journey.refusals.pop("try_steps", None)
    if steps:
        try_steps(journey)
    journey.changed()


def undo(journey: Journey) -> None:
    """Take the last step back."""
    if journey.steps:
        change_steps(journey, journey.steps[:-1], redo=[*journey.undone, journey.steps[-1]])


def redo(journey: Journey) -> None:
    """Do the last step again that was taken back."""
    if journey.undone:
        change_steps(journey, [*journey.steps, journey.undone[-1]], redo=journey.undone[:-1])


def try_steps(journey: Journey) -> None:
    """Apply the steps in the background and note what each does; a step that is refused is taken out again."""
    tried = list(journey.steps)

    def then(found: dict[str, Any]) -> None:
        if journey.steps == tried:
            journey.effects = [{**found["before"], "said": ""}, *found["effects"]]
            journey.log(f"Tried a plan of {len(tried)} steps: {', '.join(map(name_of, tried))}.")

    journey.work("try_steps", "Trying the steps", then, steps=tried, seed=journey.seed)


def name_of(step: dict[str, Any]) -> str:
    """Return the name of a step."""
    return str(step.get("treatment") or "a step written by hand")


def title_of(step: dict[str, Any]) -> str:
    """Return what a step is called on the page; its name in a plan file, as words, where it has no other."""
    form = FORMS.get(name_of(step))
    return form.title if form else name_of(step).replace("-", " ").capitalize()


def in_words(value: Any) -> str:
    """Write a setting of a step for whoever does not program.

    Examples
    --------
    >>> in_words({"age": 10, "pay": [1, 2]}), in_words(["a", "b"]), in_words(True)
    ('age 10; pay 1, 2', 'a, b', 'yes')
    """
    if isinstance(value, Mapping) and list(value) == ["withheld"]:
        return f"{value['withheld']} values (masked)"
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {in_words(held)}" for name, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def take(journey: Journey, plan: list[dict[str, Any]], words: str, seed: int | None = None) -> None:
    """Take a plan over; one that was judged with a seed is applied with it."""
    if seed is not None:
        journey.seed = seed
    journey.log(words)
    change_steps(journey, [dict(step) for step in plan])


def _take_here(journey: Journey, plan: list[dict[str, Any]], words: str, seed: int | None) -> None:
    """Take a plan over on this page, and go to where it stands."""
    take(journey, plan, words, seed)
    ui.navigate.to("#plan")


def _asking(journey: Journey, watch: Watch) -> None:
    with ui.element("section").classes("sheet").props('aria-label="Look for plans"'):
        policy_choice(journey)
        watch.beside("suggest_plan", "policy")
        with ui.element("div").classes("fields"):
            effort = widgets.choice(_EFFORTS, "How hard to look", "quick").mark("effort")
            keep = widgets.choice(
                [row["column"] for row in journey.columns], "Columns to leave as they are", [], multiple=True
            )
            keep.props("use-chips").mark("keep")
        watch.beside("suggest_plan", "effort")
        widgets.act("Suggest plans", lambda: suggest(journey, effort.value, list(keep.value))).mark("suggest")


def _suggested(journey: Journey) -> None:
    refusals(journey, "suggest_plan", "", "roles", "file")
    if journey.running("suggest_plan"):
        widgets.waiting(
            "Plans are being tried on the file. This can take minutes; go on elsewhere meanwhile."
        )
        return
    found = journey.suggestion
    if not found:
        return
    widgets.words(found["sentences"][0])
    told = [*found["obstacles"], *(other["sentence"] for other in found["alternatives"] if other["steps"])]
    widgets.listed([one for one in found["sentences"][1:] if one not in told])
    if found["obstacles"]:
        widgets.heading("What stood in the way", 3)
        widgets.listed(found["obstacles"])
    if found["plan"]:
        with ui.element("div").classes("choice best"):
            widgets.heading("The plan to take", 3)
            widgets.listed(
                [f"{step['words']} It costs {percent(step['cost'])}." for step in found["steps"]],
                ordered=True,
            )
            widgets.act(
                "Take this plan",
                lambda: _take_here(journey, found["plan"], "Took over the suggested plan.", found["seed"]),
            ).mark("take")
    elif found["meets"]:
        widgets.said("The file meets the policy as it is; there is no step to take.")
    for other in found["alternatives"]:
        if not other["steps"]:
            continue
        with ui.element("div").classes("choice"):
            widgets.words(other["sentence"])
            widgets.words(_PASSES[other["meets"]], "small")
            widgets.plain(
                "Take this plan instead",
                lambda other=other: _take_here(
                    journey, other["steps"], f"Took over the plan “{other['name']}”.", found["seed"]
                ),
            ).props["aria-label"] = f"Take this plan instead: {other['name']}"
    if found["plans"]:
        widgets.heading("The risk-utility map", 3)
        plans_map(found["plans"], lambda plan: _take_tried(journey, plan))
    _all_plans(journey, found)
    widgets.listed(found["caveats"])


def _all_plans(journey: Journey, found: dict[str, Any]) -> None:
    with ui.expansion(f"All plans on the map ({len(found['plans'])} of {found['tried']} that were tried)"):
        for plan in found["plans"]:
            plan_card(plan, lambda one: _take_tried(journey, one))


def _take_tried(journey: Journey, plan: Mapping[str, Any]) -> None:
    words = f"Took over the plan “{plan['name']}”."
    _take_here(journey, plan["steps"], words, journey.suggestion["seed"])


def _steps(journey: Journey) -> None:
    refusals(journey, "try_steps", "", "roles", "file")
    refused = journey.refused("try_steps", "step")
    named = journey.holding("identifiers")
    if named and not any(step.get("treatment") in TAKES_NAMES for step in journey.steps):
        widgets.said(f"Still in the file, and naming people: {', '.join(named)}.")
        widgets.plain(
            "Add the step: drop identifiers",
            lambda: change_steps(journey, [{"treatment": DROP}, *journey.steps]),
        ).mark(DROP)
    if not journey.steps:
        widgets.words("No step yet. Take a suggested plan, or add a step below.", "muted")
    with ui.element("ol").classes("steps-list"):
        for place, step in enumerate(journey.steps):
            _step(journey, place, step)
    widgets.refusal(refused)
    if journey.running("try_steps"):
        widgets.waiting("The steps are being tried on the file.")
    with ui.row():
        back = widgets.plain("Undo the last step", lambda: undo(journey)).mark("undo")
        again = widgets.plain("Redo", lambda: redo(journey)).mark("redo")
        back.set_enabled(bool(journey.steps))
        again.set_enabled(bool(journey.undone))
        if journey.steps:
            widgets.plain("Start over", lambda: change_steps(journey, [])).mark("start-over")


def _step(journey: Journey, place: int, step: dict[str, Any]) -> None:
    effects = journey.effects
    with ui.element("li"):
        widgets.words(f"{place + 1}. {title_of(step)}", tag="h3")
        told = step if journey.values_shown else gated(step)
        form = FORMS.get(name_of(step))
        called = _SETTINGS | ({name: words for name, words, _ in form.numbers} if form else {})
        settings = ". ".join(
            f"{called.get(name, name)}: {in_words(value)}"
            for name, value in told.items()
            if name != "treatment"
        )
        if settings and "toml" not in step:
            widgets.words(settings[:400], "muted small")
        if len(effects) <= place + 1:
            return
        before, after = effects[place], effects[place + 1]
        said = after["said"].removeprefix(f"{name_of(step)}: ")
        widgets.words(f"{said[:1].upper()}{said[1:].rstrip('.')}.")
        widgets.listed(after.get("notes") or [])
        rows = [
            (label, *(_figure(name, effect.get(name)) for effect in (before, after)))
            for label, name in (
                ("Smallest group", "k"),
                ("Records that are alone", "alone"),
                ("Lost so far", "loss"),
            )
        ]
        widgets.table(
            f"What step {place + 1} does", ("Figure", "before", "after"), rows, numeric=(False, True, True)
        )
        _preview(journey, place)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "0 %" if name == "loss" else "–"
    return f"{value:,}" if name == "k" else percent(value)


def _preview(journey: Journey, place: int) -> None:
    widgets.refusal(journey.refused("preview_step") if journey.preview.get("number") == place else "")
    if journey.preview.get("number") != place:
        widgets.plain("Preview changed cells", lambda: preview(journey, place)).classes("low").mark(
            f"preview-{place}"
        )
        return
    shown = journey.preview.get("found")
    if shown is None:
        widgets.waiting("Looking for changed cells.")
        return
    if shown["gone"]:
        widgets.words(f"Left out: {', '.join(shown['gone'])}.")
    if shown["told"]:
        widgets.words(shown["told"])
    if shown["rows"]:
        widgets.table(
            f"Some cells that step {place + 1} changes",
            ("Record", "Column", "Before", "After"),
            shown["rows"],
        )
        if not journey.values_shown:
            widgets.plain("Show values (this is noted)", lambda: _show(journey, place)).classes("low").mark(
                "show-values"
            )


def preview(journey: Journey, place: int) -> None:
    """Fetch some cells that a step changes."""
    journey.preview = {"number": place}

    def then(found: dict[str, Any]) -> None:
        journey.preview = {"number": place, "found": found}

    journey.work(
        "preview_step",
        "Looking for changed cells",
        then,
        steps=journey.steps,
        seed=journey.seed,
        number=place,
        show_values=journey.values_shown,
    )


def _show(journey: Journey, place: int) -> None:
    journey.show_values(True, "Protect")
    preview(journey, place)


def _onward(journey: Journey) -> None:
    if journey.steps:
        widgets.act("Next: compare", lambda: ui.navigate.to(f"/{journey.number}/compare")).mark("next")


# The risk-utility map: every plan that was tried is a point that can be pressed, and says what it is.
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
