"""Linked tables, synthesized so that they still hang together: parents first, with what they know of their children."""

# ruff: noqa: PLR0917
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.citations import PATKI_2016
from discreet.core.constraints import AtLeast, ColumnName, FieldsOf
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import typed_parameters
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.value_gate import name_in_documents
from discreet.dp.entropy import Stream
from discreet.expressions import parse
from discreet.io.column_types import Wanted, dates_of, parsed
from discreet.microdata import Microdata
from discreet.synth.column_forms import columns_named
from discreet.synth.relational_model import Family, FittedRelational, TableModel
from discreet.synth.sequential.fitting_records import fit_weights
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.sequential_model import FittedSequential
from discreet.synth.sequential.synthesis_planning import plan_synthesis
from discreet.synth.synthesizer import empty_like, seed_of
from discreet.synth.table_schema import Schema, check_tables

_LONG_TEXT = 0.5
_FEW = 50
_MOST_LAGS = 12
_MATCHED_BY = 3

Strategy = Literal["relational", "joined", "separate"]


@method(
    room="synth",
    aim="records",
    work="whole-file",
    references=(
        PATKI_2016,
        "Reiter, J. P. (2005). Using CART to generate partially synthetic public use microdata. Journal "
        "of Official Statistics 21(3), 441–462.",
    ),
)
@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "relational")
class Relational:
    """Which linked tables do models of these tables draw?

    Parents are synthesized first, each with the number of its children in every table that hangs on it and with what
    they are like on the whole (means, commonest values), column by column (`Sequential`). Children follow, given all
    of that: their times first, in order, then everything else. Keys are new numbers, every child has a parent, and
    rules across tables hold, by construction. A table that hangs on two others finds partners in the second that are
    like those its records ask for. A file of persons and waves is a parent and its children.

    Also known as: HMA; multi-table synthesis; relational synthesis.

    Parameters
    ----------
    schema
        How the tables hang together: a `Schema`, what `Schema.from_dict` reads, or the path of a TOML file.
    strategy
        ``"relational"``; and to compare with it ``"joined"`` (two tables are joined, synthesized as one and taken apart
        again; for tables of which each record has one of the other) and ``"separate"`` (every table by itself, parents
        at random).
    by
        How each table is synthesized, table by table: parameters of `Sequential`, e.g.
        ``{"person": {"smoothing": "spline"}}``.
    max_rounds
        How often records that break a rule are drawn again.

    When not to use it
    ------------------
    Trees draw values of real records, so the tables are not anonymous: measure each with `discreet.compare`. Relations
    between grandchildren and grandparents are kept only through what is between them. Two tables that belong together
    one to one come out as near when they are joined to one record (``strategy="joined"``), which is faster.

    Examples
    --------
    >>> person = pl.DataFrame({"id": range(40), "sex": ["f", "m"] * 20})
    >>> visit = pl.DataFrame({"person": [n // 2 for n in range(80)], "day": [n % 2 * 5 + n % 3 for n in range(80)]})
    >>> links = {"person": {"key": "id"}, "visit": {"parents": {"person": "person"}, "order": "day"}}
    >>> made = Relational({"tables": links}).fit({"person": person, "visit": visit}, seed=1).sample(seed=1)
    >>> bool(made["visit"]["person"].is_in(made["person"]["id"].implode()).all())
    True
    """

    schema: Schema | Mapping[str, Any] | str
    strategy: Strategy = "relational"
    by: Mapping[ColumnName, Annotated[Mapping[str, Any], FieldsOf(Sequential)]] = field(default_factory=dict)
    max_rounds: Annotated[int, AtLeast(1)] = 100

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            made = Schema.load(self.schema) if isinstance(self.schema, str) else Schema.from_dict(self.schema)
            object.__setattr__(self, "schema", made)
        if not self.links.confirmed:
            raise ParameterError(
                "The schema was inferred and nobody has confirmed it. Look at it (print it, or save it), correct it, "
                "and say schema.confirm(), or confirmed = true in its file."
            )
        for name in self.by:
            if name not in self.links.tables:
                raise ParameterError(f"by: there is no table '{name}' in the schema.")

    @property
    def links(self) -> Schema:
        """The schema, read."""
        assert isinstance(self.schema, Schema)
        return self.schema

    def fit(
        self, tables: Mapping[str, Any], *, progress: bool = False, seed: Seed = None
    ) -> FittedRelational:
        """Learn from tables, given by name as frames or `Microdata`."""
        if not isinstance(tables, Mapping):
            raise ParameterError("fit takes a mapping of tables, e.g. {'person': frame, 'visit': frame}.")
        given = {name: own if isinstance(own, Microdata) else Microdata(own) for name, own in tables.items()}
        frames = {name: engine.collect(own) for name, own in given.items()}
        check_tables(self.links, frames)
        dates = {name: self._dates(name, frame) for name, frame in frames.items()}
        frames = {
            name: frame.with_columns(parsed(pl.col(column), form) for column, form in dates[name].items())
            for name, frame in frames.items()
        }
        stream = Stream(seed_of(seed), "relational", seeded=seed is not None)
        if self.strategy == "joined":
            return replace(self._joined(given, frames, stream), dates=dates)
        columns, left_out = self._columns(frames)
        families = [] if self.strategy == "separate" else self._families(frames, columns)
        models = {}
        for name in track(self.links.sequence(), description="Fitting tables", progress=progress):
            models[name] = self._model(name, frames, columns[name], families, stream.child(name))
        return FittedRelational(
            self.links,
            {name: empty_like(own, frames[name]) for name, own in given.items()},
            models,
            families,
            left_out,
            dates=dates,
        )

    def _dates(self, name: str, frame: pl.DataFrame) -> dict[str, str]:
        """Find the columns of texts that are days or moments, and how these are written."""
        table = self.links.tables[name]
        fixed = {table.key, *table.parents, *table.leave_out} if not table.public else set(frame.columns)
        texts = {c: c for c in frame.columns if frame[c].dtype == pl.String and c not in fixed}
        return dates_of(frame.lazy().select(*texts), texts, Wanted())[0] if texts else {}

    def _columns(
        self, frames: Mapping[str, pl.DataFrame]
    ) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
        """Say which columns of each table are modelled, and which are left out, and why."""
        columns, left_out = {}, {}
        for name, table in self.links.tables.items():
            frame, out = frames[name], dict.fromkeys(table.leave_out, "as asked for")
            for column in frame.columns:
                series = frame[column]
                wild = series.dtype == pl.String and series.n_unique() > max(_LONG_TEXT * len(series), _FEW)
                if wild and column != table.key and column not in table.parents and not table.public:
                    out.setdefault(column, "a text that is different in nearly every record")
            fixed = {table.key, *(c for c, p in table.parents.items() if not self.links.tables[p].public)}
            columns[name] = [c for c in frame.columns if c not in fixed and c not in out]
            left_out[name] = out
        return columns, left_out

    def _families(
        self, frames: Mapping[str, pl.DataFrame], columns: Mapping[str, Sequence[str]]
    ) -> list[Family]:
        found = []
        for name, table in self.links.tables.items():
            owner = self.links.owner(name)
            if owner is None or table.public:
                continue
            found.append(
                Family.of(name, owner[1], owner[0], frames[name], columns[name], table.order, partner=False)
            )
            found += [
                Family.of(name, parent, column, frames[name], (), None, partner=True)
                for column, parent in self.links.partners(name)
            ]
        return [
            family.counted(
                family.summed_up(
                    frames[family.parent][str(self.links.tables[family.parent].key)], frames[family.child]
                )[family.number]
            )
            for family in found
        ]

    def _model(
        self,
        name: str,
        frames: Mapping[str, pl.DataFrame],
        columns: Sequence[str],
        families: Sequence[Family],
        stream: Stream,
    ) -> TableModel:
        """Fit the models of one table: its times, and everything else."""
        table, frame = self.links.tables[name], frames[name]
        if table.public:
            return TableModel(name, frame.height, public=frame)
        known = [
            family.summed_up(frame[str(table.key)], frames[family.child])
            for family in families
            if family.parent == name
        ]
        # The keys of a public table are categories, not numbers.
        public = [link for link, parent in table.parents.items() if self.links.tables[parent].public]
        coded = frame.with_columns(pl.col(link).cast(pl.String) for link in public)
        own = pl.concat([columns_named(coded, columns), *known], how="horizontal")
        above = next((f for f in families if f.child == name and not f.partner), None)
        options = self._options(name)
        if above is None or not frame.height:
            if not own.width or not frame.height:
                return TableModel(name, frame.height)
            return TableModel(name, frame.height, whole=_fitted(options, own, (), table.rules, stream))
        parent = self.links.tables[above.parent]
        given, parents = _beside(above, frame, frames[above.parent], parent.key, families, frames)
        known_of = {column: parents[column] for column in parents.columns}
        if above.order is not None:
            order = np.lexsort((frame[above.order].rank("ordinal").to_numpy(), given["at"].to_numpy()))
            given, own = given[order], own[order]
        given = given.with_columns(_place(given["at"], above))
        at = given["at"]
        given = given.drop("at")
        partners = self._wanted_partners(name, frame, frames)
        if partners.width:
            own = own.hstack(partners[order] if above.order is not None else partners)
        times = None
        if above.order is not None and not above.waves:
            when = pl.DataFrame({above.order: own[above.order]})
            base = given.drop(above.child + ": place")
            own_stream = stream.child("times")
            times = _fitted(options, base.hstack(when), base.columns, table.rules, own_stream, known_of)
        lags: tuple[str, ...] = ()
        if above.waves and own.width > 1:
            lags = tuple(column for column in columns if column != above.order)[:_MOST_LAGS]
            given = given.hstack(_lagged(own, at, lags))
        if above.order is not None:
            given = given.hstack([own[above.order]])
            own = own.drop(above.order)
        rest = None
        if own.width:
            own_stream = stream.child("rest")
            rest = _fitted(options, given.hstack(own), given.columns, table.rules, own_stream, known_of)
        broken = [rule for rule in table.rules if not _speaks_of(rule, given.hstack(own))]
        if broken:
            raise ParameterError(
                f"Table '{name}': a rule speaks of a column that is neither its own nor its parent's. Columns of the "
                f"parent are called `{above.parent}.column`."
            )
        return TableModel(
            name, frame.height, times=times, rest=rest, lags=lags, partner_columns=tuple(partners.columns)
        )

    def _options(self, name: str) -> Sequential:
        try:
            return replace(Sequential.from_dict({**self.by.get(name, {})}), max_rounds=self.max_rounds)
        except DiscreetError as error:
            raise type(error)(f"by: table '{name}': {error}") from error

    def _wanted_partners(
        self, name: str, frame: pl.DataFrame, frames: Mapping[str, pl.DataFrame]
    ) -> pl.DataFrame:
        """What the partners of the records are like: they are looked for by it."""
        made: dict[str, pl.Series] = {}
        for column, parent in self.links.partners(name):
            key = str(self.links.tables[parent].key)
            fixed = {key, *self.links.tables[parent].parents}
            others = [c for c in frames[parent].columns if c not in fixed][:_MATCHED_BY]
            found = (
                frame[column]
                .rename(key)
                .to_frame()
                .join(frames[parent].select(key, *others), on=key, how="left", maintain_order="left")
            )
            made |= {f"{column}: {other}": found[other] for other in others}
        return pl.DataFrame(made)

    def _joined(
        self, given: Mapping[str, Microdata], frames: Mapping[str, pl.DataFrame], stream: Stream
    ) -> FittedRelational:
        """Fit the joined table."""
        joined = joined_table(self.links, frames)
        model = _fitted(Sequential(max_rounds=self.max_rounds), joined.frame, (), (), stream)
        return FittedRelational(
            self.links,
            {name: empty_like(own, frames[name]) for name, own in given.items()},
            {"joined": TableModel("joined", joined.frame.height, whole=model)},
            [],
            {},
            joined=joined.parts,
            lost=joined.lost,
        )


