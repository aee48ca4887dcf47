"""Generators of a study whose release is more than one table, and what a metric sees of such a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.synth import MultiTable, MultiTableRelease, Relational, Synthesizer
from discreet.synth.table_schema import LinkedTables

MULTI, LINKED = "multi-table", "relational"
_OF_RELATIONAL = ("strategy", "by", "max_rounds")
_MANIFEST = "manifest.json"


class ManyTables:
    """Many tables of one file, as a generator of a study."""

    name = MULTI

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.maker = MultiTable.from_dict(parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        return self.maker.to_dict()

    def made(self, training: Any, seed: int, rows: int | None) -> MultiTableRelease:
        """Make the tables; a release has as many records as the noise leaves it."""
        if not isinstance(training, Microdata):
            raise ParameterError(
                "Many tables are made of one file, and the data set is several linked tables."
            )
        if rows is not None:
            raise ParameterError("The records of a multi-table release cannot be chosen: leave rows out.")
        return self.maker.release(training, seed=seed)


class Linked:
    """Linked tables, as a generator of a study; the schema is the data set's."""

    name = LINKED

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        for name in parameters:
            if name not in _OF_RELATIONAL:
                raise ParameterError(
                    f"{unknown_name(name, _OF_RELATIONAL, what='parameter')} The schema is that of the data set."
                )
        self.parameters = dict(parameters)
        Relational({"tables": {"table": {}}}, **{**self.parameters, "by": {}})

    def to_dict(self) -> dict[str, Any]:
        """Return its parameters."""
        return dict(self.parameters)

    def made(self, training: Any, seed: int, rows: int | None) -> LinkedTables:
        """Fit and draw all tables."""
        if not isinstance(training, LinkedTables):
            raise ParameterError(
                'Linked tables are made of a schema: give the data set one, source = "schema.toml".'
            )
        if rows is not None:
            raise ParameterError("The records of linked tables cannot be chosen: leave rows out.")
        drawn = (
            Relational(training.schema, **self.parameters).fit(training.tables, seed=seed).sample(seed=seed)
        )
        return LinkedTables(training.schema, drawn)


def several(name: str, parameters: Mapping[str, Any]) -> ManyTables | Linked | None:
    """Return the generator of several tables of this name; None for all others."""
    if name == MULTI:
        return ManyTables(parameters)
    return Linked(parameters) if name == LINKED else None


def described(maker: Any) -> tuple[str, dict[str, Any]] | None:
    """Describe a `MultiTable` or a `Relational` by name and parameters; None for anything else."""
    if isinstance(maker, MultiTable):
        return MULTI, maker.to_dict()
    if isinstance(maker, Relational):
        usual = Relational(maker.links)
        given = {name: getattr(maker, name) for name in _OF_RELATIONAL}
        return LINKED, {name: value for name, value in given.items() if value != getattr(usual, name)}
    return None


def known_generators() -> tuple[str, ...]:
    """Return the names of all generators that a study can have."""
    return (*Synthesizer.known, MULTI, LINKED)


def rows_of(part: Any) -> int:
    """Count the records of a file, or of all tables of a release."""
    if isinstance(part, LinkedTables):
        return part.rows
    if isinstance(part, MultiTableRelease):
        return sum(table["rows"] for table in part.manifest)
    return int(engine.overview(part, ()).rows)


def read_folder(folder: Path, training: Any) -> Any:
    """Read a released folder: many tables with their manifest, or one file for each linked table."""
    if isinstance(training, LinkedTables):
        return LinkedTables.released(folder, training)
    if not (folder / _MANIFEST).is_file():
        raise InputError(f"'{folder.name}' is a folder without a manifest, so no release of many tables.")
    return MultiTableRelease.load(folder)


def as_file(released: Any, training: Microdata, takes_many: bool) -> Any:
    """Give a measure what it can take of a release of many tables: all, or the one table that has every column."""
    if isinstance(released, Microdata) or takes_many:
        return released
    if isinstance(released, LinkedTables):
        raise ParameterError("the release is several linked tables, and the data set is one file.")
    try:
        table = released.table_for(training.columns)
    except ColumnError as error:
        raise ParameterError(
            "it takes one file, and the release is many tables none of which has all columns."
        ) from error
    frame = engine.whole_frame(table).select(training.columns)
    return training.with_frame(frame)


def seen_apart(parts: Any, copies: Any, table: str, target: str | None) -> tuple[Any, list[Microdata]]:
    """Return one table of linked ones with what its parents say, as if it were the whole data set."""
    own = replace(
        parts,
        training=parts.training.beside(table),
        holdout=None if parts.holdout is None else parts.holdout.beside(table),
        target=target,
    )
    return own, [copy.beside(table) for copy in copies]
