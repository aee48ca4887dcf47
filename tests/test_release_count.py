"""Noise that sticks to a table is drawn anew for the next one: that is said where the result is read, and counted."""

from __future__ import annotations

import contextlib
import json
import threading

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet import Microdata, synth
from discreet.cli import app
from discreet.core.errors import InputError, ParameterError
from discreet.core.secret_keys import STICKS_TO_ONE_TABLE, ReleaseCount, most_tables
from discreet.tables import CellKey, Table

pytestmark = pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")


def people(columns: int = 40) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    more = {f"c{i}": rng.choice(["x", "y"], 90) for i in range(columns)}
    return pl.DataFrame({"id": range(90), "place": ["a"] * 61 + ["b"] * 29, **more})


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


def test_forty_tables_with_one_more_column_each_average_to_the_truth_and_that_is_said(secret):
    found = []
    for column in [name for name in people().columns if name.startswith("c")]:
        made = CellKey(id="id", js=0).apply(Table.from_microdata(people(), f"place*{column}"))
        assert STICKS_TO_ONE_TABLE in str(made)
        assert STICKS_TO_ONE_TABLE in made.to_dict()["steps"][0]["notes"]
        inner = made.table.inner
        found.append(int(inner.filter(pl.col("place") == "a")["count"].sum()))
    assert abs(np.mean(found) - 61) < 1.5


def test_the_limit_of_cell_keys_comes_from_their_noise_and_is_kept(secret, tmp_path):
    file = str(tmp_path / "people.releases.json")
    protect = CellKey(id="id", count_file=file)
    said = [
        protect.apply(Table.from_microdata(people(), f"place*c{i}")).notes[-1]
        for i in range(most_tables(3.0))
    ]
    assert "now in 12 of at most 12" in said[-1]
    again = protect.apply(Table.from_microdata(people(), "place*c3"))
    assert "12 of at most 12" in again.notes[-1]
    with pytest.raises(ParameterError, match=r"13 different tables .* raise most_tables"):
        protect.apply(Table.from_microdata(people(), "place*c20"))
    fewer = Table.from_microdata(people().head(89), "place*c3")
    with pytest.raises(ParameterError, match="13 different"):
        protect.apply(fewer)
    assert protect.apply(Table.from_microdata(people(), "c20")).notes
    more = CellKey(id="id", count_file=file, most_tables=20)
    assert "13 of at most 20" in more.apply(Table.from_microdata(people(), "place*c20")).notes[-1]


def test_syndiffix_says_and_counts_it_too(tmp_path):
    data, salt = Microdata(people(12)), str(tmp_path / "salt")
    asked = {"salt": salt, "strategy": "none", "count_file": str(tmp_path / "count.json")}
    plain = synth.SynDiffix(salt=salt, columns=["place", "c1"]).fit(data)
    assert STICKS_TO_ONE_TABLE in repr(plain)
    assert STICKS_TO_ONE_TABLE in synth.load(plain.save(tmp_path / "model")).why_none
    for number in range(8):
        fitted = synth.SynDiffix(columns=["place", f"c{number}"], **asked).fit(data)
        assert f"now in {number + 1} of at most 8 different tables" in fitted.why_none
    assert "now in 8 of" in synth.SynDiffix(columns=["place", "c0"], **asked).fit(data).why_none
    with pytest.raises(ParameterError, match="'place' would be in 9 different tables"):
        synth.SynDiffix(columns=["place", "c9"], **asked).fit(data)


def test_a_release_of_many_tables_is_entered_whole_or_not_at_all(tmp_path):
    file = tmp_path / "count.json"
    options = {"count_file": str(file), "most_tables": 5}
    made = synth.MultiTable(size=2, options=options).release(Microdata(people(2).drop("id")), seed=1)
    assert "now in 3 of at most 5 different tables" in made.why_none
    before = file.read_bytes()
    with pytest.raises(ParameterError, match="different tables"):
        synth.MultiTable(size=2, options=options).release(Microdata(people(6).drop("id")), seed=1)
    assert file.read_bytes() == before


def test_the_command_line_counts_tables_and_files(secret, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(5).write_csv("people.csv")
    key = [
        "--method",
        "cell-key",
        "--set",
        "id='id'",
        "--set",
        "count_file='n.json'",
        "--set",
        "most_tables=1",
    ]
    table = ["table", "protect", "people.csv", *key, "--out", "made.csv", "--overwrite", "--table"]
    first = CliRunner().invoke(app, [*table, "place*c1"])
    assert "now in 1 of at most 1 different tables" in " ".join(first.output.split())
    assert CliRunner().invoke(app, [*table, "place*c2"]).exit_code != 0
    told = ["synthesize", "people.csv", "--method", "syndiffix", "--out", "s.csv", "--overwrite", "--set"]
    plain = CliRunner().invoke(app, [*told, "columns=['place','c1']"])
    assert "the mean of many such tables comes to the true counts" in " ".join(plain.output.split())
    counted = [*told, "columns=['place','c1']", "--set", "count_file='s.json'"]
    assert "now in 1 of at most 8" in " ".join(CliRunner().invoke(app, counted).output.split())


def test_a_count_that_cannot_be_read_stops_releases(tmp_path):
    file = tmp_path / "count.json"
    ReleaseCount(file, 2).enter([(b"one", ["a"])])
    assert "one" not in file.read_text(encoding="utf-8")
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**document, "format": "else"}), encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read"):
        ReleaseCount(file, 2).enter([(b"two", ["a"])])
    with pytest.raises(InputError, match="folder is missing"):
        ReleaseCount(tmp_path / "nowhere" / "count.json", 2).enter([(b"two", ["a"])])
    with pytest.raises(ParameterError):
        ReleaseCount(file, 0)


def test_threads_cannot_enter_more_than_the_limit(tmp_path):
    count, passed = ReleaseCount(tmp_path / "count.json", 5), []

    def enter(number: int) -> None:
        with contextlib.suppress(ParameterError):
            passed.append(count.enter([(bytes([number]), ["a"])]))

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(passed) == [1, 2, 3, 4, 5]


@settings(deadline=None, max_examples=examples(30))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sets(st.sampled_from("abc"), min_size=1)), max_size=25),
    st.integers(1, 4),
)
def test_no_column_is_ever_in_more_tables_than_the_limit(tmp_path_factory, asked, limit):
    count = ReleaseCount(tmp_path_factory.mktemp("counts") / "count.json", limit)
    out: dict[bytes, set[str]] = {}
    for number, columns in asked:
        content = f"{number} {sorted(columns)}".encode()
        try:
            count.enter([(content, sorted(columns))])
        except ParameterError:
            assert content not in out
        else:
            out[content] = columns
    for column in "abc":
        assert sum(column in columns for columns in out.values()) <= limit
