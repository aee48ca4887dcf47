"""What generators from noisy margins share: parameters, columns as codes, the order of a fit, and its claims."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import AtLeast, Between, HoldsValues, Public
from discreet.core.declared_types import all_declared
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.costs import refuse_seeded
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import unit_of
from discreet.engine import counted_unit
from discreet.engine.counting_kernels import looked_up
from discreet.microdata import Microdata, require_microdata
from discreet.synth import graphical_model
from discreet.synth.binned_columns import Attribute, declared, left_out_of, levels_of
from discreet.synth.column_forms import as_numbers, listed, plain_text
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

ALONE = 0.2  # of rho: columns by themselves


@dataclass(frozen=True)
class _Counted(Synthesizer):
    """Columns are counted by themselves, with noise; a model is fitted to their groups with the rest of the budget."""

    epsilon: float
    delta: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-6
    domain: Annotated[Mapping[str, Any], Public()] | None = None
    never_missing: Annotated[Columns, Public()] = None
    bins: Annotated[int, AtLeast(2)] = 128
    borders: Annotated[Mapping[str, Sequence[Any]], HoldsValues(by_column=True)] | None = None
    groups: Annotated[int, AtLeast(2)] = 16
    impossible: Annotated[Sequence[Mapping[str, Any]], HoldsValues()] | None = None
    records_per_person: Annotated[int, AtLeast(1)] = 1
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)

    @abstractmethod
    def modelled(
        self, data: Microdata, file: Prepared, alone: Alone, rho: float, stream: Stream, *, progress: bool
    ) -> FittedMarginals:
        """Fit a model to the groups of all records, for what is left of rho."""

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly, before anything is spent."""
        graphical_model.check_noise(ALONE * rho, len(file.codes), file.most)

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedMarginals:
        """Measure the file; with a ledger the price is entered before noise is drawn."""
        refuse_seeded(ledger, seed)
        file = prepared(self, data, fewest=2)
        rho = dp.largest_rho(self.epsilon, self.delta)
        self.check_budget(file, rho)
        if ledger is not None:
            ledger.spend(file.cost(self.name, self), data=data)
        stream = Stream(seed_of(seed), self.name, seeded=seed is not None)
        codes = file.bounded(stream.words("whose"))
        alone = measured_alone(self, file, codes, ALONE * rho, stream)
        fitted = self.modelled(data, file, alone, (1 - ALONE) * rho, stream, progress=progress)
        return fitted.promise(file.claim(self), seeded=stream.seeded, ledger=ledger)


_TRIES = 200


@stored("fitted-marginals")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedMarginals(Fitted):
    """A model of noisy tables.

    Attributes
    ----------
    measured
        The tables that were measured, as columns, in the order in which they were chosen.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    attributes: Sequence[Attribute]
    groupings: Sequence[graphical_model.Grouping]
    chosen: Sequence[tuple[int, ...]]
    model: graphical_model.GraphicalModel
    impossible: Sequence[Combination]
    left_out: Mapping[str, str]

    @property
    def measured(self) -> list[tuple[str, ...]]:
        """The tables that were measured, as columns, in the order in which they were chosen."""
        return [tuple(self.attributes[column].name for column in columns) for columns in self.chosen]

    @property
    def pairs(self) -> list[tuple[str, ...]]:
        """The pairs of columns among the tables that were measured."""
        return [columns for columns in self.measured if len(columns) == 2]

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw table by table; records with a combination that cannot occur are drawn again."""
        frame = self._drawn(n, stream)
        again = np.flatnonzero(found(self.impossible, frame)) if self.impossible else ()
        tries = 0
        while len(again):
            tries += 1
            if tries > _TRIES:
                raise ParameterError(
                    "Nearly every record that is drawn has a combination declared as impossible. Declare less."
                )
            new = self._drawn(len(again), stream.child("again", str(tries)))
            place = np.arange(n)
            place[again] = n + np.arange(len(again))
            frame = pl.concat([frame, new])[place]
            again = again[found(self.impossible, new)]
        return frame

    def _drawn(self, n: int, stream: Stream) -> pl.DataFrame:
        groups = self.model.drawn(n, stream("groups"))
        return pl.DataFrame([self._column(at, own, stream) for at, own in enumerate(groups)])

    def _column(self, place: int, groups: Integers, stream: Stream) -> pl.Series:
        attribute, grouping = self.attributes[place], self.groupings[place]
        within = np.zeros((grouping.size, len(grouping.group)))
        within[grouping.group, np.arange(len(grouping.group))] = grouping.shares + 1e-9
        codes = graphical_model.drawn_columns(within, groups, stream("level", attribute.name))
        return attribute.drawn_within(codes, stream)


