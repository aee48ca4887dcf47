"""Help shows every word that was written for it."""

from __future__ import annotations

import re

import pytest
import typer
from click.testing import CliRunner

from discreet.cli import _command, app


def commands(command, path=()):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


WRITTEN = dict(commands(typer.main.get_command(app)))


def words(text):
    return set(re.findall(r"\[[A-Za-z#/@][^\[\]]*\]", text or ""))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: " ".join(path) or "discreet")
def test_no_word_in_brackets_is_taken_for_markup(path, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    monkeypatch.setenv("COLUMNS", "400")
    written = WRITTEN[path]
    wanted = words(written.help).union(*(words(getattr(one, "help", "")) for one in written.params))
    shown = CliRunner().invoke(_command(), [*path, "--help"]).output
    assert wanted <= words(shown) | {word for word in wanted if word in shown}


def test_the_peers_of_a_site_file_are_named_in_the_list_of_commands():
    assert "[peers]" in CliRunner().invoke(_command(), ["federated", "--help"]).output
