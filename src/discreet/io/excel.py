"""Excel workbooks: one sheet is one file."""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import DiscreetError, DiscreetWarning, InputError, gave_up, load_extra, need_known
from discreet.core.files.untrusted import check_archive
from discreet.io.column_types import dates_of, kinds_of, parsed, question_of_order, typed, wanted_dates
from discreet.io.dialect import missing_tokens

_MOST_ROWS = 1_048_575


def read_excel(
    path: Path,
    *,
    sheet: str | int | None = None,
    missing: str | Sequence[str] | None = None,
    only_missing: bool = False,
    dates: str | Sequence[str] | Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read one sheet of a workbook; also return how it was read.

    Parameters
    ----------
    path
        The workbook.
    sheet
        Name or number (from 1) of the sheet; the first one unless given.
    missing
        Texts that count as missing beside the usual ones.
    only_missing
        Whether only they and the empty field do.
    dates
        How dates that stand as texts are written, as in delimited files.
    """
    fastexcel = load_extra("fastexcel", extra="files", purpose="Reading Excel")
    with _explained(path):
        check_extent(path)
        sheets: list[str] = fastexcel.read_excel(str(path)).sheet_names
        chosen = _sheet(sheets, sheet, path)
        _check_header(fastexcel, path, chosen)
        frame = pl.read_excel(path, sheet_name=chosen, infer_schema_length=None, raise_if_empty=False)
    if frame.height == 0:
        raise InputError(
            f"The sheet '{chosen}' of '{path.name}' has no records. Name another sheet with sheet=."
        )
    tokens = list(missing_tokens(missing, only=only_missing))
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns(pl.when(~pl.col(texts).is_in(tokens)).then(pl.col(texts)))
    # A number column with a "NA" in it comes as text; judge it by what is left.
    kinds = kinds_of(frame.lazy(), texts)[0]
    still_texts = {name: name for name, kind in kinds.items() if kind == "text"}
    formats, doubtful = dates_of(frame.lazy(), still_texts, wanted_dates(dates))
    if doubtful:
        warnings.warn(question_of_order(doubtful), DiscreetWarning, stacklevel=2)
    frame = frame.with_columns(
        *(typed(name, kind) for name, kind in kinds.items() if kind != "text"),
        *(parsed(pl.col(name), form) for name, form in formats.items()),
    )
    about = {"dates": formats, "ambiguous_dates": doubtful}
    return frame, {
        "format": "excel",
        "sheet": chosen,
        "missing": tokens,
        "rows": frame.height,
        **{name: value for name, value in about.items() if value},
    }


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say that a workbook cannot be read, whatever way its readers have of giving up."""
    try:
        yield
    except DiscreetError:
        raise
    except BaseException as error:
        if not gave_up(error):
            raise
        raise InputError(
            f"The file '{path.name}' cannot be read as an Excel workbook: it is cut off, damaged, protected by a "
            "password or of another format. Save it again as .xlsx."
        ) from None


def write_excel(
    frame: pl.DataFrame, path: Path, *, sheet: str = "data", guard_formulas: bool = False
) -> None:
    """Write a frame as a workbook of one sheet; texts that look like formulas stay texts.

    With ``guard_formulas`` the cells of texts are also marked as such, so that they stay texts when they are edited.
    """
    xlsxwriter = load_extra("xlsxwriter", extra="files", purpose="Writing Excel")
    if frame.height > _MOST_ROWS:
        raise InputError(
            f"{frame.height:,} records do not fit into an Excel sheet ({_MOST_ROWS:,} at most). "
            "Write .csv or .parquet instead."
        )
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    # In memory: the writer would leave its own temporary files, with the data in them, when a run is killed.
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {**plain, "in_memory": True}) as book:
        # A fixed time: the same file gives the same bytes.
        book.set_properties({"created": datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC)})
        texts = [
            name for name, dtype in frame.schema.items() if not dtype.is_numeric() and not dtype.is_temporal()
        ]
        marked: Any = {name: {"quote_prefix": True} for name in texts} if guard_formulas else None
        frame.write_excel(book, worksheet=sheet, autofilter=False, column_formats=marked)
    path.write_bytes(content.getbuffer())


def _sheet(sheets: list[str], wanted: str | int | None, path: Path) -> str:
    if wanted is None:
        return sheets[0]
    if isinstance(wanted, int):
        if not 1 <= wanted <= len(sheets):
            raise InputError(f"'{path.name}' has {len(sheets)} sheets; sheet={wanted} is not one of them.")
        return sheets[wanted - 1]
    need_known([wanted], sheets, what="sheet", after=f" The workbook is '{path.name}'.", kind=InputError)
    return wanted


def _check_header(fastexcel: Any, path: Path, sheet: str) -> None:
    top = fastexcel.read_excel(str(path)).load_sheet(sheet, header_row=None, n_rows=1).to_polars()
    names = [str(name) for name in top.row(0) if name is not None] if top.height else []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"The sheet '{sheet}' of '{path.name}' names the column '{twice[0]}' more than once. "
            "Rename the columns so that each name is used once."
        )


# How large a grid does a workbook ask for?
#
# Readers of workbooks make room for the whole rectangle between the first and the last cell. One cell in the far
# corner of a sheet, put there by mistake or on purpose, makes them ask for hundreds of gigabytes, at which the
# program is ended from outside. So the places of the cells are looked at first.


_COLUMN = re.compile(rb'\br="([A-Z]{1,3})[0-9]{1,7}"')
_ROW = re.compile(rb'\br="[A-Z]{1,3}([0-9]{1,7})"')
_CHUNK = 1 << 22
_LARGE = 50_000_000


def check_extent(path: Path) -> None:
    """Refuse a workbook one of whose sheets is nearly empty and larger than memory, or unpacks without end."""
    check_archive(path, counted=True)
    with zipfile.ZipFile(path) as book:
        for item in book.infolist():
            if (
                item.filename.startswith("xl/worksheets/")
                and item.filename.endswith(".xml")
                and item.file_size
            ):
                _check_sheet(book, item, path)


def _check_sheet(book: zipfile.ZipFile, item: zipfile.ZipInfo, path: Path) -> None:
    rows, columns, cells = set[bytes](), set[bytes](), 0
    rest = b""
    with book.open(item) as stream:
        while part := stream.read(_CHUNK):
            text = rest + part
            found = _COLUMN.findall(text)
            columns.update(found)
            rows.update(_ROW.findall(text))
            cells += len(found)
            rest = text[-16:]
    if not cells:
        return
    across, down = sorted(map(_number, columns)), sorted(map(int, rows))
    grid = (across[-1] - across[0] + 1) * (down[-1] - down[0] + 1)
    if grid > _LARGE and grid > 20 * cells:
        raise InputError(
            f"A sheet of '{path.name}' has cells so far apart that it would take {grid:,} cells to hold it, nearly all "
            "of them empty. Delete the stray cells, or export the sheet as .csv."
        )


def _number(letters: bytes) -> int:
    """Turn the letters of a column into its number: A is 1, AA is 27."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number
