"""A published model, ready to be fitted to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from discreet.core.arrays import Floats
from discreet.synth.from_outputs.bound import Bound
from discreet.synth.from_outputs.columns import Column, Factor, design


class Fit(NamedTuple):
    """What statistical software prints below the coefficients."""

    errors: Floats
    r2: float
    residual_sd: float
    covariance: Floats


@dataclass(frozen=True, eq=False)
class BoundModel(Bound):
    """A logistic or linear model.

    The figures are the published coefficients, then standard errors, R2 and residual standard deviation where they
    were published. ``beta`` is NaN for a term whose coefficient was not.
    """

    family: Literal["logit", "linear"]
    terms: tuple[str, ...]
    matrix: tuple[Column, ...]
    outcome: Factor
    beta: Floats
    se: Floats
    r2: float
    residual_sd: float

    def design(self, file: Floats) -> tuple[Floats, Floats]:
        """Return the model matrix and the outcome, for the records of the base."""
        rows = self.rows(file)
        return np.ascontiguousarray(design(self.matrix, rows)), self.outcome.of(rows)

    def coefficients(self, file: Floats, near: Floats | None = None) -> Floats:
        """Fit the model."""
        from discreet.synth.from_outputs import fit_kernels

        x, y = self.design(file)
        if self.family == "linear":
            return np.asarray(fit_kernels.least_squares(x, y)[0])
        start = near if near is not None else np.nan_to_num(self.beta)
        return np.asarray(fit_kernels.logit(x, y, start, 60)[0])

    def achieved(self, file: Floats, near: Floats | None = None) -> Floats:
        """Fit the model and put the figures in order."""
        return self.figures(file, self.coefficients(file, near))

    def figures(self, file: Floats, beta: Floats) -> Floats:
        """Return the published kinds of figure for fitted coefficients."""
        wanted = np.isfinite(self.se)
        parts = [beta[np.isfinite(self.beta)]]
        if wanted.any() or np.isfinite(self.r2) or np.isfinite(self.residual_sd):
            x, y = self.design(file)
            fit = self.statistics(x, y, beta)
            parts.append(fit.errors[wanted])
            parts += [np.array([fit.r2])] if np.isfinite(self.r2) else []
            parts += [np.array([fit.residual_sd])] if np.isfinite(self.residual_sd) else []
        return np.concatenate(parts)

    def statistics(self, x: Floats, y: Floats, beta: Floats) -> Fit:
        """Compute standard errors, R2 and residual standard deviation at some coefficients."""
        there = np.isfinite(beta)
        size = len(beta)
        none = Fit(np.full(size, np.nan), np.nan, np.nan, np.full((size, size), np.nan))
        if not there.any() or len(y) <= there.sum():
            return none
        x, kept = x[:, there], beta[there]
        fitted = x @ kept
        if self.family == "logit":
            chance = 1 / (1 + np.exp(-np.clip(fitted, -500, 500)))
            inverse = inverted(x.T @ (x * (chance * (1 - chance))[:, None]))
            r2, sd = np.nan, np.nan
        else:
            rest, around = y - fitted, y - y.mean()
            sd = float(np.sqrt(rest @ rest / (len(y) - len(kept))))
            r2 = float(1 - rest @ rest / (around @ around)) if around @ around > 0 else np.nan
            inverse = inverted(x.T @ x) * sd**2
        covariance = none.covariance.copy()
        covariance[np.ix_(there, there)] = inverse
        return Fit(np.sqrt(np.diag(covariance)), r2, sd, covariance)

    def spread(self, file: Floats) -> Floats:
        """Return the published standard errors, else those implied at the published coefficients."""
        x, y = self.design(file)
        beta = np.where(np.isfinite(self.beta), self.beta, np.nan_to_num(self.coefficients(file)))
        fit = self.statistics(x, y, beta)
        errors = np.where(np.isfinite(self.se), self.se, fit.errors)
        freedom = max(len(y) - len(beta), 1)
        parts = [errors[np.isfinite(self.beta)]]
        # A standard error, like a standard deviation, is itself known to one part in the root of twice the size.
        parts.append(self.se[np.isfinite(self.se)] / np.sqrt(2 * freedom))
        if np.isfinite(self.r2):
            parts.append(
                np.array([max(2 * np.sqrt(max(self.r2, 1e-6)) * (1 - self.r2), 1e-6) / np.sqrt(len(y))])
            )
        if np.isfinite(self.residual_sd):
            parts.append(np.array([self.residual_sd / np.sqrt(2 * freedom)]))
        return np.concatenate(parts)

    def columns(self) -> list[Column]:
        """Return the model matrix, the outcome and the base."""
        return [*self.matrix, (self.outcome,), self.base]


def inverted(matrix: Floats) -> Floats:
    """Invert a cross-product; units are taken out first, so that years and dummies do not spoil the digits."""
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    inner: Floats = np.linalg.pinv(matrix / np.outer(size, size), hermitian=True) / np.outer(size, size)
    return inner
