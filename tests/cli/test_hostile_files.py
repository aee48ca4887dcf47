"""Files that were damaged, or made to hurt: one paragraph and exit code 2, or read as what they are."""

import contextlib
import zipfile

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as package
from discreet.core.errors import ColumnError, DiscreetError, InputError
from discreet.core.files.untrusted import DEEPEST, parsed_json, parsed_toml
from discreet.core.values import check_calendar


def refused(done, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    for word in words:
        assert word in done.stderr


MOMENTS = {
    "date": (pa.int32(), pa.date32(), 2**31 - 1),
    "early date": (pa.int32(), pa.date32(), -(2**31)),
    "year 12921": (pa.int32(), pa.date32(), 4_000_000),
    "milliseconds": (pa.int64(), pa.timestamp("ms"), 2**62),
    "microseconds": (pa.int64(), pa.timestamp("us"), 2**62),
    "zone": (pa.int64(), pa.timestamp("ms", tz="Europe/Berlin"), -(2**62)),
    "duration": (pa.int64(), pa.duration("ms"), 2**62),
}


@pytest.mark.parametrize("kind", MOMENTS)
@pytest.mark.parametrize("command", ["inspect", "assess", "protect"])
def test_a_moment_that_no_calendar_knows_is_refused_by_the_name_of_its_column(
    discreet, tmp_path, kind, command
):
    number, moment, value = MOMENTS[kind]
    file = tmp_path / "odd.parquet"
    pq.write_table(
        pa.table({"seen": pa.array([value, 0, 5], number).cast(moment), "a": ["x", "x", "y"]}), file
    )
    more = {
        "inspect": [],
        "assess": ["-k", "a,seen"],
        "protect": [
            "-k",
            "seen",
            "--step",
            '{treatment = "local-suppression", k = 2}',
            "-o",
            tmp_path / "o.csv",
        ],
    }
    refused(discreet(command, file, *more[command]), "Column 'seen'")


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_date_is_either_refused_or_can_be_written_down(day):
    frame = pl.DataFrame({"d": pl.Series([day], dtype=pl.Int32).cast(pl.Date)})
    try:
        check_calendar(frame)
    except ColumnError:
        return
    assert frame["d"].to_list()[0].year >= 1
    assert frame["d"].cast(pl.String).null_count() == 0


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(["ns", "us", "ms"]),
    st.sampled_from([None, "Asia/Tokyo"]),
)
def test_a_timestamp_is_either_refused_or_can_be_written_down(ticks, unit, zone):
    frame = pl.DataFrame({"t": pl.Series([ticks], dtype=pl.Int64).cast(pl.Datetime(unit, zone))})
    try:
        check_calendar(frame)
    except ColumnError:
        return
    assert frame["t"].cast(pl.String).null_count() == 0
    assert frame["t"].to_list()


def test_a_frame_in_memory_with_such_a_date_is_refused_like_a_file():
    frame = pl.DataFrame({"d": pl.Series([2**31 - 1, 0], dtype=pl.Int32).cast(pl.Date), "a": ["x", "y"]})
    with pytest.raises(DiscreetError):
        package.assess(package.Microdata(frame, keys=["a", "d"]))