name_in_documents("synthesizer", {"relational": Relational})


def _speaks_of(rule: str, frame: pl.DataFrame) -> bool:
    """Whether all columns of a rule are there."""
    try:
        parse(rule, frame.schema)
    except DiscreetError:
        return False
    return True


def _beside(
    family: Family,
    frame: pl.DataFrame,
    parents: pl.DataFrame,
    key: str | None,
    families: Sequence[Family],
    frames: Mapping[str, pl.DataFrame],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put beside every child what is known of its parent, under the name of the parent; and the same of all parents."""
    assert key is not None
    about = family.summed_up(parents[key], frame)
    others = [
        other.summed_up(parents[key], frames[other.child]).select(other.number)
        for other in families
        if other.parent == family.parent and other is not family
    ]
    about = pl.concat([about, *others], how="horizontal")
    shown = [own for own in parents.get_columns() if own.dtype != pl.String or own.n_unique() <= _FEW]
    beside = pl.DataFrame({f"{family.parent}.{own.name}": own for own in shown if own.name != key})
    about = pl.concat([beside, about], how="horizontal")
    table = pl.concat(
        [parents.select(pl.col(key).alias("key")).with_row_index("at"), about], how="horizontal"
    )
    found = frame.select(pl.col(family.column).alias("key")).join(
        table, on="key", how="left", maintain_order="left"
    )
    return found.drop("key").with_columns(pl.col("at").cast(pl.Int64)), about


def _place(at: pl.Series, family: Family) -> pl.Series:
    """Number the children of each parent."""
    return (
        pl.DataFrame({"at": at})
        .select((pl.int_range(pl.len()).over("at") + 1).cast(pl.Int64).alias(f"{family.child}: place"))
        .to_series()
    )


def _lagged(own: pl.DataFrame, at: pl.Series, lags: Sequence[str]) -> pl.DataFrame:
    """Put beside every record what the record before it says, within its parent."""
    table = own.select(lags).with_columns(at.alias("at of parent"))
    return table.select(pl.col(name).shift(1).over("at of parent").alias(f"before: {name}") for name in lags)


def _fitted(
    options: Sequential,
    frame: pl.DataFrame,
    given: Sequence[str],
    rules: Sequence[str],
    stream: Stream,
    known: Mapping[str, pl.Series] | None = None,
) -> FittedSequential:
    """Fit the columns of a table that are not given; ``known`` are all values that given ones may have.

    Rules that speak of columns which are not there are left to other parts of the table.
    """
    rules = [rule for rule in rules if _speaks_of(rule, frame)]
    if frame.height < 2:
        frame = pl.concat([frame] * 2)
    if frame.width < 2:
        frame = frame.with_columns(pl.lit(0).alias("discreet nothing"))
    for rule in rules:
        holds = frame.select(parse(rule, frame.schema).value.fill_null(True).alias("holds"))["holds"]
        if not holds.all():
            raise InputError(
                f"{int((~holds).sum()):,} records of the data break a rule of the schema. Correct them, or the rule."
            )
    own = replace(
        options,
        together="no",
        visit_sequence=(*given, *(name for name in frame.columns if name not in given)),
        method={
            **dict.fromkeys(given, "keep"),
            **(options.method if isinstance(options.method, Mapping) else {}),
        }
        or options.method,
        otherwise=options.otherwise if isinstance(options.method, Mapping) else options.method,
        constraints=tuple(rules),
    )
    data = Microdata(frame)
    plan, forms = plan_synthesis(
        own, data, frame, known={**{name: frame[name] for name in given}, **(known or {})}
    )
    return FittedSequential.fit(
        own, plan, forms, data, frame, weights=fit_weights(own, data, frame), stream=stream, progress=False
    )


# The plain way of synthesizing linked tables, to compare with: join them, and take the joined table apart again.


@dataclass(frozen=True, eq=False)
class Joined:
    """A joined table.

    Attributes
    ----------
    frame
        The records that both tables have, without keys.
    parts
        ``{table: {column: column of the joined table}}``.
    lost
        ``{table: records that have no counterpart}``.
    """

    frame: pl.DataFrame
    parts: dict[str, dict[str, str]]
    lost: dict[str, int]


def joined_table(schema: Schema, frames: Mapping[str, pl.DataFrame]) -> Joined:
    """Join two tables each record of which has at most one counterpart."""
    if len(schema.tables) != 2:
        raise ParameterError(
            f"strategy='joined' joins two tables, and the schema has {len(schema.tables)}. Use strategy='relational'."
        )
    parent, child = schema.sequence()
    link = next(iter(schema.tables[child].parents.items()), None)
    if link is None or link[1] != parent:
        raise ParameterError("strategy='joined' needs a table that hangs on the other.")
    column, key = link[0], str(schema.tables[parent].key)
    repeated = frames[child].height - frames[child][column].n_unique()
    if repeated:
        raise ParameterError(
            f"strategy='joined' would repeat the records of '{parent}': {repeated:,} records of '{child}' share theirs "
            "with another. Sum the children up to one record each, or use strategy='relational'."
        )
    fixed: dict[str, set[str | None]] = {parent: {key}, child: {column, schema.tables[child].key}}
    parts = {
        name: {c: f"{name}.{c}" for c in frames[name].columns if c not in fixed[name]}
        for name in (parent, child)
    }
    sides = {
        name: frames[name].select(
            pl.col(key if name == parent else column).alias("key of both"),
            *(pl.col(c).alias(new) for c, new in parts[name].items()),
        )
        for name in (parent, child)
    }
    both = (
        sides[parent]
        .join(sides[child], on="key of both", how="inner", maintain_order="left")
        .drop("key of both")
    )
    if not both.height:
        raise ParameterError(
            "No record of one table has a counterpart in the other; there is nothing to join."
        )
    return Joined(both, parts, {name: frames[name].height - both.height for name in (parent, child)})