# What a generator from noisy margins needs before anything is counted: columns as codes, and whose the records are.
#
# Nothing here is read off the data but the codes themselves; what they may be was declared.
#
# Combinations that cannot occur are declared as well, never drawn, and free of charge.


@dataclass(frozen=True, eq=False)
class Prepared:
    """A file as codes.

    Attributes
    ----------
    frame
        The columns that are synthesized.
    attributes
        What they may be.
    codes
        The codes of every column.
    owners
        Whose each record is; None where every record is a unit of its own.
    unit
        Whose privacy it is: ``"record"``, ``"person"`` or ``"contributor"``.
    most
        How many records of one unit are counted at most.
    public
        Which columns have bins that are public.
    impossible
        Combinations that cannot occur.
    left_out
        Columns that are not synthesized, and why.
    """

    frame: pl.DataFrame
    attributes: list[Attribute]
    codes: list[graphical_model.Small]
    owners: pl.Series | None
    unit: str
    most: int
    public: list[bool]
    impossible: list[Combination]
    left_out: dict[str, str]

    def bounded(self, words: dp.Words) -> list[graphical_model.Small]:
        """The codes of the records that count: at most so many of every unit, chosen at random."""
        if self.owners is None:
            return self.codes
        order = dp.shuffled(len(self.owners), words)
        place = pl.int_range(pl.len(), dtype=pl.Int64).over("u")
        kept = self.owners.gather(order).to_frame("u").select((place < self.most).alias("kept"))["kept"]
        chosen = np.sort(order[kept.to_numpy()])
        return [codes[chosen] for codes in self.codes]

    def cost(self, mechanism: str, plan: _Counted) -> dp.Cost:
        """What it costs, for a ledger."""
        return dp.Cost(
            mechanism,
            "approximate",
            epsilon=float(plan.epsilon),
            delta=float(plan.delta),
            unit=self.unit,  # type: ignore[arg-type]
            sensitivity=float(self.most),
            purpose="synthetic file",
        )

    def claim(self, plan: _Counted) -> DifferentialPrivacy:
        """What is claimed of the model."""
        few = "one of which was counted" if self.most == 1 else f"at most {self.most:,} of which were counted"
        whose = "" if self.unit == "record" else f" with all their records, {few},"
        return DifferentialPrivacy(
            plan.epsilon,
            plan.delta,
            against=f"adding or removing one {self.unit}{whose}",
            unit=self.unit,  # type: ignore[arg-type]
            covers=" for the model and its tables, and so for any number of files drawn from it; the declared domain "
            "counts as public",
        )

    def fitted(
        self, kind: type[FittedMarginals], data: Microdata, alone: Alone, chosen: Sequence[Any], model: Any
    ) -> FittedMarginals:
        """Put a fitted model together."""
        return kind(
            empty_like(data, self.frame, levels_of(self.attributes)),
            max(round(alone.records), 1),
            attributes=self.attributes,
            groupings=alone.groupings,
            chosen=chosen,
            model=model,
            impossible=self.impossible,
            left_out=self.left_out,
        )


def prepared(plan: _Counted, data: Microdata, *, fewest: int) -> Prepared:
    """Read a file as codes; everything that can be refused is refused here, before a budget is touched."""
    require_microdata(data)
    never, borders = listed(plan.never_missing), dict(plan.borders or {})
    left_out = left_out_of(data, plan.leave_out, domain=plan.domain, borders=borders, never_missing=never)
    names = [name for name in data.columns if name not in left_out]
    if len(names) < fewest:
        raise ParameterError(
            f"Pairs of columns need at least {fewest} columns. Name fewer columns in leave_out."
        )
    owners, unit, owner = None, unit_of(data), counted_unit(data)
    if owner is None and plan.records_per_person != 1:
        raise ParameterError(
            "records_per_person needs to know whose the records are. Give the data the role person, or leave it out."
        )
    # In one query: some engines give no order, and each record must keep its owner.
    frame = engine.collect(data, [*names, *([owner] if owner else [])])
    if owner is not None:
        # Several people may stand behind records that do not say whose they are: nobody's could be bounded.
        frame = frame.filter(pl.col(owner).is_not_null())
        owners, frame = frame[owner].rename("u"), frame.select(names)
    frame = all_declared(frame, plan.domain or {}, borders)
    attributes = [
        declared(
            frame[name],
            (plan.domain or {}).get(name),
            bins=plan.bins,
            never_missing=name in never,
            borders=borders.get(name),
        )
        for name in names
    ]
    return Prepared(
        frame,
        attributes,
        [attribute.encode_small(frame[attribute.name]) for attribute in attributes],
        owners,
        unit,
        plan.records_per_person,
        [name in borders for name in names],
        combinations_of(plan.impossible, attributes),
        left_out,
    )


