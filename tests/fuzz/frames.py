"""Tables that are odd in every way: types, names, gaps, sizes, limits; and files that hold them, or pretend to."""

from __future__ import annotations

import csv
import datetime as dt
import io
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from hypothesis import strategies as st

# No engine hands over a name with a zero byte; a file may hold one, where its bytes are spoilt.
_LETTERS = st.characters(exclude_characters="\x00", exclude_categories=("Cs",))
ODD_NAMES = st.sampled_from(
    ["*", "^a.*$", "^.*$", "", " ", "a b", "a\nb", "a,b", 'a"b', "a'b", "`a`", "$", "{x}", "__index__", "len",
     "count",
     "index", "level_0", "Ünï", "\u202ex", "\x1b[31m", "0", "1e5", "true", "None", "a" * 300, "=1+1", "row_index",
     "class_size", "weight", "value", "literal", "x.y", "NaN", "#", "%s", "[a]", "../a"]
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["age", "sex", "region", "pay", "id"]), ODD_NAMES, st.text(_LETTERS, max_size=8)
)
NUMBERS = st.one_of(
    st.integers(-5, 99),
    st.sampled_from([0, -1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, -1e308, 5e-324, -0.0]),
)
FLOATS = st.one_of(
    st.floats(width=64),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.1, 1e16, -99999999999.0]),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "NA", "?", "-9", "nan", "NULL", "1", "01", "1,5", "1.5", "1e999", "2024-02-30", "31/12/1999",
         "0000-00-00", "9999-12-31", "=cmd|' /C calc'!A0", "<script>", "\x00", "\ud7ff", "a" * 400, "é", "e\u0301"]
    ),
    st.text(max_size=6),
)  # fmt: skip
DATES = st.one_of(
    st.dates(),
    st.sampled_from(
        [dt.date.min, dt.date.max, dt.date(1900, 1, 1), dt.date(2000, 2, 29), dt.date(1582, 10, 10)]
    ),
)


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pl.Series:
    """One column of an odd type, with gaps."""
    kind = draw(
        st.sampled_from(
            ["int", "small", "float", "text", "few", "bool", "date", "time", "missing", "category", "enum", "moment",
             "decimal", "binary", "duration", "list", "constant", "whole", "struct"]
        )
    )  # fmt: skip
    gaps = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))

    def some(values: st.SearchStrategy[object]) -> list[object]:
        drawn = [draw(values) for _ in range(rows)]
        hidden = draw(st.integers(0, 2**31))
        return [
            None if gaps == 1.0 or (gaps and (hidden >> (i % 31)) & 1) else value
            for i, value in enumerate(drawn)
        ]

    whole = st.integers(-(2**63), 2**63 - 1)
    match kind:
        case "int":
            return pl.Series(some(st.one_of(st.integers(0, 9), whole)), dtype=pl.Int64, strict=False)
        case "small":
            return pl.Series(some(st.integers(-128, 127)), dtype=pl.Int8)
        case "whole":
            return pl.Series(some(st.sampled_from([1.0, 2.0, 3.0, 1e15])), dtype=pl.Float64)
        case "float":
            return pl.Series(some(FLOATS), dtype=draw(st.sampled_from([pl.Float64, pl.Float32])))
        case "text":
            return pl.Series(some(TEXTS), dtype=pl.String)
        case "few":
            return pl.Series(some(st.sampled_from(["a", "b", "c"])), dtype=pl.String)
        case "bool":
            return pl.Series(some(st.booleans()), dtype=pl.Boolean)
        case "date":
            return pl.Series(some(DATES), dtype=pl.Date)
        case "time":
            return pl.Series(some(st.times()), dtype=pl.Time)
        case "category":
            return pl.Series(some(st.sampled_from(["x", "y", ""])), dtype=pl.String).cast(pl.Categorical)
        case "enum":
            return pl.Series(some(st.sampled_from(["lo", "hi"])), dtype=pl.Enum(["lo", "mid", "hi"]))
        case "moment":
            zone = draw(st.sampled_from([None, "UTC", "Asia/Kathmandu"]))
            series = pl.Series(some(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))))
            return series.cast(pl.Datetime("us")).dt.replace_time_zone(
                zone, ambiguous="null", non_existent="null"
            )
        case "decimal":
            values = some(st.decimals(-(10**9), 10**9, places=2, allow_nan=False))
            return pl.Series(values, dtype=pl.Decimal(20, 2))
        case "binary":
            return pl.Series(some(st.binary(max_size=4)), dtype=pl.Binary)
        case "duration":
            return pl.Series(
                some(st.timedeltas(dt.timedelta(-999), dt.timedelta(999))), dtype=pl.Duration("us")
            )
        case "list":
            return pl.Series(some(st.lists(st.integers(0, 3), max_size=2)), dtype=pl.List(pl.Int64))
        case "struct":
            return pl.Series(
                [{"p": value} for value in some(st.integers(0, 3))], dtype=pl.Struct({"p": pl.Int64})
            )
        case "missing":
            return pl.Series([None] * rows, dtype=draw(st.sampled_from([pl.Null, pl.String, pl.Float64])))
    return pl.Series([draw(st.sampled_from([0, 1, "k"]))] * rows)


@st.composite
def frames(draw: st.DrawFn, *, most_rows: int = 12, most_columns: int = 5) -> pl.DataFrame:
    """A small odd table."""
    rows = draw(st.one_of(st.sampled_from([0, 1, 2]), st.integers(3, most_rows)))
    names = draw(st.lists(NAMES, min_size=1, max_size=most_columns, unique=True))
    return pl.DataFrame({name: draw(columns(rows)).alias(name) for name in names})


