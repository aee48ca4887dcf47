"""A small network of sigmoids, trained by one of four optimizers: the inverse that the literature trains.

One hidden layer, sigmoids throughout, mean squared error, parameters drawn from N(0, 1); mini-batches take the mean
gradient. Written in NumPy, so that the attack needs no library for deep learning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError

Optimizer = Literal["sgd", "momentum", "rmsprop", "adam"]

_RATES: dict[Optimizer, float] = {"sgd": 0.01, "momentum": 0.01, "rmsprop": 0.001, "adam": 0.001}
_TINY = 1e-7


@dataclass
class SigmoidNetwork:
    """Inputs, ``hidden`` sigmoids, as many sigmoids as outputs: fitted with ``fit``, asked with ``predict``.

    Outputs lie between 0 and 1, so what is learned must be scaled to that. Inputs are standardized by what was seen in
    training.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> net = SigmoidNetwork(hidden=8, optimizer="adam", epochs=1500, rng=np.random.default_rng(1))
    >>> found = net.fit(x, (x + 1) / 2).predict(x)
    >>> bool(np.abs(found - (x + 1) / 2).mean() < 0.1)
    True
    """

    hidden: int
    optimizer: Optimizer = "adam"
    epochs: int = 500
    batch_size: int = 32
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    _weights: list[Floats] = field(default_factory=list, init=False, repr=False)
    _scale: tuple[Floats, Floats] | None = field(default=None, init=False, repr=False)

    def fit(self, inputs: Floats, outputs: Floats) -> SigmoidNetwork:
        """Train on pairs of rows."""
        if self.optimizer not in _RATES:
            raise ParameterError(f"optimizer must be one of {', '.join(map(repr, _RATES))}.")
        if min(self.hidden, self.epochs, self.batch_size) < 1:
            raise ParameterError("hidden, epochs and batch_size must be 1 or more.")
        spread = inputs.std(axis=0)
        self._scale = (inputs.mean(axis=0), np.where(spread > 0, spread, 1.0))
        scaled = self._scaled(inputs)
        self._weights = [
            self.rng.normal(size=(inputs.shape[1], self.hidden)),
            np.asarray(self.rng.normal(size=self.hidden)),
            self.rng.normal(size=(self.hidden, outputs.shape[1])),
            np.asarray(self.rng.normal(size=outputs.shape[1])),
        ]
        step = _Step(self.optimizer, self._weights)
        for _ in range(self.epochs):
            order = self.rng.permutation(len(scaled))
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                step(self._gradient(scaled[batch], outputs[batch]))
        return self

    def predict(self, inputs: Floats) -> Floats:
        """Give the outputs for new rows."""
        if self._scale is None:
            raise ParameterError("The network has learned nothing yet: call fit first.")
        w1, b1, w2, b2 = self._weights
        return _sigmoid(_sigmoid(self._scaled(inputs) @ w1 + b1) @ w2 + b2)

    def _scaled(self, inputs: Floats) -> Floats:
        assert self._scale is not None
        return np.asarray((inputs - self._scale[0]) / self._scale[1])

    def _gradient(self, inputs: Floats, outputs: Floats) -> list[Floats]:
        w1, b1, w2, b2 = self._weights
        inner = _sigmoid(inputs @ w1 + b1)
        made = _sigmoid(inner @ w2 + b2)
        outer = (made - outputs) * made * (1 - made) * (2.0 / made.size)
        back = (outer @ w2.T) * inner * (1 - inner)
        return [inputs.T @ back, back.sum(axis=0), inner.T @ outer, outer.sum(axis=0)]


class _Step:
    """One rule for moving all parameters along their gradients, in place."""

    def __init__(self, optimizer: Optimizer, weights: list[Floats]) -> None:
        self.rule = {
            "sgd": self._sgd,
            "momentum": self._momentum,
            "rmsprop": self._rmsprop,
            "adam": self._adam,
        }[optimizer]
        self.rate = _RATES[optimizer]
        self.weights = weights
        self.first = [np.zeros_like(weight) for weight in weights]
        self.second = [np.zeros_like(weight) for weight in weights]
        self.steps = 0

    def __call__(self, gradients: list[Floats]) -> None:
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.weights[i] -= self.rate * self.rule(i, gradient)

    def _sgd(self, _: int, gradient: Floats) -> Any:
        return gradient

    def _momentum(self, i: int, gradient: Floats) -> Any:
        self.first[i] = 0.9 * self.first[i] + gradient
        return self.first[i]

    def _rmsprop(self, i: int, gradient: Floats) -> Any:
        self.second[i] = 0.9 * self.second[i] + 0.1 * gradient * gradient
        return gradient / (np.sqrt(self.second[i]) + _TINY)

    def _adam(self, i: int, gradient: Floats) -> Any:
        self.first[i] = 0.9 * self.first[i] + 0.1 * gradient
        self.second[i] = 0.999 * self.second[i] + 0.001 * gradient * gradient
        mean = self.first[i] / (1 - 0.9**self.steps)
        return mean / (np.sqrt(self.second[i] / (1 - 0.999**self.steps)) + _TINY)


def _sigmoid(numbers: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(numbers, -500, 500))))