@dataclass(frozen=True, eq=False)
class Alone:
    """Columns counted one by one, in groups that stand out from the noise.

    Attributes
    ----------
    records
        The estimated number of records.
    groupings
        The groups of every column.
    margins
        Noisy counts of the groups, and their variance.
    codes
        The groups of all records.
    """

    records: float
    groupings: list[graphical_model.Grouping]
    margins: list[tuple[Floats, Floats]]
    codes: list[graphical_model.Small]

    @property
    def sizes(self) -> list[int]:
        """How many groups every column has."""
        return [grouping.size for grouping in self.groupings]


def measured_alone(
    plan: _Counted, file: Prepared, codes: Sequence[graphical_model.Small], rho: float, stream: Stream
) -> Alone:
    """Count every column by itself, for rho together, and put levels together that drown in noise."""
    sizes = [attribute.size for attribute in file.attributes]
    variance = graphical_model.variance_of(rho, len(codes), file.most)
    counts = [
        graphical_model.noisy(
            graphical_model.counted((place,), codes, sizes), variance, stream.words("column", str(place))
        )
        for place in range(len(codes))
    ]
    # Every table adds up to the number of records, the shorter ones with less noise.
    records = max(float(np.average([own.sum() for own in counts], weights=[1 / size for size in sizes])), 1.0)
    groupings = [
        graphical_model.as_they_are(own, records)
        if public
        else graphical_model.grouped(
            own,
            records,
            float(variance) ** 0.5,
            attribute.bins if attribute.edges is not None else 0,
            plan.groups,
        )
        for own, attribute, public in zip(counts, file.attributes, file.public, strict=True)
    ]
    return Alone(
        records,
        groupings,
        [
            graphical_model.group_margin(own, each, float(variance))
            for own, each in zip(counts, groupings, strict=True)
        ],
        [_groups_of(own, each) for own, each in zip(codes, groupings, strict=True)],
    )


def _groups_of(codes: graphical_model.Small, grouping: graphical_model.Grouping) -> graphical_model.Small:
    """The group of every record; where every level is its own, the codes say it."""
    if np.array_equal(grouping.group, np.arange(grouping.size)):
        return codes
    # Groups are never more than levels, so that the type of the codes holds them too.
    found: graphical_model.Small = looked_up(grouping.group.astype(codes.dtype), codes)
    return found


# Which combinations of values cannot occur? Declared by the user, never drawn, and free of charge.
#
# What cannot occur is public knowledge (a man is not pregnant), not something that was seen to be empty. Records drawn
# with such a combination are drawn again, which is the law of the model given that they do not occur.
@stored("impossible-condition")
@dataclass(frozen=True, eq=False)
class Condition:
    """Values of one column: levels, or a range of a number.

    Attributes
    ----------
    column
        The place of the column.
    levels
        Some of its levels; None for a number.
    bounds
        Smallest and largest value, for a number.
    """

    column: int
    levels: pl.Series | None = None
    bounds: tuple[float, float] | None = None

    def holds(self, values: pl.Series) -> Flags:
        """Whether values meet it; missing ones never do."""
        if self.levels is not None:
            return plain_text(values).is_in(self.levels.implode()).fill_null(False).to_numpy()
        assert self.bounds is not None
        return as_numbers(values).is_between(*self.bounds).fill_null(False).to_numpy()

    def codes(self, attribute: Attribute) -> Flags:
        """Which codes lie wholly within it."""
        met = np.zeros(attribute.size, dtype=bool)
        if self.levels is not None and attribute.levels is not None:
            met[: attribute.bins] = attribute.levels.is_in(self.levels.implode()).to_numpy()
        elif self.bounds is not None and attribute.edges is not None:
            low, high = attribute.edges[:-1], attribute.edges[1:]
            if attribute.decimals == 0:  # whole numbers strictly between the borders
                low, high = np.ceil(low), np.floor(high)
            met[: attribute.bins] = (low >= self.bounds[0]) & (high <= self.bounds[1])
        return met


