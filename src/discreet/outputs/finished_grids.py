"""Read the tables of a finished file, whatever it is, as rows of texts that know where they stand.

Delimited text, every sheet of a workbook (hidden ones, too), tables of an HTML page, LaTeX tables, tables of a text
with bars or wide gaps, and JSON. Nothing is executed.
"""

from __future__ import annotations

import csv
import html.parser
import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, InputError, load_extra
from discreet.core.files.untrusted import parsed_json
from discreet.io.excel import check_extent

_WIDE_GAP = re.compile(r"\s{2,}|\t|\s*\|\s*")
_MOST_CELLS = 4_000_000
_CELL = re.compile(r'<c\s[^>]*?r="([A-Z]+)\d+"')
_SEPARATORS = (",", ";", "\t", "|")
DATA_FILES = (".parquet", ".feather", ".arrow", ".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt")
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Grid:
    """One table as it stands in a file.

    Attributes
    ----------
    rows
        The texts of its cells; all rows are equally long.
    sheet
        Name of the sheet, where there is one.
    first_row, first_column
        Where its first cell stands in the file, from 1.
    decimal_comma
        Whether a comma separates decimals.
    notes
        Text around it: titles, footnotes.
    """

    rows: tuple[tuple[str, ...], ...]
    sheet: str = ""
    first_row: int = 1
    first_column: int = 1
    decimal_comma: bool = False
    notes: str = ""

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.rows[0]) if self.rows else 0


def read_grids(file: Path, content: bytes | None = None) -> list[Grid]:
    """Read all tables of a file; empty where it has none."""
    ending = file.suffix.lower()
    if ending in (".xlsx", ".xls", ".xlsm", ".ods"):
        return _of_workbook(file)
    if ending in DATA_FILES:
        return _of_data_file(file)
    text = decoded(file.read_bytes() if content is None else content)
    if ending in (".csv", ".tsv"):
        return _of_delimited(text, "\t" if ending == ".tsv" else None)
    readers = {".html": _of_html, ".htm": _of_html, ".tex": _of_tex, ".json": _of_json}
    return readers.get(ending, _of_text)(text)


def text_of(grids: Sequence[Grid]) -> str:
    """Write tables as text again: the cells of a printed summary are pairs of a name and a number."""
    return "\n".join(" ".join(row) for grid in grids for row in grid.rows)


def decoded(raw: bytes) -> str:
    """Read bytes as text, by their mark, as UTF-8, or as Windows text."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def _of_delimited(text: str, separator: str | None) -> list[Grid]:
    lines = text.splitlines()
    if not any(line.strip() for line in lines):
        raise InputError("The file is empty.")
    sign = separator or _separator(lines)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=None), delimiter=sign))
    except csv.Error as error:
        raise InputError("The file is no table: its lines or quotes are broken.") from error
    points = sum(bool(re.search(r"\d\.\d", cell)) for row in rows for cell in row)
    commas = sum(bool(re.fullmatch(r"\s*-?\d+,\d+\s*%?", cell)) for row in rows for cell in row)
    return _blocks(rows, decimal_comma=sign != "," and commas > points)


def _separator(lines: Sequence[str]) -> str:
    """Choose the separator that cuts most lines into equally many pieces, and more than one."""

    def fits(sign: str) -> tuple[int, int]:
        widths = [len(next(csv.reader([line], delimiter=sign), [])) for line in lines[:200] if line.strip()]
        common = max(set(widths), key=widths.count)
        return (widths.count(common) if common > 1 else 0, common)

    return max(_SEPARATORS, key=fits)


def _of_data_file(file: Path) -> list[Grid]:
    """Read a file of a statistics package as a table; the first rows of a long one are enough to know it."""
    from discreet.engine import collect
    from discreet.io import read

    frame = collect(read(file, roles={})).head(_MOST_ROWS)
    body = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
    return [Grid((tuple(frame.columns), *map(tuple, body)))] if body else []


def _of_workbook(file: Path) -> list[Grid]:
    fastexcel = load_extra("fastexcel", extra="files", purpose="Reading Excel")
    try:
        check_extent(file)
        book = fastexcel.read_excel(str(file))
        offsets = _first_columns(file)
        grids = []
        for name in book.sheet_names:
            frame = book.load_sheet(name, header_row=None, skip_rows=0, dtypes="string").to_polars()
            if frame.height * max(frame.width, 1) > _MOST_CELLS:
                raise InputError(f"The sheet '{name}' of '{file.name}' is too large for an output.")
            rows = [[cell or "" for cell in row] for row in frame.iter_rows()]
            grids += _blocks(rows, sheet=name, first_column=offsets.get(name, 1))
    except DiscreetError:
        raise
    except Exception as error:
        raise InputError(
            f"'{file.name}' cannot be read as a workbook ({type(error).__name__}). Save it again as .xlsx."
        ) from error
    return grids


def _first_columns(file: Path) -> dict[str, int]:
    """Find the first used column of every sheet, which the reader leaves out of its tables."""
    try:
        with zipfile.ZipFile(file) as archive:
            book = archive.read("xl/workbook.xml").decode("utf-8", "replace")
            links = archive.read("xl/_rels/workbook.xml.rels").decode("utf-8", "replace")
            targets = {}
            for link in re.findall(r"<Relationship\s[^>]*>", links):
                name, target = re.search(r'\bId="([^"]+)"', link), re.search(r'Target="([^"]+)"', link)
                if name and target:
                    targets[name[1]] = target[1].removeprefix("/xl/").removeprefix("xl/")
            found = {}
            for sheet in re.findall(r"<(?:\w+:)?sheet\s[^>]*>", book):
                name, link_id = re.search(r'\bname="([^"]*)"', sheet), re.search(r'r:id="([^"]+)"', sheet)
                if name and link_id and link_id[1] in targets:
                    content = archive.read(f"xl/{targets[link_id[1]]}").decode("utf-8", "replace")
                    columns = [_column_number(letters) for letters in set(_CELL.findall(content))]
                    found[html.unescape(name[1])] = min(columns, default=1)
            return found
    except (KeyError, OSError, zipfile.BadZipFile):
        return {}


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def hidden_records(file: Path) -> list[str]:
    """Name the parts of a workbook that hold records behind a table: caches of pivot tables, embedded files."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return []
    kinds = {
        "pivotCacheRecords": "the records behind a pivot table",
        "xl/embeddings/": "an embedded file",
        "xl/externalLinks/": "values copied from another workbook",
        "vbaProject": "a program",
        "xl/model/": "a data model",
        "xl/charts/": "a chart, which keeps a copy of the numbers it draws",
    }
    return [what for sign, what in kinds.items() if any(sign in name for name in names)]


