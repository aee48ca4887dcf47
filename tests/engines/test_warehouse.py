"""The code of the how-to "In a warehouse" does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.protect import AddNoise, Band, LocalSuppression, Plan, Pram

duckdb = pytest.importorskip("duckdb")
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "warehouse.md"


def register(rows: int = 3000) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 95, rows),
            "sex": rng.choice(["f", "m"], rows),
            "region": rng.integers(0, 9, rows),
            "pay": rng.lognormal(7, 1, rows),
        }
    )


@pytest.mark.parametrize(
    "plan",
    [
        Plan([Band(widths={"age": 10}), Pram(["sex"]), AddNoise("pay")]),
        Plan([Band(widths={"age": 20}), LocalSuppression(k=3)]),
    ],
)
def test_the_page_on_duckdb_can_be_followed(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = register()  # noqa: F841 (DuckDB finds it by name)
    with duckdb.connect("register.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM people")
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    names = {"duckdb": duckdb, "discreet": discreet, "plan": plan}
    exec(code.replace("/scratch", str(tmp_path / "scratch")), names)
    written = pl.read_parquet("release.parquet")
    table = names["connection"].table("release").pl()
    assert written.equals(table)
    assert written.height == 3000
    names["connection"].close()
