"""The address of a database, taken apart so that a message can name it without its password."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from discreet.core.errors import InputError
from discreet.io.naming import existing_file

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