class _Tables(html.parser.HTMLParser):
    """Collect the tables of a page; a cell that spans several columns is written once and leaves the others blank."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self._span = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self._cell = []
            span = dict(attrs).get("colspan") or "1"
            self._span = min(int(span), 200) if span.isdigit() else 1

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            text = " ".join("".join(self._cell).split())
            self.tables[-1][-1] += [text, *([""] * (self._span - 1))]
            self._cell = None


def _of_html(text: str) -> list[Grid]:
    parser = _Tables()
    parser.feed(text)
    notes = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    return [grid for rows in parser.tables for grid in _blocks(rows, notes=notes)]


def _of_tex(text: str) -> list[Grid]:
    found = []
    for body in re.findall(r"\\begin\{(?:tabular|longtable|array)[^}]*\}(.*?)\\end\{", text, re.DOTALL):
        plain = re.sub(
            r"\\(hline|toprule|midrule|bottomrule|cline\{[^}]*\}|cmidrule(\([^)]*\))?\{[^}]*\})", "", body
        )
        lines = [line for line in re.split(r"\\\\(?:\[[^\]]*\])?", plain) if line.strip()]
        rows = [[_untexed(cell) for cell in re.split(r"(?<!\\)&", line)] for line in lines]
        found += _blocks(rows, notes=text)
    return found or _of_text(text)


def _untexed(cell: str) -> str:
    plain = re.sub(r"\\multicolumn\{\d+\}\{[^}]*\}\{([^}]*)\}", r"\1", cell)
    plain = re.sub(r"\\(textbf|textit|emph|mathrm|text)\{([^}]*)\}", r"\2", plain)
    return " ".join(re.sub(r"[${}]|\\(?=[%&_#])|\\,", "", plain).split())


def _of_text(text: str) -> list[Grid]:
    """Find tables in a text: neighboring lines that bars or wide gaps cut into pieces."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        bare = line.strip().strip("|").strip()
        is_rule = bool(bare) and not re.search(r"[^\s|:+=_-]", bare)
        pieces = [] if not bare or is_rule else [piece.strip() for piece in _WIDE_GAP.split(bare)]
        rows.append(pieces if len(pieces) > 1 else ["\0rule"] if is_rule else [])
    found: list[Grid] = []
    start = None
    for place, row in enumerate([*rows, []]):
        if row and start is None and row != ["\0rule"]:
            start = place
        elif not row and start is not None:
            block = [r for r in rows[start:place] if r != ["\0rule"]]
            width = max(len(r) for r in block)
            # A printed header often has no name above the labels.
            aligned = [([""] * (width - len(r)) + r) if len(r) < width else r for r in block]
            found += _blocks(aligned, first_row=start + 1, notes=text)
            start = None
    return found


