"""Hierarchy files (``.hrc``): one code a line, pushed in by one leading mark for every level.

::

    North
    @N1
    @N2
    South
    @S1

The total stands above all lines and is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.hierarchy import Hierarchy
from discreet.tables.building.dimension import Dimension

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
    with replacing(path) as unfinished:
        unfinished.write_text("".join(f"{line}\n" for line in _written(paths, lead)), encoding="utf-8")
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
