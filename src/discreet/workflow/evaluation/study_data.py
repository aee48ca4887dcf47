"""The data sets of a study: where they lie, what their columns mean, how they are split, or drawn from a population."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError, unknown_name
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import generator
from discreet.core.roles import ROLES, Roles
from discreet.core.values import jsonable
from discreet.io.naming import checked_name
from discreet.microdata import Microdata
from discreet.synth import Schema, SurveyDesign, rake
from discreet.synth.table_schema import LinkedTables

BUNDLED = ("adult", "company_values", "social_assistance")
_FEW_LEVELS = 20
_FEWEST = 10


@dataclass(frozen=True)
@typed_parameters
class DataSet:
    """One data set of a study.

    Parameters
    ----------
    name
        What it is called in the results.
    source
        A file, the address of a database, or the name of data that ships with the package (``"adult"``); the name of
        the data set unless given. A file is looked for beside the study file. A schema (``"schema.toml"``) stands for
        linked tables, each with its ``file``.
    roles
        The roles of `Microdata`. Without any, those of a sidecar beside the file or of the bundled data.
    reading
        Options of `discreet.read`.
    columns
        The columns to use; all of them unless named. Identifiers are always left out.
    rows
        Use a random sample of so many records.
    target
        The column that models learn to predict; the first sensitive one unless named.
    holdout
        A file of the same columns about people that no generator may learn from, where a published split is to be
        used; otherwise the study splits the file itself.
    design
        The file is a population, from which every repetition draws a sample of its own: ``households`` (their number),
        ``allocation`` (``"proportional"`` or ``"equal"`` over the strata), ``rake`` (columns to whose crossed totals
        the weights are raked). Metrics that take a ``population`` are given it as the truth. A target of linked tables
        is written ``"table.column"``.
    """

    name: str
    source: str = ""
    roles: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: int | None = None
    target: str | None = None
    holdout: str | None = None
    design: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            checked_name(self.name, "data set")
        except ParameterError as error:
            raise ParameterError(f"{error} A file is named as source.") from error
        object.__setattr__(self, "source", str(self.source or self.name))
        object.__setattr__(self, "columns", listed(self.columns))
        for role in self.roles:
            if role not in ROLES:
                raise ParameterError(f"In data set '{self.name}': {unknown_name(role, ROLES, what='role')}")
        if self.rows is not None and (isinstance(self.rows, bool) or self.rows < 2 * _FEWEST):
            raise ParameterError(f"In data set '{self.name}': rows must be {2 * _FEWEST} or more.")
        if self.design:
            checked_design(self.design, f"In data set '{self.name}'")
            if self.holdout is not None:
                raise ParameterError(f"In data set '{self.name}': a design draws its hold-out itself.")
        if self.is_linked:
            for name in ("roles", "reading", "columns", "rows", "holdout", "design"):
                if getattr(self, name):
                    raise ParameterError(
                        f"In data set '{self.name}': {name} is for one file, not for linked tables."
                    )
            if self.target is not None and "." not in self.target:
                raise ParameterError(f"In data set '{self.name}': write the target as table.column.")

    @property
    def is_linked(self) -> bool:
        """Whether it is several linked tables."""
        return self.source.endswith(".toml")

    @property
    def source_folder(self) -> Path:
        """Where the tables of a schema lie, as seen from the study."""
        return Path(self.source).parent

    def read_linked(self, folder: Path) -> LinkedTables:
        """Read the tables of a schema."""
        try:
            return LinkedTables.read(folder / self.source)
        except DiscreetError as error:
            raise type(error)(f"In data set '{self.name}': {error}") from error

    def read(self, folder: Path) -> Microdata:
        """Read the whole data set, lazily where the format allows."""
        return self._read(self.source, folder)

    def _read(self, source: str, folder: Path) -> Microdata:
        from discreet import datasets
        from discreet.io import read
        from discreet.io.naming import is_address

        place = folder / source
        if source in BUNDLED and not place.exists():
            data: Microdata = getattr(datasets, source)()
            return data.with_roles(**_only(self.roles)) if self.roles else data
        if not is_address(source) and not place.exists() and "." not in Path(source).name:
            raise InputError(
                f"In data set '{self.name}': there is no file '{source}', and of the data that ship with discreet: "
                f"{unknown_name(source, BUNDLED, what='data set')}"
            )
        at = source if is_address(source) else str(place)
        return read(at, roles=Roles.of(**self.roles) if self.roles else None, **self.reading)

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, ready for TOML."""
        given: dict[str, Any] = {"name": self.name}
        if self.source != self.name:
            given["source"] = self.source
        for name in ("rows", "target", "holdout", "columns", "roles", "reading", "design"):
            value = getattr(self, name)
            if value:
                given[name] = jsonable(value)
        return given


