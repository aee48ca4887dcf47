"""Many tables of one file, each with the columns that an analysis needs, all with the same noise."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.core.files.atomic import replacing_folder
from discreet.core.files.untrusted import parsed_json
from discreet.core.method_cards import made_from, method, parameters_of
from discreet.core.parameters import typed_parameters
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.roles import Columns
from discreet.core.value_gate import name_in_documents
from discreet.microdata import Microdata
from discreet.synth.syndiffix.persons_and_salts import NOT_PRIVATE, count_of, prepared
from discreet.synth.syndiffix.syndiffix import REFERENCES, SynDiffix, fitted_table
from discreet.synth.synthesizer import seed_of

_FORMAT = "discreet multi-table release 1"
_MANIFEST = "manifest.json"
_MOST_TABLES = 10_000
_WORD = re.compile(r"[^\s~+*:()\-^|,]+")


@dataclass(frozen=True, eq=False)
class MultiTableRelease:
    """Tables that were released together.

    Attributes
    ----------
    tables
        Files by the set of their columns; a table in which nothing may be shown is empty.
    folder, files
        Where a release that was loaded lies, and which file holds which table.
    why_none
        Why no guarantee is claimed, and how many tables of these people went out where they are counted.
    """

    tables: Mapping[frozenset[str], Microdata]
    folder: Path | None = None
    files: Mapping[frozenset[str], str] = field(default_factory=dict)
    why_none: str = NOT_PRIVATE

    @property
    def manifest(self) -> list[dict[str, Any]]:
        """Columns, records and file of every table."""
        return [
            {
                "columns": list(table.columns),
                "rows": engine.collect(table).height,  # none where nothing may be shown
                "file": self.files.get(columns, ""),
            }
            for columns, table in self.tables.items()
        ]

    def table_for(self, columns: Columns) -> Microdata:
        """Return the table with just these columns, or the smallest that has them.

        The fewer columns a table has, the nearer it is to the data: ask for no more than an analysis needs.
        """
        wanted = frozenset((columns,) if isinstance(columns, str) else tuple(columns or ()))
        if not wanted:
            raise ParameterError("Name at least one column.")
        known = sorted({column for key in self.tables for column in key})
        for column in wanted:
            if column not in known:
                raise ColumnError(unknown_name(column, known))
        fitting = [key for key in self.tables if wanted <= key]
        if not fitting:
            raise ColumnError(
                f"No table of this release has these {len(wanted)} columns together. Ask the holder of the data for "
                "one more table with the same salt, or use tables of fewer columns."
            )
        return self.tables[min(fitting, key=lambda key: (len(key), sorted(key)))]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write one file a table and the manifest, all or nothing; returns the folder."""
        place = Path(folder)
        if overwrite and place.is_dir() and not (place / _MANIFEST).is_file():
            raise InputError(
                f"'{place.name}' is no release of tables and is not replaced. Name another folder."
            )
        with replacing_folder(place, overwrite=overwrite) as draft:
            listed = []
            for number, (columns, table) in enumerate(self.tables.items(), start=1):
                name = f"table-{number:04d}.parquet"
                frame = engine.collect(table)
                frame.write_parquet(draft / name)
                listed.append({"columns": sorted(columns), "rows": frame.height, "file": name})
            text = json.dumps({"format": _FORMAT, "tables": listed}, indent=1, ensure_ascii=False)
            (draft / _MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")
        return place

    @classmethod
    def load(cls, folder: str | Path) -> MultiTableRelease:
        """Read a release that `save` has written."""
        place = Path(folder)
        try:
            document = parsed_json((place / _MANIFEST).read_bytes())
            if document["format"] != _FORMAT:
                raise ValueError("another format")
            files = {frozenset(entry["columns"]): str(entry["file"]) for entry in document["tables"]}
            if any(Path(name).name != name for name in files.values()):
                raise ValueError("a file outside the folder")
            tables = {key: Microdata(pl.read_parquet(place / name)) for key, name in files.items()}
        except Exception as error:
            raise InputError(
                f"'{place.name}' is no release of tables, or a part of it is missing or damaged."
            ) from error
        return cls(tables, place, files)


@method(aim="records", work="whole-file", references=REFERENCES)
@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "multi-table")
class MultiTable:
    """Which tables of a file can be released side by side, so that each analysis has one made for it?

    Every table is made by `SynDiffix` under one salt, and a table of two columns is far nearer to the data than the two
    columns of a wide one (Francis 2024). A range of the same columns has the same noise in all of them; beside another
    column it has other noise, so that the mean of many tables that share a column comes to its true counts. Release the
    tables that analyses need, and have them counted with ``options={"count_file": ...}``, which refuses one too many.

    Parameters
    ----------
    columns
        The sets of columns; one list of lists.
    size
        All sets of at most so many columns, beside those that are named.
    analyses
        Analyses whose columns are to be together, e.g. ``"income ~ age + sex"`` or ``"region*sex"``.
    salt, person, noise, value_safe_columns, new_release
        As in `SynDiffix`.
    options
        Other parameters of `SynDiffix`.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "age": [20, 30, 40, 50] * 50})
    >>> release = MultiTable(size=2, noise=False).release(Microdata(people), seed=1)
    >>> [table["columns"] for table in release.manifest]
    [['sex'], ['age'], ['sex', 'age']]
    >>> release.table_for(["age"]).frame.shape
    (200, 1)
    """

    columns: Sequence[Sequence[str]] | None = None
    size: int | None = None
    analyses: Sequence[str] | None = None
    salt: str | None = None
    person: Columns = None
    noise: bool = True
    value_safe_columns: Columns = None
    new_release: bool = False
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.columns and self.size is None and not self.analyses:
            raise ParameterError(
                "Say which tables: columns=[['age', 'sex'], …], size=2 for all pairs, or analyses=['income ~ age']."
            )
        if self.size is not None and not 1 <= self.size <= 12:
            raise ParameterError("size must be between 1 and 12.")
        if self.columns is not None and any(isinstance(own, str) or not len(own) for own in self.columns):
            raise ParameterError(
                "columns must be a list of lists, one for each table, e.g. [['age'], ['age', 'sex']]."
            )
        self._by()

    def _by(self) -> SynDiffix:
        given = {"salt": self.salt, "person": self.person, "noise": self.noise}
        given |= {"value_safe_columns": self.value_safe_columns, "new_release": self.new_release}
        twice = [name for name in self.options or {} if name in (*given, "columns")]
        if twice:
            raise ParameterError(
                f"'{twice[0]}' is a parameter of the release itself; take it out of options."
            )
        return SynDiffix.from_dict({**given, **(self.options or {})})

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        return parameters_of(self)

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> MultiTable:
        """Make it from plain values."""
        return made_from(cls, "multi-table", parameters)

    def release(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> MultiTableRelease:
        """Make all tables; the same salt, data and seed give the same tables."""
        options, root = self._by(), seed_of(seed)
        everything = prepared(options, data, seed=root)
        sets = self._sets(everything.names)
        place = {name: at for at, name in enumerate(everything.names)}
        count = count_of(options)
        entered = [everything.table_of([place[name] for name in wanted]) for wanted in sets]
        said = "" if count is None else f" {count.said(entered)}"
        tables = {}
        for wanted in track(sets, description="Making tables", progress=progress):
            model = fitted_table(options, data, everything, [place[name] for name in wanted])
            tables[frozenset(wanted)] = model.sample(seed=_own_seed(root, wanted))
        return MultiTableRelease(tables, why_none=NOT_PRIVATE + said)

    def _sets(self, known: Sequence[str]) -> list[tuple[str, ...]]:
        """List the sets of columns, each once and in the order of the file."""
        asked: list[tuple[str, ...]] = [tuple(own) for own in self.columns or ()]
        for own in asked:
            for name in own:
                if name not in known:
                    raise ColumnError(f"{unknown_name(name, known)} It was named under columns.")
        for text in self.analyses or ():
            found = tuple(word for word in dict.fromkeys(_WORD.findall(text)) if word in known)
            if not found:
                raise ParameterError(
                    "One of the analyses names no column of the file. Write it with the names of columns, e.g. "
                    "'income ~ age + sex'."
                )
            asked.append(found)
        for size in range(1, (self.size or 0) + 1):
            if comb(len(known), size) > _MOST_TABLES:
                raise ParameterError(
                    f"There are {comb(len(known), size):,} sets of {size} columns; at most {_MOST_TABLES:,} are made. "
                    "Name those that are needed under columns or analyses."
                )
            asked += list(combinations(known, size))
        order = {name: at for at, name in enumerate(known)}
        return list(dict.fromkeys(tuple(sorted(set(own), key=order.__getitem__)) for own in asked))


name_in_documents("synthesizer", {"multi-table": MultiTable})


def _own_seed(root: int, columns: Sequence[str]) -> int:
    """Draw every table by a seed of its own, so that it is the same whatever else is asked for."""
    return int(generator(root, "table", *sorted(columns)).integers(2**62))
