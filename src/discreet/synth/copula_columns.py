"""The columns of a file as the dimensions of a copula, and back.

There, they are ranks, their shares, and where there is a value; back from uniform numbers, they are values, states and
levels by their margins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.copula import EmpiricalMargin
from discreet.numerics.mutual_information import dense
from discreet.synth.column_forms import CategoryForm, Form, NumberForm, Variable
from discreet.synth.saved_models import stored


@dataclass(frozen=True, eq=False)
class Dimension:
    """One dimension of a copula.

    Attributes
    ----------
    label
        The column, or the part of it.
    ranks
        The position of every record's value among the values in order; 0 where there is none.
    shares
        Of the values in order, among the records that have one.
    there
        Where there is a value; None where it is everywhere.
    ordered
        Whether the order means something.
    column
        The column, where that has several dimensions.
    """

    label: str
    ranks: Integers
    shares: Floats
    there: Flags | None
    ordered: bool
    column: str | None = None

    def grouped(self, groups: int) -> Dimension:
        """Return ordered ranks in so many groups of about the same size; others, and shorter ones, as they are."""
        if not self.ordered or len(self.shares) <= groups:
            return self
        middle = np.cumsum(self.shares) - self.shares / 2
        group = dense(np.minimum((middle * groups).astype(np.int64), groups - 1))
        return replace(
            self, ranks=group[self.ranks], shares=np.bincount(group, self.shares).astype(np.float64)
        )

    def scores(self) -> Floats:
        """Return the mean of a normal variable in the interval of each value, 0 where there is none."""
        upto = np.minimum(np.cumsum(self.shares), 1.0)
        return np.asarray(mean_scores(upto)[self.ranks] * (1.0 if self.there is None else self.there))


def mean_scores(upto: Floats) -> Floats:
    """Return the mean of a standard normal variable between the quantiles at these running shares."""
    from scipy.special import ndtri

    z = ndtri(np.concatenate([[0.0], upto[:-1], [1.0]]))
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    mass = np.diff(np.concatenate([[0.0], upto[:-1], [1.0]]))
    return np.asarray((density[:-1] - density[1:]) / np.maximum(mass, 1e-300))


@dataclass(frozen=True, eq=False)
class Layout:
    """The dimensions of a file and the margins of its columns, in the order of the columns."""

    dimensions: tuple[Dimension, ...]
    margins: Mapping[str, ColumnMargin]


def laid_out(
    frame: pl.DataFrame,
    forms: Mapping[str, Form],
    *,
    weights: Floats | None,
    kinds: Mapping[str, MarginKind],
    families: Sequence[str],
    mixed: bool,
    orders: bool,
    splits: bool = False,
) -> Layout:
    """Turn the columns of a file into dimensions.

    A number with missing values or special codes becomes two dimensions, its state and its value; with ``mixed`` one,
    in which the states that are no value lie below all values. With ``orders`` the levels of categories without an
    order are put into the one in which they go best with the other columns; with ``splits`` those that one scale cannot
    hold become several dimensions.
    """
    parts = {name: form.split(frame[name]) for name, form in forms.items()}
    dimensions: dict[str, list[Dimension]] = {}
    for name, form in forms.items():
        variables = parts[name]
        own: list[Dimension] = []
        if isinstance(form, CategoryForm):
            own.append(_levels(name, variables[0].values, weights, form.ordered))
        elif len(variables) == 1:
            own.append(_values(name, variables[0].values, weights, None))
        else:
            states = variables[0].values
            there = states < form.n_ordinary
            if mixed:
                own.append(_mixed(name, states, variables[1].values, weights, form.n_ordinary))
            else:
                state = _levels(f"{name}: state", states, weights, ordered=False)
                own += [
                    replace(part, column=name)
                    for part in (state, _values(name, variables[1].values, weights, there))
                ]
        dimensions[name] = own
    if orders:
        from discreet.synth.copula_level_scales import associated

        flat = associated([d for own in dimensions.values() for d in own], weights)
        again = iter(flat)
        dimensions = {name: [next(again) for _ in own] for name, own in dimensions.items()}
    margins = {}
    if orders and splits:
        margins = _divided(dimensions, forms, {name: parts[name][0].values for name in forms}, weights)
    for name, form in forms.items():
        first = parts[name][0].values
        if name in margins:
            continue
        if isinstance(form, CategoryForm):
            margins[name] = ColumnMargin((_in_order(first, dimensions[name][0], weights),))
            continue
        value = _value_margin(form, parts[name], weights, kinds[name], families)
        if len(parts[name]) == 1:
            margins[name] = ColumnMargin((value,))
        elif mixed:
            # States that are no value come first, as they do among the ranks.
            below = of_levels(first.astype(np.int64), weights, np.unique(first)[::-1])
            margins[name] = ColumnMargin((below, value), mixed=True)
        else:
            margins[name] = ColumnMargin((_in_order(first, dimensions[name][0], weights), value))
    in_order = {name: margins[name] for name in forms}
    return Layout(tuple(d for own in dimensions.values() for d in own), in_order)


def _divided(
    dimensions: dict[str, list[Dimension]],
    forms: Mapping[str, Form],
    codes: Mapping[str, Array],
    weights: Floats | None,
) -> dict[str, ColumnMargin]:
    """Replace the dimension of every category that one scale cannot hold, and return the margins of those."""
    from discreet.synth.copula_level_scales import divided, parts_of

    flat = [d for own in dimensions.values() for d in own]
    free = {name for name, form in forms.items() if isinstance(form, CategoryForm) and not form.ordered}
    nominal = [d.label in free or d.label.endswith(": state") for d in flat]
    margins = {}
    for at, own in enumerate(flat):
        if own.label not in free or len(own.shares) < 3:
            continue
        parts = parts_of(flat, at, nominal, weights)
        if len(parts) > 1:
            levels = np.empty(len(own.shares), dtype=np.int64)
            levels[own.ranks] = codes[own.label]
            dimensions[own.label], margins[own.label] = divided(own, parts, levels)
    return margins


def _levels(label: str, codes: Codes, weights: Floats | None, ordered: bool) -> Dimension:
    ranks = dense(codes.astype(np.int64))
    mass = np.bincount(ranks, weights).astype(np.float64)
    return Dimension(label, ranks, mass / mass.sum(), None, ordered)


def _values(label: str, values: Floats, weights: Floats | None, there: Flags | None) -> Dimension:
    known = values if there is None else values[there]
    share = weights if there is None or weights is None else weights[there]
    ranks = np.zeros(len(values), dtype=np.int64)
    if not len(known):
        return Dimension(label, ranks, np.ones(1), there, True)
    found = _ranked(known)
    ranks[slice(None) if there is None else there] = found
    mass = np.bincount(found, share).astype(np.float64)
    return Dimension(label, ranks, mass / mass.sum(), there, True)


def _ranked(values: Floats) -> Integers:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _mixed(label: str, states: Codes, values: Floats, weights: Floats | None, ordinary: int) -> Dimension:
    """Rank states that are no value, the last one first, below all values."""
    is_value = states < ordinary
    keys = np.empty(len(states), dtype=np.int64)
    special = -states.astype(np.int64)
    keys[~is_value] = dense(special[~is_value]) if (~is_value).any() else 0
    above = int(keys[~is_value].max()) + 1 if (~is_value).any() else 0
    keys[is_value] = above + (_ranked(values[is_value]) if is_value.any() else 0)
    ranks = dense(keys)
    mass = np.bincount(ranks, weights).astype(np.float64)
    return Dimension(label, ranks, mass / mass.sum(), None, True)


def _value_margin(
    form: NumberForm,
    variables: Sequence[Variable],
    weights: Floats | None,
    kind: MarginKind,
    families: Sequence[str],
) -> Margin | None:
    values = variables[-1].values
    if len(variables) == 2:
        there = variables[0].values < form.n_ordinary
        values, weights = values[there], None if weights is None else weights[there]
    return of_values(values, weights, kind, families, form.name) if len(values) else None


def _in_order(codes: Codes, dimension: Dimension, weights: Floats | None) -> EmpiricalMargin:
    """Return the margin of codes in the order of the ranks of their dimension."""
    order = np.empty(len(dimension.shares), dtype=np.int64)
    order[dimension.ranks] = codes
    return of_levels(codes.astype(np.int64), weights, order)


# The columns of a file on their own: from uniform numbers to values, states and levels.
MarginKind = Literal["empirical", "smoothed", "parametric"]

FAMILIES = ("norm", "lognorm", "gamma", "expon", "uniform")
_MOST_VALUES = 20_000
_EDGE = 1e-12
_FEWEST_REACHING = 20


@stored("family-margin")
@dataclass(frozen=True)
class FamilyMargin:
    """A column of numbers as a member of a parametric family.

    Examples
    --------
    >>> margin = FamilyMargin("norm", {"loc": 10.0, "scale": 2.0})
    >>> margin.quantile(np.array([0.5])).tolist()
    [10.0]
    """

    family: str
    parameters: Mapping[str, float]

    def quantile(self, uniform: Floats) -> Array:
        """Return the values below which these shares lie."""
        from scipy import stats

        law = getattr(stats, self.family)(**self.parameters)
        return np.asarray(law.ppf(np.clip(uniform, _EDGE, 1 - _EDGE)), dtype=np.float64)


Margin = EmpiricalMargin | FamilyMargin

stored("empirical-margin")(EmpiricalMargin)


@stored("column-margin")
@dataclass(frozen=True)
class ColumnMargin:
    """A column of the file: its levels, its values, or its states and its values.

    Attributes
    ----------
    margins
        Of its variables (see `discreet.synth.column_forms`); None for values that never occur.
    mixed
        Whether states and values are read off one uniform number: the states that are no value from its lowest
        part, values from the rest.
    nested
        Whether the margins are parts of one category: a level of 0 or above is one of the category, -2 leads on to
        margin 2.
    """

    margins: tuple[Margin | None, ...]
    mixed: bool = False
    nested: bool = False

    @property
    def width(self) -> int:
        """How many uniform numbers a record takes."""
        return 1 if self.mixed else len(self.margins)

    def parts(self, uniform: Floats, ordinary: int) -> list[Array]:
        """Turn uniform numbers, one column each, into what the form of the column is joined from.

        ``ordinary`` is the number of states in which a column of numbers has a value.
        """
        if self.nested:
            return [self._level(uniform)]
        if not self.mixed:
            return [_read(margin, uniform[:, at]) for at, margin in enumerate(self.margins)]
        states, values = self.margins
        u = uniform[:, 0]
        assert isinstance(states, EmpiricalMargin)
        drawn = states.quantile(u)
        is_value = drawn < ordinary
        below = float(states.shares[states.levels >= ordinary].sum())
        numbers = np.zeros(len(u))
        if is_value.any():
            rest = (u[is_value] - below) / (1 - below)
            numbers[is_value] = _read(values, np.clip(rest, 0.0, 1.0))
        return [drawn, numbers]

    def _level(self, uniform: Floats) -> Integers:
        """Go down the parts of a category until there is a level."""
        drawn = np.zeros(len(uniform), dtype=np.int64)
        for at, margin in enumerate(self.margins):
            here = drawn == -at
            drawn[here] = _read(margin, uniform[here, at])
        return drawn

    def calibrated(self, uniform: Floats) -> ColumnMargin:
        """Move the cuts of a nested margin so that these uniform numbers give its levels their shares.

        A part is reached where the parts above it lead to it. Its uniform number goes with theirs, so that among the
        records that reach it the number is uniform no longer.
        """
        drawn = np.zeros(len(uniform), dtype=np.int64)
        moved: list[Margin | None] = []
        for at, margin in enumerate(self.margins):
            assert isinstance(margin, EmpiricalMargin)
            here = drawn == -at
            shares = margin.shares
            if at and here.sum() >= _FEWEST_REACHING:
                cuts = np.quantile(uniform[here, at], np.minimum(np.cumsum(shares)[:-1], 1.0))
                shares = np.diff(cuts, prepend=0.0, append=1.0)
            moved.append(EmpiricalMargin(margin.levels, shares))
            drawn[here] = _read(moved[-1], uniform[here, at])
        return replace(self, margins=tuple(moved))


def given_a_value(uniform: Floats, states: EmpiricalMargin, correlation: float, ordinary: int) -> Floats:
    """Return the rank of a value among those whose state is a value.

    A mended correlation matrix may tie a value to its own state. Among the records that have a value its normal
    variable is then no longer standard normal; its distribution function there keeps the margin exact.
    """
    from scipy.special import ndtri

    from discreet.numerics.mutual_information import bivariate_normal_cdf

    place = int(np.argmax(states.levels < ordinary))
    if abs(correlation) < _EDGE or not states.levels[place] < ordinary:
        return uniform
    upto = np.minimum(np.cumsum(states.shares), 1.0)
    ends = ndtri(np.array([upto[place] - states.shares[place], upto[place]]))
    z = ndtri(np.clip(uniform, _EDGE, 1 - _EDGE))
    below, above = (bivariate_normal_cdf(z, np.asarray(end), correlation) for end in ends)
    return np.asarray(np.clip((above - below) / states.shares[place], 0.0, 1.0))


def of_levels(codes: Integers, weights: Floats | None, order: Sequence[int] | Integers) -> EmpiricalMargin:
    """Return the margin of a category, its levels in this order."""
    placed = np.asarray(order, dtype=np.int64)
    mass = np.bincount(codes, weights, minlength=int(placed.max()) + 1).astype(np.float64)[placed]
    return EmpiricalMargin(placed, mass / mass.sum())


def of_values(
    values: Floats, weights: Floats | None, kind: MarginKind, families: Sequence[str], name: str
) -> Margin:
    """Return the margin of a column of numbers."""
    if kind != "parametric":
        return EmpiricalMargin.of(values, weights, smooth=kind == "smoothed")[0]
    from discreet.synth.distributions.families import fit_family

    if (values == values[0]).all():
        return EmpiricalMargin.of(values, weights)[0]
    if weights is not None or len(values) > _MOST_VALUES:
        # Evenly spaced quantiles of the (weighted) distribution stand for it.
        count = min(len(values), _MOST_VALUES)
        values = EmpiricalMargin.of(values, weights)[0].quantile((np.arange(count) + 0.5) / count)
    try:
        found = fit_family(values, tuple(families))
    except ParameterError as error:
        raise ColumnError(
            f"None of the families {', '.join(families)} fits column '{name}'. Name others under families, or take its "
            "empirical margin."
        ) from error
    return FamilyMargin(found.family, dict(found.parameters))


def _read(margin: Margin | None, uniform: Floats) -> Array:
    return np.zeros(len(uniform)) if margin is None else margin.quantile(uniform)
