"""Files of tau-ARGUS, in and out: hierarchies, code lists, a-priori files and JJ tables.

Written from the published description of the formats in the tau-ARGUS manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.hierarchy import Hierarchy
from discreet.tables.dimension import Dimension
from discreet.tables.primary_rules import flags_of
from discreet.tables.table import Table
from discreet.tables.table_cells import equations

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Hierarchy files (``.hrc``): one code a line, pushed in by one leading mark for every level.
#
#     North
#     @N1
#     @N2
#     South
#     @S1
#
# The total stands above all lines and is not written.


Tree = dict[str, Any]


def read_hierarchy(path: str | Path, *, lead: str = "@", encoding: str = "utf-8") -> Hierarchy:
    r"""Read a tau-ARGUS hierarchy.

    Parameters
    ----------
    path
        The ``.hrc`` file.
    lead
        The mark that pushes a code in by one level; it may have several characters.
    encoding
        The text encoding; a byte order mark is skipped.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "place.hrc"
    >>> _ = file.write_text("North\n@N1\n@N2\nSouth\n@S1\n")
    >>> read_hierarchy(file).table().rows()
    [('N1', 'North', '*'), ('N2', 'North', '*'), ('S1', 'South', '*')]
    """
    lines = text_lines(Path(path), encoding)
    root: Tree = {}
    open_branches = [root]
    for number, line in enumerate(lines, 1):
        depth, code = _depth(line, lead)
        if not code:
            raise InputError(f"Line {number} of '{Path(path).name}' has no code after its leading marks.")
        if depth >= len(open_branches):
            raise InputError(
                f"Line {number} of '{Path(path).name}' lies more than one level below the line before. Push it in by "
                f"one mark ('{lead}') at most, or name another mark with lead=."
            )
        del open_branches[depth + 1 :]
        if code in open_branches[depth]:
            raise InputError(f"Line {number} of '{Path(path).name}' repeats a code of the same group.")
        branch: Tree = {}
        open_branches[depth][code] = branch
        open_branches.append(branch)
    if not root:
        raise InputError(f"'{Path(path).name}' holds no codes.")
    return Hierarchy.from_tree(_leaves_as_lists(root))


def write_hierarchy(
    hierarchy: Hierarchy | Dimension | Mapping[str, Any],
    path: str | Path,
    *,
    lead: str = "@",
    chain: int = 0,
) -> Path:
    """Write a hierarchy for tau-ARGUS and return the path.

    Parameters
    ----------
    hierarchy
        A `Hierarchy` with a table of its own, a dimension of a table, or a tree.
    path
        The file to write.
    lead
        The mark that pushes a code in by one level.
    chain
        Which hierarchy of a dimension that has several.
    """
    if isinstance(hierarchy, Mapping):
        hierarchy = Hierarchy.from_tree(hierarchy)
    if isinstance(hierarchy, Dimension):
        if not 0 <= chain < len(hierarchy.chains):
            raise ParameterError(f"chain must be from 0 to {len(hierarchy.chains) - 1}.")
        paths = [tuple(reversed(labels)) for labels in zip(*hierarchy.chains[chain], strict=True)]
    else:
        rows = hierarchy.table().rows()
        paths = [tuple(str(label) for label in reversed(row[:-1])) for row in rows]
    return _write(path, "".join(f"{line}\n" for line in _written(paths, lead)))


def _write(path: str | Path, text: str) -> Path:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    return Path(path)


def text_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Read the lines of a small text file, without those that are empty."""
    note_read(path)
    try:
        text = path.read_text(encoding="utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except OSError as error:
        raise InputError(
            f"'{path.name}' cannot be read: {error.strerror or type(error).__name__}."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{path.name}' is not {encoding} text. Name its encoding, for example encoding='cp1252'."
        ) from error
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _depth(line: str, lead: str) -> tuple[int, str]:
    depth = 0
    while lead and line.startswith(lead):
        line = line[len(lead) :]
        depth += 1
    return depth, line.strip()


def _leaves_as_lists(branch: Tree) -> Any:
    if all(not below for below in branch.values()):
        return list(branch)
    return [code if not below else {code: _leaves_as_lists(below)} for code, below in branch.items()]


def _written(paths: list[tuple[str, ...]], lead: str) -> Iterator[str]:
    """Write each group with everything it holds right below it."""
    root: Tree = {}
    for path in paths:
        branch = root
        for place, label in enumerate(path):
            if place == 0 or label != path[place - 1]:
                branch = branch.setdefault(label, {})
    yield from _lines(root, "", lead)


def _lines(branch: Tree, marks: str, lead: str) -> Iterator[str]:
    for code, below in branch.items():
        yield marks + code
        yield from _lines(below, marks + lead, lead)


# Code lists (``.cdl``): one code a line, a comma, and what it means.


def read_codelist(path: str | Path, *, encoding: str = "utf-8") -> dict[str, str]:
    r"""Read what codes mean.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "place.cdl"
    >>> _ = file.write_text('1,Groningen\n2,"Friesland, all of it"\n')
    >>> read_codelist(file)
    {'1': 'Groningen', '2': 'Friesland, all of it'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text_lines(Path(path), encoding), 1):
        code, comma, label = line.partition(",")
        code = code.strip().strip('"')
        if not comma or not code:
            raise InputError(
                f"Line {number} of '{Path(path).name}' is not a code, a comma and a label. Mend the line."
            )
        if code in found:
            raise InputError(f"Line {number} of '{Path(path).name}' repeats a code. Keep one label for each.")
        found[code] = label.strip().strip('"')
    return found


def write_codelist(labels: Mapping[str, str], path: str | Path) -> Path:
    """Write what codes mean and return the path."""
    for code in labels:
        if "," in code or "\n" in code or "\n" in labels[code]:
            raise InputError("A code in a code list cannot hold a comma or a line break. Recode it first.")
    lines = (f'{code},"{label}"\n' if "," in label else f"{code},{label}\n" for code, label in labels.items())
    return _write(path, "".join(lines))


# A-priori files (``.hst``): what is known of single cells before the rules are applied.
#
#     Nr,4,u
#     Zd,6,p
#     Total,5,c,5
#     Nr,8,pl,10,5
#
# The codes of the cell come first, then ``u`` (unsafe), ``s`` (safe), ``p`` (protected: must be published), ``c`` and a
# new cost, or ``pl`` and the lower and upper protection level.


_MORE = {"u": 0, "s": 0, "p": 0, "c": 1, "pl": 2}


def read_apriori(
    path: str | Path,
    dimensions: Sequence[str],
    *,
    separator: str = ",",
    total: str = "Total",
    encoding: str = "utf-8",
) -> pl.DataFrame:
    r"""Read an a-priori file.

    Parameters
    ----------
    path
        The file.
    dimensions
        The columns that the codes belong to, in the order of the file.
    separator
        What stands between the entries.
    total
        The code of the totals; an empty code is one as well.
    encoding
        The text encoding.

    Returns
    -------
    DataFrame
        The dimensions, ``status``, ``cost``, ``lower_protection``, ``upper_protection``.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "known.hst"
    >>> _ = file.write_text("Nr,4,u\nTotal,5,c,5\n")
    >>> read_apriori(file, ["region", "size"]).select("region", "size", "status", "cost").rows()
    [('Nr', '4', 'u', None), ('Total', '5', 'c', 5.0)]
    """
    rows = []
    for number, line in enumerate(text_lines(Path(path), encoding), 1):
        parts = [part.strip().strip('"') for part in line.split(separator)]
        codes, rest = parts[: len(dimensions)], parts[len(dimensions) :]
        status = rest[0].lower() if rest else ""
        if status not in _MORE or len(rest) < 1 + _MORE[status]:
            raise InputError(
                f"Line {number} of '{Path(path).name}' is not {len(dimensions)} codes and a status (u, s, p, c with a "
                "cost, pl with two levels). Check the dimensions and the separator."
            )
        try:
            numbers = [float(entry) for entry in rest[1 : 1 + _MORE[status]]]
        except ValueError as error:
            raise InputError(
                f"Line {number} of '{Path(path).name}' has a cost or level that is no number."
            ) from error
        rows.append(
            [
                *(code or total for code in codes),
                status,
                numbers[0] if status == "c" else None,
                *(numbers if status == "pl" else [None, None]),
            ]
        )
    figures = ("cost", "lower_protection", "upper_protection")
    texts = [(name, pl.String()) for name in (*dimensions, "status")]
    return pl.DataFrame(rows, schema=[*texts, *((name, pl.Float64()) for name in figures)], orient="row")


def write_apriori(known: pl.DataFrame, path: str | Path, *, separator: str = ",") -> Path:
    """Write what `read_apriori` reads and return the path."""
    figures = ("cost", "lower_protection", "upper_protection")
    dimensions = [column for column in known.columns if column not in ("status", *figures)]
    lines = []
    for row in known.iter_rows(named=True):
        status = row["status"]
        if status not in _MORE:
            raise ParameterError("status must be u, s, p, c or pl.")
        more = {"c": figures[:1], "pl": figures[1:]}.get(status, ())
        entries = [*(str(row[name]) for name in dimensions), status, *(f"{row[name]:g}" for name in more)]
        if any(separator in entry for entry in entries):
            raise ParameterError("A code holds the separator. Choose another separator.")
        lines.append(separator.join(entries) + "\n")
    return _write(path, "".join(lines))


def apply_apriori(table: Table, known: pl.DataFrame) -> Table:
    """Apply what is known of single cells, after the rules and over their heads.

    Unsafe cells become sensitive (rule ``a priori``), safe ones not; protected cells get ``forced``; costs and
    protection levels go to ``cost`` and ``protection`` (the larger of the two levels).
    """
    cells = table.cells
    on = list(table.dimensions)
    primary = _column(table, "primary", False)
    rule = cells["rule"].to_list() if "rule" in cells.columns else [None] * cells.height
    forced = np.zeros(cells.height, dtype=bool)
    cost = _column(table, "cost", np.abs(table.values.astype(float)))
    protection = _column(table, "protection", 0.0)
    for status in _MORE:
        wanted = known.filter(pl.col("status") == status)
        if wanted.is_empty():
            continue
        hit = flags_of(table, wanted.select(on), "known")
        if status in ("u", "s"):
            primary[hit] = status == "u"
            for at in np.flatnonzero(hit):
                rule[at] = "a priori" if status == "u" else None
        elif status == "p":
            forced |= hit
        else:
            figure = "cost" if status == "c" else "level"
            level = wanted.with_columns(level=pl.max_horizontal("lower_protection", "upper_protection"))
            values = cells.select(on).join(level, on=on, how="left", maintain_order="left")[figure].to_numpy()
            target = cost if status == "c" else protection
            target[hit] = values[hit]
    rules = pl.Series("rule", rule, dtype=pl.String)
    return table.with_cells(primary=primary, rule=rules, forced=forced, cost=cost, protection=protection)


# JJ tables (``.jj``): cells with their status and bounds, and the equations between them.
#
#     0
#     3
#     0 30 30 s 0 60 0 0 0
#     1 20 20 u 0 60 2 2 0
#     2 10 10 u 0 60 1 1 0
#     1
#     0 3 : 0 (-1) 1 (1) 2 (1)
#
# A line of a cell holds its number, value, cost, status (``s`` safe, ``u`` unsafe, ``z`` fixed), lower and upper bound,
# and the lower, upper and sliding protection levels. An equation holds its right-hand side, the number of cells, and
# the cells with their coefficients.


NUMBERS = ("value", "cost", "lower", "upper", "lower_protection", "upper_protection", "sliding_protection")
_COLUMNS = ("cell", "value", "cost", "status", *NUMBERS[2:])
_PAIR = re.compile(r"(\d+)\s*\(\s*([-+]?\d+)\s*\)")


@dataclass(frozen=True)
class JJ:
    """A table as a list of cells and the equations between them.

    Attributes
    ----------
    cells
        ``cell``, ``value``, ``cost``, ``status``, ``lower``, ``upper`` and the three protection levels.
    equations
        A sparse matrix: rows equations, columns cells.
    right
        The right-hand sides, as a rule all zero.
    """

    cells: pl.DataFrame
    equations: csr_array
    right: tuple[float, ...]

    def check(self, tolerance: float = 1e-6) -> int:
        """Count the equations that the values do not meet."""
        values = self.cells["value"].to_numpy()
        left = self.equations @ values
        allowed = tolerance * np.maximum(np.abs(self.equations) @ np.abs(values), 1.0)
        return int((np.abs(left - np.asarray(self.right)) > allowed).sum())


def jj_of(table: Table) -> JJ:
    """Write a table as cells and equations; sensitive cells are unsafe, forced ones fixed.

    Costs are the column ``cost`` of the cells, else the absolute values; protection levels the column ``protection``.
    """
    cells = table.cells
    value = table.values.astype(np.float64)
    size = np.abs(value)
    unsafe, fixed = (_column(table, name, False).astype(bool) for name in ("primary", "forced"))
    protection = _column(table, "protection", 0.0)
    most = float(size.max(initial=0.0))
    frame = pl.DataFrame(
        {
            "cell": np.arange(len(value)),
            "value": value,
            "cost": cells["cost"].cast(pl.Float64) if "cost" in cells.columns else pl.Series(size),
            "status": np.where(unsafe, "u", np.where(fixed, "z", "s")),
            "lower": np.where((value < 0).any(), -2 * most, 0.0) * np.ones(len(value)),
            "upper": np.full(len(value), 2 * most),
            "lower_protection": protection,
            "upper_protection": protection,
            "sliding_protection": np.zeros(len(value)),
        }
    )
    sums = equations(table)
    return JJ(frame, sums, (0.0,) * sums.shape[0])


def write_jj(table: Table | JJ, path: str | Path) -> Path:
    """Write a JJ file and return its path; numbers keep all their digits."""
    jj = table if isinstance(table, JJ) else jj_of(table)
    lines = ["0", str(jj.cells.height)]
    lines += [
        f"{cell} {_number(value)} {_number(cost)} {status} " + " ".join(map(_number, rest))
        for cell, value, cost, status, *rest in jj.cells.select(_COLUMNS).iter_rows()
    ]
    lines.append(str(jj.equations.shape[0]))
    starts, indices, entries = jj.equations.indptr, jj.equations.indices, jj.equations.data
    for row, right in enumerate(jj.right):
        here = range(starts[row], starts[row + 1])
        parts = " ".join(f"{indices[at]} ({entries[at]:d})" for at in here)
        lines.append(f"{_number(right)} {len(here)} : {parts}")
    return _write(path, "\n".join(lines) + "\n")


def read_jj(path: str | Path) -> JJ:
    """Read a JJ file."""
    from scipy.sparse import csr_array

    name = Path(path).name
    lines = text_lines(Path(path))
    many = _count(lines, 1, name)
    body = lines[2 : 2 + many]
    split = [line.split() for line in body]
    if len(body) < many or any(len(parts) != len(_COLUMNS) for parts in split):
        raise InputError(
            f"'{name}' promises {many:,} cells of {len(_COLUMNS)} entries and does not hold them."
        )
    try:
        cells = pl.DataFrame(split, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row").with_columns(
            pl.col("cell").cast(pl.Int64), pl.col(NUMBERS).cast(pl.Float64)
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"'{name}' has a cell line with something else than numbers in it.") from error
    if not cells["status"].is_in(["s", "u", "z", "m", "p"]).all():
        raise InputError(f"'{name}' has a cell whose status is none of s, u, z, m and p.")
    place = {cell: at for at, cell in enumerate(cells["cell"].to_list())}
    count = _count(lines, 2 + many, name)
    rows, columns, entries, right = [], [], [], []
    for row, line in enumerate(lines[3 + many : 3 + many + count]):
        head, _, parts = line.partition(":")
        pairs = _PAIR.findall(parts)
        numbers = head.split()
        if (
            len(numbers) != 2
            or len(pairs) != int(numbers[1])
            or any(int(cell) not in place for cell, _ in pairs)
        ):
            raise InputError(f"Equation {row + 1} of '{name}' cannot be read or names an unknown cell.")
        right.append(float(numbers[0]))
        rows += [row] * len(pairs)
        columns += [place[int(cell)] for cell, _ in pairs]
        entries += [int(entry) for _, entry in pairs]
    if len(right) < count:
        raise InputError(f"'{name}' promises {count:,} equations and holds {len(right):,}.")
    matrix = csr_array((np.asarray(entries, dtype=np.int32), (rows, columns)), shape=(count, many))
    return JJ(cells, matrix, tuple(right))


def _count(lines: list[str], at: int, name: str) -> int:
    if len(lines) <= at or not lines[at].strip().isdigit():
        raise InputError(f"'{name}' is no JJ file: a number of cells or equations is missing.")
    return int(lines[at])


def _number(number: float) -> str:
    if not np.isfinite(number):
        raise ParameterError(
            "A JJ file cannot hold infinite or missing numbers. Check the values of the table."
        )
    return str(int(number)) if number == int(number) and abs(number) < 2**53 else repr(float(number))


def _column(table: Table, name: str, otherwise: Any) -> Array:
    """Return a column of the cells that may be changed; a value for each where it is not there."""
    if name in table.cells.columns:
        return table.cells[name].to_numpy().copy()
    return np.full(table.cells.height, otherwise)
