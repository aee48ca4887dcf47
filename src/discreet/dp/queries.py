"""What may be said about a file under a privacy budget? Counts, totals, means, spreads and quantiles.

Bounds of numbers and levels of categories are public knowledge that the user states; they are never read off the data.
Where a column says whose the records are (the roles ``person`` or ``contributor``), a person is held to a few cells and
records, and the guarantee is about persons. Every answer says how far it may be off because of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, TypedDict

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Between, Public
from discreet.core.errors import ParameterError, need_known
from discreet.core.guarantees import SEEDED, settled, stands
from discreet.core.parameters import checked
from discreet.core.randomness import generator
from discreet.core.results import Measure
from discreet.core.value_gate import name_in_documents
from discreet.core.wording import shown
from discreet.dp.calibration import checked_epsilon, noise_rate, rational_epsilon
from discreet.dp.costs import Spend, refuse_seeded
from discreet.dp.entropy import Words, chosen_privately
from discreet.dp.ledger import Ledger
from discreet.dp.mechanisms import Noisy, with_laplace_noise, words_of
from discreet.dp.sensitivity import Bounded, Range, bounded_cells, check_number, unit_of
from discreet.engine import collect, like, scan
from discreet.engine.frames import remembered
from discreet.microdata import Microdata


@checked
def count(
    data: Microdata,
    *,
    epsilon: float,
    max_records: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How many records are there, about?

    Parameters
    ----------
    data
        The file. With a role ``person``, at most ``max_records`` records of each count, and records that do not say
        whose they are do not.
    epsilon
        The budget of this answer.
    max_records
        How many records of one person count at most.
    ledger
        The budget of the data source: the answer is entered before noise is drawn, or refused.
    purpose
        What for; it goes into the ledger.
    seed
        For tests and teaching. Whoever knows it can take the noise off, so nothing is claimed.

    Returns
    -------
    Measure
        ``value`` is the noisy count, ``figures["margin"]`` how far it may be off (95 %).

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30, 40, 50]}))
    >>> count(people, epsilon=1.0).guarantee
    '1-differential privacy against adding or removing one record.'
    """
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose or "count"), seed)
    found = ask.held(None, max_records)
    ask.enter("count", found.records, 1, moved=[found.records])
    noisy = ask.noise(found.cells["count"].to_numpy(), found.records, 1, "count")
    value = max(int(noisy.value[0]), 0)
    return ask.answer(
        "private_count",
        value,
        noisy.margin(),
        f"About {value:,} records, give or take {shown(round(noisy.margin(), 1))}.",
    )


@checked
def total(
    data: Microdata,
    column: str,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    max_records: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """What do the values of a column add up to, about?

    Parameters
    ----------
    data, epsilon, max_records, ledger, purpose, seed
        As in `count`. Records without a value are left out.
    column
        A column of numbers.
    lower, upper
        Public bounds; values beyond them are held at them. The noise grows with the larger of the two.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30, 40, 50]}))
    >>> total(people, "age", lower=0, upper=100, epsilon=1.0, seed=1).figures["margin"] > 100
    True
    """
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose or f"total of {column}"), seed)
    whole = _Plain(column, lower, upper)
    found = ask.held(whole, max_records)
    moved = whole.most * found.records
    ask.enter("total", moved * whole.step, 1, moved=[moved])
    noisy = ask.noise(found.cells["sum"].to_numpy(), moved, 1, "sum")
    value = float(noisy.value[0]) * whole.step
    margin = noisy.margin() * whole.step
    return ask.answer(
        "private_total",
        value,
        margin,
        f"The values of '{column}' add up to about {shown(value)}, give or take {shown(margin)}.",
    )


