"""A file four times the memory a process may use is assessed without being loaded whole.

The cap is enforced: a guard reads the private memory of the child a few hundred times a second and kills it once
it has grown by more than the cap since its imports. A control shows that loading the file dies by that guard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the guard reads /proc, which is Linux's"
    ),
]
CAP = 384 * 2**20
ROWS_PER_PART, PARTS, COLUMNS = 300_000, 96, 7
KEYS = [f"key{i}" for i in range(6)]
CHILD = """
import sys
import polars as pl
from discreet import Microdata, assess, risk

engine, path, job, cap = sys.argv[1:]
keys = [f"key{i}" for i in range(6)]
small = Microdata(pl.LazyFrame({"a": [1, 2], "s": [1, 2]}), keys="a", sensitive="s")
assess(small)
if engine == "duckdb":
    import duckdb

    limit = {"memory_limit": f"{int(cap) // 2**21}MB", "threads": 2}
    connection = duckdb.connect(config=limit)
    frame = connection.read_parquet(path) if path.endswith("parquet") else connection.read_csv(path)
else:
    frame = pl.scan_parquet(path) if path.endswith("parquet") else pl.scan_csv(path)
print("ready", flush=True)
if job == "load":
    whole = frame.collect() if engine == "polars" else frame.to_arrow_table()
    print("loaded", len(whole))
else:
    data = Microdata(frame, keys=keys, sensitive="sensitive")
    print(risk.k_anonymity(data).figures["records"], risk.l_diversity(data).value)
    if job == "assess":
        print(len(assess(data).measures) > 3)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write the same records as Parquet and CSV, part by part: codes of ten digits, few combinations."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("large")
    schema = pa.schema([(name, pa.int64()) for name in (*KEYS, "sensitive")])
    rng = np.random.default_rng(1)
    paths = {"parquet": folder / "large.parquet", "csv": folder / "large.csv"}
    with (
        pyarrow.parquet.ParquetWriter(
            paths["parquet"], schema, compression="none", use_dictionary=False
        ) as columnar,
        pyarrow.csv.CSVWriter(paths["csv"], schema) as delimited,
    ):
        for _ in range(PARTS):
            levels = [3] * 6 + [20]
            cells = [10**9 + rng.integers(0, level, ROWS_PER_PART) for level in levels]
            part = pa.table(cells, schema=schema)
            columnar.write_table(part)
            delimited.write_table(part)
    assert all(path.stat().st_size >= 4 * CAP for path in paths.values())
    yield {kind: str(path) for kind, path in paths.items()}
    for path in paths.values():
        path.unlink()


def run_under_cap(engine: str, path: str, job: str) -> tuple[int, str]:
    """Run the job and kill it when its private memory has grown beyond the cap."""
    # A file of its own: where there is none, DuckDB takes the run for an interactive one and draws progress bars.
    script = Path(path).with_name("child.py")
    script.write_text(CHILD)
    child = subprocess.Popen(
        [sys.executable, script, engine, path, job, str(CAP)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "POLARS_MAX_THREADS": "2", "MALLOC_ARENA_MAX": "2"},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    limit = private_memory(child.pid) + CAP
    while child.poll() is None:
        if private_memory(child.pid) > limit:
            child.kill()
        time.sleep(0.003)
    return child.wait(), child.stdout.read()


def private_memory(process: int) -> int:
    """Bytes of memory of its own that a process holds, without pages of files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


@pytest.mark.parametrize(
    ("engine", "kind"), [("polars", "parquet"), ("polars", "csv"), ("duckdb", "parquet")]
)
def test_a_file_four_times_the_memory_is_assessed(files, engine, kind):
    ended, said = run_under_cap(engine, files[kind], "assess")
    assert ended == 0
    assert said.split() == [str(ROWS_PER_PART * PARTS), "20", "True"]


@pytest.mark.parametrize(
    ("engine", "kind"), [("polars", "parquet"), ("polars", "csv"), ("duckdb", "parquet")]
)
def test_loading_that_file_whole_dies_under_the_same_cap(files, engine, kind):
    ended, said = run_under_cap(engine, files[kind], "load")
    assert ended == -signal.SIGKILL
    assert "loaded" not in said
