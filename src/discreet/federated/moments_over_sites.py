"""Moments over sites, and what needs no more: regression, principal components and weighted moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats, numbers_of
from discreet.core.errors import ParameterError, need_known
from discreet.core.parameters import checked
from discreet.federated.kinds import numbers
from discreet.federated.layouts import Layout
from discreet.federated.messages import MAIN
from discreet.federated.normal_likelihood import minus_two_log_likelihood
from discreet.federated.parties import Holder, Party, Transport, as_frame
from discreet.federated.quantities import Ring, quantity, shaped
from discreet.federated.secure_sums import sum_over


@dataclass(frozen=True)
class MomentRegression:
    """A linear regression from moments."""

    intercept: float
    coefficients: dict[str, float]
    standard_errors: dict[str, float]
    residual_variance: float
    r_squared: float


@checked
def regression_from_moments(
    mu: Any, Sigma: Any, y: Any, X: Any, *, n: float | None = None, names: Sequence[str] | None = None,
    unbiased: bool = False,
) -> MomentRegression:  # fmt: skip
    """Which line predicts one variable from others best, given only means and covariances?

    Parameters
    ----------
    mu, Sigma
        Means and covariances (divided by n) of all variables.
    y, X
        The variable to predict and those that predict it: places, or names where ``names`` are given.
    n
        Number of rows, for standard errors.
    names
        Names of the variables.
    unbiased
        Multiply the residual variance by n / (n - q - 1).

    Examples
    --------
    >>> found = regression_from_moments([1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]], 1, [0], n=100)
    >>> found.intercept, found.coefficients, round(found.residual_variance, 4)
    (1.5, {'x1': 0.5}, 1.75)
    """
    mean, spread = numbers_of(mu, "mu"), numbers_of(Sigma, "Sigma")
    if mean.ndim != 1:
        raise ParameterError("mu must be a list of means.")
    known = list(names) if names is not None else [f"x{at + 1}" for at in range(len(mean))]
    if spread.shape != (len(mean), len(mean)) or len(known) != len(mean):
        raise ParameterError("mu, Sigma and names must be about the same variables.")
    target = _place(y, known)
    used = [_place(one, known) for one in ([X] if isinstance(X, str | int) else X)]
    if target in used or len(set(used)) != len(used) or not used:
        raise ParameterError("X must name one or more variables, each once and none of them y.")
    among = spread[np.ix_(used, used)]
    if np.linalg.matrix_rank(among) < len(used):
        raise ParameterError("The variables in X follow from each other: leave one of them out.")
    slopes = np.linalg.solve(among, spread[used, target])
    left = float(spread[target, target] - slopes @ spread[used, target])
    share = 1 - left / float(spread[target, target]) if spread[target, target] > 0 else 0.0
    if unbiased:
        if n is None or n <= len(used) + 1:
            raise ParameterError("unbiased=True needs n, above the number of coefficients.")
        left *= n / (n - len(used) - 1)
    errors = np.full(len(used), np.nan) if n is None else np.sqrt(left * np.diag(np.linalg.inv(among)) / n)
    return MomentRegression(
        float(mean[target] - slopes @ mean[used]),
        {known[at]: float(one) for at, one in zip(used, slopes, strict=True)},
        {known[at]: float(one) for at, one in zip(used, errors, strict=True)},
        left,
        share,
    )


@dataclass(frozen=True)
class MomentComponents:
    """Principal components from a covariance: their variances, the share of each, and the loadings by column."""

    variances: Floats
    shares: Floats
    loadings: Floats


@checked
def pca_from_cov(Sigma: Any, *, correlation: bool = False) -> MomentComponents:
    """Along which directions do the variables vary most, given only their covariances?

    The sign of a component is fixed: its largest loading is positive.

    Also known as: principal components; PCA.

    Examples
    --------
    >>> pca_from_cov([[2.0, 0.0], [0.0, 1.0]]).shares.round(3).tolist()
    [0.667, 0.333]
    """
    spread = numbers_of(Sigma, "Sigma")
    if spread.ndim != 2 or spread.shape[0] != spread.shape[1] or not np.allclose(spread, spread.T):
        raise ParameterError("Sigma must be square and symmetric.")
    if correlation:
        size = np.sqrt(np.diag(spread))
        if (size <= 0).any():
            raise ParameterError("A variable does not vary: it has no correlations. Leave it out.")
        spread = spread / np.outer(size, size)
    values, vectors = np.linalg.eigh(spread)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)
    total = float(values.sum())
    return MomentComponents(values, values / total if total > 0 else np.zeros(len(values)), vectors)


@checked
def weighted_moments(
    data: Any, columns: Sequence[str], *, weight: str | None = None
) -> tuple[float, Floats, Floats]:
    """What are the means and covariances of columns, weighted by a column? Ready for `fit_from_moments`.

    The first number is the number of rows, not the sum of weights: weights are scaled to add up to it. Standard errors
    from weighted moments take the weights as known and the rows as independent; a survey design needs others.

    Examples
    --------
    >>> import polars as pl
    >>> n, mean, covariance = weighted_moments(pl.DataFrame({"x": [1.0, 3.0], "w": [3.0, 1.0]}), ["x"], weight="w")
    >>> n, mean.tolist(), covariance.tolist()
    (2, [1.5], [[0.75]])
    """
    columns = [columns] if isinstance(columns, str) else list(columns)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("columns must name at least one column, and each once.")
    holder = Holder("this file", as_frame(data))
    rows = holder.matrix(list(columns))
    shares = np.full(len(rows), 1.0 / max(len(rows), 1))
    if weight is not None:
        given = holder.matrix([weight])[:, 0]
        if (given < 0).any() or given.sum() <= 0:
            raise ParameterError(f"'{weight}' must not be negative, and not all zero.")
        shares = given / given.sum()
    mean = shares @ rows
    off = rows - mean
    return len(rows), mean, (off * shares[:, None]).T @ off


def _place(variable: Any, known: list[str]) -> int:
    if isinstance(variable, str):
        need_known([variable], known, what="variable", kind=ParameterError)
        return known.index(variable)
    if not 0 <= int(variable) < len(known):
        raise ParameterError(f"There are {len(known)} variables; {variable} is none of their places.")
    return int(variable)


# Quantities that sites with whole rows add up: likelihoods, and the sums behind means and covariances.


WIDE = Ring(192, 64)


@quantity("likelihood", {"mu": numbers, "sigma": numbers}, moments=True)
def _likelihood(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    size = rows.shape[1]
    mu, sigma = shaped(asked, "mu", size), shaped(asked, "sigma", size, size)
    return np.array([minus_two_log_likelihood(rows, mu, sigma)])


@quantity("totals", {}, moments=True)
def _totals(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    return np.concatenate([[len(rows)], rows.sum(axis=0)])


@quantity("products", {"around": numbers}, moments=True)
def _products(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    off = rows - shaped(asked, "around", rows.shape[1])
    made: Array = (off.T @ off)[np.triu_indices(off.shape[1])]
    return made


def _rows(holder: Holder, asked: Mapping[str, Any]) -> Floats:
    return holder.matrix([str(name) for name in asked["columns"]], str(asked.get("block", MAIN)))


def horizontal_moments(transport: Transport, central: Party, layout: Layout) -> tuple[int, Floats, Floats]:
    """Work out rows, means and covariances (divided by n) over holders of rows: two secure sums."""
    columns = list(layout.variables)
    size = len(columns)
    first = sum_over(
        transport, central, layout.nodes, {"kind": "totals", "columns": columns}, size=size + 1, ring=WIDE
    )
    rows, mean = round(float(first[0])), first[1:] / first[0]
    asked = {"kind": "products", "columns": columns, "around": mean.tolist()}
    second = sum_over(transport, central, layout.nodes, asked, size=size * (size + 1) // 2, ring=WIDE)
    return rows, mean, from_upper(second / rows, size)


def from_upper(upper: Floats, size: int) -> Floats:
    """Put a symmetric matrix together from its upper half, row by row."""
    made = np.zeros((size, size))
    made[np.triu_indices(size)] = upper
    return made + np.triu(made, 1).T
