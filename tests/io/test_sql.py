"""Databases: SQLite and DuckDB always, PostgreSQL when DISCREET_TEST_POSTGRES holds an address."""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import os
import sqlite3

import polars as pl
import pytest

from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.io import read, write
from discreet.io.naming import parsed_address

PEOPLE = pl.DataFrame(
    {
        "age": [30, None, 52],
        "pay": [1.5, 2.25, None],
        "name": ["Ann", None, "Zoë"],
        "born": [dt.date(1990, 1, 31), None, dt.date(1900, 1, 1)],
        "seen": [dt.datetime(2020, 1, 2, 3, 4, 5), None, dt.datetime(2021, 1, 1)],
        "member": [True, None, False],
    }
)


@pytest.fixture
def postgres() -> str:
    if "DISCREET_TEST_POSTGRES" not in os.environ:
        pytest.skip("DISCREET_TEST_POSTGRES holds no address of a PostgreSQL server")
    return os.environ["DISCREET_TEST_POSTGRES"]


@pytest.fixture(params=["sqlite", "duckdb"])
def address(request, tmp_path) -> str:
    pytest.importorskip("sqlalchemy" if request.param == "sqlite" else "duckdb")
    uri = f"{request.param}:///{tmp_path}/people.db"
    write(PEOPLE, uri, table="people")
    return uri


def in_memory(frame) -> pl.DataFrame:
    return frame if isinstance(frame, pl.DataFrame) else frame.pl()


def test_a_table_comes_back_with_its_types(address):
    data = read(address, query="people", keys=["age"], sensitive="pay")
    assert in_memory(data.frame).equals(PEOPLE)
    assert data.metadata.source == "people.db"
    assert data.metadata.reading["rows"] == 3


def test_a_query_is_run(address):
    data = read(address, query="SELECT age, name FROM people WHERE age > 40;")
    assert in_memory(data.frame).rows() == [(52, "Zoë")]


def test_a_duckdb_answer_stays_a_relation_whose_connection_lives(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    uri = f"duckdb:///{tmp_path}/people.db"
    write(PEOPLE, uri, table="people")
    data = read(uri, query="SELECT age FROM people")
    gc.collect()
    assert isinstance(data.frame, duckdb.DuckDBPyRelation)
    assert data.frame.aggregate("count(*)").fetchall() == [(3,)]


@pytest.mark.parametrize("query", [None, "", "  "])
def test_a_database_without_a_query_says_what_to_give(address, query):
    with pytest.raises(InputError, match=r"needs a query.*name of a table"):
        read(address, query=query)


def test_an_unknown_table_lists_the_near_misses(address):
    with pytest.raises(InputError, match=r"no table 'peeple'. Did you mean 'people'"):
        read(address, query="peeple")


@pytest.mark.parametrize(
    "query", ["SELECT age FRM people WHERE", "SELECT nothing FROM people", "SELECT 1 FROM nowhere"]
)
def test_a_faulty_query_is_one_paragraph(address, query):
    with pytest.raises(InputError, match=r"cannot run the query.*Mend the query|no table") as caught:
        read(address, query=query)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_query_that_stops_on_data_shows_no_value(tmp_path):
    pytest.importorskip("duckdb")
    uri = f"duckdb:///{tmp_path}/people.db"
    write(pl.DataFrame({"t": ["1", "secret"]}), uri, table="people")
    with pytest.raises(InputError, match="stopped while running") as caught:
        read(uri, query="SELECT t FROM people WHERE CAST(t AS INTEGER) > 0")
    assert "secret" not in str(caught.value)


def test_a_query_without_records_is_refused(address):
    with pytest.raises(InputError, match="returned no records"):
        read(address, query="SELECT * FROM people WHERE age > 900")


def test_a_missing_or_broken_database_file_is_refused(tmp_path, address):
    with pytest.raises(InputError, match=r"Did you mean 'people.db'"):
        read(address.replace("people.db", "peopl.db"), query="people")
    (tmp_path / "broken.db").write_bytes(b"secret of no database " * 300)
    with pytest.raises(InputError, match=r"broken.db") as caught:
        read(address.replace("people.db", "broken.db"), query="people")
    assert "secret" not in str(caught.value)


def test_a_table_is_replaced_only_when_asked(address):
    with pytest.raises(InputError, match=r"table 'people' already exists.*overwrite=True"):
        write(PEOPLE.head(1), address, table="people")
    write(PEOPLE.head(1), address, table="people", overwrite=True)
    assert in_memory(read(address, query="people").frame).height == 1
    with pytest.raises(ParameterError, match="name of a table"):
        write(PEOPLE, address)


def test_a_failed_write_leaves_the_old_table_and_no_new_file(tmp_path, address):
    bad = pl.LazyFrame({"a": ["secret"]}).with_columns(pl.col("a").cast(pl.Int64))
    with pytest.raises(DiscreetError) as caught:
        write(bad, address, table="people", overwrite=True)
    assert "secret" not in str(caught.value)
    assert in_memory(read(address, query="people").frame).equals(PEOPLE)
    with pytest.raises(DiscreetError):
        write(bad, address.replace("people.db", "new.db"), table="people")
    assert not (tmp_path / "new.db").exists()


def test_a_sqlite_write_that_fails_half_way_keeps_the_old_table(tmp_path):
    uri = f"sqlite:///{tmp_path}/people.db"
    write(PEOPLE, uri, table="people")
    too_big = pl.DataFrame({"n": [1] * 20_000 + [2**64 - 1]}, schema={"n": pl.UInt64})
    with pytest.raises(InputError, match="nothing was changed"):
        write(too_big, uri, table="people", overwrite=True)
    assert read(uri, query="people").frame.equals(PEOPLE)


def test_a_sqlite_column_of_mixed_types_comes_as_text(tmp_path):
    with sqlite3.connect(tmp_path / "mixed.db") as connection:
        connection.execute("CREATE TABLE mixed (a)")
        connection.executemany("INSERT INTO mixed VALUES (?)", [(1,), ("x",), (None,)])
    frame = read(f"sqlite:///{tmp_path}/mixed.db", query="SELECT a FROM mixed").frame
    assert frame["a"].to_list() == ["1", "x", None]


def test_a_column_that_a_table_cannot_hold_is_named(tmp_path):
    with pytest.raises(ColumnError, match="'many'"):
        write(pl.DataFrame({"many": [[1]]}), f"sqlite:///{tmp_path}/x.db", table="t")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "postgres"])
