"""The sidecar: a small TOML file next to the data that says which column plays which part.

``survey.roles.toml`` belongs to ``survey.csv`` (or ``survey.csv.gz``, ``survey.parquet``…)::

    [roles]                       # any role of Microdata; a column name or a list of them
    keys = ["age", "sex"]
    sensitive = ["income"]
    weight = "pwgtp"

    [reading]                     # options of discreet.read, where the detected ones are not right
    separator = ";"               # separator, decimal, encoding, missing, text, dates, sheet, user_missing,
                                  # value_labels
    missing = ["-8", "NA"]

    [hierarchies]                 # column = file, relative to the sidecar
    age = "hierarchies/age.csv"

All three tables may be left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, InputError, need_known
from discreet.core.files.atomic import replacing
from discreet.core.files.untrusted import read_toml
from discreet.core.roles import ROLES, Roles
from discreet.io.naming import bare_name, check_no_data
from discreet.microdata import Microdata

READING_OPTIONS = (
    "separator", "decimal", "encoding", "missing", "text", "dates", "sheet", "user_missing", "value_labels",
)  # fmt: skip
_TABLES = ("roles", "reading", "hierarchies")


@dataclass(frozen=True)
class Sidecar:
    """What a sidecar says: roles, how to read the file, and where its hierarchies lie."""

    roles: Roles = field(default_factory=Roles)
    reading: Mapping[str, Any] = field(default_factory=dict)
    hierarchies: Mapping[str, Path] = field(default_factory=dict)


def sidecar_path(path: str | Path) -> Path:
    """Return where the sidecar of a data file lies.

    Examples
    --------
    >>> sidecar_path("data/survey.csv.gz").name
    'survey.roles.toml'
    """
    path = Path(path)
    return path.with_name(f"{bare_name(path)}.roles.toml")


def load_sidecar(path: str | Path) -> Sidecar:
    r"""Read a sidecar; an error names the file and the key.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "survey.roles.toml"
    >>> _ = file.write_text('[roles]\nkeys = ["age"]\n[hierarchies]\nage = "age.csv"\n')
    >>> load_sidecar(file).roles.keys
    ('age',)
    """
    path = Path(path)
    content = _parsed(path)
    for table, entries in content.items():
        need_known([table], _TABLES, what="table", after=f" It stands in '{path.name}'.", kind=InputError)
        if not isinstance(entries, dict):
            raise InputError(
                f"In '{path.name}', '{table}' must be a table: write [{table}] above its entries."
            )
    return Sidecar(
        roles=_roles(content.get("roles", {}), path),
        reading=_reading(content.get("reading", {}), path),
        hierarchies=_hierarchies(content.get("hierarchies", {}), path),
    )


def load_roles(path: str | Path) -> Roles:
    """Read the roles of a sidecar."""
    return load_sidecar(path).roles


def save_roles(roles: Microdata | Roles, path: str | Path, overwrite: bool = False) -> Path:
    """Write roles as a sidecar and return its path.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "survey.roles.toml"
    >>> load_roles(save_roles(Roles.of(keys="age", weight="w"), file)).to_dict()
    {'keys': ['age'], 'weight': 'w'}
    """
    taken = (roles.roles if isinstance(roles, Microdata) else roles).to_dict()
    lines = ["[roles]", *(f"{role} = {toml_value(columns)}" for role, columns in taken.items())]
    return save_text("\n".join(lines) + "\n", path, overwrite=overwrite)


def save_text(content: str, path: str | Path, *, overwrite: bool, private: bool = False) -> Path:
    """Write the text of a sidecar, a plan or a log, whole or not at all, and never over a data file."""
    target = Path(path)
    check_no_data(target, "this text")
    try:
        text = content.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"'{target.name}' cannot be written: a name or value holds half of a sign, as file names of other systems "
            "do. Rename it."
        ) from None
    with replacing(target, overwrite=overwrite, private=private) as unfinished:
        unfinished.write_bytes(text)
    return target


def toml_value(value: str | list[str]) -> str:
    r"""Write a text or a list of texts as TOML.

    Examples
    --------
    >>> print(toml_value(["age", 'the "key"']))
    ["age", "the \"key\""]
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return f"[{', '.join(toml_value(item) for item in value)}]"


def _parsed(path: Path) -> dict[str, Any]:
    # Unlike the method of a path this takes a name that is too long for the system for one that is not there.
    if not os.path.exists(path):
        raise InputError(f"There is no roles file '{path}'. Write one with discreet inspect.")
    return read_toml(path, "roles file")


def _roles(entries: dict[str, Any], path: Path) -> Roles:
    for role, columns in entries.items():
        where = f" It stands in '{path.name}' under [roles]."
        need_known([role], ROLES, what="role", after=where, kind=InputError)
        if not isinstance(columns, str | list):
            raise InputError(f"In '{path.name}', roles.{role} must be a column name or a list of them.")
    try:
        return Roles.of(**entries)
    except DiscreetError as error:
        raise InputError(f"In '{path.name}' under [roles]: {error}") from None


def _reading(entries: dict[str, Any], path: Path) -> dict[str, Any]:
    where = f" It stands in '{path.name}' under [reading]."
    need_known(entries, READING_OPTIONS, what="option", after=where, kind=InputError)
    return entries


def _hierarchies(entries: dict[str, Any], path: Path) -> dict[str, Path]:
    for column, file in entries.items():
        if not isinstance(file, str):
            raise InputError(f"In '{path.name}', hierarchies.{column} must be the name of a file.")
    return {column: path.parent / file for column, file in entries.items()}
