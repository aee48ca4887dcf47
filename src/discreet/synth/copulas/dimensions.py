"""The columns of a file as the dimensions of a copula: ranks, their shares, and where there is a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.numerics.copula import EmpiricalMargin
from discreet.numerics.mutual_information import dense
from discreet.synth.column_forms import CategoryForm, Form, NumberForm
from discreet.synth.copulas.margins import ColumnMargin, Margin, MarginKind, of_levels, of_values
from discreet.synth.variables import Variable


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
        from discreet.synth.copulas.level_order import associated

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
    from discreet.synth.copulas.level_splits import divided, parts_of

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