@pytest.mark.parametrize("blank", ["\n", "\n\n\n", "  \n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_blank_lines_before_the_header_are_skipped(tmp_path, blank, encoding):
    file = tmp_path / "people.csv"
    file.write_bytes(f"{blank}a,ä\n1,2\n3,\n".encode(encoding))
    frame = package.read(file).frame.lazy().collect()
    assert frame.columns == ["a", "ä"]
    assert frame.rows() == [(1, 2), (3, None)]


@pytest.mark.parametrize(
    "first", ["sep=;\n", "sep=;\r\n", '"sep=;"\n', "SEP=;\n", "\n\nsep=;\n", "sep=;;;\n"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_first_line_that_names_the_separator_is_none_of_the_table(tmp_path, first, encoding):
    file = tmp_path / "people.csv"
    file.write_bytes(f"{first}a;ä;b,c\n1;2;3,5\n3;;\n".encode(encoding))
    data = package.read(file)
    assert data.frame.lazy().collect().rows() == [(1, 2, 3.5), (3, None, None)]
    assert data.columns == ("a", "ä", "b,c")
    assert data.metadata.reading["separator"] == ";"


def test_a_named_separator_gives_way_to_a_given_one_and_a_broken_line_keeps_its_number(discreet, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("sep=,\na;b\n1;2\n")
    assert package.read(file, separator=";").columns == ("a", "b")
    file.write_text("sep=;\na;b\n1;2\n3;4;5\n")
    refused(discreet("inspect", file), "line 4 has 3 fields where the header has 2")
    file.write_text("sep=;\n")
    refused(discreet("inspect", file), "names its separator and nothing else")


def test_a_file_of_blank_lines_is_empty(discreet, tmp_path):
    file = tmp_path / "blank.csv"
    file.write_text("\n\n\n")
    refused(discreet("inspect", file), "is empty")


@pytest.mark.parametrize("encoding", ["rot13", "hex", "base64", "undefined", "a\0b"])
def test_what_is_no_encoding_of_text_is_refused(discreet, tmp_path, encoding):
    file = tmp_path / "people.csv"
    file.write_text("a,b\n1,2\n")
    refused(discreet("inspect", file, "--encoding", encoding), "There is no encoding")


@pytest.fixture
def workbook(tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    file = tmp_path / "good.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_row(1, 0, [1, 2])
    return file


def _with_sheet(source, target, old, new):
    with zipfile.ZipFile(source) as book, zipfile.ZipFile(target, "w") as other:
        for name in book.namelist():
            content = book.read(name)
            other.writestr(name, content.replace(old, new) if "sheet1" in name else content)


@pytest.mark.parametrize("fault", [(b"<sheetData>", b"<sheetData"), (b"<v>", b"<v>&#xFFFFFF;")])
def test_a_damaged_workbook_is_refused(discreet, workbook, tmp_path, fault):
    _with_sheet(workbook, tmp_path / "bad.xlsx", *fault)
    refused(discreet("inspect", tmp_path / "bad.xlsx"))


def test_a_stray_cell_in_the_far_corner_is_refused_before_room_is_made_for_it(discreet, workbook, tmp_path):
    _with_sheet(workbook, tmp_path / "far.xlsx", b'r="B2"', b'r="XFD1048576"')
    refused(discreet("inspect", tmp_path / "far.xlsx"), "17,179,869,184 cells")


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_workbook_with_one_other_byte_is_read_or_refused(tmp_path_factory, place, byte):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    file = tmp_path_factory.mktemp("book") / "book.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        book.add_worksheet().write_column(0, 0, ["a", 1])
    content = bytearray(file.read_bytes())
    content[place % len(content)] = byte
    file.write_bytes(content)
    with contextlib.suppress(DiscreetError):
        package.read(file)


HOSTILE_TOML = {
    "deep lists": "a = " + "[" * 50_000 + "]" * 50_000,
    "deep tables": "a" + ".a" * 50_000 + " = 1",
    "deep inline": "a = " + "{a=" * 5_000 + "1" + "}" * 5_000,
    "long number": "step = " + "9" * 5_000,
}


@pytest.mark.parametrize("content", HOSTILE_TOML)
def test_hostile_toml_is_refused_wherever_toml_is_read(discreet, tmp_path, content):
    data, hostile = tmp_path / "people.csv", tmp_path / "hostile.toml"
    data.write_text("a,b\n1,2\n1,2\n")
    hostile.write_text(HOSTILE_TOML[content])
    out = tmp_path / "out.csv"
    for command in (
        ("protect", data, "-k", "a", "--plan", hostile, "-o", out),
        ("assess", data, "-k", "a", "--policy", hostile),
        ("assess", data, "--roles", hostile),
        ("synthesize", data, "--plan", hostile, "-o", out),
        ("evaluate", hostile),
    ):
        refused(discreet(*command), "is not valid TOML")
    refused(
        discreet("protect", data, "-k", "a", "--step", HOSTILE_TOML[content].partition("=")[2], "-o", out)
    )


@given(st.integers(1, 3 * DEEPEST))
def test_depth_is_counted_alike_in_toml_and_json(depth):
    text = "[" * depth + "]" * depth
    for parse, written in ((parsed_toml, f"a = {text}"), (parsed_json, f'{{"a": {text}}}')):
        if depth <= DEEPEST:
            assert parse(written)
        else:
            with pytest.raises(ValueError, match="deep"):
                parse(written)


def test_a_code_that_its_hierarchy_file_does_not_have_is_refused(discreet, tmp_path):
    data, tree = tmp_path / "people.csv", tmp_path / "a.hrc"
    data.write_text("a,b\n0,1\n1,1\n2,1\n")
    tree.write_text("0\n1\n")
    done = discreet(
        "table", "protect", data, "--table", "a*b", "--hierarchy", f"a={tree}", "-r", "threshold=3"
    )
    refused(done, "'a'")


@pytest.mark.parametrize("role", ["-k", "-s"])
def test_raw_bytes_are_refused_where_they_would_have_to_be_compared(discreet, tmp_path, role):
    file = tmp_path / "bytes.parquet"
    pl.DataFrame({"b": [b"\xff\x00", b"", None, b"abc"], "a": [1, 2, 1, 2]}).write_parquet(file)
    more = ["-k", "a"] if role == "-s" else []
    refused(discreet("assess", file, role, "b", *more), "Column 'b' holds raw bytes")
    assert discreet("assess", file, "-k", "a").returncode == 0


def test_a_duration_can_be_a_key(discreet, tmp_path):
    file, out = tmp_path / "stay.parquet", tmp_path / "out.parquet"
    stays = pl.Series([1, 1, 2, 2**40], dtype=pl.Int64).cast(pl.Duration("us"))
    pl.DataFrame({"stay": stays, "a": [1, 2, 1, 2]}).write_parquet(file)
    assert discreet("assess", file, "-k", "stay").returncode == 0
    step = '{treatment = "local-suppression", k = 2}'
    assert discreet("protect", file, "-k", "stay", "--step", step, "-o", out).returncode == 0
    assert pl.read_parquet(out)["stay"].null_count() == 2


def test_an_engine_that_gives_up_while_reading_ends_in_one_sentence(monkeypatch, tmp_path):
    class PanicException(BaseException):
        pass

    def panic(*_args, **_options):
        raise PanicException("secret value")

    file = tmp_path / "people.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(file)
    monkeypatch.setattr("discreet.io.reading.scan_columnar", panic)
    with pytest.raises(InputError, match=r"'people\.parquet' holds something") as caught:
        package.read(file)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["*", "^a.*$"])
def test_a_name_that_stands_for_several_columns_is_counted_exactly_or_refused(discreet, tmp_path, name):
    file, out = tmp_path / "odd.csv", tmp_path / "out.csv"
    pl.DataFrame({name: ["x", "y"] * 30, "ab": list(range(60)), "c": ["u", "v", "u"] * 20}).write_csv(file)
    assert discreet("assess", file, "-k", name, "--json").returncode == 0
    assert discreet("inspect", file).returncode == 0
    step = '{treatment = "drop-identifiers"}'
    for command in (
        ("synthesize", file, "-o", out),
        ("compare", file, file, "-k", name),
        ("preflight", file),
        ("protect", file, "--identifiers", name, "--step", step, "-o", tmp_path / "p.csv"),
        ("suggest", file, "-k", name, "-p", "scientific-use-file"),
        ("table", "protect", file, "--table", f"`{name}`*c", "-r", "threshold=3"),
    ):
        refused(discreet(*command), "taken for a pattern")


@pytest.mark.parametrize("rows", [60, 600])
def test_a_weighted_sample_without_numbers_can_be_reported(discreet, tmp_path, rows):
    file = tmp_path / "people.csv"
    lines = [f"{i % 3},{i % 5},{1 + i % 2}" for i in range(rows)]
    file.write_text("\n".join(["a,b,w", *lines]))
    step = '{treatment = "sample-and-anonymize", epsilon = 1.0, delta = 1e-3}'
    to = ("-o", tmp_path / "out.csv", "--html", tmp_path / "out.html")
    done = discreet("protect", file, "-k", "a,b", "--weight", "w", "--step", step, *to, "--seed", 1)
    assert done.returncode in (0, 2), done.stderr
