"""The glossary is kept: what it says not to write is written nowhere in the package, and what it names is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "about" / "glossary.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table that follows a heading."""
    part = PAGE.partition(heading)[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"
    ]
    return cells[2:]


def test_what_the_glossary_says_not_to_write_is_written_nowhere():
    banned = [phrase.strip() for row in rows("# Glossary") for phrase in row[2].split(",") if phrase.strip()]
    assert banned
    written = [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".html", ".toml", ".json")
        for phrase in banned
        if re.search(rf"\b{re.escape(phrase)}\b", path.read_text(encoding="utf-8"))
    ]
    assert not written, "\n".join(written)


def test_no_word_stands_twice():
    words = [row[0] for row in rows("# Glossary")]
    assert len(words) == len(set(words))


def test_new_names_of_renamed_modules_can_be_imported():
    named = [name for row in rows("## Renamed") for name in re.findall(r"`(discreet[\w.]*)`", row[1])]
    assert len(named) > 8
    for name in named:
        importlib.import_module(name)
