"""Work on ten million records stays below a cap on memory that is enforced: a guard kills what grows beyond it.

The jobs and the guard are those of ``bench/large_files.py``. A control shows that loading the file dies by the guard.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the guard reads /proc, which is Linux's"
    ),
]
ROWS = 10_000_000
STREAMED, COUNTED, BY_CLASSES = 1200, 3000, 2500
"""MB: for work from file to file; beside the 2 GB that DuckDB may take itself; for a million classes."""
CAPS = {
    "protect polars": STREAMED,
    "protect duckdb": STREAMED,
    "assess duckdb": COUNTED,
    "tabular duckdb": COUNTED,
    "table duckdb": COUNTED,
    "local suppression polars": BY_CLASSES,
    "mondrian polars": BY_CLASSES,
}


@pytest.fixture(scope="module")
def bench():
    pytest.importorskip("duckdb")
    place = Path(__file__).parents[2] / "bench" / "large_files.py"
    spec = importlib.util.spec_from_file_location("large_files", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source(bench, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "in.parquet"
    bench.make(path, ROWS)
    yield path
    path.unlink()


@pytest.mark.parametrize("job", CAPS)
def test_ten_million_records_stay_below_the_cap(bench, source, job):
    found = bench.run(job, source, source.parent, CAPS[job] * 2**20, ROWS)
    assert not isinstance(found, str), found


def test_loading_the_file_dies_under_the_cap_of_streamed_work(bench, source):
    found = bench.run("load polars", source, source.parent, STREAMED * 2**20, ROWS)
    assert found == f"killed beyond {STREAMED} MB"
