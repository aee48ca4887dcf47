"""A population that was fitted: households and members drawn from it, exchanged until given numbers come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.compiling import compiled
from discreet.core.errors import ParameterError
from discreet.dp.entropy import Stream
from discreet.numerics.alias_tables import drawn_places
from discreet.synth.column_forms import decimals_of, from_numbers
from discreet.synth.household_surveys import Cell, donor_report, drawn_households
from discreet.synth.member_laws import Classing, ClassLaw, RegressionLaw, Tail, as_column
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted


@stored("number-law")
@dataclass(frozen=True, eq=False)
class NumberLaw:
    """How a number is drawn within its class.

    Attributes
    ----------
    tail
        The law of the largest class; None draws evenly there too.
    decimals
        Decimal places of the column.
    """

    tail: Tail | None
    decimals: int | None

    @classmethod
    def of(cls, target: Classing, values: Floats, *, tail: bool) -> NumberLaw:
        """Fit the tail, where there is a class of largest values."""
        places = 0 if target.dtype.is_integer() else decimals_of(values)
        if not tail or len(target.breaks) < 3:
            return cls(None, places)
        return cls(Tail.of(values, float(target.breaks[-2]), float(target.breaks[-1])), places)

    def draw(self, target: Classing, codes: Integers, rng: np.random.Generator) -> pl.Series:
        """Turn drawn classes into numbers."""
        share = rng.random(len(codes))
        values = np.zeros(len(codes))
        ranges = codes < len(target.breaks) - 1
        low, high = target.breaks[:-1], target.breaks[1:]
        inside = codes[ranges]
        # A range holds its upper end: draws go from just above the lower one.
        values[ranges] = high[inside] - (high[inside] - low[inside]) * share[ranges]
        if self.tail is not None:
            top = codes == len(target.breaks) - 2
            values[top] = self.tail.draw(share[top])
        return as_column(values, self.decimals, codes, target.missing, target.dtype, target.name)


@stored("variable-law")
@dataclass(frozen=True, eq=False)
class VariableLaw:
    """How one column is simulated: its classes, numbers within them, for persons or for whole households.

    ``outside`` says between which values of a structure column anybody has a value at all.
    """

    name: str
    law: ClassLaw
    within: NumberLaw | RegressionLaw | None
    home: bool
    outside: Mapping[str, tuple[float, float]]

    @property
    def fine(self) -> Classing:
        """How the column is classed where later columns go by it."""
        return self.within.fine if isinstance(self.within, RegressionLaw) else self.law.target


@stored("component-law")
@dataclass(frozen=True, eq=False)
class ComponentLaw:
    """Parts of a total, as shares of donors in the same class of the total."""

    total: str
    parts: tuple[str, ...]
    shares: Floats
    classes: Integers
    weights: Floats
    dtypes: tuple[pl.DataType, ...]

    @classmethod
    def of(
        cls, total: str, parts: tuple[str, ...], frame: pl.DataFrame, classes: Integers, weights: Floats
    ) -> ComponentLaw:
        """Take the shares of everybody whose total is not zero."""
        amounts = frame[total].cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
        there = amounts != 0
        own = np.column_stack(
            [frame[name].cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy() for name in parts]
        )
        shares = own[there] / np.abs(amounts[there, np.newaxis])
        dtypes = tuple(frame.schema[name] for name in parts)
        return cls(total, parts, shares, classes[there], weights[there], dtypes)

    def draw(self, total: pl.Series, classes: Integers, rng: np.random.Generator) -> list[pl.Series]:
        """Draw a donor for everybody, by weight within the class of the total, and take its shares."""
        amounts = total.cast(pl.Float64)
        missing = amounts.is_null().to_numpy()
        values = np.abs(amounts.fill_null(0.0).to_numpy())
        donors = np.zeros(len(values), dtype=np.int64)
        known = np.unique(self.classes)
        if not len(known):
            return [
                from_numbers(np.zeros(len(values)), missing, d, p)
                for p, d in zip(self.parts, self.dtypes, strict=True)
            ]
        # A class without a donor takes those of the nearest.
        near = known[
            np.abs(known[np.newaxis] - np.arange(int(classes.max(initial=0)) + 1)[:, np.newaxis]).argmin(
                axis=1
            )
        ]
        for own in np.unique(near[classes]):
            rows = np.flatnonzero(near[classes] == own)
            pool = np.flatnonzero(self.classes == own)
            donors[rows] = pool[drawn_places(np.cumsum(self.weights[pool]), len(rows), rng)]
        return [
            from_numbers(values * self.shares[donors, place], missing, dtype, name)
            for place, (name, dtype) in enumerate(zip(self.parts, self.dtypes, strict=True))
        ]


@stored("fitted-population")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedPopulation(Fitted):
    """A population that was fitted.

    Attributes
    ----------
    merged
        Cells of size and stratum that had too few households of their own.
    """

    household: str
    strata: tuple[str, ...]
    stratum_values: pl.DataFrame
    cells: Sequence[Cell]
    first: Integers
    structure: pl.DataFrame
    sizes: Classing
    classings: Mapping[str, Classing]
    laws: Sequence[VariableLaw]
    components: Sequence[ComponentLaw]
    calibrate: Mapping[str, Mapping[str, float]]

    def __post_init__(self) -> None:
        self.numbered_units = self.household

    @property
    def merged(self) -> list[tuple[int, dict[str, Any]]]:
        """Sizes and strata of cells that had too few households of their own."""
        names = self.stratum_values.rows(named=True) if self.strata else []
        return [(cell.size, names[cell.stratum] if names else {}) for cell in self.cells if cell.merged]

    @property
    def households(self) -> int:
        """Number of households of the whole population."""
        return sum(cell.number for cell in self.cells)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw households until there are about ``n`` persons, and simulate their members."""
        scale = 1.0 if n == self.rows else n / self.rows
        donors, cell = drawn_households(self.cells, scale, stream("households"))
        if not len(donors):
            donors, cell = (own[:1] for own in drawn_households(self.cells, 1.0, stream("households")))
        if self.calibrate:
            counts, wanted = self._margins()
            donors = exchanged(donors, cell, self.cells, counts, wanted * scale, stream("exchange"))
        stratum = np.array([own.stratum for own in self.cells])[cell]
        self.donor_report = donor_report(self.cells, donors)
        size = np.diff(self.first)[donors]
        begin = np.repeat(self.first[donors], size)
        upto = np.cumsum(size)
        at = begin + np.arange(len(begin)) - np.repeat(upto - size, size)
        home = np.repeat(np.arange(len(donors)), size)
        columns: dict[str, pl.Series] = {self.household: pl.Series(home + 1)}
        own_stratum = np.repeat(stratum, size)
        for name in self.strata:
            columns[name] = self.stratum_values[name].gather(own_stratum)
        known: dict[str, Integers] = {}
        sizes = pl.Series(self.sizes.name, np.diff(self.first)[donors])
        known[self.sizes.name] = np.repeat(self.sizes.codes(sizes), size)
        for name in self.structure.columns:
            known[name] = self.classings[name].codes(self.structure[name])[at]
            columns[name] = self.structure[name].gather(at)
        heads = upto - size
        for law in self.laws:
            known[law.name], columns[law.name] = self._simulated(
                law, known, own_stratum, heads, home, columns, stream
            )
        for part in self.components:
            drawn = part.draw(columns[part.total], known[part.total], stream("parts", part.total))
            columns |= {series.name: series for series in drawn}
        return pl.DataFrame({name: series.rename(name) for name, series in columns.items()})

    def _simulated(  # noqa: PLR0917
        self,
        law: VariableLaw,
        known: Mapping[str, Integers],
        stratum: Integers,
        heads: Integers,
        home: Integers,
        columns: Mapping[str, pl.Series],
        stream: Stream,
    ) -> tuple[Integers, pl.Series]:
        """Simulate one column, for everybody or for one member whose household shares it."""
        target = law.law.target
        if law.home:
            known, stratum = {name: codes[heads] for name, codes in known.items()}, stratum[heads]
        codes = law.law.draw(known, stratum, stream("classes", law.name))
        if not law.home:
            for name, (low, high) in law.outside.items():
                own = columns[name].cast(pl.Float64).to_numpy()
                codes = np.where((own < low) | (own > high), target.missing, codes)
        if isinstance(law.within, RegressionLaw):
            series = law.within.draw(codes, known, stratum, stream("values", law.name), law.name)
            codes = law.fine.codes(series)
        elif law.within is not None:
            series = law.within.draw(target, codes, stream("values", law.name))
        else:
            places = pl.Series(codes)
            if target.missing >= 0:
                places = places.set(places == target.missing, None)
            series = target.levels.gather(places).cast(target.dtype)
        if law.home:
            codes, series = codes[home], series.gather(home)
        return codes, series

    def _margins(self) -> tuple[Integers, Floats]:
        """Count the persons of every household in each level that is to come out; and how many are wanted."""
        counts, wanted = [], []
        starts = self.first[:-1]
        for name, levels in self.calibrate.items():
            values = self.structure[name].cast(pl.String)
            for level, number in levels.items():
                flags = (values == str(level)).fill_null(False).to_numpy().astype(np.int64)
                if not flags.any():
                    raise ParameterError(f"calibrate: column '{name}' has no such level in the survey.")
                counts.append(np.add.reduceat(flags, starts))
                wanted.append(float(number))
        if not counts:
            return np.zeros((len(starts), 0), dtype=np.int64), np.empty(0)
        return np.column_stack(counts), np.array(wanted)


