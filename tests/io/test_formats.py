"""Round trips through every format, and the files that cannot be read."""

from __future__ import annotations

import datetime as dt
import hashlib
import time

import polars as pl
import pytest

from discreet import engine
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.io import read, write
from discreet.microdata import Metadata, Microdata


@pytest.fixture
def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [30, None, 52, 99],
            "pay": [1.5, 2.25, None, -3.0],
            "name": ["Ann", None, "Zoë", "Bo"],
            "zip": ["01234", "09999", None, "10000"],
            "born": [dt.date(1990, 1, 31), None, dt.date(1900, 1, 1), dt.date(2001, 12, 31)],
            "seen": [
                dt.datetime(2020, 1, 2, 3, 4, 5),
                None,
                dt.datetime(2021, 1, 1),
                dt.datetime(2022, 6, 1),
            ],
            "member": [True, None, False, True],
            "level": pl.Series(["high", None, "low", "low"], dtype=pl.Enum(["low", "mid", "high"])),
        }
    )


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_columnar_files_keep_every_type(tmp_path, people, name):
    data = read(write(people, tmp_path / name), keys=["age", "level"])
    assert isinstance(data.frame, pl.LazyFrame)
    assert data.frame.collect().equals(people)
    assert data.frame.collect_schema() == people.schema


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv", "a.csv.gz"])
def test_a_lazy_frame_is_written_like_an_eager_one(tmp_path, people, name):
    eager = read(write(people, tmp_path / name)).frame.lazy().collect()
    lazy = read(write(Microdata(people.lazy()), tmp_path / f"lazy_{name}")).frame.lazy().collect()
    assert lazy.equals(eager)


def test_frames_of_every_engine_can_be_written(tmp_path, people):
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    plain = people.drop("level")
    relation = duckdb.connect().from_arrow(plain.to_arrow())
    for number, frame in enumerate(
        [plain.to_arrow(), relation, plain.to_pandas(use_pyarrow_extension_array=True)]
    ):
        for suffix in ("parquet", "csv"):
            file = write(frame, tmp_path / f"{number}.{suffix}")
            assert read(file).frame.collect().equals(plain), (number, suffix)
    ordered = pandas.DataFrame({"c": pandas.Categorical(["b", "a"], categories=["b", "a"], ordered=True)})
    back = pandas.read_parquet(write(ordered, tmp_path / "p.parquet"))
    assert back.dtypes.equals(ordered.dtypes)


def test_excel_keeps_types_and_missing_values(tmp_path, people):
    pytest.importorskip("fastexcel")
    data = read(write(people, tmp_path / "a.xlsx", sheet="people"), sheet="people")
    frame = data.frame
    assert frame.drop("level", "seen").equals(people.drop("level", "seen"))
    assert frame["seen"].cast(pl.Datetime("us")).equals(people["seen"])
    assert frame["level"].to_list() == people["level"].to_list()
    assert data.metadata.reading["sheet"] == "people"


def test_excel_texts_that_look_like_formulas_stay_texts(tmp_path):
    pytest.importorskip("fastexcel")
    frame = pl.DataFrame({"t": ["=1+1", "http://example.org", "007", "@x"]})
    assert read(write(frame, tmp_path / "a.xlsx")).frame.equals(frame)