def test_a_database_that_is_down_is_named_without_its_password(scheme):
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(InputError, match=r"127.0.0.1:1/survey cannot be opened: nothing answers") as caught:
        read(f"{scheme}://anna:pa55word@127.0.0.1:1/survey?password=pa55word", query="people")
    assert "pa55word" not in str(caught.value)
    assert "anna" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_unknown_kind_of_database_is_refused():
    with pytest.raises(InputError, match="no database driver for 'oracel://'"):
        read("oracel://ann:pa55word@host/db", query="people")
    with pytest.raises(InputError, match="percent-encoded"):
        read("postgresql://ann:pa55word@host:port/db", query="people")
    with pytest.raises(InputError, match="names no file"):
        read("duckdb://", query="people")


def test_the_password_shows_in_no_form_of_an_address():
    address = parsed_address("postgresql://ann:pa55word@host:5432/db?sslpassword=pa55word")
    assert "pa55word" not in repr(address)
    assert "pa55word" not in address.shown


def test_three_or_four_slashes_lead_to_the_same_file(tmp_path):
    write(PEOPLE, f"sqlite:///{tmp_path}/people.db", table="people")
    assert read(f"sqlite://{tmp_path}/people.db", query="people").frame.equals(PEOPLE)


def test_postgresql_tables_come_back_with_their_types(postgres):
    write(PEOPLE, postgres, table="discreet_people", overwrite=True)
    data = read(postgres, query="discreet_people", keys=["age"])
    assert data.frame.equals(PEOPLE)
    assert data.metadata.reading["route"] == "adbc"
    numeric = read(postgres, query="SELECT age::numeric / 2 AS half, name FROM discreet_people ORDER BY age")
    assert numeric.frame["half"].to_list() == [15.0, 26.0, None]


def test_postgresql_through_sqlalchemy_gives_the_same(postgres, monkeypatch):
    write(PEOPLE, postgres, table="discreet_people", overwrite=True)
    monkeypatch.setattr("discreet.io.sql._has_adbc", lambda: False)
    assert read(postgres, query="discreet_people").frame.equals(PEOPLE)
    with pytest.raises(InputError, match="Did you mean 'discreet_people'"):
        read(postgres, query="discret_people")


@pytest.mark.parametrize("adbc", [True, False])
def test_postgresql_faults_are_one_paragraph_without_values(postgres, monkeypatch, adbc):
    monkeypatch.setattr("discreet.io.sql._has_adbc", lambda: adbc)
    write(PEOPLE, postgres, table="discreet_people", overwrite=True)
    with pytest.raises(InputError, match=r"cannot run the query: .*syntax error"):
        read(postgres, query="SELEC 1 FROM discreet_people")
    with pytest.raises(InputError, match="stopped while running") as caught:
        read(postgres, query="SELECT CAST(name AS integer) FROM discreet_people")
    assert "Ann" not in str(caught.value)
    with pytest.raises(InputError, match="no table 'nowhere'"):
        read(postgres, query="nowhere")
    with pytest.raises(InputError, match="already exists"):
        write(PEOPLE, postgres, table="discreet_people")


@pytest.mark.parametrize("query", ["DROP TABLE people", "delete from people", "SELEC age FROM people"])
def test_reading_never_changes_a_database(address, query):
    with pytest.raises(InputError, match="one statement that only reads"):
        read(address, query=query)
    assert read(address, query="/* all */ SELECT * FROM people").metadata.reading["rows"] == 3