@dataclass(frozen=True)
class Split:
    """How a data set is divided into what generators learn from and what they never see.

    ``by_seed`` divides it anew for each seed of the study; otherwise all seeds share one division.
    """

    share: float = 0.2
    seed: int = 1
    by_seed: bool = False

    def stream(self, data: DataSet, replicate: int, *path: str) -> np.random.Generator:
        """Open the random numbers of one division."""
        return generator(self.seed, "split", data.name, *([str(replicate)] if self.by_seed else []), *path)


@dataclass(frozen=True)
class Parts:
    """A data set, divided; ``population`` is what a sample was drawn from, where that is known."""

    training: Any
    holdout: Any
    target: str | None
    population: Microdata | None = None


def parts_of(data: DataSet, split: Split, replicate: int, folder: Path) -> Parts:
    """Read a data set and divide it; a process keeps the last few."""
    # A file that was changed since is another file.
    stamps = [
        _stamp(folder / source)
        for source in (data.source, data.holdout, *_table_files(data, folder))
        if source
    ]
    key = json.dumps({"data": data.to_dict(), "folder": str(folder), "stamps": stamps}, sort_keys=True)
    return _parts(key, split, replicate if split.by_seed or data.design else 0)


def _table_files(data: DataSet, folder: Path) -> list[str]:
    if not data.is_linked:
        return []
    tables = Schema.load(folder / data.source).tables.values()
    return [str(data.source_folder / str(table.file)) for table in tables]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=4)
def _parts(key: str, split: Split, replicate: int) -> Parts:
    described = json.loads(key)
    data, folder = DataSet(**described["data"]), Path(described["folder"])
    name = data.name
    if data.is_linked:
        return _linked_parts(data, split, split.stream(data, replicate), folder)
    whole = _selected(data, data.read(folder))
    frame = engine.whole_frame(whole)
    if data.rows is not None and data.rows < frame.height:
        chosen = generator(split.seed, "rows", name).permutation(frame.height)[: data.rows]
        frame = frame[np.sort(chosen)]
    target = data.target or (whole.roles.sensitive[0] if whole.roles.sensitive else None)
    if data.design:
        known = whole.with_frame(frame)
        seed = int(generator(split.seed, "design", name, str(replicate)).integers(2**62))
        return Parts(*drawn_sample(known, data.design, seed, f"In data set '{name}'"), target, known)
    if data.holdout is not None:
        other = engine.whole_frame(_selected(data, data._read(data.holdout, folder)))
        return Parts(whole.with_frame(frame), whole.with_frame(other.select(frame.columns)), target)
    if split.share == 0:
        return Parts(whole.with_frame(frame), None, target)
    held = _held_out(frame, whole.roles, target, split, split.stream(data, replicate))
    for side, records in (("training part", (~held).sum()), ("hold-out", held.sum())):
        if records < _FEWEST:
            raise InputError(
                f"The {side} of data set '{name}' would have {records} records. Use a larger file or another share "
                "for the hold-out."
            )
    return Parts(whole.with_frame(frame.filter(~held)), whole.with_frame(frame.filter(held)), target)


def _linked_parts(data: DataSet, split: Split, rng: np.random.Generator, folder: Path) -> Parts:
    """Divide linked tables so that whatever hangs together is on one side."""
    whole = data.read_linked(folder)
    if data.target is not None:
        table, _, column = data.target.partition(".")
        if table not in whole.own or column not in whole.tables[table].columns:
            raise ColumnError(
                f"In data set '{data.name}': there is no column '{data.target}' (table.column)."
            )
    if split.share == 0:
        return Parts(whole, None, data.target)
    return Parts(*whole.divided(split.share, rng), data.target)


