"""What is written of a treated DuckDB relation is what a query of that relation says."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, write
from discreet.core.errors import ColumnError
from discreet.engine.frames import passing_query
from discreet.protect import AddNoise, Band, DropIdentifiers, Plan, Pram, Recode, TopBottomCode
from engines.test_row_wise import ROLES, cells, people

duckdb = pytest.importorskip("duckdb")
PLAN = Plan(
    [
        Band(widths={"age": 5}),
        TopBottomCode(top={"pay": 900}),
        Pram(["job"]),
        DropIdentifiers(),
        AddNoise("pay"),
    ]
)


def treated(connection, select: str = "*"):
    records = people(5000).to_arrow()  # noqa: F841 (DuckDB finds it by name)
    relation = connection.sql(f"SELECT {select} FROM records")
    return PLAN.apply(Microdata(relation, **ROLES), seed=1).data


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_what_is_written_is_what_a_query_of_the_relation_says(ending, tmp_path):
    data = treated(duckdb.connect())
    write(data, tmp_path / f"out.{ending}")
    said = cells(data.frame)
    if ending == "csv":
        assert pl.read_csv(tmp_path / "out.csv")["pay"].equals(said["pay"])
    else:
        found = pl.read_parquet if ending == "parquet" else pl.read_ipc
        assert cells(found(tmp_path / f"out.{ending}")).equals(said)


@pytest.mark.parametrize(
    ("more", "passes"),
    [
        ("*, sex::ENUM('f', 'm') AS kind, now()::TIMESTAMP AS at, 1.5::DECIMAL(9, 2) AS share", True),
        ("*, uuid() AS id", False),
        ("*, [1, 2] AS list, TIME '12:00:00' AS at", False),
    ],
)
def test_types_that_polars_would_change_are_left_to_duckdb(more, passes, tmp_path):
    connection = duckdb.connect()
    data = treated(connection, more)
    assert (passing_query(data.frame) is not None) == passes
    write(data, tmp_path / "out.parquet")
    data.frame.write_parquet(str(tmp_path / "by duckdb.parquet"))
    ours, theirs = (
        connection.read_parquet(str(tmp_path / f"{name}.parquet")) for name in ("out", "by duckdb")
    )
    assert dict(zip(ours.columns, ours.dtypes, strict=True)) == dict(
        zip(theirs.columns, theirs.dtypes, strict=True)
    )
    same = [name for name in ours.columns if name not in ("id", "at")]
    assert ours.project(", ".join(same)).fetchall() == theirs.project(", ".join(same)).fetchall()


def test_polars_is_handed_large_batches(monkeypatch, tmp_path):
    sizes = []
    band = Band._batch

    def noted(self, table, records):
        sizes.append(table.height)
        return band(self, table, records)

    monkeypatch.setattr(Band, "_batch", noted)
    relation = duckdb.connect().sql("SELECT range AS age FROM range(30000)")
    write(Band(widths={"age": 5}).apply(Microdata(relation)).data, tmp_path / "out.parquet")
    assert max(sizes) > 2048


def test_a_refusal_half_way_leaves_the_connection_free(tmp_path):
    connection = duckdb.connect()
    relation = connection.sql(
        "SELECT range AS age, if(range < 250000, 'cook', 'spy') AS job FROM range(300000)"
    )
    release = Recode({"job": {"cook": "kitchen"}}, other="error").apply(Microdata(relation))
    with pytest.raises(ColumnError, match="does not name"):
        write(release.data, tmp_path / "out.parquet")
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert release.data.frame.limit(2).fetchall() == [(0, "kitchen"), (1, "kitchen")]
    assert passing_query(release.data.frame).head(2).collect().height == 2
    assert relation.aggregate("count(*)").fetchall() == [(300000,)]
    assert not list(tmp_path.iterdir())
