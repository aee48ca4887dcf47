"""Parameters that were drawn privately, how they are drawn, and the regressions that make files of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from scipy.special import softmax

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.dp.entropy import Stream
from discreet.synth.binned_columns import Attribute, declared_attribute
from discreet.synth.column_forms import as_numbers, is_numeric
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted


@stored("fitted-parameters")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedParameters(Fitted):
    """Parameters of regressions.

    Attributes
    ----------
    thetas
        One row a vector of parameters that was drawn; as private as the files.
    diagnosis
        How the draw went. It was read off the data: not for publication, and not in a model file.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    generator: Regressions
    thetas: Floats
    left_out: Mapping[str, str]
    diagnosis: Diagnosis | None = field(default=None, init=False)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a file from one of the vectors of parameters."""
        theta = self.thetas[int(stream("which").integers(len(self.thetas)))]
        units = self.generator.made(theta, self.generator.noise(n, stream("records")))
        return self.generator.frame(self.generator.held(units))


# Files from parameters: every column by a regression on the columns before it.
#
# Numbers are taken in units that the user declares (a center and a spread, public), so that one proper prior fits all
# parameters: they are normal around 0. Categories are drawn by logits over declared levels.
MOST_PARAMETERS = 60


@stored("pmse-column")
@dataclass(frozen=True, eq=False)
class Column:
    """One column: a number with its center and spread, or a category with its levels.

    Attributes
    ----------
    attribute
        What it may be.
    center, spread
        Units of a number.
    """

    attribute: Attribute
    center: float = 0.0
    spread: float = 1.0

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.attribute.levels is None

    @property
    def features(self) -> int:
        """How many numbers tell later columns about it."""
        return 1 + self.has_gaps if self.is_number else self.attribute.size - 1

    @property
    def has_gaps(self) -> bool:
        """Whether it is a number that may be missing."""
        return self.is_number and self.attribute.has_missing

    def units(self, series: pl.Series) -> Floats:
        """The column in its units, or as codes."""
        if not self.is_number:
            return self.attribute.encode(series).astype(np.float64)
        values = as_numbers(series).to_numpy().astype(np.float64)
        good = np.isfinite(values) | (np.isnan(values) & self.has_gaps)
        if not good.all():
            raise ColumnError(
                f"Column '{series.name}' has missing or infinite values, and was declared without. Name it under gaps, "
                "fill them, or leave the column out. This refusal itself tells that there are some."
            )
        return np.asarray((values - self.center) / self.spread)


def columns_declared(
    frame: pl.DataFrame,
    prior: Mapping[str, Any],
    domain: Mapping[str, Any],
    never_missing: Sequence[str],
    gaps: Sequence[str] = (),
) -> list[Column]:
    """Make columns from what was declared alone."""
    for name in gaps:
        if name not in prior:
            raise ColumnError(
                f"Column '{name}' was named under gaps, which is for numbers that have a prior."
            )
    made = []
    for name in frame.columns:
        series = frame[name]
        if name not in prior:
            if is_numeric(series.dtype) and name not in domain:
                raise ColumnError(
                    f"Column '{name}' needs a prior that does not come from the data: prior={{'{name}': (center, "
                    "spread)}} says about where its values lie. Or declare its levels under domain."
                )
            made.append(
                Column(
                    declared_attribute(
                        series,
                        list(own) if isinstance(own := domain.get(name), tuple) else own,
                        bins=2,
                        never_missing=name in never_missing,
                    )
                )
            )
            continue
        given = prior[name]
        if not is_numeric(series.dtype) or series.dtype.is_temporal():
            raise ColumnError(f"Column '{name}' is no number: declare its levels under domain.")
        numbers = list(given) if isinstance(given, list | tuple) else []
        good = len(numbers) == 2 and all(
            isinstance(each, int | float) and not isinstance(each, bool) and np.isfinite(each)
            for each in numbers
        )
        if not good or not numbers[1] > 0:
            raise ColumnError(f"The prior of column '{name}' must be (center, spread) with a spread above 0.")
        whole = 0 if series.dtype.is_integer() else None
        made.append(
            Column(
                Attribute(name, series.dtype, None, np.array([0.0, 1.0]), name in gaps, whole),
                float(numbers[0]),
                float(numbers[1]),
            )
        )
    return made


@stored("regressions")
@dataclass(frozen=True, eq=False)
class Regressions:
    """A generator of files from one vector of parameters."""

    columns: tuple[Column, ...]

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        total = features = 0
        for column in self.columns:
            if column.is_number:
                total += features + 2 + (features + 1) * column.has_gaps
            else:
                total += (column.attribute.size - 1) * (features + 1)
            features += column.features
        return total

    @property
    def noises(self) -> int:
        """How many random numbers a record takes."""
        return sum(
            1 + column.has_gaps if column.is_number else column.attribute.size for column in self.columns
        )

    def check(self) -> None:
        """Refuse more parameters than a sampler can explore."""
        if self.dim > MOST_PARAMETERS:
            raise ParameterError(
                f"The regressions have {self.dim} parameters, more than the {MOST_PARAMETERS} that can be drawn well. "
                "Leave columns out, or declare fewer levels."
            )

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Random numbers for so many records: normal for numbers, logistic for their gaps, Gumbel for levels."""
        parts: list[Floats] = []
        for column in self.columns:
            if not column.is_number:
                parts.append(rng.gumbel(size=(n, column.attribute.size)))
                continue
            parts.append(rng.standard_normal((n, 1)))
            if column.has_gaps:
                parts.append(rng.logistic(size=(n, 1)))
        return np.concatenate(parts, axis=1)

    def usable(self, units: Floats) -> bool:
        """Whether a file has numbers where it should: what passed all bounds is none, and a gap only where declared."""
        gaps = np.array([column.has_gaps for column in self.columns])
        return bool((np.isfinite(units) | (np.isnan(units) & gaps)).all())

    def held(self, units: Floats) -> Floats:
        """The file within what a column can hold: a draw from the tail of a wide prior may pass it."""
        gaps = np.array([column.has_gaps for column in self.columns])
        return np.asarray(np.clip(np.where(np.isnan(units) & ~gaps, 0.0, units), -1e12, 1e12))

    def made(self, theta: Floats, noise: Floats) -> Floats:
        """The file of these parameters and random numbers, in units and codes; may hold numbers beyond any bound."""
        n = len(noise)
        known = np.ones((n, 1))
        out = np.empty((n, len(self.columns)))
        at = place = 0
        with np.errstate(all="ignore"):
            for j, column in enumerate(self.columns):
                wide = known.shape[1]
                if column.is_number:
                    mean = known @ theta[at : at + wide]
                    value = mean + np.exp(theta[at + wide]) * noise[:, place]
                    at, place = at + wide + 1, place + 1
                    out[:, j] = value
                    if column.has_gaps:
                        gone = known @ theta[at : at + wide] + noise[:, place] > 0
                        at, place = at + wide, place + 1
                        # What is no number because it passed all bounds is no gap.
                        out[:, j] = np.where(gone, np.nan, np.where(np.isnan(value), np.inf, value))
                        known = np.column_stack([known, np.where(gone, 0.0, value), gone])
                    else:
                        known = np.column_stack([known, value])
                    continue
                size = column.attribute.size
                slopes = theta[at : at + wide * (size - 1)].reshape(wide, size - 1)
                logits = np.column_stack([np.zeros(n), known @ slopes]) + noise[:, place : place + size]
                codes = np.argmax(logits, axis=1)
                out[:, j] = codes
                at, place = at + wide * (size - 1), place + size
                known = np.column_stack([known, codes[:, None] == np.arange(1, size)])
        return out

    def split(self, units: Floats) -> Floats:
        """Columns that trees split: numbers as they are, their gaps, one for every level of a category."""
        parts: list[Floats] = []
        for j, column in enumerate(self.columns):
            own = units[:, j]
            if not column.is_number:
                parts += [np.asarray(own == code, dtype=np.float64) for code in range(column.attribute.size)]
            elif column.has_gaps:
                gone = np.isnan(own)
                parts += [np.where(gone, 0.0, own), gone.astype(np.float64)]
            else:
                parts.append(own)
        return np.column_stack(parts)

    def frame(self, units: Floats) -> pl.DataFrame:
        """The file for people."""
        made = []
        for j, column in enumerate(self.columns):
            if column.is_number:
                # The last code of a number is a gap.
                codes: Integers = np.isnan(units[:, j]).astype(np.int64)
                made.append(column.attribute.decode(codes, column.center + column.spread * units[:, j]))
            else:
                made.append(column.attribute.decode(units[:, j].astype(np.int64), None))
        return pl.DataFrame(made)


