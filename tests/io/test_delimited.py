"""Delimited text: what is detected, what each column becomes, and every way a file can be broken."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.io import read, write


def saved(folder: Path, text: str, name: str = "people.csv", encoding: str = "utf-8") -> Path:
    file = folder / name
    file.write_bytes(text.encode(encoding))
    return file


def test_a_csv_file_stays_lazy(tmp_path):
    data = read(saved(tmp_path, "age,sex\n30,f\n31,m\n"), keys=["age", "sex"])
    assert isinstance(data.frame, pl.LazyFrame)
    assert data.frame.collect().rows() == [(30, "f"), (31, "m")]
    assert data.roles.keys == ("age", "sex")


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a,b\n1.5,2\n2.5,3\n", ",", "."),
        ("a;b\n1,5;2\n2,5;3\n", ";", ","),
        ("a;b\n1.5;x, y\n2.5;3\n", ";", "."),
        ("a\tb\n1,5\t2\n", "\t", ","),
        ("a|b\n1.5|2\n", "|", "."),
    ],
)
def test_separator_and_decimal_mark_are_detected(tmp_path, text, separator, decimal):
    data = read(saved(tmp_path, text))
    assert data.metadata.reading["separator"] == separator
    assert data.metadata.reading["decimal"] == decimal
    assert data.frame.collect_schema()["a"] == pl.Float64
    assert data.frame.collect()["a"][0] == 1.5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_encoding_is_detected(tmp_path, encoding):
    file = saved(tmp_path, "name,age\nJosé,30\nZoë,31\n", encoding=encoding)
    frame = read(file).frame.lazy().collect()
    assert frame.columns == ["name", "age"]
    assert frame["name"].to_list() == ["José", "Zoë"]
    assert frame["age"].dtype == pl.Int64


def test_detection_is_on_record_and_can_be_overridden(tmp_path):
    file = saved(tmp_path, "a;b\n1,5;-8\n")
    reading = read(file, separator=";", decimal=",", encoding="cp1252", missing=["-8"]).metadata.reading
    assert reading["detected"] == []
    assert reading["missing"][0] == ""
    assert reading["missing"][-1] == "-8"
    assert read(file).metadata.reading["detected"] == ["separator", "decimal", "encoding", "missing"]
    assert read(file, missing="-8").frame.collect()["b"].to_list() == [None]


def test_a_number_column_with_missing_tokens_is_still_numeric(tmp_path):
    rows = "".join(
        f"{number},{token}\n" for number, token in enumerate(["?", "NA", ".", "", "N/A", "NULL", "7"])
    )
    frame = read(saved(tmp_path, f"n,x\n{rows}")).frame.collect()
    assert frame["x"].to_list() == [None] * 6 + [7]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["01234", "99999"], pl.String),
        (["+4912345", "+4998765"], pl.String),
        (["12345678901234567890", "1"], pl.String),
        (["0", "10"], pl.Int64),
        (["0.5", "-0.25", "1e3"], pl.Float64),
        (["-5", "5"], pl.Int64),
        (["True", "False"], pl.Boolean),
        (["true", "yes"], pl.String),
        (["2020-01-31", "1900-12-01"], pl.Date),
        (["2020-01-31", "31.01.2020"], pl.String),
        (["2020-01-31 10:00:00", "2020-01-31T11:30:15.5"], pl.Datetime("us")),
        (["1", "1.5"], pl.Float64),
        (["NA", "?"], pl.String),
    ],
)
def test_each_column_gets_the_type_all_its_values_have(tmp_path, values, kind):
    text = "n,x\n" + "".join(f"{number},{value}\n" for number, value in enumerate(values))
    assert read(saved(tmp_path, text)).frame.collect()["x"].dtype == kind


def test_a_column_that_turns_to_text_late_is_text(tmp_path):
    text = "a,b,c\n" + "1,2020-01-01,\n" * 12_000 + "x,later,5\n"
    frame = read(saved(tmp_path, text)).frame
    assert frame.collect_schema() == {"a": pl.String, "b": pl.String, "c": pl.Int64}
    assert frame.tail(1).collect().rows() == [("x", "later", 5)]


def test_columns_can_be_kept_as_text(tmp_path):
    file = saved(tmp_path, "code,n\n12,1\n")
    assert read(file, text="code").frame.collect()["code"].to_list() == ["12"]
    with pytest.raises(ColumnError, match="Did you mean 'code'"):
        read(file, text=["codes"])


def test_gzip_is_read_by_content_and_checked_by_name(tmp_path):
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read(packed).frame.lazy().collect().rows() == [(1, 2)]
    packed.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)[:-200])
    with pytest.raises(InputError, match=r"people.csv.gz.*damaged or cut off"):
        read(packed)
    packed.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match="named as gzipped"):
        read(packed)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", 3),
        ("a,b,c\n1,2,3\n4,5,6,secret\n", 3),
        ("a,b,c\n" + "1,2,3\n" * 30_000 + "4,secret\n", 30_002),
        ("a,b,c\n" + "1,2,3\n" * 30_000 + "4,5,6,secret\n", 30_002),
    ],
)
def test_a_ragged_file_names_the_line_and_no_value(tmp_path, text, line):
    with pytest.raises(
        InputError, match=rf"people.csv.*line {line:,} has \d fields where the header has 3"
    ) as caught:
        read(saved(tmp_path, text))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_unclosed_quotation_mark_is_named_by_line(tmp_path):
    with pytest.raises(InputError, match="quotation mark on line 3"):
        read(saved(tmp_path, 'a,b\n1,2\n"secret,3\n4,5\n'))


@pytest.mark.parametrize("column", [0, 2])
def test_bytes_of_another_encoding_name_the_line(tmp_path, column):
    fields = ["1", "2", "3"]
    fields[column] = "Jos\xe9"
    bad = ",".join(fields).encode("latin-1")
    file = tmp_path / "people.csv"
    file.write_bytes(b"a,b,c\n" + b"1,2,3\n" * 60_000 + bad + b"\n")
    with pytest.raises(InputError, match=r"people.csv.*not utf-8 text \(line 60,002\).*encoding='cp1252'"):
        read(file)
    assert read(file, encoding="cp1252").frame.tail(1).to_numpy()[0][column] == "José"


def test_a_given_encoding_that_is_wrong_is_refused(tmp_path):
    file = saved(tmp_path, "name,age\nJosé,30\n", encoding="latin-1")
    with pytest.raises(InputError, match="not utf-8 text"):
        read(file, encoding="utf-8")
    with pytest.raises(ParameterError, match="utf-8"):
        read(file, encoding="utf-88")


def test_blank_lines_are_no_records_but_empty_records_are(tmp_path):
    data = read(saved(tmp_path, "a,b\n1,2\n\n3,\n\n"))
    assert data.frame.collect().rows() == [(1, 2), (3, None)]
    assert data.metadata.reading["rows"] == 2
    assert data.metadata.reading["blank_lines"] == 2
    assert read(saved(tmp_path, "a,b\n1,2\n,\n")).frame.collect().rows() == [(1, 2), (None, None)]
    with pytest.raises(InputError, match="Remove the blank lines"):
        read(saved(tmp_path, "a,b\n1,2\n\n,\n"))


def test_quoted_separators_and_line_breaks_stay_in_their_field(tmp_path):
    frame = read(saved(tmp_path, 'a,b\n"x, y",1\n"two\nlines",\n')).frame.collect()
    assert frame.rows() == [("x, y", 1), ("two\nlines", None)]


def test_a_blank_after_the_separator_is_not_part_of_the_field(tmp_path):
    data = read(saved(tmp_path, "age, sex, pay, born\n39, Male, 1.5, 2020-01-31\n40, ?, NA, \n"))
    assert data.metadata.reading["padded"]
    assert data.columns == ("age", "sex", "pay", "born")
    assert data.frame.collect().rows() == [(39, "Male", 1.5, dt.date(2020, 1, 31)), (40, None, None, None)]


def test_any_column_name_is_a_name(tmp_path):
    data = read(saved(tmp_path, '"a ""b""",^a.*$,*,\n1,x,2,\n2,y,3,\n'))
    assert data.columns == ('a "b"', "^a.*$", "*", "")
    assert data.frame.collect().rows() == [(1, "x", 2, None), (2, "y", 3, None)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no records"),
        ("a,b,a\n1,2,3\n", "names the column 'a' more than once"),
    ],
)
def test_files_without_records_or_with_a_column_twice_are_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=f"people.csv.*{words}"):
        read(saved(tmp_path, text))


