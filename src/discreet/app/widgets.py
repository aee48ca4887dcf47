"""Small pieces that all pages are made of: words, fields, buttons, verdicts, tables. Every text goes in as text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui


class Words(ui.label):  # type: ignore[misc]
    """A text in a tag that says what it is to a screen reader."""

    def __init__(self, text: str, tag: str = "p") -> None:
        super().__init__(text)
        self.tag = tag


def words(text: str, classes: str = "", *, tag: str = "p") -> ui.label:
    """A paragraph, or another element that holds nothing but text."""
    found = Words(text, tag)
    return found.classes(classes)


def heading(text: str, level: int) -> ui.label:
    """A heading of a level."""
    return words(text, tag=f"h{level}")


def opening(title: str, lead: str) -> None:
    """The first lines of a page; the link that skips the head leads here."""
    heading(title, 1).props('id="content" tabindex="-1"')
    words(lead, "muted")


def link(text: str, target: str) -> ui.link:
    """A link to another place of this page."""
    return ui.link(text, target)


def act(text: str, on_click: Callable[..., Any]) -> ui.button:
    """The button of the next step."""
    return ui.button(text, on_click=on_click, color=None).props("unelevated no-caps").classes("act")


def plain(text: str, on_click: Callable[..., Any]) -> ui.button:
    """Any other button."""
    return ui.button(text, on_click=on_click, color=None).props("flat no-caps").classes("plain")


def field(label: str, value: str = "", **options: Any) -> ui.input:
    """A field for a line of text."""
    return ui.input(label, value=value, **options).props("outlined stack-label")


def number(label: str, value: float | None, **options: Any) -> ui.number:
    """A field for a number."""
    return ui.number(label, value=value, **options).props("outlined stack-label")


def choice(options: Mapping[Any, str] | Sequence[str], label: str, value: Any, **more: Any) -> ui.select:
    """A field to choose from a list."""
    given = dict(options) if isinstance(options, Mapping) else list(options)
    return ui.select(given, label=label, value=value, **more).props("outlined stack-label options-dense")


_NOT_ARRIVED = (
    "The file did not arrive whole: it is too large, the disk is full, or the connection was lost. Nothing of it is "
    "kept. Try again, or point to the file where it lies."
)
# The template is fixed. The browser's own field for a file has a name, takes the keyboard, and adds to the same queue
# as dropping does; the class lets the library empty it afterwards.
_PICK = """
<label class="pick"><span>{label}</span>
<input type="file" class="q-uploader__input" accept="{accept}" @change="props.addFiles($event.target.files)"></label>
"""


def drop(
    label: str, taken: Callable[[Any], Awaitable[None]], *, largest: int, too_large: str, accept: str = ""
) -> ui.upload:
    """A place to drop a file, or to choose one; ``label`` and ``accept`` are words of the page, never of data.

    What ``taken`` draws, and what went wrong on the way, stands above it.
    """
    told = ui.element("div").classes("part")

    def say(sentence: str) -> None:
        told.clear()
        with told:
            refusal(sentence)

    async def arrived(event: Any) -> None:
        told.clear()
        with told:
            await taken(event)
        found.reset()

    found = ui.upload(
        auto_upload=True, max_file_size=largest, on_upload=arrived, on_rejected=lambda _: say(too_large)
    )
    found.on("failed", lambda _: say(_NOT_ARRIVED))
    found.props("flat").add_slot("header", _PICK.format(label=label, accept=accept))
    return found


def refusal(sentence: str) -> None:
    """The sentence of what was refused, beside the field that caused it; a screen reader reads it out."""
    if sentence:
        words(sentence, "refusal").props('role="alert"')


def said(sentence: str) -> None:
    """Something to know before going on."""
    words(sentence, "said")


def status(sentence: str) -> None:
    """What has just been done."""
    words(sentence).props('role="status"')


def waiting(sentence: str) -> None:
    """A part that is being worked on."""
    with ui.element("div").classes("waiting"):
        ui.spinner(size="1.4em").props('aria-hidden="true"')
        words(sentence)


def listed(items: Sequence[str], *, ordered: bool = False) -> None:
    """A list of sentences."""
    if not items:
        return
    with ui.element("ol" if ordered else "ul").classes("plain"):
        for item in items:
            words(item, tag="li")


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what belongs to them."""
    with ui.element("dl").classes("facts"):
        for name, value in rows:
            words(name, tag="dt")
            words(value, tag="dd")