def test_excel_missing_tokens_sheets_and_double_names(tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    file = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet("good")
        for number, row in enumerate([["n", "t"], [1, "x"], ["NA", "?"], [3, "y"]]):
            sheet.write_row(number, 0, row)
        book.add_worksheet("twice").write_row(0, 0, ["a", "a"])
        book.add_worksheet("bare").write_row(0, 0, ["a", "b"])
    assert read(file).frame.rows() == [(1, "x"), (None, None), (3, "y")]
    assert read(file, sheet=1).frame["n"].dtype.is_integer()
    with pytest.raises(InputError, match="Did you mean 'good'"):
        read(file, sheet="goood")
    with pytest.raises(InputError, match="has 3 sheets"):
        read(file, sheet=7)
    with pytest.raises(InputError, match="names the column 'a' more than once"):
        read(file, sheet="twice")
    with pytest.raises(InputError, match="no records"):
        read(file, sheet="bare")


@pytest.mark.parametrize("name", ["a.sav", "a.zsav", "a.dta"])
def test_statistical_files_keep_values_dates_and_categories(tmp_path, people, name):
    pytest.importorskip("pyreadstat")
    frame = read(write(people, tmp_path / name), value_labels="categories").frame
    assert frame.drop("level", "member", "seen").equals(people.drop("level", "member", "seen"))
    assert frame["seen"].to_list() == people["seen"].to_list()
    assert frame["member"].equals(people["member"])
    assert frame["level"].to_list() == people["level"].to_list()
    assert frame["level"].dtype == pl.Enum(["low", "mid", "high"])


def test_spss_metadata_survives_a_round_trip(tmp_path):
    pytest.importorskip("pyreadstat")
    metadata = Metadata(
        column_labels={"age": "Age in years"},
        value_labels={"age": {98: "refused", 99: "unknown"}, "edu": {1: "low", 2: "high"}},
        user_missing={"age": [{"lo": 97, "hi": 98}, 99], "code": ["x"]},
        formats={
            "age": {"format": "F8.0", "measure": "scale"},
            "edu": {"measure": "ordinal", "format": "F3.0"},
        },
    )
    original = Microdata(
        pl.DataFrame({"age": [30, 98, 99, 41], "edu": [1, 2, None, 1], "code": ["x", "y", "x", "z"]}),
        metadata=metadata,
    )
    file = write(original, tmp_path / "a.sav")
    kept = read(file, user_missing="keep")
    assert kept.frame["age"].to_list() == [30, 98, 99, 41]
    data = read(file)
    assert data.frame["age"].to_list() == [30, None, None, 41]
    assert data.frame["code"].to_list() == [None, "y", None, "z"]
    again = read(write(kept, tmp_path / "b.sav"), user_missing="keep")
    for found in (data, kept, again):
        assert found.metadata.column_labels == metadata.column_labels
        assert found.metadata.value_labels == metadata.value_labels
        assert found.metadata.user_missing == metadata.user_missing
        assert found.metadata.formats["edu"]["measure"] == "ordinal"
        assert found.metadata.formats["edu"]["format"] == "F3.0"
    assert again.frame.equals(kept.frame)
    categories = read(file, value_labels="categories").frame
    assert categories["edu"].dtype == pl.Enum(["low", "high"])
    # Labels at two codes only must not wipe out the other ages.
    assert categories["age"].to_list() == [30, None, None, 41]


def test_categories_are_written_with_the_codes_the_file_had(tmp_path):
    pytest.importorskip("pyreadstat")
    metadata = Metadata(value_labels={"edu": {10: "low", 20: "high"}})
    frame = pl.DataFrame({"edu": pl.Series(["high", "low"], dtype=pl.Enum(["low", "high"]))})
    for name in ("a.sav", "a.dta"):
        assert read(write(Microdata(frame, metadata=metadata), tmp_path / name)).frame["edu"].to_list() == [
            20,
            10,
        ]


def test_stata_missing_letters_are_missing_unless_kept(tmp_path):
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    file = tmp_path / "a.dta"
    pyreadstat.write_dta(
        pandas.DataFrame({"u": [1, "a", None, 2], "k": [1, 2, 3, 4]}),
        str(file),
        missing_user_values={"u": ["a"]},
    )
    data = read(file)
    assert data.frame["u"].to_list() == [1, None, None, 2]
    assert data.metadata.user_missing == {"u": ["a"]}
    assert read(file, user_missing="keep").frame["u"].to_list() == ["1", "a", None, "2"]


def test_sas_transport_round_trips_and_sas_files_are_read_only(tmp_path, people):
    pytest.importorskip("pyreadstat")
    back = read(write(people.drop("level", "member"), tmp_path / "a.xpt")).frame
    assert back["age"].to_list() == people["age"].to_list()
    assert back["born"].to_list() == people["born"].to_list()
    with pytest.raises(InputError, match=r"nobody outside SAS.*Write \.xpt"):
        write(people, tmp_path / "a.sas7bdat")
    assert [file.name for file in tmp_path.iterdir()] == ["a.xpt"]


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.arrow", "a.feather", "a.sav", "a.dta", "a.sas7bdat", "a.xpt", "a.xlsx"]
)
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1", b"secret of no format at all " * 99])
def test_an_unreadable_file_is_one_paragraph_with_its_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    words = str(caught.value)
    assert name in words
    assert "secret" not in words
    assert "\n" not in words


def test_a_truncated_parquet_file_is_refused(tmp_path, people):
    whole = write(people, tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"b\.parquet.*cut off"):
        read(tmp_path / "b.parquet")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.sav", "a.dta"])
