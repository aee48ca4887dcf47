"""The columns of a file on their own: from uniform numbers to values, states and levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.copula import EmpiricalMargin

MarginKind = Literal["empirical", "smoothed", "parametric"]

MARGINS = ("empirical", "smoothed", "parametric")
FAMILIES = ("norm", "lognorm", "gamma", "expon", "uniform")
_MOST_VALUES = 20_000
_EDGE = 1e-12
_FEWEST_REACHING = 20


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

    def state(self) -> dict[str, Any]:
        """Return the margin for a model file."""
        return {
            "margins": [_state(margin) for margin in self.margins],
            "mixed": self.mixed,
            "nested": self.nested,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> ColumnMargin:
        """Make the margin again."""
        margins = tuple(_restored(margin) for margin in state["margins"])
        return cls(margins, state["mixed"], state.get("nested", False))


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


def _state(margin: Margin | None) -> dict[str, Any] | None:
    if margin is None:
        return None
    if isinstance(margin, FamilyMargin):
        return {"family": margin.family, "parameters": dict(margin.parameters)}
    return {"levels": margin.levels, "shares": margin.shares, "smooth": margin.smooth}


def _restored(state: Mapping[str, Any] | None) -> Margin | None:
    if state is None:
        return None
    if "family" in state:
        return FamilyMargin(state["family"], state["parameters"])
    return EmpiricalMargin(state["levels"], state["shares"], state["smooth"])