def cards(numbers: Sequence[Mapping[str, str]]) -> None:
    """The few numbers to remember, each with its sentence."""
    with ui.element("ul").classes("cards"):
        for one in numbers:
            with ui.element("li"):
                words(one["number"], tag="strong")
                words(one["label"], "label", tag="span")
                words(one["sentence"], "says", tag="span")


def verdict(answer: Mapping[str, Any], name: str = "Verdict") -> None:
    """The verdict: mark, heading, sentence and reasons, as in the reports."""
    section = ui.element("section").classes(f"verdict {answer['state']}").mark("verdict")
    section.props["aria-label"] = name
    with section:
        with ui.element("div").classes("row no-wrap items-baseline"):
            words(answer["mark"], "mark", tag="span").props('aria-hidden="true"')
            heading(answer["heading"], 2)
        words(answer["sentence"])
        listed(answer["reasons"])


def rules(answer: Mapping[str, Any]) -> None:
    """The rules of the policy, one a row."""
    if not answer["rows"]:
        return
    table(
        "The rules of the policy",
        ("Rule", "Limit", "Found", "Result"),
        [
            (row["rule"], row["limit"], row["found"], f"{row['mark']} {row['result']}")
            for row in answer["rows"]
        ],
        numeric=(False, False, True, False),
    )


def table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[bool] = (),
    marks: Mapping[tuple[int, int], str] | None = None,
) -> None:
    """A small table of texts; ``marks`` puts a class on a cell."""
    sides = list(numeric) or [False] * len(headings)
    region = ui.element("div").classes("scroll").props('role="region" tabindex="0"')
    region.props["aria-label"] = caption
    with region, ui.element("table").classes("figures"):
        words(caption, tag="caption")
        with ui.element("thead"), ui.element("tr"):
            for name, is_number in zip(headings, sides, strict=True):
                words(name, "number" if is_number else "", tag="th").props('scope="col"')
        with ui.element("tbody"):
            for i, row in enumerate(rows):
                with ui.element("tr"):
                    for j, (text, is_number) in enumerate(zip(row, sides, strict=True)):
                        cell = words(str(text), "number" if is_number else "", tag="td" if j else "th")
                        if j == 0:
                            cell.props('scope="row"')
                        cell.classes((marks or {}).get((i, j), ""))


def picture(svg: str) -> None:
    """A picture that discreet drew; the browser is made to take nothing else from it."""
    ui.html(svg, sanitize=True)


def code(text: str, name: str) -> None:
    """A text to copy."""
    words(text, tag="pre").props('tabindex="0"').props["aria-label"] = name

    async def copy() -> None:
        ui.clipboard.write(text)
        ui.notify("Copied.")

    plain(f"Copy ({name})", copy).classes("low")


def chapter(held: Mapping[str, Any], level: int) -> None:
    """A chapter of a result: its question, what it is about, pictures, and every finding with its sentence."""
    heading(held["question"], level)
    words(held["introduction"], "muted small")
    for drawn in held["pictures"]:
        words(drawn["title"], "small")
        picture(drawn["svg"])
    table(
        held["question"],
        ("Measure", "Value", "What it means"),
        [(one["title"], f"{one['value']} {one['unit']}".strip(), one["meaning"]) for one in held["findings"]],
        numeric=(False, True, False),
    )
