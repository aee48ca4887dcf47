"""How far would whole records have to be moved? Optimal transport between the rows of two files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import InputError
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, names_checked, weights_of

Cost = Literal["sqeuclidean", "euclidean"]


@measure(
    room="utility",
    work="whole-file",
    title="Distance of whole records",
    question="How far would whole records have to be moved?",
    headline="mean cost a record",
    chapter="joint",
    place=3,
    figures={
        "value": Figure(better="lower"),
        "baseline": Figure("Between two samples of the original"),
        "excess": Figure(better="lower", summary=True),
    },
    compare=OfPair(11, "utility", usual=False),
)
def transport(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    cost: Cost = "sqeuclidean",
    most: Annotated[int, AtLeast(2)] = 1000,
    repeats: Annotated[int, AtLeast(1)] = 5,
    weight: ColumnName | None = None,
    seed: Seed = 0,
) -> Measure:
    """How far would whole records have to be moved to turn one file into the other?

    The least mean cost of matching the records of one file to those of the other (the Wasserstein distance of the
    rows). Numbers are scaled to the range of the original, categories are one column of zeros and ones a level.

    Also known as: Wasserstein distance; earth mover's distance between files.

    Parameters
    ----------
    original, released
        The file before and after.
    columns
        What to compare; all columns that both files have unless named.
    categorical
        Columns of numbers that are codes.
    cost
        Of moving a record: ``"sqeuclidean"``, the squared distance, or ``"euclidean"``, the distance itself. The
        value is the cost, no root is taken.
    most
        Files of equal size up to this are matched exactly; from others samples of (at most) this many records are
        matched, ``repeats`` times, and averaged.
    repeats
        How many samples.
    weight
        Survey weight, by which records are sampled.
    seed
        Of the samples.

    Returns
    -------
    Measure
        ``value`` is the mean cost a record. ``figures``: ``transport``, ``transport_numbers`` (of numeric columns
        alone), ``baseline`` (between two disjoint samples of the original, at most half of it each),
        ``excess`` (of samples of both files that are as large as those), ``exact``,
        ``sample_size``, ``standard_error``, ``hellinger`` (mean over categories), ``combined`` (numbers by transport
        plus categories by Hellinger). ``detail``: ``repeats``.

    How to read it
    --------------
    With squared costs a record whose every category has to change costs 2 a column, and a number moved over its whole
    range costs 1. Only the comparison tells: hold the value against other releases, and look at ``excess``, how much
    more it costs than between two samples of the original itself. An ``excess`` near 0 is as good as fresh data;
    clearly below 0 means that the release sits closer to the original than fresh data would, a question of risk.

    When not to trust it
    --------------------
    The distance between samples is larger than between whole files, the more so the more columns there are, which is
    why there is a baseline. Columns with many levels or with outliers (the range is theirs) rule the result. It is one
    number for everything: `margins` and `tabular` say where a difference comes from.

    Examples
    --------
    >>> before = Microdata(pl.DataFrame({"x": [0.0, 0.5, 1.0, 0.25], "c": ["a", "a", "b", "c"]}))
    >>> after = Microdata(pl.DataFrame({"x": [0.0, 0.75, 1.0, 0.25], "c": ["a", "b", "b", "a"]}))
    >>> found = transport(before, after)
    >>> found.value, found.figures["transport_numbers"]
    (0.578125, 0.015625)
    """
    copies_of(released, original)
    coded = names_checked(original, categorical, "categorical")
    compared = compared_columns(original, released, columns, without=[weight])
    weights, notes = weights_of(original, released, weight)
    held = _Rows(original, released, compared.names, coded, weights)
    sizes = [len(side) for side in held.numbers]
    exact = sizes[0] == sizes[1] <= most and weights == (None, None)
    size = sizes[0] if exact else min(most, *sizes)
    random = generator(seed, "transport")
    whole: list[float] = []
    numbers: list[float | None] = []
    for _ in track(range(1 if exact else repeats), description="Matching records"):
        if exact:
            ours, theirs = np.arange(sizes[0]), np.arange(sizes[1])
        else:
            ours, theirs = held.drawn(size, random)
        whole.append(held.matched(ours, theirs, cost))
        numbers.append(held.matched_numbers(ours, theirs, cost))
    half = min(size, sizes[0] // 2, sizes[1])
    again = range(repeats if half >= 2 else 0)
    near = [held.baseline(half, cost, random) for _ in again]
    fresh = [held.matched(*held.drawn(half, random), cost) for _ in again]
    value = float(np.mean(whole))
    known = [number for number in numbers if number is not None]
    numeric = float(np.mean(known)) if known else None
    baseline = float(np.mean(near)) if near else None
    spread = float(np.std(whole, ddof=1) / np.sqrt(len(whole))) if len(whole) > 1 else None
    table = pl.DataFrame({"transport": whole, "transport_numbers": numbers}, schema_overrides=_FLOATS)
    if not exact:
        notes.append(
            f"Matched were {len(whole)} samples of {size:,} records, not the whole files: hold the value against the "
            "baseline, never against an exact one."
        )
    return Measure(
        name="transport",
        value=value,
        figures={
            "transport": value,
            "transport_numbers": numeric,
            "baseline": baseline,
            "excess": None if baseline is None else float(np.mean(fresh)) - baseline,
            "hellinger": held.hellinger,
            "combined": None if numeric is None or held.hellinger is None else numeric + held.hellinger,
            "exact": exact,
            "sample_size": size,
            "standard_error": spread,
        },
        meaning=(
            f"Matching the records of both files costs {shown(value)} a record"
            + ("." if baseline is None else f"; between two samples of the original it is {shown(baseline)}.")
        ),
        caveats=[*compared.caveats, *notes, DEPENDENT],
        parameters={
            "columns": list(compared.names),
            "categorical": list(coded),
            "cost": cost,
            "most": most,
            "repeats": repeats,
            "weight": weights[0],
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=engine.tables_like(original, repeats=table),
    )


class _Rows:
    """The records of both files, coded alike: numbers over the original's range, levels as zeros and ones."""

    def __init__(
        self,
        original: Microdata,
        released: Microdata,
        names: Sequence[str],
        coded: Sequence[str],
        weights: tuple[str | None, str | None],
    ) -> None:
        frames = [
            engine.collect(data, [*names, *([weight] if weight and weight not in names else [])])
            for data, weight in zip((original, released), weights, strict=True)
        ]
        numbers: tuple[list[Any], list[Any]] = ([], [])
        codes: tuple[list[Any], list[Any]] = ([], [])
        distances = []
        for name in names:
            kind, dtype, _ = engine.compared_as(
                name, frames[0][name], frames[1][name], category=name in coded
            )
            parts = [engine.brought_to(frame[name], dtype) for frame in frames]
            if kind == "number":
                self._add_number(name, [engine.physical(part) for part in parts], numbers)
                continue
            levels = pl.concat([part.rename("v") for part in parts]).unique().sort(nulls_last=True)
            place = {level: at for at, level in enumerate(levels.to_list())}
            both = [part.replace_strict(place, return_dtype=pl.Int32).to_numpy() for part in parts]
            shares = [np.bincount(b, minlength=len(place)) / len(b) for b in both]
            distances.append(float(np.sqrt(((np.sqrt(shares[0]) - np.sqrt(shares[1])) ** 2).sum() / 2)))
            for side in (0, 1):
                codes[side].append(both[side])
        self.hellinger = float(np.mean(distances)) if distances else None
        self.numbers = [
            np.column_stack(side) if side else np.empty((len(frame), 0))
            for side, frame in zip(numbers, frames, strict=True)
        ]
        self.codes = [
            np.column_stack(side) if side else np.empty((len(frame), 0), np.int32)
            for side, frame in zip(codes, frames, strict=True)
        ]
        self.chances = [
            None if weight is None else frame[weight].cast(pl.Float64).to_numpy()
            for frame, weight in zip(frames, weights, strict=True)
        ]

    @staticmethod
    def _add_number(name: str, both: Sequence[Floats], into: tuple[list[Any], list[Any]]) -> None:
        known = both[0][np.isfinite(both[0])]
        if not len(known):
            raise InputError(f"Column '{name}' holds no values in the original. Leave it out.")
        low, width = float(known.min()), float(np.ptp(known))
        gaps = any(np.isnan(side).any() for side in both)
        for side, values in enumerate(both):
            # A constant column has no scale. A missing value stands at the mean, and a flag says so.
            scaled = (values - low) / width if width > 0 else np.where(np.isnan(values), np.nan, 0.0)
            middle = (float(known.mean()) - low) / width if width > 0 else 0.0
            into[side].append(np.where(np.isnan(scaled), middle, scaled))
            if gaps:
                into[side].append(np.isnan(scaled).astype(np.float64))

    def drawn(self, size: int, random: np.random.Generator) -> tuple[Integers, Integers]:
        """Sample records of both files, by weight where there is one."""
        return self._some(0, size, random), self._some(1, size, random)

    def _some(self, side: int, size: int, random: np.random.Generator) -> Integers:
        chances = self.chances[side]
        n = len(self.numbers[side])
        if chances is None:
            return random.choice(n, size, replace=False)
        return random.choice(n, size, replace=True, p=chances / chances.sum())

    def matched(self, ours: Any, theirs: Any, cost: Cost, sides: tuple[int, int] = (0, 1)) -> float:
        """Match the chosen records, and give the mean cost."""
        a, b = sides
        squared = _squared(self.numbers[a][ours], self.numbers[b][theirs])
        left, right = self.codes[a][ours], self.codes[b][theirs]
        for column in range(left.shape[1]):
            squared += 2.0 * (left[:, column][:, None] != right[:, column][None, :])
        return _assigned(squared, cost)

    def matched_numbers(self, ours: Any, theirs: Any, cost: Cost) -> float | None:
        """Match the chosen records by their numbers alone."""
        if not self.numbers[0].shape[1]:
            return None
        return _assigned(_squared(self.numbers[0][ours], self.numbers[1][theirs]), cost)

    def baseline(self, size: int, cost: Cost, random: np.random.Generator) -> float:
        """Match two disjoint samples of the original."""
        order = random.permutation(len(self.numbers[0]))
        return self.matched(order[:size], order[size : 2 * size], cost, (0, 0))


def _squared(x: Floats, y: Floats) -> Floats:
    found = np.zeros((len(x), len(y)))
    for column in range(x.shape[1]):
        found += (x[:, column][:, None] - y[:, column][None, :]) ** 2
    return found


def _assigned(squared: Floats, cost: Cost) -> float:
    from scipy.optimize import linear_sum_assignment

    costs = squared if cost == "sqeuclidean" else np.sqrt(squared)
    return float(costs[linear_sum_assignment(costs)].mean())


_FLOATS = {"transport": pl.Float64, "transport_numbers": pl.Float64}
