"""Tables that belong together, as one thing: read, divided so that nobody is on both sides, and joined for a look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.errors import InputError
from discreet.microdata import Microdata
from discreet.synth.relational.schema import Schema, check_tables

_ENDINGS = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Tables and their schema.

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
            often = self.tables[child].group_by(pl.col(column).alias(key)).len(f"{child}: number")
            frame = frame.join(often, on=key, how="left", maintain_order="left").with_columns(
                pl.col(f"{child}: number").fill_null(0)
            )
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
                often = self.tables[child].group_by(pl.col(column).alias(key)).len(f"{child}: number")
                frame = frame.join(often, on=key, how="left", maintain_order="left")
                return frame.with_columns(pl.col(f"{child}: number").fill_null(0))
        return frame

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