def test_sqlite_is_opened_for_reading_only(tmp_path):
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{tmp_path}/people.db"
    write(PEOPLE, uri, table="people")
    with pytest.raises(InputError):
        read(uri, query="WITH gone AS (SELECT 1) DELETE FROM people")
    assert read(uri, query="people").metadata.reading["rows"] == 3


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a; COPY people TO '{out}'",
        "SELECT 1 AS a; ATTACH '{out}' AS other",
        "SELECT 1; DROP TABLE people",
        "SELECT ';' AS a -- '\n; DROP TABLE people",
        "SELECT 1 /* ' */ ; DROP TABLE people; --'",
        "COPY people TO '{out}'",
        "INSERT INTO people SELECT * FROM people",
        "PRAGMA writable_schema = 1",
        "SELECT load_extension('{out}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "WITH a AS (SELECT 1) INSERT INTO people SELECT * FROM people",
    ],
)
def test_a_query_reaches_nothing_but_its_database(address, tmp_path, query):
    secret, out = tmp_path / "secret.csv", tmp_path / "out.csv"
    secret.write_text("password\nhunter2\n")
    with pytest.raises(InputError) as refused:
        read(address, query=query.format(out=out, secret=secret))
    assert "hunter2" not in str(refused.value)
    assert not out.exists()
    assert read(address, query="people").metadata.reading["rows"] == 3


def test_a_semicolon_in_a_text_is_no_second_statement(address):
    data = read(address, query="SELECT age, 'a;b' AS t FROM people WHERE name <> ';'")
    assert in_memory(data.frame)["t"].to_list() == ["a;b", "a;b"]


def test_a_duckdb_query_does_not_see_the_variables_of_the_program(tmp_path):
    pytest.importorskip("duckdb")
    uri = f"duckdb:///{tmp_path}/people.db"
    write(PEOPLE, uri, table="people")
    hidden = PEOPLE  # noqa: F841
    with pytest.raises(InputError, match="hidden"):
        read(uri, query="SELECT * FROM hidden")


def test_a_duckdb_query_may_name_parts_of_itself_but_no_files(tmp_path):
    pytest.importorskip("duckdb")
    uri, secret = f"duckdb:///{tmp_path}/people.db", tmp_path / "secret.csv"
    secret.write_text("password\nhunter2\n")
    write(PEOPLE, uri, table="people")
    query = "WITH old AS (SELECT * FROM People WHERE age > 40) SELECT age FROM old, range(2)"
    assert read(uri, query=query).metadata.reading["rows"] == 2
    hidden = f'SELECT * FROM (WITH "{secret}" AS (SELECT 1 AS a) SELECT * FROM "{secret}"), \'{secret}\' AS b'
    with pytest.raises(InputError):
        read(uri, query=hidden)


def test_a_treated_duckdb_file_stays_a_relation(tmp_path):
    pytest.importorskip("duckdb")
    from discreet.protect import LocalSuppression

    uri = f"duckdb:///{tmp_path}/people.db"
    write(pl.DataFrame({"age": [1, 1, 1, 2], "sex": ["a", "a", "a", "b"]}), uri, table="people")
    data = read(uri, query="people", keys=["age", "sex"])
    released = LocalSuppression(k=2).apply(data, seed=1).data.frame
    assert type(released) is type(data.frame)
    assert released.pl().height == 4


def test_two_tables_of_one_database_are_open_side_by_side(address):
    first, second = read(address, query="people"), read(address, query="SELECT age FROM people")
    assert in_memory(first.frame).height == in_memory(second.frame).height == 3


def test_a_sqlite_file_whose_writer_was_killed_is_read_as_it_was_before(tmp_path):
    pytest.importorskip("sqlalchemy")
    place = tmp_path / "people.db"
    write(PEOPLE, f"sqlite:///{place}", table="people")
    # A copy of the file and its journal in the middle of a change is what a killed writer leaves.
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE people SET age = 99")
    connection.execute("CREATE TABLE filler (x)")
    connection.executemany("INSERT INTO filler VALUES (?)", [("y" * 900,)] * 400)
    left = tmp_path / "left.db"
    left.write_bytes(place.read_bytes())
    (tmp_path / "left.db-journal").write_bytes((tmp_path / "people.db-journal").read_bytes())
    connection.rollback()
    connection.close()
    assert read(f"sqlite:///{left}", query="people").frame["age"].to_list() == [30, None, 52]
    assert not (tmp_path / "left.db-journal").exists()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT " + "+".join(["age"] * 900) + " AS s FROM people",
        "SELECT * FROM " + "(SELECT * FROM " * 3000 + "people" + ")" * 3000,
        "SELECT " + "NOT " * 950 + "true AS x FROM people",
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " FROM people",
        " UNION ALL ".join(["SELECT * FROM people"] * 20_000),
    ],
    ids=["sum", "subqueries", "not", "parentheses", "union"],
)
def test_a_query_without_end_is_refused_in_a_sentence(address, query):
    # SQLite computes a long sum, and has no true.
    refused = pytest.raises(DiscreetError) if "duckdb" in address else contextlib.suppress(DiscreetError)
    with refused:
        read(address, query=query)
