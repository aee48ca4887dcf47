"""What all pages share: which address shows which page, the head, the way through the job, and the same in Python."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse

from discreet._version import __version__
from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.journey import Journey
from discreet.app.same_in_code import command_text, python_text
from discreet.core.errors import DiscreetError

JOURNEY = (
    ("file", "File"),
    ("columns", "Columns"),
    ("risk", "Risk"),
    ("protect", "Protect"),
    ("compare", "Compare"),
    ("release", "Release"),
)
BESIDE = (("synthesize", "Synthesize"), ("tables", "Tables"), ("outputs", "Outputs"), ("budget", "Budget"))
_WITHOUT_FILE = ("file", "outputs")
_EVERY = 0.4  # seconds between two looks at the journey


class Held:
    """A thing that a part shows, equal to itself alone; while it is held, no other can be taken for it."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


@dataclass
class Watch:
    """The parts of a page, each with what it depends on; a part is drawn again when that has changed."""

    journey: Journey | None
    parts: list[list[Any]] = field(default_factory=list)

    def part(self, build: Callable[[], None], *depends: Callable[[], Hashable]) -> None:
        """Draw a part now, and again whenever one of the things it depends on is different."""
        holder = ui.element("div").classes("part")
        with holder:
            build()
        self.parts.append([depends, [one() for one in depends], holder, build])

    def look(self) -> None:
        """Draw what has changed; parts of a part that was drawn again are gone with it."""
        self.parts = [part for part in self.parts if not part[2].is_deleted]
        for part in list(self.parts):
            depends, seen, holder, build = part
            now = [one() for one in depends]
            if now != seen and not holder.is_deleted:
                part[1] = now
                holder.clear()
                with holder:
                    build()

    def beside(self, task: str, *fields: str) -> None:
        """Show here what a task refuses about some fields of the page."""
        journey = self.journey
        if journey is not None:
            self.part(lambda: refusals(journey, task, *fields), self.of_task(task))

    def of_task(self, task: str) -> Callable[[], Hashable]:
        """What a part depends on that shows whether a task runs, and what it refused."""

        def state() -> Hashable:
            if self.journey is None:
                return None
            job = self.journey.running(task)
            return Held(job), tuple(sorted(self.journey.refusals.get(task, {}).items()))

        return state


def refusals(journey: Journey, task: str, *fields: str) -> None:
    """The sentences of what a task refused about some fields; an empty name stands for the whole action."""
    for name in fields:
        widgets.refusal(journey.refused(task, name))


def opened(journey: Journey, title: str, lead: str) -> bool:
    """Draw the first lines of a page that needs the file; where it was not read yet, say so and return False."""
    widgets.opening(title, lead)
    if not journey.is_read:
        widgets.said("The file was not read yet in this sitting.")
        widgets.act("Read the file", lambda: ui.navigate.to(f"/{journey.number}/file")).mark("read-first")
    return journey.is_read


def framed(
    desk: Desk, journey: Journey | None, page: str, build: Callable[[Desk, Journey, Watch], None]
) -> None:
    """Draw a page inside its frame."""
    title = dict((*JOURNEY, *BESIDE))[page]
    ui.page_title(
        f"{title} · {journey.name} · discreet" if journey and journey.name else f"{title} · discreet"
    )
    ui.add_head_html('<link rel="stylesheet" href="/assets/page.css">')
    dark = ui.dark_mode(desk.dark)
    watch = Watch(journey)
    worked = desk.review if page == "outputs" else journey
    with ui.header(elevated=False):
        _head(desk, journey, page, dark)
        watch.part(lambda: _way(journey, page), lambda: tuple(_is_done(journey, name) for name, _ in JOURNEY))
    if worked is not None:
        watch.part(lambda: _jobs(worked), lambda: tuple((Held(job), job.state) for job in worked.jobs))
        watch.part(lambda: _notes(worked), lambda: (worked.note, worked.values_shown))
    build(desk, journey if journey is not None else Journey(), watch)
    if worked is not None and (worked.place or page == "outputs"):
        _same(worked, page, watch)
    with ui.element("footer").classes("foot"):
        widgets.words(
            f"discreet {__version__}. This page runs on this machine and loads nothing from elsewhere. A verdict "
            "compares a file with limits that people have set; a person decides."
        )
    ui.timer(_EVERY, watch.look)