def test_a_file_without_records_is_refused(tmp_path, people, name):
    write(people.clear().drop("level"), tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}.*no records"):
        read(tmp_path / name)


def test_paths_that_lead_nowhere_say_what_is_near(tmp_path):
    (tmp_path / "survey.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"no file.*Did you mean 'survey\.csv'"):
        read(tmp_path / "survye.csv")
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"folder .* does not exist either"):
        read(tmp_path / "nowhere" / "survey.csv")
    (tmp_path / "survey.docx").write_text("x")
    with pytest.raises(InputError, match=r"suffix '\.docx'.*Known are: \.csv"):
        read(tmp_path / "survey.docx")
    with pytest.raises(InputError, match="Microdata"):
        read(pl.DataFrame({"a": [1]}))


def test_unknown_options_are_named_with_the_near_misses(tmp_path):
    (tmp_path / "survey.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="Did you mean 'separator'"):
        read(tmp_path / "survey.csv", seperator=";")
    with pytest.raises(ParameterError, match="Did you mean 'sensitive'"):
        read(tmp_path / "survey.csv", sensitve="a")
    with pytest.raises(ParameterError, match="query"):
        read(tmp_path / "survey.csv", query="select 1")
    with pytest.raises(ParameterError, match="separator"):
        write(pl.DataFrame({"a": [1]}), tmp_path / "x.csv", seperator=";")


def test_source_and_checksum_are_on_record(tmp_path):
    (tmp_path / "survey.csv").write_bytes(b"a,b\n1,2\n")
    metadata = read(tmp_path / "survey.csv").metadata
    assert metadata.source == "survey.csv"
    assert metadata.checksum == hashlib.sha256(b"a,b\n1,2\n").hexdigest()


def test_nothing_is_overwritten_unless_asked(tmp_path):
    file = write(pl.DataFrame({"a": [1]}), tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"a\.csv' already exists.*overwrite=True"):
        write(pl.DataFrame({"a": [2]}), file)
    assert read(write(pl.DataFrame({"a": [2]}), file, overwrite=True)).frame.collect().item() == 2
    with pytest.raises(InputError, match="folder"):
        write(pl.DataFrame({"a": [2]}), tmp_path / "nowhere" / "a.csv")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.arrow", "a.sav", "a.dta", "a.xlsx"])
def test_a_failed_write_leaves_nothing_behind_and_keeps_the_old_file(tmp_path, name):
    (tmp_path / name).write_bytes(b"old")
    broken = pl.LazyFrame({"a": ["secret"]}).with_columns(pl.col("a").cast(pl.Int64))
    with pytest.raises(DiscreetError, match="Nothing of it was written") as caught:
        write(broken, tmp_path / name, overwrite=True)
    assert "secret" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


def test_a_column_the_format_cannot_hold_is_named(tmp_path):
    pytest.importorskip("pyreadstat")
    with pytest.raises(ColumnError, match="Column 'many'"):
        write(pl.DataFrame({"many": [[1, 2]]}), tmp_path / "a.sav")
    assert not list(tmp_path.iterdir())


TIMED = ("sav", "zsav", "xpt", "dta", "xlsx")


@pytest.fixture(scope="module")
def written_a_while_ago(tmp_path_factory):
    """A frame, and files of it that are older than a second by now."""
    pytest.importorskip("pyreadstat")
    frame = pl.DataFrame({"age": [30, 40], "job": ["a", "b"]})
    folder = tmp_path_factory.mktemp("old")
    for suffix in TIMED:
        write(frame, folder / f"one.{suffix}")
    # Stata's time has minutes; the others have seconds.
    time.sleep(1.1)
    return frame, folder


@pytest.mark.parametrize("suffix", TIMED)
def test_no_time_of_writing_stands_in_a_file(written_a_while_ago, tmp_path, suffix):
    frame, folder = written_a_while_ago
    first, second = folder / f"one.{suffix}", tmp_path / f"two.{suffix}"
    write(frame, second)
    assert first.read_bytes() == second.read_bytes()
    today = dt.date.today()
    assert not any(
        today.strftime(form).encode() in first.read_bytes()
        for form in ("%d %b %y", "%d%b%y", "%d %b %Y", "%Y-%m-%d")
    )
    assert engine.collect(read(first)).rows() == frame.rows()
