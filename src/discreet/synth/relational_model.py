"""Models of linked tables that were fitted, from which whole sets of tables are drawn: parents first, then children.

A parent knows of its children how many they are, when, and what they are like on the whole; parents are drawn so that
numbers of children are as frequent as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import Seed
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.column_forms import plain_text
from discreet.synth.saved_models import load_model, save_model, stored, stored_as
from discreet.synth.sequential.sequential_model import FittedSequential
from discreet.synth.synthesizer import seed_of
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
    dates
        ``{table: {column: format}}`` of columns of texts that are dates: modelled as such and written as they came.
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
    dates: Mapping[str, Mapping[str, str]] = field(default_factory=dict, kw_only=True)
    unplaced: dict[str, int] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        """Say which tables it draws; no value and no seed."""
        tables = ", ".join(f"{name} ({model.rows:,})" for name, model in self.models.items())
        return (
            f"FittedRelational: models of {tables}\n  It draws all of them: sample(scale=…, seed=…). It may hold "
            f"values of real records: keep it as the data are kept.{self._what_is_missing()}\n"
            f"Guarantee: none: {self.why_none}"
        )

    def _what_is_missing(self) -> str:
        out = [
            f"{name}.{column} ({why})" for name, own in self.left_out.items() for column, why in own.items()
        ]
        return f"\nLeft out: {'; '.join(out)}." if out else ""

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
            written = self.dates.get(name, {})
            frame = frame.with_columns(pl.col(c).dt.strftime(f) for c, f in written.items() if c in columns)
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
            fresh = [numbers.alias(c) for c in dict.fromkeys((own.key, *own.parents)) if c is not None]
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
            if key is not None and key not in self.schema.tables[name].parents:
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
                rng, many = stream("parents", column), extended[parent].height
                if column == self.schema.tables[name].key:  # one to one: nobody is a parent twice
                    frame = frame.head(many)
                    at = rng.permutation(many)[: frame.height]
                else:
                    at = rng.integers(max(many, 1), size=frame.height)
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
    keys = [
        plain_text(frame[name]).rank("dense").fill_null(0).to_numpy()[shuffled] for name in reversed(columns)
    ]
    return np.asarray(shuffled[np.lexsort(keys)])


# What a parent knows of its children before they are drawn: how many, when, and what they are like on the whole.
#
# Parents are drawn so that numbers of children are as frequent as they were.
_MOST_WAVES = 40
_MOST_SUMMARIES = 4
_FEW_LEVELS = 30
_BETWEEN = "|"


@stored("table-family")
@dataclass(frozen=True, eq=False)
class Family:
    """A table and the parent that its records hang on.

    Attributes
    ----------
    child, parent, column
        The tables, and the column of the child that holds the key of the parent.
    order
        The column by which the children of a parent stand in time.
    waves
        Whether a parent has at most one child at each time, of which there are few: a panel. Parents then draw the
        pattern of times instead of a number.
    means, commonest
        Columns of the child whose mean, or commonest value, its parent draws beforehand.
    partner
        Whether it is the link to a partner and not to the owner: only numbers are drawn then.
    levels, often
        The numbers of children that there are (or the patterns of times), in order, and how many parents have each.
    """

    child: str
    parent: str
    column: str
    order: str | None = None
    waves: bool = False
    means: tuple[str, ...] = ()
    commonest: tuple[str, ...] = ()
    partner: bool = False
    levels: tuple[Any, ...] = ()
    often: tuple[int, ...] = ()

    @property
    def number(self) -> str:
        """What the column of the parent is called that says how many children there are, or which pattern."""
        return f"{self.child}.{self.column}: {'times' if self.waves else 'number'}"

    @property
    def known(self) -> tuple[str, ...]:
        """Columns of the parent that the child gives it."""
        means = tuple(f"{self.child}.{name}: mean" for name in self.means)
        return (self.number, *means, *(f"{self.child}.{name}: commonest" for name in self.commonest))

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        child: str,
        parent: str,
        column: str,
        frame: pl.DataFrame,
        columns: Sequence[str],
        order: str | None,
        *,
        partner: bool,
    ) -> Family:
        """Look at the children: what can their parents say about them?"""
        if partner or not frame.height:
            return cls(child, parent, column, order, partner=partner)
        waves = False
        if order is not None:
            if frame[order].null_count():
                raise ColumnError(
                    f"Table '{child}': '{order}' gives the order and is missing in {frame[order].null_count():,} "
                    "records. Fill it in, or take it out of the schema."
                )
            alone = frame.select(pl.struct(column, order).n_unique()).item() == frame.height
            waves = alone and frame[order].n_unique() <= _MOST_WAVES
        rest = [name for name in columns if name != order]
        means = [name for name in rest if frame.schema[name].is_numeric()][:_MOST_SUMMARIES]
        few = [
            name
            for name in rest
            if not frame.schema[name].is_numeric()
            and not frame.schema[name].is_temporal()
            and frame[name].n_unique() <= _FEW_LEVELS
        ][:_MOST_SUMMARIES]
        return cls(child, parent, column, order, waves, tuple(means), tuple(few))

    def summed_up(self, keys: pl.Series, frame: pl.DataFrame) -> pl.DataFrame:
        """Give every parent what it knows of its children, one row a parent in the order of the keys."""
        asked: list[pl.Expr] = [pl.len().cast(pl.Int64).alias("number")]
        if self.waves:
            asked.append(pl.col(str(self.order)).sort().cast(pl.String).str.join(_BETWEEN).alias("times"))
        asked += [
            pl.col(name).cast(pl.Float64).mean().alias(f"mean {at}") for at, name in enumerate(self.means)
        ]
        asked += [
            pl.col(name).cast(pl.String).drop_nulls().mode().sort().first().alias(f"commonest {at}")
            for at, name in enumerate(self.commonest)
        ]
        by = frame.group_by(pl.col(self.column).alias("key")).agg(*asked)
        found = keys.rename("key").to_frame().join(by, on="key", how="left", maintain_order="left")
        number = found["times"].fill_null("") if self.waves else found["number"].fill_null(0)
        made = {self.number: number}
        for kind, names in (("mean", self.means), ("commonest", self.commonest)):
            for at, name in enumerate(names):
                made[f"{self.child}.{name}: {kind}"] = _rounded(found[f"{kind} {at}"])
        return pl.DataFrame(made)

    def counted(self, numbers: pl.Series) -> Family:
        """Keep how many parents have how many children."""
        found = numbers.rename("level").value_counts(name="often")
        # Patterns of times stand in the order of their length, as numbers do.
        by = [pl.col("level").str.count_matches(_BETWEEN, literal=True), "level"] if self.waves else ["level"]
        found = found.sort(by)
        return replace(self, levels=tuple(found["level"].to_list()), often=tuple(found["often"].to_list()))

    def spread(self, parents: pl.DataFrame) -> tuple[Integers, pl.Series | None]:
        """Say for every child to come which parent it has, and at which time, where it is a panel."""
        if not self.waves:
            sizes = np.maximum(parents[self.number].to_numpy(), 0)
            return np.repeat(np.arange(parents.height), sizes), None
        times = parents[self.number].rename("times").to_frame().with_row_index("at")
        times = times.filter(pl.col("times") != "").with_columns(pl.col("times").str.split(_BETWEEN))
        flat = times.explode("times")
        return flat["at"].to_numpy().astype(np.int64), flat["times"]


def _rounded(series: pl.Series) -> pl.Series:
    """Keep four digits of a mean: it guides draws, and its further digits are nobody's business."""
    if series.dtype != pl.Float64:
        return series
    values = series.fill_null(0.0).to_numpy()
    size = np.where(
        values == 0, 1.0, 10.0 ** (np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values)))) - 3)
    )
    return pl.Series(np.round(values / size) * size).set(series.is_null(), None)


