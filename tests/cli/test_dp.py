from __future__ import annotations

import json

import polars as pl
import pytest

BOUNDS = ["--column", "pay", "--lower", "0", "--upper", "100"]


@pytest.fixture
def file(tmp_path):
    people = pl.DataFrame(
        {"sex": ["f", "m"] * 500, "band": [1, 2, 2, 3] * 250, "pay": [10.0, 20.0, 30.0, 40.0] * 250}
    )
    people.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


@pytest.fixture
def run(discreet):
    def told(*words, code=0):
        done = discreet(*words)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    return told


@pytest.mark.parametrize(
    ("query", "about"), [("count", 1000), ("total", 25_000), ("mean", 25), ("variance", 125)]
)
def test_an_answer_is_near_the_truth_and_says_what_it_guarantees(run, file, query, about):
    more = [] if query == "count" else BOUNDS
    found = json.loads(run("dp", query, file, *more, "--epsilon", 50, "--json"))
    assert found["value"] == pytest.approx(about, rel=0.1)
    assert "50-differential privacy" in found["guarantee"]
    assert "Guarantee: 50-differential privacy" in run("dp", query, file, *more, "--epsilon", 50)


def test_quantiles_and_tables_print_their_rows(run, file):
    found = json.loads(run("dp", "quantiles", file, *BOUNDS, "--at", 0.5, "--epsilon", 50, "--json"))
    assert len(found["quantiles"]) == 1
    cells = ["--by", "sex,band", "--levels", "sex=f,m", "--levels", "band=1,2,3", "--epsilon", 50]
    rows = json.loads(run("dp", "table", file, *cells, "--json"))["table"]
    assert [(row["sex"], row["band"]) for row in rows] == [(s, b) for s in "fm" for b in (1, 2, 3)]
    assert abs(rows[0]["count"] - 250) < 5
    assert "sex" in run("dp", "table", file, *cells)


def test_a_table_is_written_once(run, file, tmp_path):
    cells = ["--by", "sex", "--delta", "1e-6", "--epsilon", 1, "--out", tmp_path / "table.csv"]
    run("dp", "table", file, *cells)
    assert pl.read_csv(tmp_path / "table.csv").columns == ["sex", "count"]
    assert "already exists" in run("dp", "table", file, *cells, code=2)


def test_all_answers_share_one_budget(run, file):
    run("budget", "open", file, "--epsilon", 1)
    ledger = file.with_name("people.privacy.toml")
    run("dp", "count", file, "--epsilon", 0.7, "--ledger", ledger, "--purpose", "size of the file")
    assert "does not allow" in run("dp", "mean", file, *BOUNDS, "--epsilon", 0.4, "--ledger", ledger, code=2)
    assert "size of the file" in run("budget", "show", file)


def test_a_table_that_cannot_be_written_costs_nothing(run, file, tmp_path):
    run("budget", "open", file, "--epsilon", 1)
    cells = [
        "--by",
        "sex",
        "--levels",
        "sex=f,m",
        "--epsilon",
        1,
        "--ledger",
        file.with_name("people.privacy.toml"),
    ]
    run("dp", "table", file, *cells, "--out", file, "--overwrite", code=2)
    assert json.loads(run("budget", "show", file, "--json"))["left"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["mean", *BOUNDS[:-1], "-5", "--epsilon", "1"],
        ["mean", "--column", "payy", *BOUNDS[2:], "--epsilon", "1"],
        ["count", "--epsilon", "0"],
        ["table", "--by", "sex", "--epsilon", "1"],
        ["table", "--by", "band", "--levels", "band=one", "--epsilon", "1"],
        ["table", "--by", "sex", "--levels", "f,m", "--epsilon", "1"],
        ["quantiles", *BOUNDS, "--at", "1.5", "--epsilon", "1"],
    ],
)
def test_bad_input_is_refused_in_words(run, file, words):
    assert "Error" in run("dp", words[0], file, *words[1:], code=2)
