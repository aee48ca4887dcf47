"""Models of linked tables that were fitted, from which whole sets of tables are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.errors import InputError, ParameterError
from discreet.core.randomness import Seed
from discreet.microdata import Microdata
from discreet.synth.parents_and_children import Family, balanced_children, chosen_parents
from discreet.synth.saved_models import load_model, save_model, stored, stored_as
from discreet.synth.sequential.sequential_model import FittedSequential
from discreet.synth.synthesizer import Stream, seed_of
from discreet.synth.table_schema import Schema

_FEW_BAD = 0.02


stored_as("table-schema", Schema, dict[str, Any], Schema.to_dict, Schema.from_dict)


@stored("table-model")
@dataclass(frozen=True, eq=False)
class TableModel:
    """The models of one table.

    Attributes
    ----------
    name, rows
        Of the table.
    public
        The table itself, where it is public.
    whole
        The model of a table that hangs on no other.
    times, rest
        Of a table that hangs on another: the model of the times, given the parent, and of everything else.
    lags
        Columns that are drawn given those of the record before.
    partner_columns
        What the partners of a record are to be like.
    """

    name: str
    rows: int
    public: pl.DataFrame | None = None
    whole: FittedSequential | None = None
    times: FittedSequential | None = None
    rest: FittedSequential | None = None
    lags: tuple[str, ...] = ()
    partner_columns: tuple[str, ...] = ()


@stored("fitted-relational")
@dataclass(eq=False, repr=False)
class FittedRelational:
    """Linked tables that were fitted.

    Attributes
    ----------
    left_out
        ``{table: {column: why}}``.
    lost
        Records without a counterpart, where tables were joined.
    unplaced
        Records of the last draw that no draw could fit to their parent without breaking a rule; they are left out.
    guarantee
        None, and ``why_none`` says why: trees draw values of real records.
    """

    guarantee = None
    why_none = "trees draw values of real records."

    schema: Schema
    like: Mapping[str, Microdata]
    models: Mapping[str, TableModel]
    families: Sequence[Family]
    left_out: Mapping[str, Mapping[str, str]]
    joined: Mapping[str, Mapping[str, str]] | None = field(default=None, kw_only=True)
    lost: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    unplaced: dict[str, int] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        """Say which tables it draws; no value and no seed."""
        tables = ", ".join(f"{name} ({model.rows:,})" for name, model in self.models.items())
        return (
            f"FittedRelational: models of {tables}\n  It draws all of them: sample(scale=…, seed=…). It may hold "
            "values of real records: keep it as the data are kept.\nGuarantee: none: {self.why_none}"
        )

    def sample(self, scale: float = 1.0, *, seed: Seed = None) -> dict[str, Any]:
        """Draw a set of tables, in the kind of frame that each was given in.

        Parameters
        ----------
        scale
            How many records the tables that hang on no other have, as a share of the original.
        seed
            Same model, same seed: same bytes.
        """
        if not 0 < scale <= 1_000:
            raise ParameterError("scale must be above 0 and at most 1,000.")
        stream = Stream(seed_of(seed), "tables")
        self.unplaced = {}
        frames = self._taken_apart(scale, stream) if self.joined is not None else self._drawn(scale, stream)
        made = {}
        for name in self.schema.tables:
            own = self.like[name]
            columns = [column for column in own.columns if column in frames[name].columns]
            types = engine.collect(own).schema
            frame = frames[name].select(pl.col(c).cast(types[c]) for c in columns)
            made[name] = own.with_frame(engine.in_kind(own, frame)).frame
        return made

    def _taken_apart(self, scale: float, stream: Stream) -> dict[str, pl.DataFrame]:
        assert self.joined is not None
        model = self.models["joined"]
        assert model.whole is not None
        rows = max(1, round(model.rows * scale))
        table = model.whole.draw(rows, stream.child("joined"))
        numbers = pl.Series(np.arange(1, rows + 1))
        frames = {}
        for name, columns in self.joined.items():
            own = self.schema.tables[name]
            fresh = [numbers.alias(c) for c in (own.key, *own.parents) if c is not None]
            frames[name] = table.select(*fresh, *(pl.col(new).alias(c) for c, new in columns.items()))
        return frames

    def _drawn(self, scale: float, stream: Stream) -> dict[str, pl.DataFrame]:
        """Draw parents before children; keys are counted from 1."""
        extended: dict[str, pl.DataFrame] = {}
        for name in self.schema.sequence():
            model, own = self.models[name], stream.child(name)
            if model.public is not None:
                extended[name] = model.public
                continue
            above = next((f for f in self.families if f.child == name and not f.partner), None)
            frame = (
                self._alone(name, scale, extended, own)
                if above is None
                else self._children(above, extended, own)
            )
            for family in self._own_families(name) if above is not None else ():
                # A child that must fit its parent's dates cannot be given to just anybody.
                if not self.schema.tables[family.child].rules:
                    frame = balanced_children(family, frame, own("balance", family.child, family.column))
            key = self.schema.tables[name].key
            if key is not None:
                frame = frame.with_columns(pl.Series(key, np.arange(1, frame.height + 1)))
            extended[name] = frame
        return extended

    def _alone(
        self, name: str, scale: float, extended: Mapping[str, pl.DataFrame], stream: Stream
    ) -> pl.DataFrame:
        """Draw a table that hangs on no other, or whose parents are drawn at random."""
        model = self.models[name]
        rows = max(1, round(model.rows * scale)) if model.rows else 0
        frame = self._empty(name, rows)
        if model.whole is not None and rows:
            families = self._own_families(name)
            draw = model.whole.draw
            frame = chosen_parents(families, rows, lambda n: draw(n, stream), stream("chosen"))
        for column, parent in self.schema.tables[name].parents.items():
            if not self.schema.tables[parent].public:
                at = stream("parents", column).integers(max(extended[parent].height, 1), size=frame.height)
                frame = frame.with_columns(pl.Series(column, at + 1))
        return frame

    def _own_families(self, name: str) -> list[Family]:
        return [family for family in self.families if family.parent == name]

    def _empty(self, name: str, rows: int) -> pl.DataFrame:
        like = engine.collect(self.like[name])
        return like.clear() if not rows else pl.DataFrame({"discreet record": np.arange(rows)})

    def _children(self, family: Family, extended: Mapping[str, pl.DataFrame], stream: Stream) -> pl.DataFrame:
        parents, model = extended[family.parent], self.models[family.child]
        at, times = family.spread(parents)
        if not len(at):
            frame = engine.collect(self.like[family.child]).clear()
            more = [own.known for own in self.families if own.parent == family.child]
            return frame.with_columns(pl.Series(name, [], dtype=pl.Int64) for known in more for name in known)
        given = self._given(family, parents)[at]
        when: pl.Series | None = None
        if family.waves and times is not None:
            like = engine.collect(self.like[family.child])
            when = times.cast(like.schema[str(family.order)]).alias(str(family.order))
        elif model.times is not None:
            table, bad = model.times.draw_within(given, stream.child("times"))
            at, given, table = self._without(family.child, bad, at, given, table)
            drawn = table[str(family.order)]
            order = np.lexsort((drawn.rank("ordinal").to_numpy(), at))
            when = drawn[order]
        starts = _starts(at)
        counted = np.arange(len(at)) - np.repeat(starts, np.diff([*starts, len(at)]))
        given = given.with_columns(pl.Series(f"{family.child}: place", counted + 1))
        if when is not None:
            given = given.with_columns(when)
        frame = given.select(when.name) if when is not None else pl.DataFrame()
        if model.rest is not None and model.lags:
            rest = self._one_after_the_other(model, given, counted, stream)
        elif model.rest is not None:
            rest, bad = model.rest.draw_within(given, stream.child("rest"))
            at, given, rest, frame = self._without(family.child, bad, at, given, rest, frame)
        else:
            rest = pl.DataFrame()
        fresh = [rest[name] for name in rest.columns if name not in given.columns]
        frame = pl.DataFrame([*frame.get_columns(), *fresh]).with_columns(pl.Series(family.column, at + 1))
        return self._with_partners(family, frame, extended, stream)

    def _without(self, name: str, bad: Integers, *parts: Any) -> tuple[Any, ...]:
        """Leave out children that no draw can fit to their parent: who was born last has no earlier visit."""
        size = len(parts[0])
        if len(bad) > _FEW_BAD * size + 1:
            raise ParameterError(
                f"Table '{name}': {len(bad):,} of {size:,} records break a rule of the schema in every draw. Check "
                "that the rule is meant so, or raise max_rounds."
            )
        if not len(bad):
            return parts
        self.unplaced[name] = self.unplaced.get(name, 0) + len(bad)
        kept = np.setdiff1d(np.arange(size), bad)
        return tuple(
            part if isinstance(part, pl.DataFrame) and not part.width else part[kept] for part in parts
        )

    def _given(self, family: Family, parents: pl.DataFrame) -> pl.DataFrame:
        """Return what the children are drawn from, one row a parent."""
        model = self.models[family.child].times or self.models[family.child].rest
        names = [] if model is None else list(model.forms)
        made = {}
        for name in names:
            if name in parents.columns and name not in self.like[family.child].columns:
                made[name] = parents[name]
            elif name.startswith(f"{family.parent}."):
                column = name.removeprefix(f"{family.parent}.")
                if column in parents.columns:
                    made[name] = parents[column]
        return pl.DataFrame(made) if made else pl.DataFrame({"discreet nothing": np.zeros(parents.height)})

    def _one_after_the_other(
        self, model: TableModel, given: pl.DataFrame, place: Integers, stream: Stream
    ) -> pl.DataFrame:
        """Draw the first records of all parents, then the second ones given the first, and so on."""
        assert model.rest is not None
        parts, rows = [], []
        before: pl.DataFrame | None = None
        rows_before: Integers = np.empty(0, dtype=np.int64)
        for turn in range(int(place.max()) + 1):
            here = np.flatnonzero(place == turn)
            own = given[here]
            if before is None:
                empty = {
                    f"before: {n}": pl.Series([None] * len(here), dtype=model.rest.forms[n].dtype)
                    for n in model.lags
                }
                own = own.with_columns(**empty)
            else:
                behind = before[np.searchsorted(rows_before, here - 1)]
                own = own.with_columns(behind[n].alias(f"before: {n}") for n in model.lags)
            before = model.rest.draw_given(own, stream.child(f"turn {turn}"))
            rows_before = here
            parts.append(before)
            rows.append(here)
        return pl.concat(parts)[np.argsort(np.concatenate(rows), kind="stable")]

    def _with_partners(
        self, family: Family, frame: pl.DataFrame, extended: Mapping[str, pl.DataFrame], stream: Stream
    ) -> pl.DataFrame:
        """Find partners in further parents: as many for each as it was to have, like those that are asked for."""
        for link in (own for own in self.families if own.child == family.child and own.partner):
            others = extended[link.parent]
            stubs = _stubs(others[link.number].to_numpy(), frame.height, stream("partners", link.column))
            asked = [c for c in self.models[family.child].partner_columns if c.startswith(f"{link.column}: ")]
            there = [c.removeprefix(f"{link.column}: ") for c in asked]
            mine = _ranked(frame, asked, stream("asked", link.column))
            theirs = stubs[_ranked(others[stubs].select(there), there, stream("there", link.column))]
            partner = np.empty(frame.height, dtype=np.int64)
            partner[mine] = theirs
            frame = frame.drop(asked).with_columns(pl.Series(link.column, partner + 1))
        return frame

    def save(self, path: str | Path) -> Path:
        """Write the models to one file; they hold values of real records: keep it as the data are kept."""
        return save_model(self, path)

    @classmethod
    def load(cls, path: str | Path) -> FittedRelational:
        """Read models that `save` has written; tables come back as Polars frames."""
        return load_model(path, cls)


def _starts(at: Integers) -> Integers:
    """Return where each parent's children begin."""
    return np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))


