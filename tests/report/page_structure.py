"""Read an HTML page the way a browser and a screen reader do, as far as the tests need it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "br", "hr", "link", "img"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    inside: list[Element] = field(default_factory=list)
    text: str = ""

    def every(self, *tags: str) -> list[Element]:
        """All elements below this one with one of the tags (any tag if none is named), in order."""
        found = [child for child in self.inside if not tags or child.tag in tags]
        return [
            element
            for child in self.inside
            for element in ([child] if child in found else []) + child.every(*tags)
        ]

    @property
    def words(self) -> str:
        return self.text + "".join(child.words for child in self.inside)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attributes))
        self.open[-1].inside.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Element(tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def read_page(page: str) -> Element:
    """Parse a page; a tag that is left open or closed twice is a failure."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert builder.open == [builder.root]
    return builder.root
