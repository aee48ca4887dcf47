"""A writer that is killed leaves the old or the new, and the next run leaves nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("DISCREET_KILLS", "40"))
SEED = os.environ.get("DISCREET_FUZZ_SEED", "1")


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system starts no forked children, which are what is killed"
)
def test_what_was_killed_is_old_or_new_and_leaves_nothing(tmp_path):
    root = Path(__file__).parent.parent
    where = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-m", "fuzz.killing", str(tmp_path), str(KILLS), SEED],
        env={**os.environ, "PYTHONPATH": where, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    print(f"{found['kills']} kills of {found['writes']} writes by {len(found['writers'])} writers")
    assert not found["failures"], "\n".join(found["failures"])
    assert found["kills"] >= KILLS
    assert {"package folder", "copies", "study", "register", "model"} <= set(found["writers"])
