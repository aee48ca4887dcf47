"""The records, weights and strata of a file while it is read or made, and how one law is fitted to them.

Which records and weights a law sees, and what a proper synthesis varies.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.column_forms import Form, Rows, Variable, columns_named, positive_weights, scaled
from discreet.synth.methods.method import Conditional, Method, Task
from discreet.synth.methods.observed_values import Sample, Stratum, drawn_alone, resampled_within
from discreet.synth.saved_models import stored
from discreet.synth.sequential.synthesis_plan import SynthesisPlan

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


class Scene:
    """The columns that are there so far.

    The same object holds the observed file when models are fitted and the synthetic one while it grows.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.columns: dict[str, pl.Series] = {}
        self.parts: dict[str, tuple[Variable, ...]] = {}

    def add(self, series: pl.Series, parts: tuple[Variable, ...]) -> None:
        """Take in a column and its variables."""
        self.columns[series.name] = series
        self.parts[series.name] = parts

    def predictors(self, names: Sequence[str], rows: Rows | None = None) -> list[Variable]:
        """Return the variables of some columns, at some records."""
        found = [part for name in names for part in self.parts[name]]
        return found if rows is None else [variable.take(rows) for variable in found]

    def frame(self) -> pl.DataFrame:
        """Return the columns as a frame."""
        return pl.DataFrame(self.columns)

    def taken(self, rows: Rows, names: Sequence[str]) -> Scene:
        """Return some columns at some records, e.g. one stratum."""
        keep = pl.Series(rows) if not isinstance(rows, slice) else rows
        part = Scene(0)
        for name in names:
            column = self.columns[name]
            part.add(
                column.filter(keep)
                if isinstance(keep, pl.Series) and keep.dtype == pl.Boolean
                else column[keep],
                tuple(variable.take(rows) for variable in self.parts[name]),
            )
        part.size = len(next(iter(part.columns.values()))) if part.columns else 0
        return part


Shape = tuple[Variable, ...]


@dataclass(frozen=True)
class Fitting:
    """What the fit of a step needs to know beside the data."""

    forms: Mapping[str, Form]
    shapes: Mapping[str, Shape]
    weights: Floats | None
    proper: bool | str
    defaults: Mapping[str, Method]
    stream: Stream
    times: Integers | None = None
    """How often the bootstrap drew each record: one resample for all columns, as relations between them are kept."""

    def law(
        self, method: Method, target: Variable, predictors: Sequence[Variable], rows: Rows | None, *path: str
    ) -> Conditional:
        """Fit a method to some records; a target with one value, or without predictors, is drawn as it is."""
        rng = self.stream("fit", *path)
        weights = None if self.weights is None else self.weights if rows is None else self.weights[rows]
        if weights is not None:
            weights = scaled(weights)
        again = self._resample(method, target, predictors, rows, rng)
        if again is not None:
            target, predictors = target.take(again), [variable.take(again) for variable in predictors]
            weights = None if weights is None else scaled(weights[again])
        alone = (method.needs_predictors and not predictors) or bool(
            np.all(target.values == target.values[0])
        )
        chosen = drawn_alone(method) if alone else method
        posterior = self.proper is True and chosen.proper_by == "posterior"
        return chosen.fit(Task(target, predictors, rng, weights, posterior))

    def _resample(
        self,
        method: Method,
        target: Variable,
        predictors: Sequence[Variable],
        rows: Rows | None,
        rng: np.random.Generator,
    ) -> Array | None:
        """Draw the records that a proper fit sees, with replacement; None where it sees them all."""
        if not self.proper or not len(target) or method.proper_by == "nothing":
            return None
        first = isinstance(method, Sample) or (method.needs_predictors and not predictors)
        if self.proper is True and self.weights is not None and first:
            # By pseudo-likelihood a first column is a new weighted draw for each copy, which is all it varies by.
            return None
        if method.proper_by == "cells" and predictors:
            return resampled_within(predictors, rng)
        if self.times is not None:
            # Where none of these records was drawn, those that there are must do.
            return self.drawn_again(rows)
        if method.proper_by == "posterior":
            return None
        return rng.integers(len(target), size=len(target))

    def drawn_again(self, rows: Rows | None = None) -> Array | None:
        """Return the places of the records that the bootstrap drew; None where it drew none of them."""
        assert self.times is not None
        times = self.times if rows is None else self.times[rows]
        return np.repeat(np.arange(len(times)), times) if times.any() else None


# Which units the bootstrap of a survey draws again: records, or whole clusters, within the strata of the design.