@checked
def mean(
    data: Microdata,
    column: str,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    max_records: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """What is the mean of a column, about?

    Half of the budget counts, half adds up how far values are from the middle of the bounds.

    Parameters
    ----------
    data, column, lower, upper, epsilon, max_records, ledger, purpose, seed
        As in `total`.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30.0, 40.0, 50.0] * 1000}))
    >>> abs(mean(people, "age", lower=0, upper=100, epsilon=1.0, seed=1).value - 40) < 1
    True
    """
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose or f"mean of {column}"), seed)
    number = Range(column, lower, upper)
    found = ask.held(number, max_records)
    moved = number.most * found.records
    ask.enter("mean", moved * number.step, 2, moved=[found.records, moved])
    people = ask.noise(found.cells["count"].to_numpy(), found.records, 2, "count")
    steps = ask.noise(found.cells["sum"].to_numpy(), moved, 2, "sum")
    many = max(float(people.value[0]), 1.0)
    value = min(max(number.middle + float(steps.value[0]) * number.step / many, lower), upper)
    # The count is off as well; how much that moves the mean grows with its distance from the middle.
    margin = math.hypot(steps.margin() * number.step / many, people.margin() * (value - number.middle) / many)
    return ask.answer(
        "private_mean",
        value,
        margin,
        f"The mean of '{column}' is about {shown(value)}, give or take {shown(margin)}.",
    )


