"""A table as networks see it: scaled numbers and codes of categories."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Codes, Floats, Integers, Singles


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Records as arrays.

    Attributes
    ----------
    numbers
        One column a number, scaled as the model wants it.
    codes
        One column a category: codes from 0 on.
    sizes
        How many codes each category has.
    conditions
        Which columns of ``codes`` are categories of the file, on which a generator may be conditioned; the others are
        modes of numbers.
    weights
        What each record counts, or None where all count alike.

    Examples
    --------
    >>> table = CodedTable(np.zeros((2, 1), "f4"), np.array([[0, 1], [1, 2]], "i4"), (2, 3), (0, 1))
    >>> table.width, len(table), table.shares(1).tolist()
    (6, 2, [0.0, 0.5, 0.5])
    """

    numbers: Singles
    codes: Codes
    sizes: tuple[int, ...]
    conditions: tuple[int, ...] = ()
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def width(self) -> int:
        """How many inputs a record has when codes are written one-hot."""
        return int(self.numbers.shape[1]) + sum(self.sizes)

    @property
    def starts(self) -> Integers:
        """Where the codes of each category begin among the one-hot inputs of all categories, and one end more."""
        return np.append(0, np.cumsum(self.sizes)).astype(np.int64)

    def shares(self, column: int) -> Floats:
        """Return the (weighted) share of each code of a category."""
        counts = np.bincount(self.codes[:, column], self.weights, minlength=self.sizes[column])
        return np.asarray(counts / counts.sum(), dtype=np.float64)

    def take(self, rows: Integers) -> CodedTable:
        """Return some of the records."""
        weights = None if self.weights is None else self.weights[rows]
        return CodedTable(self.numbers[rows], self.codes[rows], self.sizes, self.conditions, weights)

    def split(self, share: float, rng: np.random.Generator) -> tuple[CodedTable, CodedTable]:
        """Hold a share of the records out; both parts have at least one record."""
        order = rng.permutation(len(self))
        held = min(max(round(share * len(self)), 1), len(self) - 1)
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Give the table as plain arrays, to be written to an npz file."""
        arrays: dict[str, np.ndarray[Any, Any]] = {
            "numbers": self.numbers,
            "codes": self.codes,
            "sizes": np.asarray(self.sizes, dtype=np.int64),
            "conditions": np.asarray(self.conditions, dtype=np.int64),
        }
        return arrays if self.weights is None else arrays | {"weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> CodedTable:
        """Read the table back from the arrays of `to_arrays`."""
        sizes, conditions = (tuple(map(int, arrays[name])) for name in ("sizes", "conditions"))
        return cls(arrays["numbers"], arrays["codes"], sizes, conditions, arrays.get("weights"))


def log_frequencies(shares: Floats, rows: int) -> Floats:
    """Return the chances with which levels are asked for in training: by the logarithm of their frequency.

    Examples
    --------
    >>> log_frequencies(np.array([0.9, 0.1]), 100).round(3).tolist()
    [0.653, 0.347]
    """
    logs = np.log1p(shares * rows)
    total = logs.sum()
    return np.asarray(logs / total if total > 0 else np.full(len(shares), 1 / len(shares)))


def rows_by_code(codes: Codes, size: int) -> tuple[Integers, Integers]:
    """Return the rows grouped by code, and where each group starts, with one end more.

    Examples
    --------
    >>> rows, starts = rows_by_code(np.array([1, 0, 1], "i4"), 3)
    >>> rows.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3, 3])
    """
    order = np.argsort(codes, kind="stable").astype(np.int64)
    starts = np.append(0, np.cumsum(np.bincount(codes, minlength=size))).astype(np.int64)
    return order, starts


# How a number becomes inputs of a network, and outputs a number again: by modes of its distribution, or by rank.
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
