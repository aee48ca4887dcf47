"""Does a mechanism keep its promise? Run it on two neighbors and look for an event that gives them away.

Differential privacy bounds the chance of every event under one file by e^epsilon times its chance under the other, plus
delta. An event for which the bound is broken beyond chance refutes the claim. Half of the runs choose the event, the
other half test it, so that choosing costs nothing (Jagielski, Ullman and Oprea 2020). A test can only refute: what it
does not find may still be there.

What a mechanism tells in several numbers at once is weighed together: the half that chooses also learns which
combination of the numbers tells the files apart, and tails of that combination are events like all others.

Numbers drawn in floating point give themselves away in their last digits (Mironov 2012), so events are also looked for
there: which power of two a number is a multiple of.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, called, numbers_of
from discreet.core.constraints import Above, AtLeast, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import shown

Draw = Callable[[Any, int], npt.ArrayLike]

_THRESHOLDS = 64
_BANDS = 8
_BANDS_OF_ODDS = 32
_FAR = 1e100


@dataclass(frozen=True)
class _Event:
    """A set of outputs: those of one column between two bounds, with so many zeros at the end of their digits."""

    column: int
    low: float
    high: float
    multiple_of: float | None = None

    def holds(self, outputs: Floats) -> Flags:
        values = outputs[:, self.column]
        inside = (values >= self.low) & (values <= self.high)
        if self.multiple_of is not None:
            # A missing answer stands as the largest number there is.
            with np.errstate(over="ignore"):
                scaled = values / self.multiple_of
            inside &= scaled == np.rint(scaled)
        return np.asarray(inside)

    def told(self, many: int) -> str:
        """The event in words, without values of the data: outputs are public. Beyond ``many`` outputs are weighed."""
        what = f"output {self.column + 1}" if self.column < many else "the outputs, weighed together,"
        where = f"{what} from {self.low:.6g} to {self.high:.6g}"
        return where if self.multiple_of is None else f"{where}, a multiple of {self.multiple_of:.3g}"


@checked
def audit(
    draw: Draw,
    neighbors: tuple[Any, Any],
    *,
    epsilon: Annotated[float, Above(0)],
    delta: Annotated[float, Share(below=True)] = 0.0,
    runs: Annotated[int, AtLeast(1000)] = 100_000,
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
) -> Measure:
    """Is there evidence that a mechanism does not keep its epsilon?

    Also known as: audit of differential privacy; DP audit.

    Parameters
    ----------
    draw
        ``draw(data, runs)`` runs the mechanism so many times on a file and gives an array, one row a run.
    neighbors
        Two files, or whatever ``draw`` takes, that differ in one unit. The worst pair you can think of: the audit is
        only as good as the pair.
    epsilon, delta
        What is claimed.
    runs
        How often the mechanism is run on each file; half chooses the event, half tests it.
    level
        The confidence of the bound.

    Returns
    -------
    Measure
        ``value`` is a lower bound on the true epsilon; ``figures["violated"]`` says whether it is above the claim.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> def half_the_noise(answer, runs):
    ...     return answer + rng.laplace(0, 0.5, runs)
    >>> audit(half_the_noise, (0.0, 1.0), epsilon=1.0).figures["violated"]
    True
    """
    if len(neighbors) != 2:
        raise ParameterError("neighbors must be two files that differ in one unit.")
    here, there = (_drawn(draw, data, runs) for data in neighbors)
    if here.shape[1] != there.shape[1]:
        raise ParameterError("draw must give as many numbers for one neighbor as for the other.")
    half = runs // 2
    many = here.shape[1]
    here, there = _weighed(here, there, half)
    best: tuple[float, _Event, bool] | None = None
    for event in _events(here[:half], there[:half], many):
        first, second = int(event.holds(here[:half]).sum()), int(event.holds(there[:half]).sum())
        for swapped, (a, b) in enumerate(((first, second), (second, first))):
            score = _bound(a, b, half, delta, level)
            if best is None or score > best[0]:
                best = (score, event, bool(swapped))
    if best is None:
        raise ParameterError("draw gave no finite numbers to look at.")
    _, event, swapped = best
    tested = [int(event.holds(outputs[half:]).sum()) for outputs in (here, there)]
    a, b = reversed(tested) if swapped else tested
    rest = runs - half
    # An event that was rarer than where it was chosen shows nothing, and never that epsilon is below 0.
    found = max(_bound(a, b, rest, delta, level), 0.0)
    violated = found > epsilon
    told = (
        f"The claim of epsilon {epsilon:g} is refuted: with {100 * level:g} % confidence it is at least {shown(found)}."
        if violated
        else f"No evidence against epsilon {epsilon:g}: the events tried show at least {shown(found)}."
    )
    return Measure(
        "audit",
        found,
        {"violated": violated, "claimed": epsilon, "runs": runs, "seen_here": a, "seen_there": b},
        told,
        caveats=[] if violated else ["An audit can refute a claim and never prove it."],
        parameters={"epsilon": epsilon, "delta": delta, "level": level, "event": event.told(many)},
    )


def _drawn(draw: Draw, data: Any, runs: int) -> Floats:
    made = numbers_of(called(draw, "draw", data, runs), "what draw gives", missing=True, infinite=True)
    if made.ndim == 1:
        made = made[:, None]
    if made.ndim != 2 or len(made) != runs:
        raise ParameterError("draw must give one number or one row of numbers for every run.")
    # A missing answer is an output like any other.
    return np.nan_to_num(made, nan=-np.finfo(np.float64).max)


def _weighed(here: Floats, there: Floats, half: int) -> tuple[Floats, Floats]:
    """The outputs with two columns more, learned from the first half: how far they speak for one file, taken together.

    Log odds by band, added up over the outputs, are the best there is for outputs with noise of their own; the linear
    combination of Fisher for normal noise, which the outputs may share.
    """
    if here.shape[1] == 1:
        return here, there
    both = np.concatenate([here, there])
    learned = np.r_[:half, len(here) : len(here) + half]
    own = np.repeat([True, False], half)
    odds = np.zeros(len(both))
    scaled = np.empty_like(both)
    for column, values in enumerate(both.T):
        cuts = np.unique(np.quantile(values[learned], np.linspace(0, 1, _BANDS_OF_ODDS + 1)[1:-1]))
        # Two bands to a cut: a value that many runs give stands for itself.
        band = np.searchsorted(cuts, values, "left") + np.searchsorted(cuts, values, "right")
        first, second = (
            np.bincount(band[learned][side], minlength=2 * len(cuts) + 1) for side in (own, ~own)
        )
        odds += np.log((first + 1) / (second + 1))[band]
        # A missing answer stands as a number whose square cannot be written.
        held = np.clip(values, -_FAR, _FAR)
        middle = float(held[learned].mean())
        scaled[:, column] = (held - middle) / (float(held[learned].std()) or 1.0)
    first, second = scaled[learned][own], scaled[learned][~own]
    spread = np.atleast_2d(np.cov(first.T) + np.cov(second.T))
    along = scaled @ (np.linalg.pinv(spread, hermitian=True) @ (first.mean(axis=0) - second.mean(axis=0)))
    both = np.column_stack([both, odds, along])
    return both[: len(here)], both[len(here) :]


def _events(here: Floats, there: Floats, many: int) -> Iterator[_Event]:
    """Tails and single values in every column, last digits in those that are outputs."""
    for column in range(here.shape[1]):
        pooled = np.concatenate([here[:, column], there[:, column]])
        cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS + 1)))
        for cut in cuts:
            yield _Event(column, -np.inf, float(cut))
            yield _Event(column, float(cut), np.inf)
        values, counts = np.unique(pooled, return_counts=True)
        for value in values[np.argsort(-counts, kind="stable")[:_THRESHOLDS]]:
            yield _Event(column, float(value), float(value))
        if column >= many:
            continue
        bands = cuts[:: max(len(cuts) // _BANDS, 1)]
        for low, high in itertools.pairwise(bands):
            for power in _last_digits(pooled[(pooled >= low) & (pooled <= high)]):
                yield _Event(column, float(low), float(high), power)


def _last_digits(values: Floats) -> list[float]:
    """The powers of two that some but not all of these numbers are multiples of."""
    values = values[np.isfinite(values) & (values != 0)]
    if not len(values):
        return []
    mantissa, exponent = np.frexp(np.abs(values[:2000]))
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.unique(exponent - 53 + np.log2((whole & -whole).astype(np.float64)).astype(np.int64))
    return [math.ldexp(1.0, int(power)) for power in lowest if power > -1070][:24]


def _bound(seen: int, others: int, runs: int, delta: float, level: float) -> float:
    """A lower bound on epsilon from how often an event was seen under each file (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    alpha = (1 - level) / 2  # half for each of the two shares
    low = float(betaincinv(seen, runs - seen + 1, alpha)) if seen else 0.0
    high = float(betaincinv(others + 1, runs - others, 1 - alpha)) if others < runs else 1.0
    return math.log((low - delta) / high) if low > delta else 0.0
