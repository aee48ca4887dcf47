"""Choose the best of several candidates, or the first answers that are large enough, under a privacy budget.

Methods: McSherry and Talwar (2007) for the exponential mechanism, McKenna and Sheldon (2020) for permute-and-flip,
Ding, Kifer, Sayed, Steinke, Wang, Xiao and Zhang (2021) for its being the largest score under exponential noise, and
Lyu, Su and Li (2017) for the sparse vector technique. Everything is decided in fractions or whole steps; nothing is
rounded on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import numbers_of
from discreet.core.errors import ParameterError
from discreet.core.guarantees import settled
from discreet.core.parameters import checked
from discreet.dp.calibration import rational_epsilon
from discreet.dp.costs import Adjacency, Cost, Spend
from discreet.dp.entropy import bernoulli_exp, chosen_privately
from discreet.dp.ledger import Ledger
from discreet.dp.mechanisms import grid_for, words_of
from discreet.dp.samplers import discrete_laplace, shuffled

Selection = Literal["permute-and-flip", "exponential", "noisy-max"]


@dataclass(frozen=True)
class Chosen:
    """The candidate that was chosen, its place among the candidates, and what the choice cost."""

    value: Any
    place: int
    cost: Cost
    guarantee: str | None
    why_none: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.value}. {self.guarantee or f'No guarantee: {self.why_none}'}"


@checked
def choose(
    scores: npt.ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    candidates: Sequence[Any] | None = None,
    method: Selection = "permute-and-flip",
    monotone: bool = False,
    adjacency: Adjacency = "add-remove",
    purpose: str = "",
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Chosen:
    """Which of these candidates has (nearly) the best score?

    Also known as: exponential mechanism; permute-and-flip; report noisy max.

    Parameters
    ----------
    scores
        One a candidate; higher is better. They may come from the data.
    sensitivity
        How far one record can move any one score, by the question and public bounds.
    epsilon
        The budget of the choice.
    candidates
        What the scores are of, in the same order; must not come from the data. Their places unless given.
    method
        ``"permute-and-flip"``: never worse on average than the exponential mechanism, at most twice as good;
        ``"noisy-max"`` is the same law, drawn the same way. ``"exponential"``: chances proportional to
        exp(epsilon score / (2 sensitivity)).
    monotone
        Whether a record can only raise scores, or only lower them (counts under ``add-remove``): the same budget then
        buys twice the precision. Refused under ``replace``: a replaced record lowers one score and raises another.
    adjacency, purpose, ledger, seed
        As in `laplace`.

    Returns
    -------
    Chosen

    Examples
    --------
    >>> choose([3, 4_000, 12], sensitivity=1, epsilon=1, candidates=["red", "green", "blue"]).value
    'green'
    """
    rate = rational_epsilon(epsilon)
    _check_monotone(adjacency, monotone=monotone)
    numbers = numbers_of(scores, "scores")
    if numbers.ndim != 1:
        raise ParameterError("scores must be a list of numbers, one a candidate.")
    if (
        isinstance(sensitivity, bool)
        or not isinstance(sensitivity, int | float)
        or not 0 < sensitivity < np.inf
    ):
        raise ParameterError(
            "sensitivity must be a number of more than 0: how far one record can move a score."
        )
    if candidates is not None and len(candidates) != len(numbers):
        raise ParameterError(
            f"There are {len(numbers)} scores and {len(candidates)} candidates; give one score each."
        )
    spend = Spend(epsilon, ledger=ledger, purpose=purpose, adjacency=adjacency)
    cost = spend.cost(method, sensitivity=float(sensitivity))
    spend.enter(cost, seed=seed)
    exact = [Fraction(float(score)) for score in numbers]
    reach = Fraction(sensitivity) / (2 if monotone else 1)
    words = words_of(seed, method)
    if method == "exponential":
        place = chosen_privately(exact, rate, reach, words)
    else:
        best = max(exact)
        order = shuffled(len(exact), words)
        # The best candidate is always taken when its turn comes, so somebody is.
        yes = bernoulli_exp([rate * (best - score) / (2 * reach) for score in exact], order, words)
        place = int(order[np.flatnonzero(yes)[0]])
    value = place if candidates is None else candidates[place]
    return Chosen(value, place, cost, *settled(spend.claim, "", seeded=seed is not None))


def _check_monotone(adjacency: Adjacency, *, monotone: bool) -> None:
    """Refuse one direction under replacement, which takes one record out and puts another in."""
    if monotone and adjacency != "add-remove":
        raise ParameterError(
            "monotone=True holds where a record is added or removed: a replaced record can lower one score and raise "
            "another. Leave monotone out, or take adjacency='add-remove', which a ledger for replacement counts double."
        )


class SparseVector:
    """Which of many answers are above a threshold? Only those that are cost anything.

    Answers are asked one after the other, and may depend on what was said before. The whole budget is entered when the
    first is asked for, and pays for ``max_found`` answers above the threshold and any number below it.

    Also known as: AboveThreshold; above threshold; SVT; sparse vector technique.

    Parameters
    ----------
    threshold
        An answer above it is reported; public. A whole number says that the answers are counts.
    sensitivity
        How far one record can move any answer.
    epsilon
        The budget of all answers together.
    max_found
        After so many above the threshold it ends.
    monotone
        Whether a record moves all answers in one direction (counts under ``add-remove``); refused under ``replace``.
    adjacency, purpose, ledger, seed
        As in `laplace`.

    Notes
    -----
    The threshold gets noise of scale sensitivity / epsilon1, every answer fresh noise of scale
    2 ``max_found`` sensitivity / epsilon2 (half of it where monotone), and epsilon is shared as
    1 : (2 ``max_found``)^(2/3), which makes their difference as certain as it can be (Lyu, Su and Li 2017). Variants
    that draw no new noise, or tell the noisy answers, have no guarantee.

    Examples
    --------
    >>> asked = SparseVector(1_000, sensitivity=1, epsilon=1, max_found=2)
    >>> [asked.above(count) for count in (10, 5_000, 30)]
    [False, True, False]
    >>> asked.left
    1
    """

    def __init__(
        self,
        threshold: float,
        *,
        sensitivity: float,
        epsilon: float,
        max_found: int = 1,
        monotone: bool = False,
        adjacency: Adjacency = "add-remove",
        purpose: str = "",
        ledger: Ledger | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(monotone, bool):
            raise ParameterError("monotone must be True or False.")
        if isinstance(max_found, bool) or not isinstance(max_found, int) or not 0 < max_found < 2**31:
            raise ParameterError("max_found must be a whole number of 1 or more, and less than 2^31.")
        rational_epsilon(epsilon)
        _check_monotone(adjacency, monotone=monotone)
        fold = max_found if monotone else 2 * max_found
        share = 1 / (1 + fold ** (2 / 3))
        first = Fraction(epsilon) * Fraction(share)
        self._grid, limit = grid_for(threshold, sensitivity, noise=fold / (epsilon * (1 - share)))
        if self._grid.shape or sensitivity == 0:
            raise ParameterError("threshold must be one number, and sensitivity more than 0.")
        moved = self._grid.moved(sensitivity, 1)
        self._limit_rate = rational_epsilon(first / moved)
        self._rate = rational_epsilon((Fraction(epsilon) - first) / (fold * moved))
        spend = Spend(epsilon, ledger=ledger, purpose=purpose, adjacency=adjacency)
        self.cost = spend.cost("sparse-vector", sensitivity=float(sensitivity), values=max_found)
        spend.enter(self.cost, seed=seed)
        self._words = words_of(seed, "sparse-vector")
        self._limit = int(self._grid.placed(limit)) + self._noise(self._limit_rate)
        self.left = max_found
        self.guarantee, self.why_none = settled(spend.claim, "", seeded=seed is not None)

    def above(self, answer: float) -> bool:
        """Say whether an answer is above the threshold, as far as the noise lets anybody say.

        Raises
        ------
        ParameterError
            When ``max_found`` answers were above it: the budget is spent.
        """
        if not self.left:
            raise ParameterError(
                "All answers above the threshold that the budget pays for were given. Open a new SparseVector, with a "
                "budget of its own."
            )
        value = numbers_of(answer, "answer")
        if value.ndim or (self._grid.whole and not float(value).is_integer()):
            raise ParameterError(
                "answer must be one number, and a whole one where the threshold is: give the threshold as a decimal "
                "number for answers that are none."
            )
        found = int(self._grid.placed(value)) + self._noise(self._rate) >= self._limit
        self.left -= found
        return found

    def _noise(self, rate: Fraction) -> int:
        return int(discrete_laplace(rate, 1, self._words)[0])

    def __repr__(self) -> str:
        return f"SparseVector(epsilon={self.cost.epsilon:g}, left={self.left})"
