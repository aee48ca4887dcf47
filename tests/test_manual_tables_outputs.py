"""The manual must speak of everything that tables and outputs offer, and what it shows must be what its code prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from discreet import outputs, tables

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("room", "page"), [(tables, "tables"), (outputs, "outputs")])
def test_everything_that_tables_and_outputs_offer_is_listed_in_the_manual(room, page):
    text = (DOCS / "methods" / f"{page}.md").read_text(encoding="utf-8")
    lists = re.findall(r"autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)", text)
    listed = [name for block in lists for name in block.split()]
    assert sorted(listed) == sorted(room.__all__)


@pytest.mark.parametrize("page", ["methods/tables", "howto/check-a-finished-output"])
def test_what_these_pages_show_is_what_their_code_prints(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n((?:(?!```).)*)```(?:\n\n```text\n((?:(?!```).)*)```)?", text, re.DOTALL)
    assert blocks
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        # The page breaks long lines; the words are the same.
        assert printed.getvalue().split() == shown.split()


def test_commands_named_in_the_pages_exist():
    from typer.testing import CliRunner

    from discreet.cli import app

    text = (DOCS / "howto" / "check-a-finished-output.md").read_text(encoding="utf-8")
    for command in set(re.findall(r"discreet (outputs \w+)", text)):
        shown = CliRunner().invoke(app, [*command.split(), "--help"])
        assert shown.exit_code == 0
        for option in re.findall(rf"discreet {command}[^\n`]*?(--[\w-]+)", text):
            assert option in shown.output
