"""The README is tried word for word, in the order in which a new user would."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
JUDGED = {0, 3, 4}
"""What a command may end with: met, not met, or something left to judge; neither bad input (2) nor a defect (1)."""


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"```(sh|python)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def commands(block: str) -> list[str]:
    """Split a block of the shell into its commands: continued lines and here-documents stay together."""
    found, inside = [""], False
    for line in block.splitlines():
        found[-1] += f"{line}\n"
        inside = (inside or "<<'END'" in line) and line != "END"
        if not inside and not line.endswith("\\"):
            found.append("")
    return [command for command in found if command.strip()]


@pytest.fixture
def shell(tmp_path):
    """Give a shell in an empty folder, with the discreet and the python of this test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in (
        ("discreet", f'exec "{sys.executable}" -m discreet "$@"'),
        ("python", f'exec "{sys.executable}" "$@"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(stat.S_IRWXU)
    source = str(Path(__file__).parents[1] / "src")
    settings = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": source}

    def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=tmp_path, env=settings, input=text, capture_output=True, text=True, check=False
        )

    return run


def test_the_readme_is_tried_and_speaks_of_no_file_that_is_not_there():
    kinds = [kind for kind, _ in blocks()]
    assert kinds.count("sh") >= 4
    assert kinds.count("python") >= 4
    text = "".join(block for _, block in blocks())
    named = set(re.findall(r"[\w-]+\.(?:csv|toml)\b", text))
    assert named == {"adult.csv", "by-ten.toml", "by-five.toml", "best.toml", "plan.toml", "synthetic.csv",
                     "synthetic-1.csv", "table.csv"}  # fmt: skip


@pytest.mark.slow
def test_every_recipe_of_the_readme_runs_word_for_word(shell):
    script = ""
    for kind, block in blocks():
        if kind == "python":
            script += block
            continue
        for command in commands(block):
            done = shell("bash", "-c", command)
            assert done.returncode in JUDGED, f"{command}{done.stdout}{done.stderr}"
    # The Python of the page is one session: what one block names the next one uses.
    done = shell("python", "-", text=script)
    assert done.returncode == 0, done.stderr