@checked
def variance(
    data: Microdata,
    column: str,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    max_records: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How far do the values of a column spread, about?

    A third of the budget each for the count, the sum and the sum of squares.

    Parameters
    ----------
    data, column, lower, upper, epsilon, max_records, ledger, purpose, seed
        As in `total`.

    Returns
    -------
    Measure
        ``value`` is the variance, ``figures["standard_deviation"]`` its root.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [30.0, 50.0] * 5000}))
    >>> spread = variance(people, "age", lower=0, upper=100, epsilon=1.0, seed=1)
    >>> abs(spread.figures["standard_deviation"] - 10) < 1
    True
    """
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose or f"variance of {column}"), seed)
    number = _Squared(column, lower, upper)
    first = Range(column, lower, upper)
    words = ask.words("held")
    found = bounded_cells(data, (), first, max_records=max_records, max_groups=1, words=words)
    squares = bounded_cells(data, (), number, max_records=max_records, max_groups=1, words=words)
    moved, squared_moved = first.most * found.records, number.most * found.records
    ask.enter("variance", moved * first.step, 3, moved=[found.records, moved, squared_moved])
    people = ask.noise(found.cells["count"].to_numpy(), found.records, 3, "count")
    steps = ask.noise(found.cells["sum"].to_numpy(), moved, 3, "sum")
    squared = ask.noise(squares.cells["sum"].to_numpy(), squared_moved, 3, "squares")
    many = max(float(people.value[0]), 2.0)
    center = float(steps.value[0]) * first.step / many
    value = float(squared.value[0]) * number.step / many - center * center
    value = min(max(value, 0.0), ((upper - lower) / 2) ** 2)
    margin = squared.margin() * number.step / many + 2 * abs(center) * steps.margin() * first.step / many
    return ask.answer(
        "private_variance",
        value,
        margin,
        f"The variance of '{column}' is about {shown(value)}, give or take {shown(margin)} (standard deviation "
        f"{shown(math.sqrt(value))}).",
        {"standard_deviation": math.sqrt(value)},
    )


@checked
def quantiles(
    data: Microdata,
    column: str,
    probabilities: Sequence[float] = (0.25, 0.5, 0.75),
    *,
    lower: float,
    upper: float,
    epsilon: float,
    points: Annotated[int, Between(2, 100000)] = 1000,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """Below which values do these shares of the records lie, about?

    Each quantile is chosen by the exponential mechanism among equally spaced candidates between the bounds; the budget
    is divided equally, and the answers are put in order.

    Parameters
    ----------
    data, column, lower, upper, epsilon, ledger, purpose, seed
        As in `total`. Every record is a unit of its own: a file with a role ``person`` is refused.
    probabilities
        Shares between 0 and 1.
    points
        How many candidates.

    Returns
    -------
    Measure
        ``detail["quantiles"]`` has a row a share.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [float(i % 100) for i in range(10_000)]}))
    >>> found = quantiles(people, "age", [0.5], lower=0, upper=100, epsilon=1.0, seed=1)
    >>> abs(found.value - 50) < 2
    True
    """
    ask = Ask(data, Spend(epsilon, ledger=ledger, purpose=purpose or f"quantiles of {column}"), seed)
    if ask.spend.unit != "record":
        raise ParameterError(
            "Quantiles of a file with several records a person are not offered. Take one record a person first."
        )
    shares = [probabilities] if isinstance(probabilities, int | float) else list(probabilities)
    if not shares or any(not 0 <= share <= 1 for share in shares):
        raise ParameterError("probabilities must be shares between 0 and 1.")
    number = Range(column, lower, upper)
    candidates = np.linspace(lower, upper, points)
    below = _counts_below(data, number, candidates)
    many = int(below[-1])
    ask.enter("quantiles", 1.0, len(shares), mechanism="exponential")
    found = []
    for place, share in enumerate(shares):
        exact = Fraction(share).limit_denominator(10**6)
        scores = [-abs(int(b) * (1 - exact) - (many - int(b)) * exact) for b in below[:-1]]
        chosen = chosen_privately(
            scores, rational_epsilon(epsilon, len(shares)), 1, ask.words(f"quantile {place}")
        )
        found.append(float(candidates[chosen]))
    order = np.argsort(shares, kind="stable")
    values = np.empty(len(shares))
    values[order] = np.sort(np.asarray(found))
    middle = values[int(np.argmin(np.abs(np.asarray(shares) - 0.5)))]
    told = ", ".join(
        f"{100 * share:g} % below {shown(float(value))}" for share, value in zip(shares, values, strict=True)
    )
    answer = ask.answer("private_quantiles", float(middle), None, f"Of '{column}', about {told}.")
    return replace(
        answer, detail={"quantiles": like(data, pl.DataFrame({"share": shares, "value": values.tolist()}))}
    )


class _Plain(Range):
    """A column whose values themselves are added up: nothing is taken off."""

    @property
    def middle(self) -> float:
        return 0.0


class _Squared(Range):
    """The squares of how far a column is from the middle of its bounds."""

    @property
    def step(self) -> float:
        reach = max(self.upper - self.middle, self.middle - self.lower)
        return math.ldexp(1.0, math.frexp(reach * reach)[1] - 16)

    @property
    def middle(self) -> float:
        return Range(self.column, self.lower, self.upper).middle

    @property
    def most(self) -> int:
        reach = max(self.upper - self.middle, self.middle - self.lower)
        return math.ceil(reach * reach / self.step)

    def steps(self) -> Any:
        gap = nw.col("x").cast(nw.Float64).clip(self.lower, self.upper) - self.middle
        return (gap * gap / self.step).round().clip(0, self.most).cast(nw.Int64)


def _counts_below(data: Microdata, number: Range, candidates: Floats) -> Integers:
    """How many records lie below each candidate, and at the end how many there are; counted where the data is."""
    need_known([number.column], data.columns)
    check_number(data, number.column)
    return remembered(
        data, "private ranks", (number, len(candidates)), lambda: _ranks(data, number, candidates)
    )


def _ranks(data: Microdata, number: Range, candidates: Floats) -> Integers:
    width = (number.upper - number.lower) / (len(candidates) - 1)
    held = nw.col("x").cast(nw.Float64).clip(number.lower, number.upper)
    place = ((held - number.lower) / width).floor().cast(nw.Int64)
    rows = scan(data, {"x": number.column}).filter(~nw.col("x").is_null()).select(place.alias("at"))
    found = collect(rows.group_by("at").agg(nw.len().cast(nw.Int64).alias("count")))
    counts = np.zeros(len(candidates), dtype=np.int64)
    np.add.at(counts, np.clip(found["at"].to_numpy(), 0, len(candidates) - 1), found["count"].to_numpy())
    return np.concatenate([[0], np.cumsum(counts)])


# One question under a budget: what it may spend, where its random bits come from, how its answer is worded.


class AnswerSettings(TypedDict, total=False):
    """The settings of an answer that are no numbers."""

    unit: Annotated[str, Public()]
    purpose: Annotated[str, Public()]
    mechanism: Annotated[str, Public()]
    adjacency: Annotated[str, Public()]
    kernel: Annotated[str, Public()]


name_in_documents(
    "measure",
    dict.fromkeys(
        (
            "private_count", "private_total", "private_mean", "private_variance", "private_quantiles", "private_table",
            "private_linear_regression", "private_quantile_regression",
        ),
        AnswerSettings,
    ),
)  # fmt: skip


class Ask:
    """One question: its budget, where its random bits come from, and how its answer is worded."""

    def __init__(self, data: Microdata, spend: Spend, seed: int | None) -> None:
        checked_epsilon(spend.epsilon)
        refuse_seeded(spend.ledger, seed)
        self.data, self.seed = data, seed
        self.spend = replace(spend, unit=unit_of(data))

    def words(self, name: str) -> Words:
        """Open a source of bits: the operating system, unless the user gave a seed."""
        return words_of(self.seed, name)

    def held(self, number: Range | None, max_records: int) -> Bounded:
        """Count all records, and add up a number, with a bound on what one unit contributes."""
        return bounded_cells(
            self.data, (), number, max_records=max_records, max_groups=1, words=self.words("held")
        )

    def enter(
        self,
        query: str,
        sensitivity: float,
        parts: int,
        *,
        moved: Sequence[int] = (),
        mechanism: str = "laplace",
    ) -> None:
        """Enter the whole price before any noise is drawn, for answers that one unit can move by so many steps each."""
        share = float(rational_epsilon(self.spend.epsilon, parts))
        for steps in moved:
            noise_rate(share, steps)
        self.spend.enter(
            self.spend.cost(f"{query}, {mechanism}", sensitivity=sensitivity), seed=self.seed, data=self.data
        )

    def unweighted(self) -> list[str]:
        """Say that survey weights do not count, where the file has some: one record would move an answer by its own."""
        weight = self.data.roles.weight
        said = f"Weights do not count here, also not those of '{weight}': every record is one."
        return [said] if weight else []

    def noise(self, values: Integers, moved: int, parts: int, name: str) -> Noisy:
        """Add noise to whole numbers that one unit can move by so many, for one of several shares of the budget."""
        seed = None if self.seed is None else int(generator(self.seed, "dp", name).integers(2**62))
        share = Spend(float(rational_epsilon(self.spend.epsilon, parts)))
        return with_laplace_noise(values.astype(np.int64), share, sensitivity=moved, seed=seed)

    def answer(
        self,
        name: str,
        value: float | int,
        margin: float | None,
        meaning: str,
        more: Mapping[str, float] | None = None,
    ) -> Measure:
        """Word the answer and what is claimed of it."""
        spend = self.spend
        guarantee, why = settled(spend.claim, "", seeded=self.seed is not None)
        figures: dict[str, Any] = {"epsilon": float(spend.epsilon), **(more or {})}
        if spend.delta:
            figures["delta"] = spend.delta
        if margin is not None:
            figures["margin"] = margin
        caveats = [*self.unweighted(), *([f"No guarantee: {why or SEEDED}"] if guarantee is None else [])]
        return Measure(
            name,
            value,
            figures,
            meaning,
            caveats=caveats,
            parameters={
                "epsilon": spend.epsilon,
                "delta": spend.delta,
                "unit": spend.unit,
                "purpose": spend.purpose,
            },
            guarantee=guarantee,
            private=stands(spend.claim, seeded=self.seed is not None),
        )
