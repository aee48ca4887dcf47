"""How a number becomes inputs of a network, and outputs a number again: by modes of its distribution, or by rank."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Codes, Floats, Singles

_MOST_FITTED = 5_000  # records by which the modes of a number are found
_LEAST_MODE = 0.005
_SPREADS = 4.0
_EDGE = 0.99
_MOST_KNOTS = 1_000
_FARTHEST = 3.5


@dataclass(frozen=True, eq=False)
class ModeCoding:
    """A number as a mode of its distribution and its place within it.

    Attributes
    ----------
    means, spreads, weights
        Of the modes: normal laws whose mixture is close to the distribution.
    """

    means: Floats
    spreads: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, rng: np.random.Generator, modes: int) -> ModeCoding:
        """Find the modes by a variational mixture of normal laws; those of next to no weight are left out."""
        from sklearn.mixture import BayesianGaussianMixture

        distinct = np.unique(values)
        center, scale = _center_and_scale(values)
        if len(distinct) < 2 or not scale > 0:
            return cls(np.array([center]), np.array([1.0]), np.array([1.0]))
        sample = values if len(values) <= _MOST_FITTED else rng.choice(values, _MOST_FITTED, replace=False)
        mixture = BayesianGaussianMixture(
            n_components=min(modes, len(np.unique(sample)), len(sample)),
            weight_concentration_prior_type="dirichlet_process",
            weight_concentration_prior=0.001,
            n_init=1,
            max_iter=100,
            reg_covar=1e-6,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mixture that has not settled is as good a scale as any
            mixture.fit(((sample - center) / scale)[:, None])
        keep = mixture.weights_ > _LEAST_MODE
        spreads = np.sqrt(mixture.covariances_[keep, 0, 0]) * scale
        weights = mixture.weights_[keep]
        return cls(mixture.means_[keep, 0] * scale + center, spreads, weights / weights.sum())

    @property
    def size(self) -> int:
        """How many modes there are."""
        return len(self.means)

    def encode(self, values: Floats, rng: np.random.Generator) -> tuple[Singles, Codes]:
        """Draw the mode of every value by how likely each is, and return its place within and the mode."""
        z = (values[:, None] - self.means) / self.spreads
        logs = np.log(self.weights) - np.log(self.spreads) - 0.5 * z * z
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        upto = np.cumsum(chances, axis=1)
        mode = (rng.random(len(values))[:, None] * upto[:, -1:] >= upto[:, :-1]).sum(axis=1)
        place = z[np.arange(len(values)), mode] / _SPREADS
        return np.clip(place, -_EDGE, _EDGE).astype(np.float32), mode.astype(np.int32)

    def decode(self, places: Singles, modes: Codes) -> Floats:
        """Return the values."""
        return np.asarray(places.astype(np.float64) * _SPREADS * self.spreads[modes] + self.means[modes])

    def state(self) -> dict[str, Any]:
        """Return the coding for a model file."""
        return {"coding": "modes", "means": self.means, "spreads": self.spreads, "weights": self.weights}


def _center_and_scale(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation, also of numbers whose squares no float holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(values.mean()), float(values.std())
    if np.isfinite(found).all():
        return found
    largest = float(np.abs(values).max())
    return float((values / largest).mean()) * largest, float((values / largest).std()) * largest


@dataclass(frozen=True, eq=False)
class ScoreCoding:
    """A number as its normal score: the quantile of the normal law at its rank.

    A value that several records have covers a range of ranks, and each of the records gets a rank of its own within it:
    the scores of all records then follow the normal law however many values are tied, and the whole range leads back to
    the one value. Between values that one record has, the line is straight.

    Attributes
    ----------
    values, ranks
        Knots of the line between values and ranks, both ascending; a tied value has two.
    """

    values: Floats
    ranks: Floats

    @classmethod
    def of(cls, values: Floats) -> ScoreCoding:
        """Learn the knots: all distinct values, or where there are many the most frequent ones and quantiles."""
        distinct, counts = np.unique(values, return_counts=True)
        ends = np.cumsum(counts) / len(values)
        if len(distinct) > _MOST_KNOTS:
            often = np.argsort(-counts, kind="stable")[: _MOST_KNOTS // 2]
            spread = np.searchsorted(ends, np.linspace(0, 1, _MOST_KNOTS // 2)).clip(0, len(distinct) - 1)
            at = np.unique(np.concatenate([[0, len(distinct) - 1], often[counts[often] > 1], spread]))
            distinct, counts, ends = distinct[at], counts[at], ends[at]
        starts = ends - counts / len(values)
        tied = counts > 1
        low = np.where(tied, starts, (starts + ends) / 2)
        knots = np.column_stack([low, np.where(tied, ends, low)])
        once = np.column_stack([np.ones(len(tied), dtype=np.bool_), tied])
        return cls(np.repeat(distinct, 2)[once.ravel()], knots[once])

    def encode(self, values: Floats, rng: np.random.Generator) -> Singles:
        """Return the scores; tied values draw theirs."""
        from scipy.special import ndtri

        first = np.searchsorted(self.values, values, side="left")
        last = np.searchsorted(self.values, values, side="right") - 1
        ranks = np.interp(values, self.values, self.ranks)
        tied = last > first
        low, high = self.ranks[first[tied]], self.ranks[last[tied]]
        ranks[tied] = low + (high - low) * rng.random(int(tied.sum()))
        return np.clip(ndtri(ranks), -_FARTHEST, _FARTHEST).astype(np.float32)

    def decode(self, scores: Singles) -> Floats:
        """Return the values."""
        from scipy.special import ndtr

        return np.asarray(np.interp(ndtr(scores.astype(np.float64)), self.ranks, self.values))

    def state(self) -> dict[str, Any]:
        """Return the coding for a model file."""
        return {"coding": "scores", "values": self.values, "ranks": self.ranks}
