"""Tables that belong together: how they hang together, and the tables as one thing.

Keys, parents, order within a parent and rules are declared, and checked in the tables. These are read, divided so that
nobody is on both sides, and joined for a look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError, unknown_name
from discreet.core.files.untrusted import read_toml
from discreet.core.method_cards import made_from
from discreet.microdata import Microdata

_ENDINGS = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Tables and their schema.

    Also known as: ClavaDDPM comparison; linked tables.

    Attributes
    ----------
    schema
        How they hang together.
    tables
        The tables by name.
    origins
        The files that they were read from, which are never written over.

    Examples
    --------
    >>> links = Schema.from_dict({"tables": {"person": {"key": "id"}, "visit": {"parents": {"who": "person"}}}})
    >>> person, visit = pl.DataFrame({"id": [1, 2], "sex": ["f", "m"]}), pl.DataFrame({"who": [1, 1], "pay": [5, 6]})
    >>> both = LinkedTables(links, {"person": person, "visit": visit})
    >>> both.beside("visit").frame.rows()
    [(5, 'f', 2), (6, 'f', 2)]
    """

    schema: Schema
    tables: Mapping[str, pl.DataFrame]
    origins: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: Schema, tables: Mapping[str, Any]) -> LinkedTables:
        """Take frames of any kind, or `Microdata`, and check that they are as the schema says."""
        frames = {
            name: engine.collect(own if isinstance(own, Microdata) else Microdata(own))
            for name, own in tables.items()
        }
        check_tables(schema, frames)
        known = [own.metadata.origins for own in tables.values() if isinstance(own, Microdata)]
        return cls(schema, frames, tuple(place for origins in known for place, table in origins if not table))

    @classmethod
    def read(cls, path: str | Path) -> LinkedTables:
        """Read the tables that a schema file names, each by its ``file``."""
        from discreet.io import read

        schema, place = Schema.load(path), Path(path)
        without = [name for name, table in schema.tables.items() if not table.file]
        if without:
            raise InputError(f"In '{place.name}': table '{without[0]}' does not say its file = \"…\".")
        tables = {}
        for name, table in schema.tables.items():
            try:
                tables[name] = read(place.parent / str(table.file))
            except InputError as error:
                raise InputError(f"Table '{name}': {error} Or take the table out of the schema.") from error
        return cls.of(schema, tables)

    @classmethod
    def released(cls, folder: str | Path, like: LinkedTables) -> LinkedTables:
        """Read a folder with one file for each table; public tables may be missing, for they are as they were.

        What was released is not checked against the schema: that is what is to be measured.
        """
        from discreet.io import read

        tables = {}
        for name, table in like.schema.tables.items():
            files = [Path(folder) / f"{name}{ending}" for ending in _ENDINGS]
            found = next((file for file in files if file.is_file()), None)
            if found is None and table.public:
                tables[name] = like.tables[name]
                continue
            if found is None:
                raise InputError(f"'{Path(folder).name}' has no file for table '{name}', e.g. {name}.csv.")
            frame, model = engine.collect(read(found)), like.tables[name].schema
            tables[name] = frame.with_columns(
                pl.col(column).cast(model[column], strict=False)
                for column in frame.columns
                if column in model and frame.schema[column] != model[column]
            )
        return cls(like.schema, tables)

    @property
    def rows(self) -> int:
        """Records of all tables together."""
        return sum(frame.height for frame in self.tables.values())

    @property
    def own(self) -> list[str]:
        """The tables that are not public, parents first."""
        return [name for name in self.schema.sequence() if not self.schema.tables[name].public]

    def beside(self, name: str) -> Microdata:
        """Return a table with what its parents say, and how many children its records have; without keys.

        Columns of a parent are called ``parent.column``, those of its own parent ``parent.grandparent.column``.
        """
        frame = self.with_parents(name)
        key = self.schema.tables[name].key
        for child, column in self.schema.children(name):
            if key is None or column not in self.tables[child].columns:
                continue
            frame = self._with_number(frame, child, column, key)
        return Microdata(frame.drop(self._keys(name), strict=False))

    def _keys(self, name: str) -> list[str]:
        table = self.schema.tables[name]
        links = [c for c, parent in table.parents.items() if not self.schema.tables[parent].public]
        return [*([table.key] if table.key else []), *links]

    def with_parents(self, name: str) -> pl.DataFrame:
        """Return a table, keys included, with what its parents say."""
        frame = self.tables[name]
        for column, parent in self.schema.tables[name].parents.items():
            above = self.schema.tables[parent]
            if above.public or above.key is None or column not in frame.columns:
                continue
            numbered = self._counted(parent, name)
            known = numbered.drop([k for k in self._keys(parent) if k != above.key], strict=False)
            known = known.rename({c: f"{parent}.{c}" for c in known.columns if c != above.key})
            frame = frame.join(
                known.unique(above.key, keep="first", maintain_order=True),
                left_on=column,
                right_on=above.key,
                how="left",
                maintain_order="left",
            )
        return frame

    def _counted(self, parent: str, child: str) -> pl.DataFrame:
        """Return a parent with its own parents and with the number of children in one table."""
        frame = self.with_parents(parent)
        key = str(self.schema.tables[parent].key)
        for column, above in self.schema.tables[child].parents.items():
            if above == parent:
                return self._with_number(frame, child, column, key)
        return frame

    def _with_number(self, frame: pl.DataFrame, child: str, column: str, key: str) -> pl.DataFrame:
        """Put beside each record how many children name it."""
        number = f"{child}: number"
        often = self.tables[child].group_by(pl.col(column).alias(key)).len(number)
        counted = frame.join(often, on=key, how="left", maintain_order="left")
        return counted.with_columns(pl.col(number).fill_null(0))

    def divided(self, share: float, rng: np.random.Generator) -> tuple[LinkedTables, LinkedTables]:
        """Divide the tables into two sets: whatever is linked, directly or through others, stays together."""
        groups = self._groups()
        number = int(max(own.max() for own in groups.values() if len(own))) + 1
        held = np.zeros(number, dtype=bool)
        held[rng.permutation(number)[: max(1, round(share * number))]] = True
        return self._side(groups, ~held), self._side(groups, held)

    def _side(self, groups: Mapping[str, Integers], kept: Flags) -> LinkedTables:
        return LinkedTables(
            self.schema,
            {
                name: frame.filter(pl.Series(kept[groups[name]])) if name in groups else frame
                for name, frame in self.tables.items()
            },
            self.origins,
        )

    def _groups(self) -> dict[str, Integers]:
        """Number the groups of records that hang together, table by table."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        begins = dict(zip(self.own, np.cumsum([0, *(self.tables[n].height for n in self.own)]), strict=False))
        total = sum(self.tables[name].height for name in self.own)
        ends: list[tuple[Integers, Integers]] = []
        for name in self.own:
            for column, parent in self.schema.tables[name].parents.items():
                if self.schema.tables[parent].public:
                    continue
                key = str(self.schema.tables[parent].key)
                places = self.tables[parent].select(pl.col(key).alias("key")).with_row_index("at")
                at = (
                    self.tables[name]
                    .select(pl.col(column).alias("key"))
                    .join(places, on="key", how="left", maintain_order="left")["at"]
                )
                known = at.is_not_null().to_numpy()
                ends.append(
                    (
                        np.flatnonzero(known) + begins[name],
                        at.drop_nulls().to_numpy().astype(np.int64) + begins[parent],
                    )
                )
        one, other = (np.concatenate([np.empty(0, dtype=np.int64), *(e[w] for e in ends)]) for w in (0, 1))
        graph = coo_array((np.ones(len(one)), (one, other)), shape=(total, total))
        _, group = connected_components(graph, directed=False)
        return {name: group[begins[name] : begins[name] + self.tables[name].height] for name in self.own}

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write one Parquet file for each table to a folder, all or nothing; one with anything else in it is left."""
        from discreet.core.files.atomic import check_only, replacing_folder
        from discreet.core.files.inputs import check_apart, place_of

        check_apart(folder, [place_of(place) for place in self.origins], replaced=True)
        check_only(Path(folder), ".parquet")
        with replacing_folder(folder, overwrite=overwrite) as draft:
            for name, frame in self.tables.items():
                frame.write_parquet(draft / f"{name}.parquet")
        return Path(folder)


# How tables hang together: keys, parents, order within a parent, rules; and whether the tables are like that.
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
            own = {one.name: getattr(table, one.name) for one in fields(table)}
            own |= {
                "parents": dict(table.parents),
                "rules": list(table.rules),
                "leave_out": list(table.leave_out),
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
