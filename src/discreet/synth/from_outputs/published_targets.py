"""Published results that a teaching file is to reproduce.

Each target says what was printed, how exactly, for which records, and how much it counts. `Target.bind` looks up the
names in the codebook and refuses what does not fit.

Cells of published tables are conditions on counts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.index import Registry
from discreet.core.method_cards import kebab, made_from, parameters_of
from discreet.core.parameters import keep_as_tuples, typed_parameters
from discreet.synth.from_outputs import bound_targets
from discreet.synth.from_outputs.bound_targets import Bound, BoundCorrelation, BoundGroups, BoundTable
from discreet.synth.from_outputs.codebook import Codebook, printed_unit


@dataclass(frozen=True)
class Target(ABC):
    """A published result; subclasses say of which kind."""

    known: ClassVar[Registry[type[Target]]] = Registry("discreet.synth.from_outputs")

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

    def bind(self, codebook: Codebook, n: int) -> BoundTable:
        """Make the distribution ready to compute."""
        title = self.name or self.variable
        labels, sides = side_of(codebook, self.variable, {}, title)
        values = np.full(len(sides), np.nan)
        for level, value in self.values.items():
            values[codebook[self.variable].position(level)] = value
        cells: list[bound_targets.Column] = [(side,) for side in sides]
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
        outcome = bound_targets.number_column(codebook, self.variable)
        sides = [side_of(codebook, name, {}, title) for name in by]
        values = _arranged(self.values, by, [len(labels) for labels, _ in sides], codebook, title)
        base = bound_targets.filter_columns(codebook, self.where)
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
            bound_targets.filter_columns(codebook, self.where),
            bound_targets.number_column(codebook, self.first),
            bound_targets.number_column(codebook, self.second),
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
    ends = (variable.low, variable.high) if variable.is_number else variable.level_numbers()
    if (published < min(ends)).any() or (published > max(ends)).any():
        raise ParameterError(
            f"The {title} lies outside the range of '{name}' in the codebook. Mend one of the two."
        )


def _as_tuples(values: Any) -> Any:
    return tuple(_as_tuples(value) for value in values) if isinstance(values, list | tuple) else values


# Cells of published tables as conditions on counts, and what all targets check about their figures.
Counted = Literal["counts", "proportions", "row_proportions"]


@dataclass(frozen=True)
class Cells:
    """What a table and a distribution have in common: labeled cells with a value each, in rows."""

    title: str
    labels: Sequence[str]
    cells: Sequence[bound_targets.Column]
    rows: Sequence[bound_targets.Column]
    values: Floats
    counted: Counted

    def bind(
        self, codebook: Codebook, n: int, where: Mapping[str, Any], unit: float | None, weight: float
    ) -> BoundTable:
        """Turn the published cells into conditions on counts."""
        there = np.isfinite(self.values)
        check_published(there, self.title)
        base = bound_targets.filter_columns(codebook, where)
        values, half, notes = self._rounding(
            n, there, base, checked_unit(unit, self.values[there], self.title)
        )
        # Without a filter a proportion of the whole is a count in n.
        in_records = self.counted == "counts" or (self.counted == "proportions" and not base)
        per = float(n) if self.counted == "proportions" and in_records else 1.0
        forms = []
        for place in np.flatnonzero(there).tolist():
            whole = base if self.counted == "proportions" else (*self.rows[place], *base)
            share_of = None if in_records else whole
            cell = (*self.cells[place], *base)
            forms.append(bound_targets.Form(cell, share_of, float(values[place]) * per, half * per))
        size = len(forms)
        counts = self.counted == "counts"
        return BoundTable(
            self.title,
            tuple(label for label, kept in zip(self.labels, there, strict=True) if kept),
            values[there],
            np.full(size, max(half, 0.5) if counts else half),
            np.full(size, 1.0 / n if counts else 1.0),
            checked_weight(weight, self.title),
            base,
            tuple(forms),
            all(factor.table for form in forms for column in form.columns() for factor in column),
            per,
            notes,
        )

    def _rounding(
        self, n: int, there: Flags, base: bound_targets.Column, unit: float
    ) -> tuple[Floats, float, tuple[str, ...]]:
        """Return the values, how far from them the file may be, and what was changed about them."""
        values, title, half = self.values, self.title, unit / 2
        if (values[there] < 0).any():
            raise ParameterError(f"The table '{title}' has a negative cell.")
        if self.counted != "counts":
            if (values[there] > 1).any():
                raise ParameterError(
                    f"The table '{title}' has proportions above 1; divide percentages by 100."
                )
            return values, half, ()
        if (values[there] != np.round(values[there])).any():
            raise ParameterError(
                f"The table '{title}' has counts that are no whole numbers. Say counted='proportions' for shares of "
                "the whole (divide percentages by 100), or round weighted counts."
            )
        # A count printed as a whole number is that number; only coarser rounding leaves room.
        half = 0.0 if unit <= 1 else half
        total = float(values[there].sum())
        if base or not there.all() or abs(total - n) <= half * len(values):
            return values, half, ()
        if total <= 0:
            raise ParameterError(f"The table '{title}' is empty.")
        note = (
            f"The table '{title}' adds up to {total:,.0f} and the file is to have {n:,} records: "
            "its counts were rescaled."
        )
        return values * (n / total), max(1.0, max(half, 0.5) * n / total), (note,)


def side_of(
    codebook: Codebook, name: str, bands: Mapping[str, Sequence[float]], title: str
) -> tuple[list[str], list[bound_targets.Factor]]:
    """Return the labels and indicators of one side of a table."""
    variable = codebook[name]
    if variable.is_categorical:
        sides = [bound_targets.level_column(codebook, name, [place]) for place in range(len(variable.levels))]
        return [f"{name}={level}" for level in variable.levels], sides
    edges = [float(edge) for edge in bands.get(name, ())]
    if len(edges) < 2 or edges != sorted(set(edges)):
        raise ParameterError(
            f"'{title}' uses the number '{name}' as a category. Say how it is cut: bands={{'{name}': [edge, edge, …]}}."
        )
    uppers = [np.nextafter(edge, -np.inf) for edge in edges[1:-1]] + [edges[-1]]
    sides = [
        bound_targets.Factor(codebook.index(name), bound_targets.BETWEEN, low, float(high))
        for low, high in zip(edges[:-1], uppers, strict=True)
    ]
    return [f"{name} {low:g}-{high:g}" for low, high in pairwise(edges)], sides


def checked_unit(unit: float | None, published: Iterable[float], title: str) -> float:
    """Return the printing unit; read off the figures unless named."""
    if unit is None:
        return printed_unit(published)
    if isinstance(unit, bool) or not unit > 0:
        raise ParameterError(f"The printing unit of '{title}' must be above 0, e.g. 0.001.")
    return float(unit)


def checked_weight(weight: float, title: str) -> float:
    """Return the weight of a target, or refuse it."""
    if isinstance(weight, bool) or not (weight >= 0 and math.isfinite(weight)):
        raise ParameterError(f"The weight of '{title}' must be a number of at least 0.")
    return float(weight)


def check_published(there: Flags, title: str) -> None:
    """Refuse a target without any figure."""
    if not there.any():
        raise ParameterError(f"'{title}' has no published figure.")
