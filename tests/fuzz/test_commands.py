"""Any command line ends by its codes, leaves no half file and prints no value of the data."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fuzz.campaign import fuzzed
from fuzz.command_lines import Line, canaries, command_lines, commands, furnish
from fuzz.harness import command


@fuzzed(command_lines(), quick=25, share=0.045)
def test_a_command_line_ends_by_its_codes(line: Line) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        here.mkdir()
        furnish(here, line)
        command(line.arguments, here, canaries())


def test_every_command_is_drawn_from() -> None:
    assert {("assess",), ("table", "protect"), ("outputs", "decide")} <= set(commands())