def _head(desk: Desk, journey: Journey | None, page: str, dark: Any) -> None:
    with ui.element("div").classes("bar"):
        widgets.link("Skip to the content", "#content").classes("skip")
        widgets.link("discreet", "/").classes("brand")
        if journey is not None and journey.name:
            others = {one.number: one.name or "new" for one in desk.journeys.values()}
            if len(others) > 1:
                ui.select(
                    others,
                    value=journey.number,
                    label="File",
                    on_change=lambda event: ui.navigate.to(f"/{event.value}/{page}"),
                ).props("dense outlined options-dense").mark("which-file")
            else:
                widgets.words(journey.name, "muted small")
        ui.element("div").classes("grow")
        if journey is not None and journey.place:
            _project(journey)
        _theme(desk, dark)
        _end(desk)


def _way(journey: Journey | None, page: str) -> None:
    """The pages in the order of the job, with a mark at what was done."""
    with ui.element("nav").classes("steps").props('aria-label="The job, step by step"'), ui.element("ol"):
        for name, title in JOURNEY:
            _step(journey, name, title, page)
        for place, (name, title) in enumerate(BESIDE):
            _step(journey, name, title, page, beside=place == 0)


def _step(journey: Journey | None, name: str, title: str, page: str, *, beside: bool = False) -> None:
    item = ui.element("li").classes("beside" if beside else "")
    with item:
        if (journey is None or not journey.place) and name not in _WITHOUT_FILE:
            widgets.words(title, "off", tag="span")
            return
        number = journey.number if journey is not None and journey.number in range(1, 10_000) else 0
        there = widgets.link(title, f"/{number}/{name}")
        if name == page:
            there.props('aria-current="page"')
        if _is_done(journey, name):
            item.classes("done")


def _is_done(journey: Journey | None, name: str) -> bool:
    return journey is not None and bool(
        {
            "file": journey.found,
            "columns": journey.roles and journey.found,
            "risk": journey.assessment,
            "protect": journey.steps,
            "compare": journey.comparison,
            "release": journey.release,
        }.get(name)
    )


def _theme(desk: Desk, dark: Any) -> None:
    words = {None: "Colors: as the system", False: "Colors: light", True: "Colors: dark"}

    def turn() -> None:
        desk.dark = {None: False, False: True, True: None}[desk.dark]
        dark.value = desk.dark
        button.set_text(words[desk.dark])

    button = widgets.plain(words[desk.dark], turn).classes("low").mark("theme")


def _end(desk: Desk) -> None:
    from discreet.app.serving import end

    with ui.dialog() as dialog, ui.card().classes("sheet"):
        widgets.heading("End the page?", 2)
        widgets.words(
            "Work that is under way stops, and what was dropped here is removed. What was written to folders of your "
            "own stays. Save the project first if you want to go on later."
        )
        with ui.row():
            widgets.act("End", lambda: end(desk)).mark("end-now")
            widgets.plain("Go on", dialog.close)
    widgets.plain("End", dialog.open).classes("low").mark("end")


