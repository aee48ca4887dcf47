"""How tables hang together: keys, parents, order within a parent, rules; and whether the tables are like that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.described import made_from
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError, unknown_name
from discreet.core.files.texts import read_toml

_FEWEST = 2


@dataclass(frozen=True)
class TableSchema:
    """What is said about one table.

    Attributes
    ----------
    key
        The column that numbers its records; None where it has none.
    parents
        ``{column: table}``: columns that hold the key of a record of another table. By the first that is not public
        the records are drawn; the others are partners that are found for them (n to m), or public.
    order
        The column by which the records of a parent stand in time, e.g. a date or a wave.
    public
        The table is no secret (regions, codes) and stays as it is.
    rules
        Conditions on every record; columns of the parent are called ```parent.column```.
    leave_out
        Columns that the synthetic table shall not have.
    file
        Where the table lies, for the command line.
    """

    key: str | None = None
    parents: Mapping[str, str] = field(default_factory=dict)
    order: str | None = None
    public: bool = False
    rules: Sequence[str] = ()
    leave_out: Sequence[str] = ()
    file: str | None = None

    def __post_init__(self) -> None:
        for setting in ("rules", "leave_out"):
            value = getattr(self, setting)
            object.__setattr__(self, setting, (value,) if isinstance(value, str) else tuple(value))


@dataclass(frozen=True)
class Schema:
    """Tables and how they hang together.

    Parameters
    ----------
    tables
        What is said about each, by name.
    confirmed
        Whether somebody has said so; a schema that was only inferred is not used.

    Examples
    --------
    >>> schema = Schema.from_dict({
    ...     "tables": {"person": {"key": "id"}, "visit": {"parents": {"person_id": "person"}, "order": "day"}}
    ... })
    >>> schema.sequence()
    ['person', 'visit']
    """

    tables: Mapping[str, TableSchema]
    confirmed: bool = True

    def __post_init__(self) -> None:
        if not self.tables:
            raise ParameterError("A schema needs at least one table.")
        for name, table in self.tables.items():
            for column, parent in table.parents.items():
                if parent not in self.tables:
                    raise ParameterError(
                        f"Table '{name}': {unknown_name(parent, self.tables, what='table')} "
                        f"It was named for '{column}'."
                    )
                if self.tables[parent].key is None:
                    raise ParameterError(
                        f"Table '{parent}' is a parent of '{name}' and needs a key: name the column that numbers its "
                        "records."
                    )
            if table.public and any(not self.tables[parent].public for parent in table.parents.values()):
                raise ParameterError(
                    f"Table '{name}' is public and hangs on one that is not. Say that both are, or neither."
                )
        self.sequence()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """Read a schema from plain values, as a TOML file has them."""
        unknown = [name for name in document if name not in ("tables", "confirmed")]
        if unknown:
            raise ParameterError(
                f"In the schema: {unknown_name(unknown[0], ('tables', 'confirmed'), what='entry')}"
            )
        tables = document.get("tables", {})
        if not isinstance(tables, Mapping) or not all(isinstance(own, Mapping) for own in tables.values()):
            raise ParameterError("A schema lists its tables: [tables.person], key = …, parents = {…}.")
        made = {str(name): made_from(TableSchema, f"table '{name}'", own) for name, own in tables.items()}
        return cls(made, bool(document.get("confirmed", True)))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        try:
            return cls.from_dict(read_toml(path, "schema file"))
        except InputError:
            raise
        except DiscreetError as error:
            raise type(error)(f"In '{Path(path).name}': {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values."""
        tables: dict[str, Any] = {}
        for name, table in self.tables.items():
            own: dict[str, Any] = {
                "key": table.key,
                "parents": dict(table.parents),
                "order": table.order,
                "public": table.public,
                "rules": list(table.rules),
                "leave_out": list(table.leave_out),
                "file": table.file,
            }
            tables[name] = {setting: value for setting, value in own.items() if value}
        return {"confirmed": self.confirmed, "tables": tables}

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the schema to a TOML file, to be read, corrected and confirmed."""
        import tomli_w

        from discreet.io.sidecar import save_text

        return save_text(tomli_w.dumps(self.to_dict()), path, overwrite=overwrite)

    def confirm(self) -> Schema:
        """Say that an inferred schema is right."""
        return replace(self, confirmed=True)

    def sequence(self) -> list[str]:
        """Return the tables so that parents come before their children; a cycle is refused."""
        placed: list[str] = []
        left = list(self.tables)
        while left:
            free = [name for name in left if all(p in placed for p in self.tables[name].parents.values())]
            if not free:
                raise ParameterError(
                    f"The schema goes in a circle: {', '.join(map(repr, left))} are parents of each other. Take one of "
                    "the links out."
                )
            placed += free
            left = [name for name in left if name not in free]
        return placed

    def owner(self, name: str) -> tuple[str, str] | None:
        """Return the column and the table of the parent by which records are drawn; None for a table of its own."""
        for column, parent in self.tables[name].parents.items():
            if not self.tables[parent].public:
                return column, parent
        return None

    def partners(self, name: str) -> list[tuple[str, str]]:
        """Return the columns and tables of further parents, for which partners are found."""
        links = [(c, p) for c, p in self.tables[name].parents.items() if not self.tables[p].public]
        return links[1:]

    def children(self, parent: str) -> list[tuple[str, str]]:
        """Return the tables that hang on a table, with the column that says so."""
        return [
            (name, column)
            for name, table in self.tables.items()
            for column, above in table.parents.items()
            if above == parent
        ]

    @staticmethod
    def infer(tables: Mapping[str, pl.DataFrame]) -> Schema:
        """Guess a schema from names and values; look at it, correct it, and confirm it.

        A key is the first column without repetition or gap that is called after its table or ``id``; a column of the
        same name in another table whose values are all among its values is a link to it.
        """
        keys: dict[str, str] = {}
        for name, frame in tables.items():
            unique = [
                column
                for column in frame.columns
                if (frame.schema[column].is_integer() or frame.schema[column] == pl.String)
                and frame.height >= _FEWEST
                and not frame[column].null_count()
                and frame[column].n_unique() == frame.height
            ]
            named = [column for column in unique if column.lower() in _names_of_key(name)]
            others = {own for other in tables if other != name for own in _names_of_key(other)}
            named = named or [c for c in unique if c.lower().endswith("id") and c.lower() not in others][:1]
            if named:
                keys[name] = named[0]
        made = {}
        for name, frame in tables.items():
            parents = {}
            for column in frame.columns:
                for parent, key in keys.items():
                    if parent != name and column == key and column != keys.get(name):
                        known = tables[parent][key]
                        if (
                            frame[column].dtype == known.dtype
                            and frame[column].drop_nulls().is_in(known.implode()).all()
                        ):
                            parents[column] = parent
            made[name] = TableSchema(key=keys.get(name), parents=parents)
        return Schema(made, confirmed=False)


def _names_of_key(table: str) -> set[str]:
    base = table.lower().removesuffix("s")
    return {"id", f"{base}_id", f"{base}id", f"id_{base}", base}


def check_tables(schema: Schema, tables: Mapping[str, pl.DataFrame]) -> None:
    """Refuse tables that are not as the schema says: missing, with double or missing keys, or with orphans."""
    for name in schema.tables:
        if name not in tables:
            raise InputError(f"The schema has a table '{name}' that was not given.")
    for name in tables:
        if name not in schema.tables:
            raise ParameterError(unknown_name(name, schema.tables, what="table of the schema"))
    for name, table in schema.tables.items():
        frame = tables[name]
        named = [table.key, *table.parents, table.order, *table.leave_out]
        for column in (column for column in named if column is not None):
            if column not in frame.columns:
                raise ColumnError(f"Table '{name}': {unknown_name(column, frame.columns)}")
        if table.key is not None:
            gaps = frame[table.key].null_count()
            double = frame.height - frame[table.key].n_unique()
            if gaps or double:
                raise InputError(
                    f"Table '{name}': the key '{table.key}' is missing in {gaps:,} records and repeats another in "
                    f"{double:,}. Every record needs a key of its own."
                )
        if not frame.height and schema.owner(name) is None:
            raise InputError(f"Table '{name}' has no records to learn from.")
    for name, table in schema.tables.items():
        for column, parent in table.parents.items():
            own, known = tables[name][column], tables[parent][str(schema.tables[parent].key)]
            if own.dtype != known.dtype:
                raise ColumnError(
                    f"Table '{name}': '{column}' and the key of '{parent}' are of different types, so nothing fits."
                )
            orphans = int((~own.drop_nulls().is_in(known.implode())).sum())
            gaps = own.null_count() if (column, parent) == schema.owner(name) else 0
            if orphans or gaps:
                raise InputError(
                    f"Table '{name}': {orphans:,} records name a '{parent}' that is not there and {gaps:,} name none "
                    f"('{column}'). Correct or remove them before the synthesis."
                )