# Households exchanged for others of their kind until given numbers of persons come out (simulated annealing).
_TURNS = 20
_COOLING = 0.9


def exchanged(  # noqa: PLR0917
    donors: Integers,
    cell: Integers,
    cells: Sequence[Cell],
    counts: Integers,
    wanted: Floats,
    rng: np.random.Generator,
) -> Integers:
    """Exchange donors within their cell while the numbers of persons come nearer to those that are wanted.

    Parameters
    ----------
    donors, cell
        The donor and the cell of every household.
    counts
        Persons of every household of the survey in each level.
    wanted
        Persons of the population in each level.
    """
    if not len(wanted) or not len(donors):
        return donors
    pools = np.concatenate([own.donors for own in cells])
    ends = np.concatenate([[0], np.cumsum([len(own.donors) for own in cells])]).astype(np.int64)
    made = donors.copy()
    gap = np.asarray(counts[made].sum(axis=0), dtype=np.float64) - wanted
    heat = max(float(np.abs(gap).mean()), 1.0) / 10
    for _ in range(_TURNS):
        if np.abs(gap).sum() < 1:
            break
        at = rng.integers(len(made), size=len(made))
        _one_turn(made, cell, pools, ends, counts.astype(np.int64), gap, at, rng.random((2, len(made))), heat)
        heat *= _COOLING
    return made


@compiled
def _one_turn(  # noqa: PLR0917
    donors: Any, cell: Any, pools: Any, ends: Any, counts: Any, gap: Any, at: Any, share: Any, heat: float
) -> None:
    """Propose as many exchanges as there are households, and take those that help, or hardly harm while it is hot."""
    levels = len(gap)
    for i in range(len(at)):
        place = at[i]
        first, last = ends[cell[place]], ends[cell[place] + 1]
        other = pools[first + int(share[0, i] * (last - first))]
        now = donors[place]
        if other == now:
            continue
        change = 0.0
        for level in range(levels):
            step = counts[other, level] - counts[now, level]
            change += abs(gap[level] + step) - abs(gap[level])
        if change < 0 or (change > 0 and share[1, i] < np.exp(-change / heat) * 0.01):
            for level in range(levels):
                gap[level] += counts[other, level] - counts[now, level]
            donors[place] = other
