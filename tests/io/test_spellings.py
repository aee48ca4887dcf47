"""A file goes out with missing values, decimals and words for true and false as they came in."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.io.spellings import as_written, spellings_of

FILE = "age,pay,works,rate,note\n30,?,TRUE,2.50,a\nNA,12.5,FALSE,3.00,\n41,7.25,TRUE,1.25,b\n"


def round_trip(tmp_path, text, **options):
    (tmp_path / "in.csv").write_text(text, encoding="utf-8")
    data = discreet.read(tmp_path / "in.csv")
    return discreet.write(data, tmp_path / "out.csv", overwrite=True, **options).read_text(encoding="utf-8")


def test_a_file_that_is_read_and_written_is_the_same_to_the_letter(tmp_path):
    assert round_trip(tmp_path, FILE) == FILE


def test_semicolons_and_decimal_commas_come_back(tmp_path):
    text = "pay;rate\n?;2,50\n1,5;3,00\n-2,25;-1,25\n"
    assert round_trip(tmp_path, text) == text


def test_padded_fields_keep_the_text_of_a_missing_value(tmp_path):
    assert "?" in round_trip(tmp_path, "age, work\n30, ?\n41, Private\n")


def test_a_named_text_for_missing_values_goes_before(tmp_path):
    assert round_trip(tmp_path, FILE, missing="-9").splitlines()[1] == "30,-9,TRUE,2.50,a"


def test_numbers_with_more_decimals_keep_them():
    frame = pl.LazyFrame({"pay": [2.5, 1.0625, 1e300, float("nan")]})
    written = as_written(frame, {"decimals": {"pay": 2}}).collect()["pay"].to_list()
    assert written[:2] == ["2.50", "1.0625"]
    assert [float(text) for text in written[2:3]] == [1e300]


def test_what_is_written_in_several_ways_takes_the_commonest():
    fields = pl.LazyFrame(
        {"a": ["?", "?", "NA", "1.5"], "b": ["1.5", "2.25", "", ""], "c": ["true", "FALSE", "true", ""]}
    )
    found = spellings_of(fields, {"a": "number", "b": "number", "c": "truth"}, ["", "?", "NA"])
    assert found == {"missing_as": {"a": "?"}, "decimals": {"a": 1}, "truth_as": {"c": ["true", "FALSE"]}}


@given(st.lists(st.one_of(st.none(), st.decimals(-(10**6), 10**6, places=2)), min_size=1, max_size=20))
def test_every_number_is_read_again_as_it_was(values):
    frame = pl.LazyFrame(
        {"x": pl.Series([None if v is None else float(v) for v in values], dtype=pl.Float64)}
    )
    reading = {"decimals": {"x": 2}, "missing_as": {"x": "?"}}
    written = as_written(frame, reading).collect()["x"]
    assert written.replace("?", None).cast(pl.Float64).equals(frame.collect()["x"], check_names=False)


@pytest.mark.parametrize(
    "command", [["synthesize", "--seed", "1"], ["protect", "--step", "{treatment = 'reorder-records'}"]]
)
def test_a_release_is_written_as_the_original_was(command, tmp_path):
    from typer.testing import CliRunner

    from discreet.cli import app

    rows = "".join(f"{n % 40 + 20},{'?' if n % 3 else 'x'},{n % 5}.50\n" for n in range(200))
    (tmp_path / "in.csv").write_text("age,work,rate\n" + rows, encoding="utf-8")
    out = tmp_path / "out.csv"
    done = CliRunner().invoke(app, [command[0], str(tmp_path / "in.csv"), *command[1:], "--out", str(out)])
    assert done.exit_code == 0, done.output
    lines = [line.split(",") for line in out.read_text(encoding="utf-8").splitlines()[1:]]
    assert {line[1] for line in lines} == {"?", "x"}
    assert {line[2] for line in lines} <= {f"{n}.50" for n in range(5)}
