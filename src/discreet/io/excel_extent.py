"""How large a grid does a workbook ask for?

Readers of workbooks make room for the whole rectangle between the first and the last cell. One cell in the far corner
of a sheet, put there by mistake or on purpose, makes them ask for hundreds of gigabytes, at which the program is ended
from outside. So the places of the cells are looked at first.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from discreet.core.errors import InputError
from discreet.core.files.archives import check_archive

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