# Draw parameters with chances proportional to prior times exp(-T u): exactly among candidates, or by particles.
#
# Among candidates that the prior gave the draw is exact, and the guarantee holds for what is done. Sequential Monte
# Carlo starts from the prior as well and never from a fit, but its law only approaches the one that the proof speaks
# of.
Quality = Callable[[Floats], float]

_GRID = 2**40  # qualities are rounded to these parts, and the sensitivity grows by more than that can matter
_ESS = 0.5
_MOVES = 4
_MOST_STEPS = 200
_RUNGS = 7
SURE_ODDS = 5.0


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How the draw went; it was read off the data and is not for publication.

    Attributes
    ----------
    log_odds
        Logarithm of the odds of the mode against the tail of the prior; below 5 most draws are draws from the prior.
    best, mean
        The smallest and the mean quality u among the particles.
    acceptance
        Share of moves that were taken; None where the draw is exact.
    steps
        Temperatures passed; None where the draw is exact.
    r_hat
        Agreement of independent runs on u, 1 where they agree; None where the draw is exact.
    """

    log_odds: float
    best: float
    mean: float
    acceptance: float | None = None
    steps: int | None = None
    r_hat: float | None = None


def exactly(
    qualities: Floats,
    candidates: Floats,
    *,
    epsilon: Fraction,
    sensitivity: float,
    draws: int,
    words: dp.Words,
) -> Floats:
    """Draw candidates by the exponential mechanism; ``epsilon`` is the budget of each draw."""
    scores = [Fraction(-round(float(quality) * _GRID), _GRID) for quality in qualities]
    # The quality in double precision is off by less than 2^-44, and rounded by 2^-41; both files may be.
    reach = Fraction(sensitivity) + Fraction(1, 2**38)
    places = [dp.chosen_privately(scores, epsilon, reach, words) for _ in range(draws)]
    return candidates[places]


def chances(qualities: Floats, epsilon: float, sensitivity: float) -> Floats:
    """The chances of candidates under the exponential mechanism; small qualities are good.

    Examples
    --------
    >>> chances(np.array([0.01315789, 0.04411765, 0.10714286, 0.25]), 1.0, 0.1).round(6).tolist()
    [0.358728, 0.307282, 0.224223, 0.109766]
    """
    logs = -epsilon * np.asarray(qualities) / (2 * sensitivity)
    return np.asarray(softmax(logs))


@dataclass(frozen=True, eq=False)
class Particles:
    """Parameters with their qualities at the last temperature."""

    thetas: Floats
    qualities: Floats
    acceptance: float
    steps: int


def by_particles(
    quality: Quality, dim: int, *, width: float, temperature: float, many: int, rng: np.random.Generator
) -> Particles:
    """Carry draws from the prior to the density at the temperature, in steps that keep half of them alive."""
    thetas = width * rng.standard_normal((many, dim))
    qualities = np.array([quality(theta) for theta in thetas])
    at, taken, tried, steps = 0.0, 0, 0, 0
    while at < temperature and steps < _MOST_STEPS:
        step = _next(qualities, temperature - at)
        at, steps = at + step, steps + 1
        weights = np.exp(-step * (qualities - qualities.min()))
        # One random number for all: as many copies of each as its weight says, give or take one.
        ends = np.cumsum(weights / weights.sum())
        ends[-1] = 1.0
        kept = np.searchsorted(ends, (np.arange(many) + rng.random()) / many)
        thetas, qualities = thetas[kept], qualities[kept]
        spread = np.linalg.cholesky(np.cov(thetas, rowvar=False).reshape(dim, dim) + 1e-12 * np.eye(dim))
        scale = 2.38 / math.sqrt(dim)
        for _ in range(_MOVES):
            moved = thetas + scale * (rng.standard_normal((many, dim)) @ spread.T)
            found = np.array([quality(theta) for theta in moved])
            logs = -at * (found - qualities) - ((moved**2).sum(1) - (thetas**2).sum(1)) / (2 * width**2)
            yes = np.log(rng.random(many)) < logs
            thetas[yes], qualities[yes] = moved[yes], found[yes]
            taken, tried = taken + int(yes.sum()), tried + many
            scale *= 1.3 if yes.mean() > 0.3 else 0.6
    return Particles(thetas, qualities, taken / max(tried, 1), steps)


def by_walking(
    quality: Quality, dim: int, *, width: float, temperature: float, many: int, rng: np.random.Generator
) -> Particles:
    """Walk at a ladder of temperatures from that of the prior on, and let neighbors change places now and then.

    Every walk starts from the prior and takes ``many`` steps, whatever the records are; the later half of the one at
    the last temperature is kept. A state keeps its quality until it moves: quality comes from random numbers that are
    the same for all states, so that nothing is estimated anew.
    """
    ladder = np.concatenate([[0.0], temperature * np.geomspace(1 / 2**_RUNGS, 1.0, _RUNGS)])
    thetas = width * rng.standard_normal((len(ladder), dim))
    qualities = np.array([quality(theta) for theta in thetas])
    scales = np.full(len(ladder), width * 2.38 / math.sqrt(dim))
    kept, found, taken, tried = [], [], 0, 0
    for step in range(many):
        moved = thetas + scales[:, None] * rng.standard_normal(thetas.shape)
        moved[0] = width * rng.standard_normal(dim)
        new = np.array([quality(theta) for theta in moved])
        logs = -ladder * (new - qualities) - ((moved**2).sum(1) - (thetas**2).sum(1)) / (2 * width**2)
        logs[0] = 0.0
        yes = np.log(rng.random(len(ladder))) < logs
        thetas[yes], qualities[yes] = moved[yes], new[yes]
        if step < many // 2:
            # Later on the width of a step may not depend on the way so far.
            scales *= np.where(yes, 1.1, 0.96)
        else:
            taken, tried = taken + int(yes[-1]), tried + 1
        at = int(rng.integers(len(ladder) - 1))
        change = (ladder[at + 1] - ladder[at]) * (qualities[at + 1] - qualities[at])
        if np.log(rng.random()) < change:
            thetas[[at, at + 1]], qualities[[at, at + 1]] = thetas[[at + 1, at]], qualities[[at + 1, at]]
        if step >= many // 2:
            kept.append(thetas[-1].copy())
            found.append(float(qualities[-1]))
    return Particles(np.array(kept), np.array(found), taken / max(tried, 1), many)


def _next(qualities: Floats, left: float) -> float:
    """The largest step after which half of the particles still count."""
    away = qualities - qualities.min()

    def alive(step: float) -> float:
        weights = np.exp(-step * away)
        return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))

    if alive(left) >= _ESS:
        return left
    low, high = 0.0, left
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if alive(middle) >= _ESS else (low, middle)
    return low


def split_r_hat(runs: list[Floats]) -> float:
    """How far independent runs disagree about a quantity; 1 where they agree (Gelman and Rubin 1992)."""
    halves = [half for run in runs for half in np.array_split(run, 2)]
    size = min(len(half) for half in halves)
    made = np.array([half[:size] for half in halves])
    within = float(made.var(axis=1, ddof=1).mean())
    between = size * float(made.mean(axis=1).var(ddof=1))
    if within <= 0:
        return 1.0 if between <= 0 else math.inf
    return math.sqrt(((size - 1) * within + between) / (size * within))


def log_odds(temperature: float, best: float, widths: Floats, prior: float) -> float:
    """The odds of the mode against the tail, as a logarithm: height of the one, volume of the other.

    Examples
    --------
    >>> round(log_odds(62.5, 0.0023, np.array([0.1, 0.1, 0.05]), 300.0), 2)
    -9.23
    """
    shares = np.minimum(np.maximum(widths, 1e-300) / prior, 1.0)
    return temperature * (0.25 - best) + float(np.log(shares).sum())