def _selected(data: DataSet, whole: Microdata) -> Microdata:
    for name in (*data.columns, *([data.target] if data.target else [])):
        if name not in whole.schema:
            raise ColumnError(f"In data set '{data.name}': {unknown_name(name, whole.columns)}")
    names = [name for name in data.columns or whole.columns if name not in whole.roles.identifiers]
    return whole.with_frame(engine.whole_frame(whole).select(names))


def _held_out(
    frame: pl.DataFrame, roles: Roles, target: str | None, split: Split, rng: np.random.Generator
) -> pl.Series:
    """Draw the hold-out: whole households where there are any, else in each class of the target its share."""
    together = roles.household or roles.person
    if together is not None:
        units = frame[together].unique(maintain_order=True)
        chosen = rng.permutation(len(units))[: max(round(split.share * len(units)), 1)]
        return frame[together].is_in(units.gather(np.sort(chosen)).implode())
    is_class = target is not None and frame[target].n_unique() <= _FEW_LEVELS
    classes = (
        frame[target].rename("class")
        if target is not None and is_class
        else pl.repeat(0, frame.height, eager=True)
    )
    numbered = pl.DataFrame({"class": classes, "place": rng.permutation(frame.height)})
    rank = pl.col("place").rank("ordinal").over("class")
    # Half a record is rounded up or down by chance, so that small classes keep their share on average.
    room = (pl.len().over("class") * split.share + float(rng.random())).floor()
    return numbered.select(held=rank <= room)["held"]


def listed(names: Any) -> tuple[str, ...]:
    """Take one name for a list of one."""
    return (names,) if isinstance(names, str) else tuple(names)


def _only(roles: Mapping[str, Any]) -> dict[str, Any]:
    """Take away the usual roles of bundled data that are not named."""
    return {role: roles.get(role) for role in ROLES}


# Samples that a study draws itself from a population that is known, by a design, anew in every repetition.


_OF_DESIGN = ("households", "allocation", "weight")
KNOWN = (*_OF_DESIGN, "rake")


def checked_design(design: Mapping[str, Any], where: str) -> None:
    """Refuse a design that cannot be drawn by."""
    for name in design:
        if name not in KNOWN:
            raise ParameterError(f"{where}: {unknown_name(name, KNOWN, what='entry of design')}")
    if "households" not in design:
        raise ParameterError(f"{where}: design needs households = …, the number of households of a sample.")
    _design(design)


def _design(design: Mapping[str, Any]) -> SurveyDesign:
    return SurveyDesign(**{name: value for name, value in design.items() if name in _OF_DESIGN})


def drawn_sample(
    population: Microdata, design: Mapping[str, Any], seed: int, where: str
) -> tuple[Microdata, Microdata]:
    """Draw a sample by the design, and another of the households that are not in it."""
    home = population.roles.household
    if home is None:
        raise ParameterError(f"{where}: a design draws households; name the role household.")
    plan = _design(design)
    sample = plan.draw(population, seed=seed)
    whole = engine.whole_frame(population)
    seen = engine.whole_frame(sample)[home].unique()
    rest = whole.filter(~pl.col(home).is_in(seen.implode()))
    if not rest.height:
        raise InputError(f"{where}: the sample takes every household, so that nobody is left for a hold-out.")
    others = plan.draw(population.with_frame(rest), seed=seed)
    # Both stand for the whole population, also the second, which is drawn from what the first has left.
    return tuple(_raked(own, population, design, where) for own in (sample, others))  # type: ignore[return-value]


def _raked(sample: Microdata, population: Microdata, design: Mapping[str, Any], where: str) -> Microdata:
    """Rake the weights of a sample to the population's totals of some columns crossed."""
    names = design.get("rake") or ()
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        return sample
    for name in names:
        if name not in population.columns:
            raise ColumnError(f"{where}: {unknown_name(name, population.columns)} It was named under rake.")
    frame, weight = engine.whole_frame(sample), str(sample.roles.weight)
    real = engine.whole_frame(population)
    cells = frame.select(pl.col(name).cast(pl.String) for name in names).unique()
    totals = real.group_by([pl.col(name).cast(pl.String) for name in names]).agg(pl.len().alias("·many"))
    totals = totals.join(cells, on=names, how="semi", nulls_equal=True)
    margins = {tuple(str(part) for part in row[:-1]): float(row[-1]) for row in totals.iter_rows()}
    weights = rake(sample, [(names, margins)])
    return sample.with_frame(frame.with_columns(pl.Series(weight, weights)))
