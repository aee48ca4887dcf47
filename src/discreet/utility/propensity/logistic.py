"""Logistic propensity scores, and their one-pass linear approximation."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import InputError
from discreet.utility.propensity.design import Design, designed, rank
from discreet.utility.propensity.fitting import Fit
from discreet.utility.propensity.stacking import Stack

_ROUNDS = 60
_SETTLED = 1e-13
_EXTREME = 1e-8
_UNSURE = 1e4
_RIDGE = 1e-6
_SLOW = 0.05


@dataclass(frozen=True)
class Logit:
    """A main-effects or two-way logistic model of which file a record came from.

    ``linear`` stops after the first step: expression (3.4.10) of the theory, one pass over the records.
    """

    interactions: int = 1
    squares: bool = False
    linear: bool = False

    fixed_columns = True

    def prepare(self, stacked: Stack) -> PreparedLogit:
        """Lay out the predictors once, for as many fits as are wanted."""
        _, every = stacked.masses()
        design = designed(stacked, interactions=self.interactions, squares=self.squares)
        squares, _ = design.products(every, np.zeros(design.rows))
        kept = design.without_aliased(squares)
        at = np.flatnonzero(np.isin(design.keep, kept.keep))
        return PreparedLogit(stacked, kept, squares[np.ix_(at, at)], every, self.linear)


@dataclass(frozen=True)
class PreparedLogit:
    """Predictors and their products, ready for fits with the true or with permuted labels."""

    stacked: Stack
    design: Design
    squares: Floats
    every: Floats
    linear: bool

    def coefficients_of(self, variables: tuple[str, ...]) -> int:
        """Count the coefficients, less the intercept, that involve other variables than these."""
        return self.design.size - rank(self.design, self.squares, variables)

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        """Fit the model; with ``spread`` also say how sure the coefficients are."""
        ours, _ = self.stacked.masses(released)
        share = float(ours.sum() / self.every.sum())
        start = np.zeros(self.design.size)
        start[0] = np.log(share / (1 - share))
        squares = _Factor(share * (1 - share) * self.squares)
        pulled = self.design.pulls(ours - share * self.every)
        if self.linear:
            away = self.design.predictions(share * (1 - share) * squares.solve(pulled))
            return Fit(share + away, ours, self.every, columns=self.design.size, details=self._told(None))
        return self._newton(start, squares, pulled, ours, spread=spread)

    def _newton(self, beta: Floats, factor: _Factor, pulled: Floats, ours: Floats, *, spread: bool) -> Fit:
        """Newton's method that keeps the curvature as long as it serves: a cheap pass a step, not a dear one."""
        share = float(ours.sum() / self.every.sum())
        extreme = False
        known = factor.variances() if spread else None
        penalty = np.zeros(len(beta))
        step = factor.solve(pulled)
        gain = float(step @ pulled)
        scores = np.full(len(ours), share)
        fresh = True
        settled = gain <= _SETTLED
        cost = float(-ours.sum() * np.log(share) - (self.every.sum() - ours.sum()) * np.log(1 - share))
        for _ in range(_ROUNDS):
            if settled:
                break
            beta, scores, pulled, cost = self._stepped(beta, step, ours, penalty, cost)
            if not extreme and min(float(scores.min()), 1 - float(scores.max())) < _EXTREME:
                extreme = True
                penalty[1:] = _RIDGE
                pulled = pulled - penalty * beta
                cost += float(0.5 * penalty @ beta**2)
            step = factor.solve(pulled)
            now = float(step @ pulled)
            if now > _SLOW * gain or not fresh:
                factor = self._curvature(scores, penalty)
                step = factor.solve(pulled)
                now = float(step @ pulled)
            fresh = now <= _SLOW * gain
            gain = now
            settled = gain <= _SETTLED
        curvature = None
        if spread:
            # Of a large file the last curvature serves: near the null it hardly changes.
            curvature = factor if self.design.is_large and not extreme else self._curvature(scores, penalty)
        # Extreme scores may be earned; a coefficient that nothing holds back has next to no curvature left.
        separated = bool(
            extreme
            and curvature is not None
            and known is not None
            and (curvature.variances() > _UNSURE * known).any()
        )
        return Fit(
            scores,
            ours,
            self.every,
            columns=self.design.size,
            separated=separated,
            converged=settled,
            details=self._told(curvature, beta),
        )

    def _stepped(
        self, beta: Floats, step: Floats, ours: Floats, penalty: Floats, before: float
    ) -> tuple[Floats, Floats, Floats, float]:
        """Go a step, or the part of it that makes the fit better."""
        from scipy.special import expit

        for halved in range(12):
            to = beta + step * 0.5**halved
            linear = self.design.predictions(to)
            cost = self._cost(linear, to, ours, penalty)
            if cost <= before + 1e-10 * abs(before):
                break
        scores: Floats = expit(linear)
        return to, scores, self.design.pulls(ours - self.every * scores) - penalty * to, cost

    def _cost(self, linear: Floats, beta: Floats, ours: Floats, penalty: Floats) -> float:
        likelihood = ours @ linear - self.every @ (np.maximum(linear, 0) + np.log1p(np.exp(-np.abs(linear))))
        return float(-likelihood + 0.5 * penalty @ beta**2)

    def _curvature(self, scores: Floats, penalty: Floats) -> _Factor:
        squares, _ = self.design.products(self.every * scores * (1 - scores), np.zeros(len(scores)))
        return _Factor(squares + np.diag(penalty))

    def _told(self, curvature: _Factor | None, beta: Floats | None = None) -> dict[str, Any]:
        if beta is None or curvature is None:
            return {"terms": self.design.kept_terms}
        return {
            "terms": self.design.kept_terms,
            "beta": beta,
            "covariance": curvature.inverse(),
        }


class _Factor:
    """A curvature, scaled to unit diagonal and factored; a hair is added where rounding made it singular."""

    def __init__(self, squares: Floats) -> None:
        from scipy.linalg import cho_factor

        self._scale = 1 / np.sqrt(np.maximum(np.diag(squares), 1e-300))
        unit = squares * np.outer(self._scale, self._scale)
        for hair in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
            with contextlib.suppress(np.linalg.LinAlgError):
                self._held = cho_factor(unit + hair * np.eye(len(unit)), lower=True)
                break
        else:
            # Sums of squares of unit diagonal are off by rounding only, far below the last hair.
            raise InputError(
                "The curvature of the propensity model could not be factored. Leave out columns with extreme numbers."
            )

    def solve(self, pulled: Floats) -> Floats:
        from scipy.linalg import cho_solve

        solved: Floats = self._scale * cho_solve(self._held, self._scale * pulled)
        return solved

    def variances(self) -> Floats:
        variances: Floats = np.diag(self.inverse()).copy()
        return variances

    def inverse(self) -> Floats:
        from scipy.linalg import cho_solve

        inverse: Floats = cho_solve(self._held, np.eye(len(self._scale))) * np.outer(self._scale, self._scale)
        return inverse
