"""The code of the how-to "In a warehouse" does what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.errors import DiscreetError
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


@pytest.fixture
def postgresql():
    """Start a PostgreSQL server of its own on this machine, and stop it afterwards."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")) or [
        Path(shutil.which("pg_ctl") or "")
    ]
    if not programs[-1].is_file():
        pytest.skip("PostgreSQL's server is not installed (pg_ctl was not found)")
    place = Path(tempfile.mkdtemp(prefix="discreet-postgresql-"))
    as_root = os.geteuid() == 0
    if as_root:
        try:
            shutil.chown(place, "postgres")
        except LookupError:
            pytest.skip("PostgreSQL's server does not run as root, and there is no user 'postgres'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program, *arguments):
        command = [str(programs[-1].with_name(program)), "-D", str(place / "data"), *arguments]
        command = ["su", "postgres", "-s", "/bin/sh", "-c", shlex.join(command)] if as_root else command
        subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=place)

    run("initdb", "-A", "trust", "-U", "postgres")
    listen = f"-p {port} -k {place} -c listen_addresses=127.0.0.1"
    run("pg_ctl", "-w", "-l", str(place / "log"), "-o", listen, "start")
    try:
        yield f"postgres@127.0.0.1:{port}"
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.slow
def test_the_page_on_postgresql_can_be_followed_on_a_real_server(postgresql, tmp_path, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    with psycopg.connect(f"postgresql://{postgresql}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE register")
    with psycopg.connect(f"postgresql://{postgresql}/register") as connection:
        connection.execute(
            "CREATE TABLE people (id bigint primary key, age int, sex text, region smallint, pay double precision, "
            "born date, tax numeric(9, 2), seen timestamptz, alive boolean)"
        )
        with connection.cursor().copy("COPY people FROM STDIN") as rows:
            for number, row in enumerate(register().iter_rows()):
                sex = None if number % 40 == 0 else row[1]
                rest = ("1980-01-02", "12.50", "2020-01-01 10:00:00+01", True)
                rows.write_row((number, row[0], sex, row[2], row[3], *rest))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    code = next(block for block in blocks if "postgresql://" in block).replace("user@host", postgresql)
    plan = Plan([Band(widths={"age": 20}), Pram(["sex"]), LocalSuppression(k=3), AddNoise("pay")])
    names = {"discreet": discreet, "plan": plan}
    exec(code, names)
    back = discreet.read(names["address"], query="select * from release order by id").frame
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    ours = names["release"].data.frame.with_columns(texts, pl.selectors.integer().cast(pl.Int64))
    assert back.equals(ours.sort("id"))
    assert back.schema["seen"] == pl.Datetime("us", "UTC")
    with pytest.raises(DiscreetError, match="already exists"):
        exec(code, names)


@pytest.mark.slow
def test_a_table_of_postgresql_is_treated_where_duckdb_reads_it(postgresql, tmp_path, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        try:
            connection.execute("LOAD postgres")
        except duckdb.Error:
            pytest.skip("DuckDB's extension for PostgreSQL is not installed, and is fetched over the network")
    with psycopg.connect(f"postgresql://{postgresql}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE register")
    discreet.write(register().with_row_index("id"), f"postgresql://{postgresql}/register", table="people")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    user, _, place = postgresql.partition("@")
    host, _, port = place.partition(":")
    code = next(block for block in blocks if "TYPE postgres" in block)
    code = code.replace("host=host user=user", f"host={host} port={port} user={user}")
    exec(
        code,
        {"discreet": discreet, "duckdb": duckdb, "plan": Plan([Band(widths={"age": 20}), Pram(["sex"])])},
    )
    assert pl.read_parquet("release.parquet").height == 3000