@dataclass(frozen=True, eq=False)
class SampledUnits:
    """The unit and the design stratum of every record, as numbers.

    Attributes
    ----------
    unit
        Records with the same number were drawn together (the role ``psu``); records themselves without the role.
    stratum
        Units are drawn again within these (the role ``strata``).
    """

    unit: Integers
    stratum: Integers

    @classmethod
    def of(cls, data: Microdata, frame: pl.DataFrame) -> SampledUnits:
        """Read the units off the roles of the data."""
        strata, psu = list(data.roles.strata), data.roles.psu
        stratum = _numbered(frame, strata) if strata else np.zeros(frame.height, dtype=np.int64)
        # Clusters are often numbered anew in every stratum.
        unit = _numbered(frame, [*strata, psu]) if psu else np.arange(frame.height)
        return cls(unit, stratum)

    def drawn_again(self, rows: Array | None, rng: np.random.Generator) -> Integers:
        """Draw as many units of each stratum as there are, with replacement; return how often each record comes.

        ``rows`` are the records that are modelled together; None are all.

        Examples
        --------
        >>> pairs = SampledUnits(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
        >>> times = pairs.drawn_again(None, np.random.default_rng(1))
        >>> bool(times[0] == times[1]), int(times.sum())
        (True, 4)
        """
        unit = self.unit if rows is None else self.unit[rows]
        stratum = self.stratum if rows is None else self.stratum[rows]
        names, first, place = np.unique(unit, return_index=True, return_inverse=True)
        times = np.zeros(len(names), dtype=np.int64)
        of_unit = stratum[first]
        for one in np.unique(of_unit):
            own = np.flatnonzero(of_unit == one)
            times[own] = np.bincount(rng.integers(len(own), size=len(own)), minlength=len(own))
        return np.asarray(times[place])


def _numbered(frame: pl.DataFrame, names: list[str]) -> Integers:
    keys = pl.DataFrame({f"k{place}": frame[name] for place, name in enumerate(names)})
    return keys.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy().astype(np.int64)


# Survey weights in a synthesis: what becomes of them, what models are fitted with, and how unequal they are.
SAME_WEIGHTS = 1.0 + 1e-9
"""Up to this design effect all weights are the same."""
_LARGE_DESIGN_EFFECT = 3.0


def weight_use(options: Sequential, data: Microdata) -> str:
    """Say what becomes of the survey weights; ``none`` where the file has none."""
    return options.weights if data.roles.weight else "none"


def design_effect(options: Sequential, data: Microdata, frame: pl.DataFrame) -> dict[str, float]:
    """Return how much unequal weights blow variances up (Kish 1965), where weights are used."""
    if data.roles.weight is None or weight_use(options, data) not in ("use", "regenerate"):
        return {}
    weights = frame[data.roles.weight].cast(pl.Float64).drop_nulls().drop_nans().to_numpy()
    if not len(weights) or not 0 < weights.sum() < np.inf:
        return {}
    return {"design_effect": float(len(weights) * np.square(weights).sum() / weights.sum() ** 2)}


def weight_notes(
    options: Sequential, data: Microdata, frame: pl.DataFrame, strata: Sequence[str]
) -> list[str]:
    """Say where the weights make a file other than what it may be taken for."""
    notes = []
    if strata and options.stratum_sizes == "fixed" and weight_use(options, data) in ("use", "regenerate"):
        notes.append(
            "Every stratum is like a simple random sample of its population, but the file is not: strata are as large "
            'as in the sample. Use stratum_sizes="drawn" or "population" for a file that is analyzed as a whole.'
        )
    effect = design_effect(options, data, frame).get("design_effect", 1.0)
    if effect <= _LARGE_DESIGN_EFFECT:
        return notes
    return [
        *notes,
        f"The weights are very unequal (design effect {effect:.1f}): variances combined from copies by the rule "
        "'pseudo-likelihood' are too small. Fit with proper='bootstrap' and combine by that rule, or trim the weights.",
    ]


def fit_weights(options: Sequential, data: Microdata, frame: pl.DataFrame) -> Floats | None:
    """Return the weights that models are fitted with, adding up to the number of records; None where all are alike."""
    use = weight_use(options, data)
    if use in ("none", "ignore") or data.roles.weight is None:
        return None
    way_out = (
        "A weighted synthesis needs a positive weight for every record: correct or remove them, or set "
        "weights='ignore'."
    )
    values = positive_weights(frame[data.roles.weight], way_out)
    return None if use == "synthesize" or values.min() == values.max() else scaled(values)


def above_zero(table: pl.DataFrame, weight: str, least: float) -> pl.DataFrame:
    """Raise synthetic weights that no record can have to the smallest one of the data, and say how many."""
    bad = (table[weight].cast(pl.Float64) > 0).not_().fill_null(True)
    count = int(bad.sum())
    if not count:
        return table
    warnings.warn(
        f"{count:,} of {table.height:,} synthetic weights in '{weight}' were not above zero and are now the smallest "
        f"weight of the data. A method with positive values avoids it: method={{'{weight}': 'cart'}} or 'lognorm'.",
        DiscreetWarning,
        stacklevel=5,
    )
    smallest = pl.Series([least]).cast(table[weight].dtype)
    return pl.DataFrame(
        {
            name: table[name].set(bad, smallest.item()) if name == weight else table[name]
            for name in table.columns
        }
    )


