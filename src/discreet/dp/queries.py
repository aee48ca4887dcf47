"""What may be said about a file under a privacy budget? Counts, totals, means, spreads, quantiles and tables.

Bounds of numbers and levels of categories are public knowledge that the user states; they are never read off the data.
Where a column says whose the records are (the roles ``person`` or ``contributor``), a person is held to a few cells and
records, and the guarantee is about persons. Every answer says how far it may be off because of the noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.dp.budget import checked_epsilon, rational_epsilon
from discreet.dp.choosing import chosen_privately
from discreet.dp.contributions import Bounded, Range, bounded_cells, unit_of
from discreet.dp.costs import Cost
from discreet.dp.entropy import Words, os_words, seeded_words
from discreet.dp.ledger import Ledger
from discreet.dp.mechanisms import Noisy, laplace
from discreet.engine import collect, like, scan
from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.guarantees import SEEDED, DifferentialPrivacy, settled
from discreet.microdata import Microdata
from discreet.randomness import generator
from discreet.results import Measure
from discreet.wording import shown

Levels = Sequence[Any]
_MOST_CELLS = 10_000_000


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
        The file. With a role ``person``, at most ``max_records`` records of each count.
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
    ask = _Ask(data, epsilon, ledger, purpose or "count", seed)
    found = bounded_cells(data, (), None, max_records=max_records, max_groups=1, words=ask.words("held"))
    ask.enter("count", found.records, 1)
    noisy = ask.noise(found.cells["count"].to_numpy(), found.records, 1, "count")
    value = max(int(noisy.value[0]), 0)
    return ask.answer(
        "private_count",
        value,
        noisy.margin(),
        f"About {value:,} records, give or take {shown(round(noisy.margin(), 1))}.",
    )


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
    ask = _Ask(data, epsilon, ledger, purpose or f"total of {column}", seed)
    whole = _Plain(column, lower, upper)
    found = bounded_cells(data, (), whole, max_records=max_records, max_groups=1, words=ask.words("held"))
    ask.enter("total", whole.most * found.records * whole.step, 1)
    noisy = ask.noise(found.cells["sum"].to_numpy(), whole.most * found.records, 1, "sum")
    value = float(noisy.value[0]) * whole.step
    margin = noisy.margin() * whole.step
    return ask.answer(
        "private_total",
        value,
        margin,
        f"The values of '{column}' add up to about {shown(value)}, give or take {shown(margin)}.",
    )


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
    ask = _Ask(data, epsilon, ledger, purpose or f"mean of {column}", seed)
    number = Range(column, lower, upper)
    found = bounded_cells(data, (), number, max_records=max_records, max_groups=1, words=ask.words("held"))
    ask.enter("mean", number.most * found.records * number.step, 2)
    people = ask.noise(found.cells["count"].to_numpy(), found.records, 2, "count")
    steps = ask.noise(found.cells["sum"].to_numpy(), number.most * found.records, 2, "sum")
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
    ask = _Ask(data, epsilon, ledger, purpose or f"variance of {column}", seed)
    number = _Squared(column, lower, upper)
    first = Range(column, lower, upper)
    words = ask.words("held")
    found = bounded_cells(data, (), first, max_records=max_records, max_groups=1, words=words)
    squares = bounded_cells(data, (), number, max_records=max_records, max_groups=1, words=words)
    ask.enter("variance", first.most * found.records * first.step, 3)
    people = ask.noise(found.cells["count"].to_numpy(), found.records, 3, "count")
    steps = ask.noise(found.cells["sum"].to_numpy(), first.most * found.records, 3, "sum")
    squared = ask.noise(squares.cells["sum"].to_numpy(), number.most * found.records, 3, "squares")
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


def quantiles(
    data: Microdata,
    column: str,
    probabilities: Sequence[float] = (0.25, 0.5, 0.75),
    *,
    lower: float,
    upper: float,
    epsilon: float,
    points: int = 1000,
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
    ask = _Ask(data, epsilon, ledger, purpose or f"quantiles of {column}", seed)
    if ask.unit != "record":
        raise ParameterError(
            "Quantiles of a file with several records a person are not offered. Take one record a person first."
        )
    shares = [probabilities] if isinstance(probabilities, int | float) else list(probabilities)
    if not shares or any(not 0 <= share <= 1 for share in shares):
        raise ParameterError("probabilities must be shares between 0 and 1.")
    if not 2 <= points <= 100_000:
        raise ParameterError("points must be a whole number from 2 to 100,000.")
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
            scores, rational_epsilon(ask.epsilon, len(shares)), 1, ask.words(f"quantile {place}")
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


def table(
    data: Microdata,
    by: str | Sequence[str],
    *,
    epsilon: float,
    levels: Mapping[str, Levels] | None = None,
    column: str | None = None,
    lower: float | None = None,
    upper: float | None = None,
    delta: float = 0.0,
    max_records: int = 1,
    max_groups: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How many records, and which total and mean of a column, has each cell of a table, about?

    Parameters
    ----------
    data, epsilon, ledger, purpose, seed
        As in `count`.
    by
        The columns that make the cells.
    levels
        The public levels of each column: every cell of their cross is published, also where it is empty, and records
        with another value are left out. Without levels cells are published only where the noisy count passes a
        threshold that nobody's record alone could pass, except with chance ``delta``.
    column, lower, upper
        A column to add up, with its public bounds; half of the budget then goes to the counts.
    delta
        The chance of failure that cells without public levels cost.
    max_records, max_groups
        With a role ``person``: how many records of a person count in a cell, and in how many cells a person counts.

    Returns
    -------
    Measure
        ``detail["table"]`` has a row a cell: ``count`` and, with a column, ``total`` and ``mean``; ``value`` is the
        number of cells.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f"] * 600 + ["m"] * 400}))
    >>> found = table(people, "sex", levels={"sex": ["f", "m", "x"]}, epsilon=1.0, seed=1)
    >>> found.detail["table"].height
    3
    """
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise ParameterError("by must name at least one column.")
    ask = _Ask(data, epsilon, ledger, purpose or f"table by {', '.join(columns)}", seed)
    number = _bounds(column, lower, upper)
    cells = None if levels is None else _cross(data, columns, levels)
    if (cells is None) != (delta > 0):
        raise ParameterError(
            "Cells without public levels need a delta above 0, and those with levels none: give levels or delta."
        )
    found = bounded_cells(
        data, columns, number, max_records=max_records, max_groups=max_groups, words=ask.words("held")
    )
    parts = 1 if number is None else 2
    moved = found.records * found.groups
    ask.enter("table", float(moved), parts, delta=delta)
    cells = found.cells if cells is None else _filled(found, cells)
    counts = ask.noise(cells["count"].to_numpy(), moved, parts, "count")
    shown_cells = cells.with_columns(pl.Series("count", counts.value))
    if number is not None:
        sums = ask.noise(cells["sum"].to_numpy(), number.most * moved, parts, "sum")
        shown_cells = _with_number(shown_cells, sums.value, number)
    if delta > 0:
        limit = _threshold(found, ask.epsilon / parts, delta)
        shown_cells = shown_cells.filter(pl.col("count") >= limit)
    shown_cells = shown_cells.with_columns(pl.col("count").clip(lower_bound=0))
    names = {f"k{i}": name for i, name in enumerate(columns)}
    out = shown_cells.select(
        *names, *(name for name in ("count", "total", "mean") if name in shown_cells.columns)
    )
    out = out.rename(names).sort(columns, nulls_last=True)
    margin = counts.margin()
    answer = ask.answer(
        "private_table",
        out.height,
        margin,
        f"{out.height:,} cells; each count is right to about ± {shown(round(margin, 1))}.",
        delta=delta,
    )
    return replace(answer, detail={"table": like(data, out)})


