"""The cases can be chosen by a fuzzer that watches which lines they reach; where atheris is installed, it does."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.campaign import CASES, SEED
from fuzz.guided import targets

NAMES = ("expressions", "documents", "files")


@pytest.mark.parametrize("name", NAMES)
def test_a_target_takes_any_bytes(name):
    target, draw = targets()[name], random.Random(f"{SEED}/{name}")
    for _ in range(10):
        target(draw.randbytes(draw.randrange(4_000)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_cases_that_reach_new_lines_are_taken_or_refused(name, tmp_path):
    pytest.importorskip(
        "atheris", reason="atheris is not installed, so nothing watches which lines are reached"
    )
    script = Path(__file__).parent / "guided.py"
    done = subprocess.run(
        [sys.executable, script, name, f"-runs={max(500, CASES // 10)}", "-rss_limit_mb=0"],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