# Strata: parts of a file that are fitted and drawn separately.


@stored("strata")
@dataclass(frozen=True, eq=False)
class Strata:
    """How a file falls into strata.

    Small strata are pooled: their records are modelled together, and which of them a synthetic record belongs to is
    drawn in proportion.
    """

    rows: Sequence[Integers | None]
    members: Sequence[pl.DataFrame]
    shares: Floats
    sizes: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        options: Sequential,
        plan: SynthesisPlan,
        frame: pl.DataFrame,
        weight: pl.Series | None,
        *,
        weights: Floats | None = None,
    ) -> Strata:
        """Divide the file by its strata columns; without any it is one stratum.

        ``weight`` is the weight of the file, if it has any, and ``weights`` what the models are fitted with: where
        they are, strata are drawn in their shares of the population.
        """
        names = [step.name for step in plan.steps if isinstance(step.method, Stratum)]
        if options.stratum_sizes == "population" and weight is None:
            raise ParameterError('stratum_sizes="population" needs survey weights; the data have none.')
        if not names:
            return cls([None], [pl.DataFrame()], np.ones(1), options.stratum_sizes)
        mass = np.ones(frame.height)
        if weight is not None and options.stratum_sizes == "population":
            mass = weight.cast(pl.Float64).to_numpy()
        elif weights is not None and options.stratum_sizes == "drawn":
            mass = weights
        least = fewest_records(options, plan.columns)
        table, sizes = _divided(frame, names, mass)
        small, large = table.filter(sizes < least), table.filter(sizes >= least)
        rows: list[Integers | None] = [_sorted(part) for part in large["record"]]
        members = [_member(large[at], names) for at in range(large.height)]
        notes: tuple[str, ...] = ()
        if small.height:
            rows.append(_sorted(small["record"].explode()))
            members.append(_member(small, names))
            notes = (
                f"{small.height} strata with fewer than {least} records are modelled together; set min_stratum to "
                "change that.",
            )
        shares = np.array([float(member[member.columns[-1]].sum()) for member in members])
        return cls(rows, members, shares / shares.sum(), options.stratum_sizes, notes)

    def divided(
        self, n: int, kept: pl.DataFrame, rng: np.random.Generator
    ) -> tuple[list[int], list[Integers] | None]:
        """Say how many records each stratum gets; records that are kept stay in their own, at their places."""
        if len(self.members) == 1 and not self.members[0].width:
            return [n], None
        if kept.width:
            places = [rows for rows in self.rows if rows is not None]
            return [len(place) for place in places], places
        if self.sizes in ("fixed", "population"):
            exact = self.shares * n
            sizes = np.floor(exact).astype(np.int64)
            rest = n - int(sizes.sum())
            sizes[np.argsort(-(exact - sizes), kind="stable")[:rest]] += 1
            return [int(size) for size in sizes], None
        return [int(size) for size in rng.multinomial(n, self.shares)], None

    def values(self, number: int, size: int, rng: np.random.Generator) -> pl.DataFrame:
        """Return the strata columns of the records of one stratum."""
        member = self.members[number]
        if not member.width:
            return pl.DataFrame()
        # The mass stands last, and a stratum may be called anything.
        *names, mass = member.columns
        share = member[mass].to_numpy() / member[mass].sum()
        at = np.repeat(np.arange(member.height), rng.multinomial(size, share))
        return columns_named(member, names)[at]


def fewest_records(options: Sequential, columns: Sequence[str]) -> int:
    """Say how many records a stratum needs to be modelled by itself."""
    return 10 + 10 * len(columns) if options.min_stratum is None else options.min_stratum


def some_are_small(
    options: Sequential, frame: pl.DataFrame, names: Sequence[str], columns: Sequence[str]
) -> bool:
    """Whether some strata are pooled; then the strata must predict, or their records would be alike."""
    if not names:
        return False
    _, sizes = _divided(frame, names, np.ones(frame.height))
    return bool((sizes < fewest_records(options, columns)).any())


def _divided(frame: pl.DataFrame, names: Sequence[str], mass: Floats) -> tuple[pl.DataFrame, pl.Series]:
    """Return one row a stratum (``k0``, ``k1``…, its records and its mass), and the number of its records."""
    keys = [f"k{place}" for place in range(len(names))]
    table = (
        pl.DataFrame({key: frame[name] for key, name in zip(keys, names, strict=True)} | {"mass": mass})
        .with_row_index("record")
        .group_by(keys, maintain_order=True)
        .agg(pl.col("record"), pl.col("mass").sum())
        .sort(keys)
    )
    return table, table["record"].list.len()


def _member(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Give the strata columns their own names again, and put the mass last."""
    mass = "mass"
    while mass in names:
        mass += " of records"
    return pl.DataFrame(
        {name: table[f"k{place}"] for place, name in enumerate(names)} | {mass: table["mass"]}
    )


def _sorted(records: pl.Series) -> Integers:
    return np.sort(records.to_numpy().astype(np.int64))