Combination = tuple[Condition, ...]


def combinations_of(
    declared: Sequence[Mapping[str, Any]] | None, attributes: Sequence[Attribute]
) -> list[Combination]:
    """Read what was declared: one mapping a combination, from column to level, levels or (low, high)."""
    places = {attribute.name: place for place, attribute in enumerate(attributes)}
    made: list[Combination] = []
    for given in declared or ():
        if not isinstance(given, Mapping) or not given:
            raise ParameterError(
                "impossible must be a list of combinations, each {column: level} or {column: (low, high)}."
            )
        conditions = []
        for name, values in given.items():
            if name not in places:
                raise ColumnError(
                    f"Column '{name}' was named under impossible, and the synthetic file has no such column."
                )
            conditions.append(_condition(attributes[places[name]], places[name], values))
        made.append(tuple(conditions))
    return made


def _condition(attribute: Attribute, place: int, values: Any) -> Condition:
    listed = list(values) if isinstance(values, list | tuple | set) else [values]
    if attribute.levels is None:
        ends = listed if len(listed) == 2 else listed * 2
        numbers = as_numbers(pl.Series(ends, dtype=attribute.dtype, strict=False)).drop_nulls().to_list()
        if len(numbers) != 2 or numbers[0] > numbers[1]:
            raise ColumnError(
                f"Under impossible the number '{attribute.name}' needs one value or (low, high)."
            )
        return Condition(place, bounds=(float(numbers[0]), float(numbers[1])))
    known = attribute.levels.to_list()
    if not listed or any(level not in known for level in listed):
        raise ColumnError(
            f"Under impossible column '{attribute.name}' has a level that its domain does not have."
        )
    return Condition(place, levels=attribute.levels.filter(attribute.levels.is_in(listed)))


def found(combinations: Sequence[Combination], frame: pl.DataFrame) -> Flags:
    """Which records have a combination that cannot occur."""
    met = np.zeros(frame.height, dtype=bool)
    columns = frame.get_columns()
    for combination in combinations:
        met |= np.logical_and.reduce([one.holds(columns[one.column]) for one in combination])
    return met


@dataclass(frozen=True)
class _FromMargins(_Counted):
    """Tables of several columns are counted besides; the model agrees with all of them."""

    max_cells: Annotated[int, AtLeast(4)] = 10_000_000

    @abstractmethod
    def measured(
        self, file: Prepared, alone: Alone, rho: float, stream: Stream
    ) -> tuple[Sequence[graphical_model.Clique], graphical_model.GraphicalModel]:
        """Choose and count tables for rho, and give them with the model fitted to them."""

    def modelled(
        self, data: Microdata, file: Prepared, alone: Alone, rho: float, stream: Stream, *, progress: bool
    ) -> FittedMarginals:
        """Choose and count tables, and fit a model to them."""
        chosen, model = self.measured(file, alone, rho, stream)
        return file.fitted(FittedMarginals, data, alone, chosen, model)


def allowed_cells(
    columns: graphical_model.Clique,
    combinations: Sequence[Combination],
    attributes: Sequence[Attribute],
    groupings: Sequence[graphical_model.Grouping],
) -> Floats | None:
    """0 for the cells of a table whose every record would be impossible, 1 for all others; None where all may be."""
    cells = None
    for combination in combinations:
        if not {condition.column for condition in combination} <= set(columns):
            continue
        met = np.ones([groupings[column].size for column in columns], dtype=bool)
        for condition in combination:
            grouping = groupings[condition.column]
            outside = np.bincount(
                grouping.group,
                weights=~condition.codes(attributes[condition.column]),
                minlength=grouping.size,
            )
            shape = [1] * len(columns)
            shape[columns.index(condition.column)] = grouping.size
            met &= (outside == 0).reshape(shape)
        cells = np.ones(met.shape) if cells is None else cells
        cells[met] = 0.0
    return cells
