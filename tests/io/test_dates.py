"""Dates that stand in texts: found whatever way they are written, asked about where they are in doubt."""

import warnings
from datetime import date, datetime

import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import read, write
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.io.column_types import Wanted, dates_of

DAYS = [date(1990, 12, 31), date(1985, 2, 3), date(2001, 10, 20)]


def _file(folder, values, name="people.csv", column="born"):
    path = folder / name
    path.write_text(f"id;{column}\n" + "".join(f"{i};{v}\n" for i, v in enumerate(values)), encoding="utf-8")
    return path


def _column(data, name="born"):
    return data.frame.lazy().collect()[name].to_list()


@pytest.mark.parametrize(
    "form",
    [
        "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d", "%d %b %Y", "%d-%b-%Y",
        "%d %B %Y", "%B %d, %Y", "%b %d, %Y",
    ],
)  # fmt: skip
def test_a_day_is_read_however_it_is_written(tmp_path, form):
    texts = [day.strftime(form) for day in DAYS]
    assert _column(read(_file(tmp_path, [*texts, ""]))) == [*DAYS, None]


@pytest.mark.parametrize("time", ["%H:%M", "%H:%M:%S", "%I:%M %p"])
def test_a_time_of_day_may_follow(tmp_path, time):
    moments = [datetime(1990, 12, 31, 14, 5), datetime(1985, 2, 3, 0, 30)]
    texts = [moment.strftime(f"%d.%m.%Y {time}") for moment in moments]
    assert _column(read(_file(tmp_path, texts))) == moments


def test_an_order_in_doubt_is_asked_about_and_the_column_left_as_it_is(tmp_path):
    path = _file(tmp_path, ["03/04/1990", "05/06/1991"])
    with pytest.warns(DiscreetWarning, match="'born' can be read as day/month/year") as caught:
        data = read(path)
    assert "1990" not in str(caught[0].message)
    assert _column(data) == ["03/04/1990", "05/06/1991"]
    assert data.metadata.reading["ambiguous_dates"] == ["born"]
    assert _column(read(path, dates="dmy")) == [date(1990, 4, 3), date(1991, 6, 5)]
    assert _column(read(path, dates="mdy")) == [date(1990, 3, 4), date(1991, 5, 6)]
    assert _column(read(path, dates="text")) == ["03/04/1990", "05/06/1991"]
    assert _column(read(path, dates={"born": "%d/%m/%Y"})) == [date(1990, 4, 3), date(1991, 6, 5)]


