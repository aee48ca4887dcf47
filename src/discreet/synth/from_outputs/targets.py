"""Published results that a teaching file is to reproduce.

Each target says what was printed, how exactly, for which records, and how much it counts. `Target.bind` looks up the
names in the codebook and refuses what does not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.described import kebab, made_from, parameters_of
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.parameters import keep_as_tuples, typed_parameters
from discreet.synth.from_outputs.bound import Bound, BoundCorrelation, BoundGroups, BoundTable
from discreet.synth.from_outputs.codebook import Codebook
from discreet.synth.from_outputs.columns import Column, filter_columns, number_column
from discreet.synth.from_outputs.table_cells import (
    Cells,
    Counted,
    check_published,
    checked_unit,
    checked_weight,
    side_of,
)


@dataclass(frozen=True)
class Target(ABC):
    """A published result; subclasses say of which kind."""

    known: ClassVar[dict[str, type[Target]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: kebab(type(made).__name__))
        if not cls.__name__.startswith("_"):
            Target.known[kebab(cls.__name__)] = cls

    @abstractmethod
    def bind(self, codebook: Codebook, n: int) -> Bound:
        """Make the target ready to compute on files of ``n`` records."""

    def to_dict(self) -> dict[str, Any]:
        """Return the target as it stands in TOML."""
        return {"kind": kebab(type(self).__name__), **parameters_of(self)}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Target:
        """Read a target as it stands in TOML."""
        given = dict(entries)
        kind = given.pop("kind", None)
        if kind not in Target.known:
            raise ParameterError(f"In the targets: {unknown_name(str(kind), Target.known, what='kind')}")
        return made_from(Target.known[kind], kind, given)


@dataclass(frozen=True)
class CrossTab(Target):
    """A cross-tabulation.

    Parameters
    ----------
    variables
        The variables, rows first.
    values
        The cells as nested lists, levels in the order of the codebook; NaN for a cell that was not published.
    counted
        ``counts``, ``proportions`` of the whole table, or ``row_proportions`` within each level of the first variable.
    bands
        Edges for a numeric variable, ``{"AGE": [50, 65, 80, 95]}``: lower edges count, and the last upper one.
    where
        The records it speaks of: ``{"SEX": 1}``, ``{"SEX": [1, 2]}`` or ``{"AGE": {"from": 60, "to": 69}}``.
    unit
        Printing unit, e.g. 0.001, or 5 for counts rounded to fives; taken from the values unless named. Counts that
        were not rounded are met to the record.
    weight
        Weight of the target in the loss.
    name
        Name in the report.

    Examples
    --------
    >>> CrossTab(["TENURE", "CARS"], [[470, 1000], [162, 696]]).to_dict()["variables"]
    ['TENURE', 'CARS']
    """

    variables: Sequence[str]
    values: Sequence[Any]
    counted: Counted = "counts"
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    weight: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        names = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "values", _as_tuples(self.values))
        _check_counted(self.counted, self.name)

    def bind(self, codebook: Codebook, n: int) -> BoundTable:
        """Make the table ready to compute."""
        title = self.name or " x ".join(self.variables)
        sides = [side_of(codebook, name, self.bands, title) for name in self.variables]
        values = np.array(self.values, dtype=np.float64)
        shape = tuple(len(labels) for labels, _ in sides)
        if values.shape != shape:
            raise ParameterError(
                f"The table '{title}' has {' x '.join(map(str, values.shape))} cells; the codebook asks for "
                f"{' x '.join(map(str, shape))}. Write a level nobody has as 0, an unpublished cell as nan."
            )
        cells = [tuple(side[1][i] for side, i in zip(sides, at, strict=True)) for at in np.ndindex(shape)]
        labels = [", ".join(parts) for parts in product(*(side[0] for side in sides))]
        rows = [(cell[0],) for cell in cells]
        published = Cells(title, labels, cells, rows, values.ravel(), self.counted)
        return published.bind(codebook, n, self.where, self.unit, self.weight)


@dataclass(frozen=True)
class Frequencies(Target):
    """The distribution of one variable.

    Parameters
    ----------
    variable
        The variable.
    values
        ``{level: count or proportion}``; levels left out were not published.
    counted
        ``counts`` or ``proportions``.
    where, unit, weight, name
        As in `CrossTab`.

    Examples
    --------
    >>> Frequencies("SEX", {1: 1823, 2: 2204}).counted
    'counts'
    """

    variable: str
    values: Mapping[Any, float]
    counted: Counted = "counts"
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    weight: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        _check_counted(self.counted, self.name)

    def bind(self, codebook: Codebook, n: int) -> BoundTable:
        """Make the distribution ready to compute."""
        title = self.name or self.variable
        labels, sides = side_of(codebook, self.variable, {}, title)
        values = np.full(len(sides), np.nan)
        for level, value in self.values.items():
            values[codebook[self.variable].position(level)] = value
        cells: list[Column] = [(side,) for side in sides]
        counted: Counted = "counts" if self.counted == "counts" else "proportions"
        published = Cells(title, labels, cells, cells, values, counted)
        return published.bind(codebook, n, self.where, self.unit, self.weight)


@dataclass(frozen=True)
class _Grouped(Target):
    variable: str
    values: Any
    by: str | Sequence[str] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    weight: float = 1.0
    name: str = ""
    is_median: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keep_as_tuples(self, "by")
        if not isinstance(self.values, Mapping):
            object.__setattr__(self, "values", _as_tuples(self.values))

    def bind(self, codebook: Codebook, n: int) -> BoundGroups:
        """Make the groups ready to compute."""
        what = "median" if self.is_median else "mean"
        by = tuple(self.by)
        title = self.name or f"{what} of {self.variable}" + (f" by {' x '.join(by)}" if by else "")
        outcome = number_column(codebook, self.variable)
        sides = [side_of(codebook, name, {}, title) for name in by]
        values = _arranged(self.values, by, [len(labels) for labels, _ in sides], codebook, title)
        base = filter_columns(codebook, self.where)
        groups = [
            (*(side[1][i] for side, i in zip(sides, at, strict=True)), *base)
            for at in np.ndindex(values.shape)
        ]
        labels = [", ".join(parts) for parts in product(*(side[0] for side in sides))] if by else ["all"]
        there = np.isfinite(values.ravel())
        check_published(there, title)
        published = values.ravel()[there]
        _check_inside(codebook, self.variable, published, title)
        unit = checked_unit(self.unit, published, title)
        return BoundGroups(
            title,
            tuple(label for label, kept in zip(labels, there, strict=True) if kept),
            published,
            np.full(len(published), unit / 2),
            np.ones(len(published)),
            checked_weight(self.weight, title),
            base,
            tuple(group for group, kept in zip(groups, there, strict=True) if kept),
            outcome,
            self.is_median,
        )


@dataclass(frozen=True)
class CondMean(_Grouped):
    """Means of a number, over all records or by group.

    Parameters
    ----------
    variable
        The number.
    values
        A number; ``{level: mean}`` for one grouping variable; nested lists for several.
    by
        Grouping variables.
    where, unit, weight, name
        As in `CrossTab`.

    Examples
    --------
    >>> CondMean("PAY", {"f": 21.3, "m": 24.0}, by="SEX").by
    ('SEX',)
    """


@dataclass(frozen=True)
class CondMedian(_Grouped):
    """Medians of a number, over all records or by group; parameters as in `CondMean`.

    Examples
    --------
    >>> CondMedian("PAY", 19.5).values
    19.5
    """

    is_median: ClassVar[bool] = True


@dataclass(frozen=True)
class Correlation(Target):
    """A product-moment correlation of two numbers.

    Examples
    --------
    >>> Correlation("AGE", "PAY", 0.31).value
    0.31
    """

    first: str
    second: str
    value: float
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    weight: float = 1.0
    name: str = ""

    def bind(self, codebook: Codebook, n: int) -> BoundCorrelation:
        """Make the correlation ready to compute."""
        title = self.name or f"correlation of {self.first} and {self.second}"
        if not -1 <= self.value <= 1:
            raise ParameterError(f"The {title} must lie between -1 and 1.")
        published = np.array([float(self.value)])
        unit = checked_unit(self.unit, published, title)
        return BoundCorrelation(
            title,
            ("r",),
            published,
            np.array([unit / 2]),
            np.ones(1),
            checked_weight(self.weight, title),
            filter_columns(codebook, self.where),
            number_column(codebook, self.first),
            number_column(codebook, self.second),
        )


def _arranged(values: Any, by: Sequence[str], shape: list[int], codebook: Codebook, title: str) -> Floats:
    """Bring means or medians into the shape of their groups."""
    if isinstance(values, Mapping):
        if len(by) != 1:
            raise ParameterError(
                f"'{title}': values by level need one grouping variable; write nested lists for more."
            )
        arranged = np.full(shape, np.nan)
        for level, value in values.items():
            arranged[codebook[by[0]].position(level)] = value
        return arranged
    arranged = np.array(values, dtype=np.float64)
    if arranged.shape != tuple(shape):
        raise ParameterError(f"'{title}' has another number of values than its groups have levels.")
    return arranged


def _check_inside(codebook: Codebook, name: str, published: Floats, title: str) -> None:
    variable = codebook[name]
    low, high = (
        (variable.low, variable.high)
        if variable.is_number
        else (
            variable.level_numbers().min(),
            variable.level_numbers().max(),
        )
    )
    if (published < low).any() or (published > high).any():
        raise ParameterError(
            f"The {title} lies outside the range of '{name}' in the codebook. Mend one of the two."
        )


def _check_counted(counted: str, name: str) -> None:
    known = ("counts", "proportions", "row_proportions")
    if counted not in known:
        raise ParameterError(f"In the table '{name}': {unknown_name(counted, known, what='way of counting')}")


def _as_tuples(values: Any) -> Any:
    return tuple(_as_tuples(value) for value in values) if isinstance(values, list | tuple) else values


__all__ = ["CondMean", "CondMedian", "Correlation", "CrossTab", "Frequencies", "Target"]
