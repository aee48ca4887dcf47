"""What a benchmark says of a peer is true."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import polars as pl
import pytest

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture
def class_sizes(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_class_sizes", BENCH / "class_sizes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_that(folder, does):
    """A peer's Python that does one thing, whatever it is asked."""
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\n{does}\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.skipif(os.name == "nt", reason="scripts are started by their first line")
@pytest.mark.parametrize(
    ("does", "said", "never"),
    [
        ("raise ModuleNotFoundError('no pandas here')", "crashed (exit code 1)", "not within"),
        ("import os; os._exit(9)", "crashed (exit code 9)", "not within"),
        ("import time; time.sleep(60)", "not within 1 s", "crashed"),
    ],
)
def test_a_peer_that_crashed_is_not_said_to_be_slow(tmp_path, capsys, class_sizes, does, said, never):
    pl.DataFrame({"k0": [1]}).write_parquet(tmp_path / "peer-10000.parquet")
    class_sizes.against_peer(python_that(tmp_path, does), tmp_path, "even", 1)
    out = capsys.readouterr().out
    assert out.count(said) == 2
    assert never not in out
