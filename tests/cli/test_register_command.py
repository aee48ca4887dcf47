"""The command line of the register of releases."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.core.errors import InputError, ParameterError
from discreet.register.releases import NOBODY_KNOWS

PEOPLE = pl.DataFrame({"age": [20 + n % 40 for n in range(400)], "sex": ["f", "m"] * 200, "pay": range(400)})
BAND = '{treatment = "band", widths = {age = 10}}'


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    PEOPLE.with_columns(pl.col("age") // 10).write_csv("old.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_what_went_out_before_there_was_a_register_is_added_shown_and_checked(place):
    added = run("register", "add", "people.csv", "old.csv")
    assert added.exit_code == 0, added.output
    assert "Entered old.csv." in added.output
    shown = run("register", "show", "people.csv")
    assert "old.csv  400 records, age, sex, pay" in shown.output
    (line,) = json.loads(run("register", "show", "people.register.jsonl", "--json").stdout)["releases"]
    assert line["kind"] == "microdata"
    assert run("register", "check", "people.csv").exit_code == 0
    (place / "old.csv").rename("elsewhere.csv")
    lost = run("register", "check", "people.csv")
    assert (lost.exit_code, "Not at hand" in lost.output) == (4, True)
    assert run("register", "check", "people.csv", "--previous", "elsewhere.csv").exit_code == 0


def test_another_source_and_a_rolled_back_register_are_refused_at_a_door(place):
    protect = (
        "protect",
        "people.csv",
        "--keys",
        "age,sex",
        "--step",
        BAND,
        "--register",
        "people.register.jsonl",
    )
    assert run(*protect, "--out", "a.csv").exit_code == 0
    older = (place / "people.register.jsonl").read_bytes()
    assert run(*protect, "--out", "b.csv").exit_code == 0
    (place / "people.register.jsonl").write_bytes(older)
    back = run(*protect, "--out", "c.csv")
    assert isinstance(back.exception, InputError)
    assert "an older copy took its place" in str(back.exception)
    assert not (place / "c.csv").exists()
    PEOPLE.with_columns(pl.col("pay") * 3).write_csv("others.csv")
    run("register", "add", "others.csv", "old.csv")
    foreign = run("protect", "others.csv", *protect[2:-1], "others.register.jsonl", "--out", "d.csv")
    assert foreign.exit_code == 0
    beside = run("protect", "people.csv", *protect[2:-1], "others.register.jsonl", "--out", "e.csv")
    assert "A register lies beside the file, 'people.register.jsonl'" in str(beside.exception)
    (place / "people.register.jsonl").unlink()
    wrong = run("protect", "people.csv", *protect[2:-1], "others.register.jsonl", "--out", "e.csv")
    assert "belongs to 'others.csv'" in str(wrong.exception)


def test_a_changed_source_is_declared(place):
    run("register", "add", "people.csv", "old.csv")
    PEOPLE.with_columns(pl.col("pay") * 3).write_csv("people.csv")
    assert isinstance(run("register", "check", "people.csv").exception, InputError)
    assert isinstance(run("register", "add", "people.csv", "--same").exception, ParameterError)
    assert run("register", "add", "people.csv", "--same", "--why", "in another currency").exit_code == 0
    assert run("register", "check", "people.csv").exit_code == 0


def test_synthetic_files_are_entered_and_laid_beside_nothing(place):
    run("register", "add", "people.csv", "old.csv")
    made = run(
        "synthesize", "people.csv", "--out", "made.csv", "--register", "people.register.jsonl", "--seed", "1", "--json"
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    named = ("--label", "made up", "--register", "people.register.jsonl")
    finished = run("finish", "made.csv", "--original", "people.csv", "--out", "finished.csv", *named)
    assert finished.exit_code == 0, finished.output
    releases = json.loads(run("register", "show", "people.csv", "--json").stdout)["releases"]
    assert [line["kind"] for line in releases] == ["microdata", "synthetic", "synthetic"]


def test_every_door_says_that_nobody_knows_where_there_is_no_register(place):
    doors = (
        ("protect", "people.csv", "--keys", "age,sex", "--step", BAND, "--out", "1.csv"),
        ("synthesize", "people.csv", "--out", "2.csv", "--seed", "1"),
        ("finish", "people.csv", "--out", "3.csv"),
        ("compare", "people.csv", "old.csv", "--keys", "age,sex", "--measure", "information_loss"),
        ("table", "protect", "people.csv", "-t", "sex", "-r", "threshold=3", "--out", "4.csv"),
        ("outputs", "check", "4.csv"),
    )
    for door in doors:
        assert NOBODY_KNOWS in run(*door).output, door


def test_a_dry_run_and_a_look_write_no_register(place):
    run(
        "protect",
        "people.csv",
        "--keys",
        "age,sex",
        "--step",
        BAND,
        "--dry-run",
        "--register",
        "people.register.jsonl",
    )
    assert not list(place.glob("people.register*"))


def test_a_release_never_takes_the_place_of_its_register(place):
    run("register", "add", "people.csv", "old.csv")
    over = run(
        "protect", "people.csv", "--keys", "age,sex", "--step", BAND, "--out", "people.register.jsonl", "--overwrite"
    )  # fmt: skip
    assert over.exit_code != 0
    assert run("register", "check", "people.csv").exit_code == 0


def test_two_earlier_files_of_one_name_are_both_laid_beside(place):
    (place / "may").mkdir()
    PEOPLE.with_columns((pl.col("age") + 3) // 7).write_csv("may/old.csv")
    PEOPLE.with_columns(pl.col("age") // 10).write_csv("new.csv")
    files = (
        "compare",
        "people.csv",
        "new.csv",
        "--keys",
        "age,sex",
        "--measure",
        "information_loss",
        "--json",
    )
    done = run(*files, "--previous", "old.csv", "--previous", "may/old.csv")
    assert done.exit_code in (0, 3), done.output
    told = json.dumps(json.loads(done.stdout))
    assert str(place / "may" / "old.csv") in told
    assert str(place / "old.csv") in told