def _of_json(text: str) -> list[Grid]:
    try:
        document = parsed_json(text)
    except ValueError:
        return []
    found: list[Grid] = []

    def plain(value: Any) -> str:
        return "" if value is None else str(value)

    def flat(values: Iterable[Any]) -> bool:
        return not any(isinstance(value, Mapping | list) for value in values)

    def walk(item: Any, name: str) -> None:
        if isinstance(item, list) and item and all(isinstance(row, Mapping) for row in item):
            names = list(dict.fromkeys(key for row in item for key in row))
            if all(flat(row.values()) for row in item):
                body = [[plain(row.get(n)) for n in names] for row in item]
                found.extend(_blocks([names, *body], sheet=name))
                return
        listed = isinstance(item, list) and item and all(isinstance(row, list) for row in item)
        if listed and all(map(flat, item)):
            found.extend(_blocks([[plain(value) for value in row] for row in item], sheet=name))
            return
        if isinstance(item, Mapping) and item:
            values = list(item.values())
            if all(isinstance(v, list) and flat(v) for v in values):
                longest = max(len(v) for v in values)
                body = [[plain(v[i]) if i < len(v) else "" for v in values] for i in range(longest)]
                found.extend(_blocks([[str(key) for key in item], *body], sheet=name))
                return
            if len(values) > 1 and all(isinstance(v, Mapping) for v in values):
                names = list(dict.fromkeys(key for v in values for key in v))
                if all(flat(v.values()) for v in values):
                    body = [[str(key), *(plain(v.get(n)) for n in names)] for key, v in item.items()]
                    found.extend(_blocks([["", *map(str, names)], *body], sheet=name))
                    return
            scalars = {k: v for k, v in item.items() if not isinstance(v, Mapping | list)}
            if scalars:
                body = [[str(key), plain(value)] for key, value in scalars.items()]
                found.extend(_blocks([["statistic", "value"], *body], sheet=name))
            for key, value in item.items():
                walk(value, f"{name}.{key}" if name else str(key))
        elif isinstance(item, list):
            for place, value in enumerate(item):
                walk(value, f"{name}[{place}]")

    walk(document, "")
    return found


def _blocks(
    rows: Sequence[Sequence[str]],
    *,
    sheet: str = "",
    first_row: int = 1,
    first_column: int = 1,
    decimal_comma: bool = False,
    notes: str = "",
) -> list[Grid]:
    """Cut rows into tables at blank lines, and make the rows of each equally long."""
    found: list[tuple[int, list[list[str]]]] = []
    titles: list[str] = []
    fresh = True
    for place, row in enumerate(rows):
        cells = [str(cell).strip() for cell in row]
        filled = [cell for cell in cells if cell]
        if not filled:
            fresh = True
            continue
        if len(filled) == 1 and len(cells) > 1 and not re.fullmatch(r"[\d.,%<* ]+", filled[0]) and cells[0]:
            # A line of its own is a title, a footnote or the name of a block of rows.
            titles.append(filled[0])
            if fresh or not found:
                continue
        if fresh:
            found.append((place, []))
            fresh = False
        found[-1][1].append(cells)
    around = " ".join([notes, *titles]).strip()
    grids = []
    for place, block in found:
        width = max(len(row) for row in block)
        full = tuple(tuple(row + [""] * (width - len(row))) for row in block)
        used = [j for j in range(width) if any(row[j] for row in full)]
        if not used:
            continue
        left, right = used[0], used[-1] + 1
        body = tuple(row[left:right] for row in full)
        grids.append(Grid(body, sheet, first_row + place, first_column + left, decimal_comma, around))
    return _rejoined(grids)


def _rejoined(grids: Sequence[Grid]) -> list[Grid]:
    """Put blocks back together that a blank line cut in the middle: the second has no header of its own."""
    made: list[Grid] = []
    for grid in grids:
        has_header = any(grid.rows) and not any(re.search(r"\d", cell) for cell in grid.rows[0][1:])
        if made and not has_header and made[-1].width == grid.width and made[-1].sheet == grid.sheet:
            gap = grid.first_row - made[-1].first_row - len(made[-1].rows)
            blank = tuple(("",) * grid.width for _ in range(max(gap, 0)))
            last = made.pop()
            rows = (*last.rows, *blank, *grid.rows)
            made.append(replace(last, rows=rows))
        else:
            made.append(grid)
    return made