def _stubs(wanted: Any, size: int, rng: np.random.Generator) -> Integers:
    """Repeat every partner as often as it is wanted, then add or take away until there are enough."""
    often = np.maximum(np.asarray(wanted, dtype=np.int64), 0)
    if not len(often):
        raise InputError("There is no record left to be a partner of others.")
    over = int(often.sum()) - size
    while over > 0:
        # Those who have several lose one first.
        can = np.flatnonzero(often > 1) if (often > 1).any() else np.flatnonzero(often > 0)
        gone = rng.permutation(can)[:over]
        often[gone] -= 1
        over -= len(gone)
    while over < 0:
        can = np.flatnonzero(often == 0) if (often == 0).any() else np.arange(len(often))
        more = rng.permutation(can)[:-over]
        often[more] += 1
        over += len(more)
    return np.repeat(np.arange(len(often)), often)


def _ranked(frame: pl.DataFrame, columns: Sequence[str], rng: np.random.Generator) -> Integers:
    """Order records by some columns, those alike at random."""
    shuffled = rng.permutation(frame.height)
    if not columns:
        return shuffled
    keys = [_numbered(frame[name])[shuffled] for name in reversed(columns)]
    return np.asarray(shuffled[np.lexsort(keys)])


def _numbered(series: pl.Series) -> Integers:
    """Number the values of a column in their order; missing is 0."""
    plain = series.cast(pl.String) if isinstance(series.dtype, pl.Categorical | pl.Enum) else series
    return plain.rank("dense").fill_null(0).to_numpy().astype(np.int64)