def histogram(
    data: Microdata,
    column: str,
    *,
    epsilon: float,
    levels: Levels,
    max_records: int = 1,
    max_groups: int = 1,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """How many records have each of these levels, about?

    Parameters
    ----------
    data, epsilon, max_records, max_groups, ledger, purpose, seed
        As in `table`.
    column
        The column.
    levels
        Its public levels; records with another value are left out.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f"] * 600 + ["m"] * 400}))
    >>> histogram(people, "sex", levels=["f", "m"], epsilon=1.0, seed=1).value
    2
    """
    return table(
        data,
        column,
        levels={column: levels},
        epsilon=epsilon,
        max_records=max_records,
        max_groups=max_groups,
        ledger=ledger,
        purpose=purpose,
        seed=seed,
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
        import narwhals as nw

        gap = nw.col("x").cast(nw.Float64).clip(self.lower, self.upper) - self.middle
        return (gap * gap / self.step).round().clip(0, self.most).cast(nw.Int64)


class _Ask:
    """One question: its budget, where its random bits come from, and how its answer is worded."""

    def __init__(
        self, data: Microdata, epsilon: float, ledger: Ledger | None, purpose: str, seed: int | None
    ) -> None:
        checked_epsilon(epsilon)
        if ledger is not None and seed is not None:
            raise ParameterError(
                "A ledger takes releases with a guarantee, and a seed voids it. Leave out one of the two."
            )
        self.data, self.epsilon, self.ledger, self.purpose, self.seed = data, epsilon, ledger, purpose, seed
        self.unit = unit_of(data)
        self.delta = 0.0

    def words(self, name: str) -> Words:
        return os_words if self.seed is None else seeded_words(generator(self.seed, "dp", name))

    def enter(
        self, query: str, sensitivity: float, parts: int, *, delta: float = 0.0, mechanism: str = "laplace"
    ) -> None:
        """Enter the whole price before any noise is drawn."""
        rational_epsilon(self.epsilon, parts)
        self.delta = delta
        if self.ledger is not None:
            self.ledger.spend(
                Cost(
                    f"{query}, {mechanism}",
                    "approximate" if delta else "pure",
                    epsilon=float(self.epsilon),
                    delta=delta,
                    unit=self.unit,  # type: ignore[arg-type]
                    sensitivity=sensitivity,
                    purpose=self.purpose,
                )
            )

    def noise(self, values: npt.NDArray[np.int64], moved: int, parts: int, name: str) -> Noisy:
        """Add noise to whole numbers that one unit can move by so many, for one of several shares of the budget."""
        seed = None if self.seed is None else int(generator(self.seed, "dp", name).integers(2**62))
        share = float(rational_epsilon(self.epsilon, parts))
        return laplace(values.astype(np.int64), sensitivity=moved, epsilon=share, seed=seed)

    def answer(
        self,
        name: str,
        value: float | int,
        margin: float | None,
        meaning: str,
        more: Mapping[str, float] | None = None,
        *,
        delta: float = 0.0,
    ) -> Measure:
        claim = DifferentialPrivacy(self.epsilon, delta, against=f"adding or removing one {self.unit}")
        guarantee, why = settled(claim, "", seeded=self.seed is not None)
        figures: dict[str, Any] = {"epsilon": float(self.epsilon), **(more or {})}
        if delta:
            figures["delta"] = delta
        if margin is not None:
            figures["margin"] = margin
        caveats = [f"No guarantee: {why or SEEDED}"] if guarantee is None else []
        return Measure(
            name,
            value,
            figures,
            meaning,
            caveats=caveats,
            parameters={"epsilon": self.epsilon, "delta": delta, "unit": self.unit, "purpose": self.purpose},
            guarantee=guarantee,
        )


def _bounds(column: str | None, lower: float | None, upper: float | None) -> Range | None:
    if column is None:
        if lower is not None or upper is not None:
            raise ParameterError("lower and upper are the bounds of column, which is not given.")
        return None
    if lower is None or upper is None:
        raise ParameterError(
            f"Column '{column}' needs lower and upper: public bounds that are not read off the data."
        )
    return Range(column, lower, upper)


def _cross(data: Microdata, columns: Sequence[str], levels: Mapping[str, Levels]) -> pl.DataFrame:
    """Every combination of public levels, in the types of the data."""
    for name in levels:
        if name not in columns:
            raise ColumnError(unknown_name(name, columns, what="column of the table"))
    lists = []
    for name in columns:
        if name not in levels:
            raise ParameterError(
                f"levels must name the public levels of column '{name}', or be left out entirely."
            )
        own = list(dict.fromkeys(levels[name]))
        if not own:
            raise ParameterError(f"levels of column '{name}' must not be empty.")
        lists.append(own)
    size = math.prod(len(own) for own in lists)
    if size > _MOST_CELLS:
        raise ParameterError(
            f"The table would have {size:,} cells, more than {_MOST_CELLS:,}. Use fewer levels."
        )
    rows = list(itertools.product(*lists))
    return pl.DataFrame({f"k{i}": [row[i] for row in rows] for i in range(len(columns))})


def _filled(found: Bounded, cells: pl.DataFrame) -> pl.DataFrame:
    """The public cells with what was found in them; a cell without records has 0."""
    keys = cells.columns
    kinds = {key: found.cells.schema[key] for key in keys}
    told = found.cells.with_columns(
        pl.col(key).cast(pl.String) for key in keys if kinds[key] in (pl.Categorical, pl.Enum)
    )
    try:
        cells = cells.with_columns(pl.col(key).cast(told.schema[key]) for key in keys)
    except pl.exceptions.PolarsError as error:
        raise ParameterError(
            "levels do not have the type of their column: texts for texts, numbers for numbers."
        ) from error
    joined = cells.join(told, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(
        pl.col(name).fill_null(0) for name in ("count", "sum") if name in joined.columns
    )


def _with_number(cells: pl.DataFrame, sums: npt.NDArray[np.int64], number: Range) -> pl.DataFrame:
    counts = cells["count"].to_numpy().astype(np.float64)
    steps = sums.astype(np.float64) * number.step
    means = np.clip(number.middle + steps / np.maximum(counts, 1.0), number.lower, number.upper)
    return cells.with_columns(
        pl.Series("total", steps + counts * number.middle),
        pl.Series("mean", np.where(counts >= 1, means, np.nan)).fill_nan(None),
    )


def _threshold(found: Bounded, epsilon: float, delta: float) -> int:
    """The smallest noisy count that a cell of one unit alone passes with chance delta at most, over all its cells."""
    rate = epsilon / (found.records * found.groups)
    # The tail of discrete Laplace noise from t on is exp(-rate t) / (1 + exp(-rate)).
    reach = (math.log(found.groups / delta) - math.log1p(math.exp(-rate))) / rate
    return found.records + max(math.ceil(reach * (1 + 1e-9)), 1)


def _counts_below(
    data: Microdata, number: Range, candidates: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """How many records lie below each candidate, and at the end how many there are; counted where the data is."""
    import narwhals as nw

    if number.column not in data.columns:
        raise ColumnError(unknown_name(number.column, data.columns))
    if not data.schema[number.column].is_numeric():
        raise ColumnError(f"Column '{number.column}' is no number. Name a column of numbers.")
    width = (number.upper - number.lower) / (len(candidates) - 1)
    held = nw.col("x").cast(nw.Float64).clip(number.lower, number.upper)
    place = ((held - number.lower) / width).floor().cast(nw.Int64)
    rows = scan(data, {"x": number.column}).filter(~nw.col("x").is_null()).select(place.alias("at"))
    found = collect(rows.group_by("at").agg(nw.len().cast(nw.Int64).alias("count")))
    counts = np.zeros(len(candidates), dtype=np.int64)
    np.add.at(counts, np.clip(found["at"].to_numpy(), 0, len(candidates) - 1), found["count"].to_numpy())
    return np.concatenate([[0], np.cumsum(counts)])