@dataclass(frozen=True)
class File:
    """A file by its name and content."""

    name: str
    content: bytes
    columns: tuple[str, ...] = ("age", "sex")


def _as_csv(
    frame: pl.DataFrame, separator: str = ",", quoting: int = csv.QUOTE_MINIMAL, newline: str = "\n"
) -> str:
    series = [["" if value is None else str(value) for value in column] for column in frame.get_columns()]
    rows = [tuple(frame.columns), *zip(*series, strict=True)]
    if quoting == csv.QUOTE_NONE:  # as programs write that know of no quotes
        return "".join(separator.join(row) + newline for row in rows)
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=newline).writerows(rows)
    return stream.getvalue()


@st.composite
def text_files(draw: st.DrawFn) -> File:
    """A delimited file in some dialect and encoding, whole or spoilt."""
    frame = draw(frames())
    text = _as_csv(
        frame,
        draw(st.sampled_from([",", ";", "\t", "|", " "])),
        draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE])),
        draw(st.sampled_from(["\n", "\r\n", "\r"])),
    )
    text = draw(st.sampled_from(["", "", "", "\n", "\ufeff", "# a note\n", "sep=;\n", '"'])) + text
    encoding = draw(
        st.sampled_from(["utf-8", "utf-8", "latin-1", "utf-16", "utf-8-sig", "cp1252", "utf-16-le", "cp037"])
    )
    content = text.encode(encoding, "replace")
    name = draw(st.sampled_from(["data.csv", "data.tsv", "data.txt"]))
    return File(name, draw(spoilt(content)), tuple(frame.columns))


@st.composite
def spoilt(draw: st.DrawFn, content: bytes) -> bytes:
    """Leave content as it is, or cut, change, repeat or add to it."""
    how = draw(st.sampled_from([*["whole"] * 6, "cut", "changed", "repeated", "added"]))
    if how == "whole" or not content:
        return content
    at = draw(st.integers(0, len(content) - 1))
    if how == "cut":
        return content[:at]
    if how == "repeated":
        return content + content[at:]
    piece = draw(
        st.one_of(
            st.binary(min_size=1, max_size=8),
            st.sampled_from([b'"', b"\x00", b"\n\n", b"\xff\xfe", b",,,,,"]),
        )
    )
    return content[:at] + piece + content[at + (len(piece) if how == "changed" else 0) :]


@st.composite
def columnar_files(draw: st.DrawFn) -> File:
    """A Parquet or Arrow file, also of types that Polars does not write itself, whole or spoilt."""
    kind = draw(st.sampled_from(["parquet", "arrow"]))
    table = draw(st.one_of(frames().map(lambda frame: frame.to_arrow()), arrow_tables()))
    stream = io.BytesIO()
    try:
        if kind == "parquet":
            pyarrow.parquet.write_table(table, stream)
        else:
            pyarrow.feather.write_feather(table, stream, compression="uncompressed")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        pyarrow.parquet.write_table(pa.table({"a": [1]}), stream)
        kind = "parquet"
    return File(f"data.{kind}", draw(spoilt(stream.getvalue())), tuple(table.column_names))


@st.composite
def arrow_tables(draw: st.DrawFn) -> pa.Table:
    """Types and values at their limits, as another program may write them."""
    whole = st.sampled_from([0, 1, 2**31 - 1, -(2**31), 2**62, -(2**62), 719162])
    moments = [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns", "UTC")]
    moments += [pa.time32("s"), pa.time64("ns"), pa.duration("s")]
    others = [pa.uint64(), pa.uint8(), pa.float16(), pa.large_string(), pa.binary(3), pa.decimal128(38, 10)]
    others += [pa.null(), pa.bool_(), pa.dictionary(pa.int8(), pa.string()), pa.map_(pa.string(), pa.int64())]
    others += [pa.list_(pa.int64(), 2), pa.struct([("p", pa.int8())]), pa.month_day_nano_interval()]
    kind = draw(st.one_of(st.sampled_from(moments), st.sampled_from(others)))
    rows = draw(st.integers(1, 4))
    numbers = [draw(whole) for _ in range(rows)]
    try:
        if pa.types.is_dictionary(kind):
            column = pa.DictionaryArray.from_arrays(
                pa.array([n % 2 for n in numbers], pa.int8()), ["u", "v"], ordered=draw(st.booleans())
            )
        elif pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            wide = pa.int32() if kind.bit_width == 32 else pa.int64()
            column = pa.array([n % 2**31 if kind.bit_width == 32 else n for n in numbers], wide).view(kind)
        else:
            column = pa.array([None] * rows, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        column = pa.nulls(rows)
    return pa.table({draw(NAMES): column, "plain": pa.array(range(rows))})


@st.composite
def other_files(draw: st.DrawFn) -> File:
    """A file of another program, spoilt, or with a suffix that lies."""
    frame = draw(frames(most_rows=4))
    suffix = draw(
        st.sampled_from(
            ["xlsx", "sav", "dta", "sas7bdat", "xpt", "zsav", "csv.gz", "parquet", "feather", "odd", ""]
        )
    )
    content = draw(st.one_of(st.binary(max_size=200), st.just(_as_csv(frame).encode())))
    if suffix == "xlsx" and draw(st.booleans()):
        content = draw(spoilt(_workbook()))
    return File(f"data.{suffix}" if suffix else "data", content)


_BOOK: list[bytes] = []


def _workbook() -> bytes:
    if not _BOOK:
        stream = io.BytesIO()
        pl.DataFrame({"age": [30, 41], "sex": ["f", None]}).write_excel(stream)
        _BOOK.append(stream.getvalue())
    return _BOOK[0]


FILES = st.one_of(text_files(), text_files(), columnar_files(), columnar_files(), other_files())