def test_a_separator_that_is_the_decimal_mark_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="cannot both be"):
        read(saved(tmp_path, "a,b\n1,2\n"), decimal=",", separator=",")


def test_file_names_with_brackets_are_names_not_patterns(tmp_path):
    assert read(saved(tmp_path, "a,b\n1,2\n", name="people[1]*.csv")).frame.collect().rows() == [(1, 2)]


def test_types_come_back_from_csv(tmp_path):
    frame = pl.DataFrame(
        {
            "whole": [1, None, 3],
            "share": [0.5, None, 2.25],
            "text": ["a", None, 'quoted "b", c'],
            "zip": ["01234", "09999", None],
            "day": [dt.date(2020, 1, 2), None, dt.date(1900, 1, 1)],
            "moment": [dt.datetime(2020, 1, 2, 3, 4, 5, 600), None, dt.datetime(2021, 1, 1)],
            "flag": [True, None, False],
        }
    )
    for name in ("a.csv", "a.csv.gz", "a.tsv"):
        assert read(write(frame, tmp_path / name)).frame.lazy().collect().equals(frame)
    german = read(write(frame, tmp_path / "b.csv", decimal=","))
    assert german.metadata.reading["decimal"] == ","
    assert german.frame.collect().equals(frame)


plain_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8
).map(lambda text: f"t{text}")
frames = st.integers(1, 20).flatmap(
    lambda rows: st.fixed_dictionaries(
        {
            "n": st.lists(st.none() | st.integers(-(2**53), 2**53), min_size=rows, max_size=rows),
            "x": st.lists(
                st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=rows, max_size=rows
            ),
            "t": st.lists(st.none() | plain_text, min_size=rows, max_size=rows),
            "d": st.lists(st.none() | st.dates(dt.date(1000, 1, 1)), min_size=rows, max_size=rows),
            "b": st.lists(st.none() | st.booleans(), min_size=rows, max_size=rows),
        }
    )
)
SCHEMA = {"n": pl.Int64, "x": pl.Float64, "t": pl.String, "d": pl.Date, "b": pl.Boolean}


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values=frames)
def test_what_is_written_is_what_is_read(tmp_path, values):
    frame = pl.DataFrame(values, schema=SCHEMA)
    parquet = read(write(frame, tmp_path / "f.parquet", overwrite=True)).frame.collect()
    assert parquet.equals(frame)
    if frame.null_count().row(0) == (frame.height,) * frame.width:
        return
    # A column without any value has no type in a text file.
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    back = read(write(frame, tmp_path / "f.csv", overwrite=True)).frame.collect()
    assert back.drop(empty).equals(frame.drop(empty))


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR,\n,,", b"\0" * 400, bytes(range(256)) * 4, b"PK\x03\x04a,b\n1,2\n"],
    ids=["picture", "zeros", "bytes", "zip"],
)
def test_binary_data_named_csv_is_called_what_it_is(tmp_path, content):
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match="binary data"):
        read(file)


def test_a_first_line_of_numbers_is_a_header_only_with_a_warning(tmp_path):
    with pytest.warns(DiscreetWarning, match="no header") as caught:
        data = read(saved(tmp_path, "47,1234.5,-3\n30,99,1\n"))
    assert data.columns == ("47", "1234.5", "-3")
    assert "47" not in str(caught[0].message)


def test_an_option_of_another_format_is_refused_with_those_that_fit(tmp_path):
    with pytest.raises(ParameterError, match=r"'sheet' is not for reading.*separator, decimal"):
        read(saved(tmp_path, "a,b\n1,2\n"), sheet="people")


def test_a_text_for_missing_is_one_beside_the_usual_ones_unless_it_is_said_to_be_the_only_one(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("age,pay\n30,NA\n-99,5\n41,?\n")
    both = read(file, missing="-99").frame.collect()
    assert both["age"].to_list() == [30, None, 41]
    assert both["pay"].to_list() == [None, 5, None]
    only = read(file, missing="-99", only_missing=True).frame.collect()
    assert only["pay"].to_list() == ["NA", "5", "?"]
    with pytest.raises(ParameterError, match="name them"):
        read(file, only_missing=True)
