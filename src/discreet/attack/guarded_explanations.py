"""What may be shown instead of an explanation, so that the record behind it is harder to find?

Rounding and leaving out make the attack harder and promise nothing. Noise can keep a promise about the record that is
explained: its scores are first held within a public bound, and the noise is drawn by `discreet.dp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from discreet import dp
from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import numbers_of
from discreet.core.parameters import checked


@dataclass(frozen=True, repr=False)
class Guarded:
    """Explanations that may be shown.

    Attributes
    ----------
    values
        In the shape of the explanations.
    guarantee
        What is proved, or None.
    why_none
        Why nothing is claimed, where nothing is.
    """

    values: Floats
    guarantee: str | None
    why_none: str

    def __repr__(self) -> str:
        return f"Guarded({len(self.values):,} records; {self.guarantee or 'no guarantee: ' + self.why_none})"


class Guard(Protocol):
    """A way of showing less than the explanation."""

    @property
    def label(self) -> str:
        """What a table calls it."""

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Make what is shown from explanations, one row a record."""


@dataclass(frozen=True)
class RoundedExplanation:
    """Round scores to a grid.

    Parameters
    ----------
    step
        The width of the grid.

    Examples
    --------
    >>> RoundedExplanation(step=0.5).apply([[0.6, -0.1]]).values.tolist()
    [[0.5, 0.0]]
    """

    step: float

    def __post_init__(self) -> None:
        if not self.step > 0:
            raise ParameterError("step must be more than 0.")

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"rounded to {self.step:g}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Round explanations, one row a record."""
        _no_ledger(ledger, "rounding")
        # Adding 0 turns a negative zero into a plain one.
        return Guarded(
            np.round(_rows(values) / self.step) * self.step + 0.0, None, "rounding proves nothing."
        )


@dataclass(frozen=True)
class TopFeatures:
    """Show the scores of the features that matter most to a record, and nothing of the others.

    Parameters
    ----------
    t
        How many features.
    hidden
        What stands for a score that is not shown.

    Examples
    --------
    >>> TopFeatures(t=1).apply([[0.6, -0.7, 0.1]]).values.tolist()
    [[0.0, -0.7, 0.0]]
    """

    t: int
    hidden: float = 0.0

    def __post_init__(self) -> None:
        if self.t < 1:
            raise ParameterError("t must be 1 or more.")

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"top {self.t}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Hide all but the largest scores, one row a record; of equal ones the first is kept."""
        _no_ledger(ledger, "leaving scores out")
        rows = _rows(values)
        place = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, : self.t]
        made = np.full_like(rows, self.hidden)
        np.put_along_axis(made, place, np.take_along_axis(rows, place, axis=1), axis=1)
        return Guarded(made, None, "which features are shown depends on the record.")


@dataclass(frozen=True)
class NoisyExplanation:
    """Hold scores within a public bound, and add noise that hides which record was explained.

    The promise is about the record that is explained, against any other record. It says nothing about the people whom
    the model or the references were made from, and every further explanation of the same record costs epsilon again.

    Parameters
    ----------
    epsilon
        The budget of one explanation.
    bound
        What a score may be at most, in size; larger ones are held at it. It must be known without the data: scores of
        a probability are never larger than 1.
    noise
        ``laplace``, or ``gaussian``, which needs ``delta``.
    delta
        Of Gaussian noise.

    Examples
    --------
    >>> shown = NoisyExplanation(epsilon=1.0, bound=0.5).apply([[0.6, -0.7]])
    >>> shown.guarantee
    '1-differential privacy against replacing one record.'
    """

    epsilon: float
    bound: float
    noise: Literal["laplace", "gaussian"] = "laplace"
    delta: float = 0.0

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        if not 0 < self.bound < np.inf:
            raise ParameterError(
                "bound must be a number of more than 0: what a score may be at most, in size."
            )
        if self.noise not in ("laplace", "gaussian"):
            raise ParameterError("noise must be 'laplace' or 'gaussian'.")
        if (self.noise == "gaussian") != (0 < self.delta < 1):
            raise ParameterError(
                "Gaussian noise needs a delta between 0 and 1, and Laplace noise takes none."
            )

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"{self.noise} noise, epsilon {self.epsilon:g}"

    def apply(
        self, values: npt.ArrayLike, *, ledger: dp.Ledger | None = None, seed: int | None = None
    ) -> Guarded:
        """Add noise to explanations, one row a record; with a ledger the price is entered first.

        Another record changes one row: each of its scores by at most twice the bound.
        """
        rows = np.clip(_rows(values), -self.bound, self.bound)
        columns = rows.shape[1]
        if self.noise == "laplace":
            noisy = dp.laplace(
                rows,
                sensitivity=2 * columns * self.bound,
                epsilon=self.epsilon,
                adjacency="replace",
                purpose="explanation of a record",
                ledger=ledger,
                seed=seed,
            )
        else:
            noisy = dp.gaussian(
                rows,
                sensitivity=2 * float(np.sqrt(columns)) * self.bound,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency="replace",
                purpose="explanation of a record",
                ledger=ledger,
                seed=seed,
            )
        return Guarded(np.asarray(noisy.value, dtype=np.float64), noisy.guarantee, noisy.why_none)


@checked
def explanation_fidelity(before: npt.ArrayLike, after: npt.ArrayLike) -> float | None:
    """How much of the order of the features does what is shown keep? The mean rank correlation over the records.

    Records all of whose shown scores are equal keep no order: they count as 0. None where no record had one.

    Examples
    --------
    >>> explanation_fidelity([[3.0, 2.0, 1.0]], [[3.0, 2.0, 2.5]])
    0.5
    """
    first, second = _rows(before), _rows(after)
    if first.shape != second.shape:
        raise ParameterError("Both sets of explanations must have the same records and features.")
    ranked, shown = _centered_ranks(first), _centered_ranks(second)
    power, kept = (ranked**2).sum(axis=1), (shown**2).sum(axis=1)
    judged = power > 0
    if not judged.any():
        return None
    together = (ranked * shown).sum(axis=1)[judged]
    sizes = np.sqrt(power * kept)[judged]
    return float(np.divide(together, sizes, out=np.zeros_like(together), where=sizes > 0).mean())


def _centered_ranks(rows: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1)
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))


def _rows(values: npt.ArrayLike) -> Floats:
    rows = numbers_of(values, "values")
    if rows.ndim != 2:
        raise ParameterError("values must be explanations: one row a record, one column a feature.")
    return rows


def _no_ledger(ledger: dp.Ledger | None, what: str) -> None:
    if ledger is not None:
        raise ParameterError(
            f"A ledger takes releases with a guarantee, and {what} makes none. Leave out the ledger."
        )
