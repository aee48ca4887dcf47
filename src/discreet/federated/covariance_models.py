"""Models of means and covariances: paths between variables, latent growth, factors, and no model at all.

A model maps a vector of free parameters to the mean and covariance of the observed variables. With
``parametrization="cholesky"`` S is a lower triangular factor of the covariance of the errors: its diagonal holds
*standard deviations*, not variances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked

Bounds = Mapping[str, tuple[float | None, float | None]]


class CovarianceModel:
    """What every model offers: names of its free parameters, where to begin, bounds, and the implied moments."""

    names: tuple[str, ...]
    size: int

    def start(self, spread: Floats) -> Floats:
        """Return a place to begin, for variables of these standard deviations."""
        raise TypeError("This model gives no place to begin. Give start.")

    def limits(self) -> Bounds:
        """Return the bounds of parameters that have some."""
        return {}

    def implied(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the mean and covariance of the observed variables."""
        raise TypeError("This model implies no moments.")

    def both_scales(self, parameters: Floats) -> dict[str, float]:
        """Return variances and covariances of errors and factors, beside the standard deviations."""
        return {}

    def jacobian(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return how mean (q x p) and covariance (q x p x p) change with each parameter."""
        means, covariances = [], []
        for at in range(len(parameters)):
            step = 1e-6 * max(1.0, abs(float(parameters[at])))
            moved = [np.array(parameters, dtype=np.float64) for _ in range(2)]
            moved[0][at] += step
            moved[1][at] -= step
            (mu_up, up), (mu_down, down) = (self.implied(one) for one in moved)
            means.append((mu_up - mu_down) / (2 * step))
            covariances.append((up - down) / (2 * step))
        return np.array(means).reshape(-1, self.size), np.array(covariances).reshape(-1, self.size, self.size)

    def check_identified(self, parameters: Floats) -> None:
        """Refuse a model whose parameters cannot be told apart, naming them."""
        # A place nearby: at zero, parameters may look alike that are not.
        place = parameters + 0.03 * (1 + np.abs(parameters)) * np.sin(1 + np.arange(len(parameters)))
        means, covariances = self.jacobian(place)
        upper = np.triu_indices(self.size)
        table = np.concatenate([means, covariances[:, upper[0], upper[1]]], axis=1)
        size = np.linalg.norm(table, axis=1)
        without = [name for name, one in zip(self.names, size, strict=True) if one == 0]
        left, values, _ = np.linalg.svd(table / np.where(size > 0, size, 1.0)[:, None], full_matrices=True)
        missing = len(self.names) - int((values > 1e-7 * values.max(initial=0.0)).sum())
        if missing:
            loose = np.abs(left[:, len(self.names) - missing :]).max(axis=1) > 1e-3
            named = without or [name for name, flag in zip(self.names, loose, strict=True) if flag]
            raise ParameterError(
                f"The model is not identified: {', '.join(named)} cannot be told apart by means and covariances. Fix "
                "some of them, or set them equal."
            )


@dataclass(frozen=True)
class RAMModel(CovarianceModel):
    """A model of paths: Sigma = F (I-A)^-1 Psi (I-A)^-T F', mu = F (I-A)^-1 M.

    Also known as: RAM; reticular action model; structural equation model.

    Parameters
    ----------
    A
        Paths: entry (i, j) is the effect of variable j on i.
    S
        Covariances of errors and factors (``"covariance"``), or their lower triangular factor (``"cholesky"``).
    F
        Picks the observed variables; a list of their places does too.
    M
        Means (intercepts).
    free
        ``{"A": flags, "S": flags, "M": flags}``: which entries are estimated. What stands in the matrices there is
        where to begin.
    labels
        ``{"A": names, ...}``: names of free entries; equal names are one parameter.
    bounds
        ``{parameter: (lowest, highest)}``.
    parametrization
        How S is meant.

    Examples
    --------
    >>> model = RAMModel(
    ...     A=[[0.0, 0.0], [0.5, 0.0]], S=np.eye(2), F=[0, 1], M=[0.0, 0.0],
    ...     free={"A": [[False, False], [True, False]]}, labels={"A": [["", ""], ["effect", ""]]},
    ... )
    >>> model.names, model.implied(np.array([0.5]))[1].tolist()
    (('effect',), [[1.0, 0.5], [0.5, 1.25]])
    """

    A: Any
    S: Any
    F: Any
    M: Any
    free: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    parametrization: Literal["cholesky", "covariance"] = "covariance"
    scaled_start: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.parametrization not in ("cholesky", "covariance"):
            raise ParameterError("parametrization must be 'cholesky' or 'covariance'.")
        size = len(np.asarray(self.M))
        for name in ("A", "S"):
            if np.asarray(getattr(self, name)).shape != (size, size):
                raise ParameterError(f"{name} must have as many rows and columns as M has entries.")
        for name in (*self.free, *self.labels):
            if name not in ("A", "S", "M"):
                raise ParameterError("free and labels are for A, S and M.")
        for name in self.bounds:
            if name not in self.names:
                raise ParameterError(f"bounds name '{name}', which is no free parameter.")

    @cached_property
    def _cells(self) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
        """The places of every free parameter, by its name."""
        found: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for matrix in ("A", "S", "M"):
            shape = np.asarray(getattr(self, matrix), dtype=np.float64).shape
            labels = np.asarray(self.labels.get(matrix, np.full(shape, "")), dtype=object)
            flags = np.asarray(
                self.free.get(matrix, [[bool(one) for one in row] for row in np.atleast_2d(labels)])
            )
            flags = flags.reshape(shape).astype(bool)
            if labels.shape != shape:
                raise ParameterError(f"labels of {matrix} must have its shape.")
            for raw in np.argwhere(flags):
                place = tuple(int(one) for one in raw)
                if matrix == "S" and self.parametrization == "covariance" and place[0] < place[1]:
                    # A covariance is one number, in both places; its upper place is filled with the lower one.
                    if flags[place[1], place[0]]:
                        continue
                    place = (place[1], place[0])
                if matrix == "S" and self.parametrization == "cholesky" and place[0] < place[1]:
                    raise ParameterError("With parametrization='cholesky' S is lower triangular.")
                name = str(labels[tuple(raw)] or f"{matrix}[{','.join(map(str, place))}]")
                found.setdefault(name, []).append((matrix, place))
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The free parameters."""
        return tuple(self._cells)

    @cached_property
    def _picks(self) -> Floats:
        given = np.asarray(self.F)
        return np.asarray(
            np.eye(len(np.asarray(self.M)))[given.astype(int)] if given.ndim == 1 else given, dtype=np.float64
        )

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many variables are observed."""
        return len(self._picks)

    def limits(self) -> Bounds:
        """Return the bounds of parameters that have some."""
        return self.bounds

    def start(self, spread: Floats) -> Floats:
        """Take what stands in the matrices, or shares of the spread where the model is known to scale."""
        typical = float(np.mean(spread)) if len(spread) else 1.0
        return np.array([
            self.scaled_start[name] * typical if name in self.scaled_start else self._fixed(*self._cells[name][0])
            for name in self.names
        ])  # fmt: skip

    def implied(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the mean and covariance of the observed variables."""
        filled = self.filled(parameters)
        total = np.linalg.inv(np.eye(len(filled["M"])) - filled["A"])
        reach = self._picks @ total
        return reach @ filled["M"], reach @ self._errors(filled["S"]) @ reach.T

    def filled(self, parameters: Floats) -> dict[str, Floats]:
        """Return A, S and M with parameters in their places."""
        made = {name: np.array(getattr(self, name), dtype=np.float64) for name in ("A", "S", "M")}
        for value, name in zip(parameters, self.names, strict=True):
            for matrix, place in self._cells[name]:
                made[matrix][place] = value
                if matrix == "S" and self.parametrization == "covariance":
                    made[matrix][place[::-1]] = value
        return made

    def both_scales(self, parameters: Floats) -> dict[str, float]:
        """Return the variances and covariances of errors and factors that the factor S stands for."""
        errors = self._errors(self.filled(parameters)["S"])
        return {
            f"variance of {name}" if place[0] == place[1] else f"covariance of {name}": float(errors[place])
            for name, cells in self._cells.items()
            for matrix, place in cells[:1]
            if matrix == "S"
        }

    def parameters_of(self, other: CovarianceModel, estimates: Floats) -> Floats | None:
        """Return the parameters of this model that stand for those of a smaller one; None where it is no part of it."""
        if not isinstance(other, RAMModel) or not set(other.names) <= set(self.names):
            return None
        if (
            np.asarray(other.M).shape != np.asarray(self.M).shape
            or other.parametrization != self.parametrization
        ):
            return None
        inside = other.filled(estimates)
        return np.array([inside[self._cells[name][0][0]][self._cells[name][0][1]] for name in self.names])

    def _fixed(self, matrix: str, place: tuple[int, ...]) -> float:
        return float(np.asarray(getattr(self, matrix), dtype=np.float64)[place])

    def _errors(self, S: Floats) -> Floats:
        return np.asarray(S @ S.T if self.parametrization == "cholesky" else S)


@dataclass(frozen=True)
class Saturated(CovarianceModel):
    """No model: every mean and covariance is free (the covariance by its lower triangular factor)."""

    size: int
    variables: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The means, then the factor row by row."""
        called = self.variables or tuple(str(at + 1) for at in range(self.size))
        rows, columns = np.tril_indices(self.size)
        return (
            *(f"mean {name}" for name in called),
            *(f"factor {called[i]},{called[j]}" for i, j in zip(rows, columns, strict=True)),
        )

    def both_scales(self, parameters: Floats) -> dict[str, float]:
        """Variances and covariances, where the variables have names to tell them by."""
        _, sigma = self.implied(parameters)
        return {
            f"{self.variables[j]}, {self.variables[i]}" if i != j else self.variables[i]: float(sigma[i, j])
            for i, j in zip(*np.tril_indices(self.size), strict=True)
            if self.variables
        }

    def start(self, spread: Floats) -> Floats:
        """Begin with independent variables of these standard deviations."""
        factor = np.diag(np.where(spread > 0, spread, 1.0))
        return np.concatenate([np.zeros(self.size), factor[np.tril_indices(self.size)]])

    def implied(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the mean and covariance."""
        factor = np.zeros((self.size, self.size))
        factor[np.tril_indices(self.size)] = parameters[self.size :]
        return np.array(parameters[: self.size]), factor @ factor.T

    def of_moments(self, mean: Floats, covariance: Floats) -> Floats:
        """Return the parameters that give these moments."""
        factor = np.linalg.cholesky(covariance)
        return np.concatenate([mean, factor[np.tril_indices(self.size)]])


@checked
def latent_growth(
    p: Annotated[int, AtLeast(2)], times: Sequence[float] | None = None, *,
    residual: Literal["equal", "free"] = "equal",
    slope_mean: bool = True, cov_free: bool = True,
) -> RAMModel:  # fmt: skip
    """How do people differ in where they begin and how fast they change? A straight line for each.

    y_ij = intercept_i + time_j slope_i + e_ij. The parameters are *standard deviations* of intercept, slope and
    residual (``intercept_sd``, ``slope_sd``, ``residual_sd``), the off-diagonal Cholesky entry (``covariance``) and the
    means (``intercept_mean``, ``slope_mean``); the fit reports variances beside them. The covariance entry has no
    bound: one at zero, as in some published code, gives rows that cannot be told from an estimate.

    Also known as: latent growth model; SEM; structural equation model; OpenMx.

    Parameters
    ----------
    p
        How many measurements.
    times
        When they were made; 0, 1, 2, … unless given.
    residual
        One residual for all measurements (``"equal"``), or one for each.
    slope_mean
        Estimate the mean slope; False fixes it at 0.
    cov_free
        Estimate the covariance entry; False fixes it at 0.

    Examples
    --------
    >>> latent_growth(7).names
    ('residual_sd', 'intercept_sd', 'covariance', 'slope_sd', 'intercept_mean', 'slope_mean')
    """
    at = np.arange(p, dtype=np.float64) if times is None else np.asarray(list(times), dtype=np.float64)
    if at.shape != (p,) or len(np.unique(at)) < 2:
        raise ParameterError("times must hold one number for each measurement, and not all the same.")
    size = p + 2
    paths, factor, means = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    paths[:p, p], paths[:p, p + 1] = 1.0, at
    factor[np.arange(p), np.arange(p)] = 0.7
    factor[p, p], factor[p + 1, p + 1] = 0.7, 0.1
    s_names, m_names = np.full((size, size), "", dtype=object), np.full(size, "", dtype=object)
    for place in range(p):
        s_names[place, place] = "residual_sd" if residual == "equal" else f"residual_sd_{place + 1}"
    s_names[p, p], s_names[p + 1, p + 1] = "intercept_sd", "slope_sd"
    m_names[p] = "intercept_mean"
    if cov_free:
        s_names[p + 1, p] = "covariance"
    if slope_mean:
        m_names[p + 1] = "slope_mean"
    reach = float(np.ptp(at)) or 1.0
    begin = {name: 0.7 for name in s_names.reshape(-1) if name.startswith(("residual", "intercept"))}
    begin["slope_sd"] = 0.5 / reach
    return RAMModel(
        paths, factor, np.arange(p), means, labels={"S": s_names, "M": m_names},
        bounds=dict.fromkeys(begin, (0.0, None)), parametrization="cholesky", scaled_start=begin,
    )  # fmt: skip


@checked
def factor_model(loadings_pattern: Any, *, correlated: bool = True) -> RAMModel:
    """Which few hidden variables explain the covariances of the observed ones?

    Factors have variance 1. Residual variances may become zero or less than their bound (a Heywood case), which is
    flagged.

    Also known as: factor analysis; partitioned covariance model.

    Parameters
    ----------
    loadings_pattern
        One row for each variable, one column for each factor: true where a loading is estimated.
    correlated
        Let factors correlate.

    Examples
    --------
    >>> factor_model([[1], [1], [1]]).names
    ('loading 1,1', 'loading 2,1', 'loading 3,1', 'residual 1', 'residual 2', 'residual 3',
     'mean 1', 'mean 2', 'mean 3')
    """
    pattern = np.asarray(loadings_pattern, dtype=bool)
    if pattern.ndim != 2 or not pattern.any(axis=0).all():
        raise ParameterError(
            "loadings_pattern is a table: one row a variable, one column a factor, none empty."
        )
    p, many = pattern.shape
    size = p + many
    paths, errors = np.zeros((size, size)), np.eye(size)
    a_names, s_names = (np.full((size, size), "", dtype=object) for _ in range(2))
    m_names = np.full(size, "", dtype=object)
    for i in range(p):
        s_names[i, i], m_names[i], errors[i, i] = f"residual {i + 1}", f"mean {i + 1}", 0.5
        for j in range(many):
            if pattern[i, j]:
                paths[i, p + j], a_names[i, p + j] = 0.6, f"loading {i + 1},{j + 1}"
    for j in range(many):
        for k in range(j):
            if correlated:
                s_names[p + j, p + k] = f"correlation {j + 1},{k + 1}"
    named = [name for name in a_names.reshape(-1) if name]
    return RAMModel(
        paths, errors, np.arange(p), np.zeros(size), labels={"A": a_names, "S": s_names, "M": m_names},
        bounds={f"residual {i + 1}": (0.0, None) for i in range(p)}, scaled_start=dict.fromkeys(named, 0.6),
    )  # fmt: skip


@checked
def saturated(p: Annotated[int, AtLeast(1)], *, names: Sequence[str] | None = None) -> Saturated:
    """Give every mean, variance and covariance a parameter of its own: the model that all others are held against.

    Parameters
    ----------
    p
        How many variables.
    names
        What they are called; numbers unless given.

    Examples
    --------
    >>> len(saturated(7).names)
    35
    """
    if names is not None and len(set(names)) != p:
        raise ParameterError(f"names must name {p} variables, each once.")
    return Saturated(p, () if names is None else tuple(str(name) for name in names))
