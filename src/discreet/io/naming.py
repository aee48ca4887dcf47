"""What a file name says: which format, where the file lies, what its fingerprint is."""

from __future__ import annotations

import hashlib
import os
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InputError, ParameterError, near_misses
from discreet.core.files.inputs import note_read

FORMATS = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".sav", ".zsav"), "spss"),
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "xport",
    ".xlsx": "excel",
}

_ELSEWHERE = frozenset('/\\:*?"<>|')
_LONGEST_NAME = 120
_WIDTH = re.compile(r"^(0?[1-9][0-9]?d?)?$")
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(source: str) -> bool:
    """Whether a source is the address of a database rather than a file.

    Examples
    --------
    >>> is_address("sqlite:///people.db"), is_address("people.csv")
    (True, False)
    """
    return bool(_ADDRESS.match(source))


def checked_name(name: str, what: str) -> str:
    r"""Return a name that can be a part of a file name; refuse one that could lead elsewhere.

    Parameters
    ----------
    name
        What somebody called an output, a data set or a generator.
    what
        Which of these it names, for the message.

    Examples
    --------
    >>> checked_name("pay by region", "output")
    'pay by region'
    >>> checked_name("../../x", "data set")
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: The name of a data set becomes a file name: leave out / \ : * ? " < > | and ...
    """
    fits = (
        isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
        and not _ELSEWHERE & set(name)
        and name.isprintable()
        and not name.startswith(".")
        and name == name.strip()
    )
    if not fits:
        raise ParameterError(
            f'The name of a {what} becomes a file name: leave out / \\ : * ? " < > | and signs that cannot be printed, '
            f"begin with no dot and no blank, and use at most {_LONGEST_NAME} characters."
        )
    return name


def filled_in(pattern: str, known: Mapping[str, str | int]) -> str:
    """Fill the fields of a pattern for file names; nothing but the known fields may stand in braces.

    A number may say how many digits it wants, as in ``{seed:03}``.

    Examples
    --------
    >>> filled_in("ctgan/{data}-{seed:03}.csv", {"data": "adult", "seed": 7})
    'ctgan/adult-007.csv'
    """
    parts = []
    try:
        pieces = list(string.Formatter().parse(pattern))
    except ValueError as error:
        raise _only_fields(known) from error
    for text, field, width, conversion in pieces:
        parts.append(text)
        if field is None:
            continue
        if field not in known or conversion or not _WIDTH.match(width or ""):
            raise _only_fields(known)
        if width and not isinstance(known[field], int):
            raise _only_fields(known)
        parts.append(format(known[field], width or ""))
    return "".join(parts)


def _only_fields(known: Mapping[str, str | int]) -> ParameterError:
    *some, last = (f"{{{name}}}" for name in known)
    return ParameterError(f"A file name may hold {', '.join(some)} and {last}, and nothing else in braces.")


def full_suffix(path: Path) -> str:
    """Return the suffix that tells the format, with ``.gz`` when there is one.

    Examples
    --------
    >>> full_suffix(Path("survey.2024.CSV.gz")), full_suffix(Path("survey.parquet"))
    ('.csv.gz', '.parquet')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        return "".join(suffixes[-2:])
    return suffixes[-1] if suffixes else ""


def bare_name(path: Path) -> str:
    """Return the file name without the suffix that tells the format.

    Examples
    --------
    >>> bare_name(Path("data/survey.2024.csv.gz"))
    'survey.2024'
    """
    suffix = full_suffix(path)
    return path.name[: len(path.name) - len(suffix)] if suffix else path.name


def format_of(path: Path) -> str:
    """Tell the format by the suffix, or list the suffixes discreet knows."""
    suffix = full_suffix(path)
    if suffix in FORMATS:
        return FORMATS[suffix]
    known = ", ".join(FORMATS)
    seen = f"the suffix '{suffix}'" if suffix else "no suffix"
    raise InputError(f"'{path.name}' has {seen}, which tells no format discreet knows. Known are: {known}.")


def check_no_data(path: Path, what: str) -> None:
    """Refuse to write something else than data to a name that says data: what is there may be the only copy.

    Examples
    --------
    >>> check_no_data(Path("people.csv"), "a plan")
    Traceback (most recent call last):
    discreet.core.errors.InputError: 'people.csv' is the name of a data file, and a plan is none. Give another name.
    """
    if full_suffix(path) in FORMATS:
        raise InputError(f"'{path.name}' is the name of a data file, and {what} is none. Give another name.")


def existing_file(path: Path) -> Path:
    """Return the path if a readable file lies there; otherwise say what is near it."""
    # Unlike the methods of a path these take a name that is too long for the system for one that is not there.
    if os.path.isdir(path):
        raise InputError(f"'{path}' is a folder, not a file. Name one of the files in it.")
    if not os.path.exists(path):
        raise InputError(f"There is no file '{path}'.{_nearby(path)}")
    if not os.access(path, os.R_OK):
        raise InputError(f"The file '{path.name}' may not be read by you. Ask for read permission.")
    if path.stat().st_size == 0:
        raise InputError(f"The file '{path.name}' is empty. Give a file with a header and records.")
    note_read(path)
    return path


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f" Its folder '{path.parent}' does not exist either."
    close = near_misses(path.name, [entry.name for entry in path.parent.iterdir() if entry.is_file()])
    if not close:
        return " Check the name and the folder."
    return " Did you mean " + " or ".join(f"'{name}'" for name in close) + "?"


# The address of a database, taken apart so that a message can name it without its password.


_FILES = ("sqlite", "duckdb")


@dataclass(frozen=True)
class Address:
    """A database address.

    Attributes
    ----------
    uri
        As the user gave it; holds the password and never goes into a message.
    engine
        ``"sqlite"``, ``"duckdb"``, ``"postgresql"``, …
    shown
        What a message may say.
    file
        The database file, for SQLite and DuckDB.
    """

    uri: str
    engine: str
    shown: str
    file: Path | None

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parsed_address(uri: str) -> Address:
    """Take a database address apart.

    Examples
    --------
    >>> parsed_address("postgresql://ann:secret@db.example:5432/survey").shown
    'postgresql://db.example:5432/survey'
    >>> parsed_address("duckdb:///people.duckdb").file
    PosixPath('people.duckdb')
    """
    scheme, _, rest = uri.partition("://")
    engine = scheme.partition("+")[0].lower()
    engine = "postgresql" if engine == "postgres" else engine
    if engine in _FILES:
        file = _file_of(rest.partition("?")[0], engine)
        return Address(uri, engine, f"{engine}:///{file.name}", file)
    try:
        parts = urlsplit(uri)
        port = f":{parts.port}" if parts.port else ""
        shown = f"{scheme.lower()}://{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        raise InputError(
            f"The {engine} address cannot be understood. Write it as {engine}://user@host:port/database; "
            "special characters in the password must be percent-encoded."
        ) from None
    return Address(uri, engine, shown, None)


def require_file(address: Address) -> Path:
    """Return the database file, or say what is near it."""
    assert address.file is not None
    return existing_file(address.file)


def _file_of(rest: str, engine: str) -> Path:
    name = unquote(rest.removeprefix("/"))
    if not name or name == ":memory:":
        raise InputError(
            f"The {engine} address names no file. Write {engine}:///folder/file, or four slashes for a full path."
        )
    file, rooted = Path(name), Path(f"/{name}")
    # Three slashes before a full path are the usual slip.
    meant_rooted = rooted.exists() or (rooted.parent.is_dir() and not file.parent.is_dir())
    return rooted if meant_rooted and not file.exists() else file