def _project(journey: Journey) -> None:
    with ui.dialog() as dialog, ui.card().classes("sheet"):
        widgets.heading("Save this journey", 2)
        widgets.words(
            "The project file keeps the roles, the policy, the steps and what was done, without the data. "
            "Open it later like a data file."
        )
        proposed = journey.project or journey.default_folder().removesuffix("-release") + ".discreet"
        place = widgets.field("File on this machine", proposed)
        said = ui.element("div")

        def save() -> None:
            said.clear()
            with said:
                try:
                    written = journey.save(place.value)
                except DiscreetError as error:
                    widgets.refusal(str(error))
                else:
                    widgets.status(f"Wrote {written}.")

        with ui.row():
            widgets.act("Save", save).mark("save-project")
            widgets.plain("Close", dialog.close)
    widgets.plain("Save project", dialog.open).classes("low").mark("project")


def _jobs(journey: Journey) -> None:
    for job in journey.jobs:
        if not job.is_open:
            continue
        with ui.element("div").classes("job").props('role="status" aria-live="polite"'):
            widgets.words(job.title)
            bar = ui.linear_progress(0, show_value=False).classes("bar").props("indeterminate")
            bar.props["aria-label"] = job.title
            left = widgets.words(job.time_left, "muted small")

            def tell(job: Any = job, bar: Any = bar, left: Any = left) -> None:
                left.set_text(job.time_left)
                if job.share is not None:
                    bar.props(remove="indeterminate")
                    bar.value = round(job.share, 3)

            ui.timer(0.5, tell)
            widgets.plain("Cancel", lambda job=job: journey.cancel(job)).classes("low").mark("cancel")


def _notes(journey: Journey) -> None:
    if journey.note:
        widgets.said(journey.note)
    if journey.values_shown:
        with ui.element("div").classes("said"):
            widgets.words(
                "This page shows values of the data: handle it like the data. It was noted that you asked."
            )
            widgets.plain("Mask the values", lambda: _mask(journey)).classes("low").mark("mask")


def _mask(journey: Journey) -> None:
    journey.show_values(False, "")
    ui.navigate.reload()  # pages that find something by themselves do so again, without values


def _same(journey: Journey, page: str, watch: Watch) -> None:
    """The texts to copy, as they are now; whether they are unfolded outlives that they change."""
    unfolded = {"value": False}

    def draw() -> None:
        with ui.expansion(
            "The same in Python and on the command line",
            value=unfolded["value"],
            on_value_change=lambda event: unfolded.update(value=bool(event.value)),
        ) as same:
            for heading, write in texts.items():
                widgets.heading(heading, 3)
                widgets.code(write(journey, page), heading)
        same.classes("same").mark("same")

    texts = {"Python": python_text, "Command line": command_text}
    watch.part(draw, lambda: tuple(write(journey, page) for write in texts.values()))


PAGES = tuple(name for name, _ in (*JOURNEY, *BESIDE))


def root_of(desk: Desk) -> Callable[..., Any]:
    """Return the function that draws whatever page an address names."""

    def root(request: Request) -> Any:
        return _routed(desk, request.url.path)

    return root


def _routed(desk: Desk, path: str) -> Any:
    parts = [part for part in path.split("/") if part]
    if not parts:
        if len(desk.journeys) == 1:
            (journey,) = desk.journeys.values()
            return RedirectResponse(f"/{journey.number}/file")
        _show(desk, 0, "file")
        return None
    if (
        len(parts) == 2
        and parts[0].isascii()
        and parts[0].isdecimal()
        and len(parts[0]) < 6
        and parts[1] in PAGES
    ):
        number = int(parts[0])
        if number and number not in desk.journeys:
            return RedirectResponse("/0/file")
        if not number and parts[1] not in ("file", "outputs"):
            return RedirectResponse("/0/file")
        _show(desk, number, parts[1])
        return None
    ui.page_title("Nothing here · discreet")
    ui.add_head_html('<link rel="stylesheet" href="/assets/page.css">')
    widgets.opening("There is nothing here", "The address names no page.")
    widgets.link("To the first page", "/")
    return None


def _show(desk: Desk, number: int, page: str) -> None:
    build = importlib.import_module(f"discreet.app.{page}_page").build
    framed(desk, desk.journeys.get(number), page, build)