# Parents drawn so that numbers of children are as frequent as they were: chance alone misses small totals widely.
_MORE = 0.5  # candidates beside those that are needed
_BINS = 8
_ROUNDS = 200


def chosen_parents(
    families: Sequence[Family], rows: int, draw: Callable[[int], pl.DataFrame], rng: np.random.Generator
) -> pl.DataFrame:
    """Draw more parents than are needed, and choose those whose numbers of children are as frequent as they were.

    Every parent is taken as it was drawn, so that what it is like and what its children are like go together.
    """
    counted = [family for family in families if family.levels]
    if not counted or rows < 2 * _BINS:
        return draw(rows)
    every = draw(rows + max(round(_MORE * rows), 2 * _BINS))
    cells, wanted = zip(*(_cells(family, every[family.number]) for family in counted), strict=True)
    codes = np.column_stack(cells)
    ends = np.cumsum([0, *(len(own) for own in wanted)])[:-1]
    codes = codes + ends
    aim = np.concatenate(wanted) * rows
    taken = np.arange(every.height) < rows
    gap = _gap(codes[taken], aim)
    size = max(1, rows // 20)
    for _ in range(_ROUNDS):
        if np.abs(gap).max() < 1 or size < 1:
            break
        worth = gap[codes].sum(axis=1) + rng.random(every.height) * 1e-3
        inside, outside = np.flatnonzero(taken), np.flatnonzero(~taken)
        leaves = inside[np.argsort(-worth[inside])[:size]]
        comes = outside[np.argsort(worth[outside])[:size]]
        tried = taken.copy()
        tried[leaves], tried[comes[: len(leaves)]] = False, True
        after = _gap(codes[tried], aim)
        if np.abs(after).sum() < np.abs(gap).sum():
            taken, gap = tried, after
        else:
            size //= 2
    return every.filter(pl.Series(taken))


def _gap(codes: Integers, aim: Floats) -> Floats:
    """Say how many parents too many (or too few) each class has."""
    return np.asarray(np.bincount(codes.ravel(), minlength=len(aim)) - aim)


def _cells(family: Family, drawn: pl.Series) -> tuple[Integers, Floats]:
    """Put numbers of children into a few classes; returns that of each drawn parent, and the share of each class."""
    often = np.array(family.often, dtype=np.float64)
    # A class ends where its share of the parents is reached; a number that many parents have is one by itself.
    upto = np.cumsum(often) / often.sum()
    bins = np.unique(np.floor(np.concatenate([[0.0], upto[:-1]]) * _BINS), return_inverse=True)[1]
    large = often / often.sum() >= 1 / (2 * _BINS)
    bins = np.unique(np.column_stack([bins, np.cumsum(large), large]), axis=0, return_inverse=True)[1].ravel()
    place = {level: int(own) for level, own in zip(family.levels, bins.tolist(), strict=True)}
    codes = np.array([place.get(level, 0) for level in drawn.to_list()], dtype=np.int64)
    return codes, np.bincount(bins, weights=often) / often.sum()


def balanced_children(family: Family, parents: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Let as many of these parents have children as should, where they are children themselves and cannot be chosen.

    Who is to get the first child is one of those who are like parents with children in all their categories, and what
    is known of the children comes from one of these; who is to lose them is anybody.
    """
    if not family.levels or not parents.height:
        return parents
    none = (0, "")
    have = np.array([level not in none for level in parents[family.number].to_list()])
    share = sum(n for level, n in zip(family.levels, family.often, strict=True) if level not in none)
    missing = round(parents.height * share / sum(family.often)) - int(have.sum())
    taken = np.arange(parents.height)
    if not missing or not have.any():
        return parents
    if missing < 0:
        lose = rng.permutation(np.flatnonzero(have))[:-missing]
        if not (~have).any():
            return parents
        taken[lose] = rng.choice(np.flatnonzero(~have), size=len(lose))
    else:
        few = [
            name
            for name in parents.columns
            if name not in family.known and ": " not in name and parents[name].n_unique() <= _FEW_LEVELS
        ]
        groups = _groups(parents.select(few))
        donors, others = (
            np.bincount(groups, weights=own, minlength=groups.max() + 1) for own in (have, ~have)
        )
        chance = np.where(have, 0.0, donors[groups] / np.maximum(others[groups], 1.0))
        missing = min(missing, int((chance > 0).sum()))
        if not missing:
            return parents
        gain = rng.choice(len(chance), size=missing, replace=False, p=chance / chance.sum())
        # A donor of the same group: those with children stand together when sorted by group.
        rich = np.flatnonzero(have)
        rich = rich[np.argsort(groups[rich], kind="stable")]
        low, high = (np.searchsorted(groups[rich], groups[gain], side=side) for side in ("left", "right"))
        taken[gain] = rich[low + np.floor(rng.random(missing) * (high - low)).astype(np.int64)]
    known = [name for name in family.known if name in parents.columns]
    return parents.with_columns(parents[name].gather(taken) for name in known)


def _groups(frame: pl.DataFrame) -> Integers:
    if not frame.width:
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