def test_another_column_with_the_same_marks_settles_the_order(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("born,seen\n03/04/1990,12/31/2001\n05/06/1991,01/02/2002\n")
    assert _column(read(path)) == [date(1990, 3, 4), date(1991, 5, 6)]


def test_an_order_that_was_named_does_not_bend_dates_that_have_another(tmp_path):
    path = _file(tmp_path, ["12/31/1990", "05/06/1991"])
    assert _column(read(path, dates="dmy")) == [date(1990, 12, 31), date(1991, 5, 6)]


@pytest.mark.parametrize(
    "values",
    [
        ["31.02.1990", "01.03.1990"],  # no such day
        ["01.02.90", "13.02.91"],  # which century?
        ["12.5.1990", "unknown"],
        ["1.2.3.4", "5.6.7.8"],
        ["10-20-30", "11-22-33"],
        ["A 12 2000", "B 13 2000"],
    ],
)
def test_what_is_no_date_in_every_record_stays_text(tmp_path, values):
    assert _column(read(_file(tmp_path, values))) == values


def test_a_date_that_breaks_the_pattern_after_the_head_is_seen(tmp_path):
    values = ["01.02.1990"] * 3_000 + ["sometime"]
    assert _column(read(_file(tmp_path, values)))[-1] == "sometime"


def test_numbers_are_dates_where_their_format_is_named(tmp_path):
    path = _file(tmp_path, ["19900131", "20001224"])
    assert _column(read(path)) == [19900131, 20001224]
    assert _column(read(path, dates="born=%Y%m%d")) == [date(1990, 1, 31), date(2000, 12, 24)]


def test_wrong_formats_and_columns_are_refused_without_a_value(tmp_path):
    path = _file(tmp_path, ["31.12.1990", "x"])
    with pytest.raises(InputError, match=r"1 values of 'born' are no dates of the form") as refused:
        read(path, dates={"born": "%d.%m.%Y"})
    assert "31.12" not in str(refused.value)
    with pytest.raises(ColumnError, match="dates"):
        read(path, dates={"bron": "%d.%m.%Y"})
    with pytest.raises(ParameterError, match="order"):
        read(path, dates="sometimes")


def test_excel_texts_are_read_as_dates(tmp_path):
    pytest.importorskip("xlsxwriter")
    path = tmp_path / "people.xlsx"
    write(pl.DataFrame({"born": ["31.12.1990", "03.02.1985"]}), path)
    assert _column(read(path)) == DAYS[:2]


@given(st.lists(st.dates(date(1000, 1, 1), date(9999, 12, 31)), min_size=1, max_size=30), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_dates_come_back_as_they_were_or_are_asked_about(days, data):
    form = data.draw(st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%Y/%m/%d"]))
    texts = pl.LazyFrame({"c": [day.strftime(form) for day in days]})
    found, doubtful = dates_of(texts, {"c": "c"}, Wanted())
    if doubtful:
        assert all(day.day <= 12 for day in days)
        assert form[2] in "/-"
    else:
        assert texts.collect()["c"].str.to_date(found["c"]).to_list() == days


def test_the_file_goes_out_as_it_came_in(tmp_path):
    path = tmp_path / "leute.csv"
    lines = "name;geboren;lohn\r\nMüller;31.12.1990;1,5\r\nGröße;03.02.1985;\r\n"
    path.write_bytes(lines.encode("cp1252"))
    data = read(path)
    out = write(data, tmp_path / "out.csv")
    assert out.read_bytes() == lines.encode("cp1252")
    plain = write(
        data, tmp_path / "plain.csv", separator=",", decimal=".", encoding="utf-8", newline="lf", dates="iso"
    )
    assert (
        plain.read_text(encoding="utf-8") == "name,geboren,lohn\nMüller,1990-12-31,1.5\nGröße,1985-02-03,\n"
    )
    tabs = write(data, tmp_path / "out.tsv")
    assert tabs.read_bytes().startswith(b"name\tgeboren")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_every_encoding_goes_out_as_it_came_in(tmp_path, encoding, suffix):
    source = tmp_path / "in.csv"
    source.write_bytes("a;b\nÄ;1,5\nö;2,5\n".encode(encoding))
    again = read(write(read(source), tmp_path / f"out{suffix}"))
    assert again.metadata.reading["encoding"] == read(source).metadata.reading["encoding"]
    assert again.frame.lazy().collect().rows() == [("Ä", 1.5), ("ö", 2.5)]


def test_characters_that_the_encoding_lacks_are_refused_and_nothing_is_written(tmp_path):
    source = tmp_path / "in.csv"
    source.write_bytes("a;b\nÄ;1,5\n".encode("cp1252"))
    data = read(source)
    changed = data.with_frame(data.frame.with_columns(a=pl.lit("≥")))
    with pytest.raises(InputError, match="encoding"):
        write(changed, tmp_path / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def test_a_date_that_was_made_coarser_goes_out_as_what_it_is(tmp_path):
    data = read(_file(tmp_path, ["31.12.1990", "03.02.1985"]))
    coarse = data.with_frame(data.frame.with_columns(born=pl.col("born").dt.year()))
    assert write(coarse, tmp_path / "out.csv").read_text() == "id;born\n0;1990\n1;1985\n"


def test_no_question_is_asked_about_files_without_dates(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(_file(tmp_path, ["a", "b"]))
